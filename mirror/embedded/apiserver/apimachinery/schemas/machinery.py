"""The fields of options, lists' metadata and Statuses: what belongs to the API itself.

The language is that of ``batch_schema``.
"""

TABLE = """
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
