"""The fields of CronJobs, Leases, PriorityClasses, Scales and Evictions.

The language is that of ``batch_schema``.
"""

TABLE = """
CronJob: apiVersion=s kind=s metadata=ObjectMeta spec=CronJobSpec status=CronJobStatus
CronJobSpec: schedule=s! timeZone=*s startingDeadlineSeconds=*i concurrencyPolicy=s suspend=*b
    jobTemplate=JobTemplateSpec! successfulJobsHistoryLimit=*i failedJobsHistoryLimit=*i
JobTemplateSpec: metadata=ObjectMeta spec=JobSpec
CronJobStatus: active=[ObjectReference] lastScheduleTime=*t lastSuccessfulTime=*t
Lease: apiVersion=s kind=s metadata=ObjectMeta spec=LeaseSpec
LeaseSpec: holderIdentity=*s leaseDurationSeconds=*i acquireTime=*m renewTime=*m leaseTransitions=*i strategy=*s
    preferredHolder=*s
PriorityClass: apiVersion=s kind=s metadata=ObjectMeta value=i! globalDefault=b description=s preemptionPolicy=*s
Scale: apiVersion=s kind=s metadata=ObjectMeta spec=ScaleSpec status=ScaleStatus
ScaleSpec: replicas=i
ScaleStatus: replicas=i! selector=s
Eviction: apiVersion=s kind=s metadata=ObjectMeta deleteOptions=*DeleteOptions
"""
