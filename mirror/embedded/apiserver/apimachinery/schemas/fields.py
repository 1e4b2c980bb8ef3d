"""The types of the fields of every built-in kind: Jobs (``batch_schema``) and all others.

The language of the tables is that of ``batch_schema``.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror.embedded.apiserver.apimachinery.batch_schema import STRUCTS as BATCH
from mirror.embedded.apiserver.apimachinery.batch_schema import read
from mirror.embedded.apiserver.apimachinery.schemas import access, core, extensions

_OTHERS = """
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
"""CronJobs, Leases, PriorityClasses, Scales and Evictions."""
_MACHINERY = """
DeleteOptions: apiVersion=s kind=s gracePeriodSeconds=*i preconditions=*Preconditions orphanDependents=*b
    propagationPolicy=*s dryRun=[s] ignoreStoreReadErrorWithClusterBreakingPotential=*b
Preconditions: uid=*s resourceVersion=*s
FieldSelectorRequirement: key=s! operator=s! values=[s]
Status: apiVersion=s kind=s metadata=ListMeta status=s message=s reason=s details=*StatusDetails code=i
ListMeta: selfLink=s resourceVersion=s continue=s remainingItemCount=*i shardInfo=*ShardInfo
ShardInfo: selector=s!
StatusDetails: name=s group=s kind=s uid=s causes=[StatusCause] retryAfterSeconds=i
StatusCause: reason=s message=s field=s
CreateOptions: apiVersion=s kind=s dryRun=[s] fieldManager=s fieldValidation=s
UpdateOptions: apiVersion=s kind=s dryRun=[s] fieldManager=s fieldValidation=s
PatchOptions: apiVersion=s kind=s dryRun=[s] force=*b fieldManager=s fieldValidation=s
ListOptions: apiVersion=s kind=s labelSelector=s fieldSelector=s watch=b allowWatchBookmarks=b resourceVersion=s
    resourceVersionMatch=s timeoutSeconds=*i limit=i continue=s sendInitialEvents=*b shardSelector=s
GroupVersionKind: group=s! version=s! kind=s!
GroupVersionResource: group=s! version=s! resource=s!
"""
"""Options, lists' metadata and Statuses."""

STRUCTS: Mapping[str, Mapping[str, str]] = {
    **BATCH,
    **{
        struct: fields
        for table in (core.TABLE, _OTHERS, access.TABLE, _MACHINERY, extensions.TABLE)
        for struct, fields in read(table).items()
    },
}
"""Struct → field → type. Structs are called as in Go; ``EventsV1Event`` is that of events.k8s.io, and what definitions
of resources have in common with webhook configurations is called ``Apiextensions…`` there."""
