"""The fields of the core kinds beside Jobs' pod templates, and of both versions of Event.

The language is that of ``batch_schema``.
"""

TABLE = """
Namespace: apiVersion=s kind=s metadata=ObjectMeta spec=NamespaceSpec status=NamespaceStatus
NamespaceSpec: finalizers=[s]
NamespaceStatus: phase=s conditions=[NamespaceCondition]
NamespaceCondition: type=s! status=s! lastTransitionTime=t! reason=s message=s
Pod: apiVersion=s kind=s metadata=ObjectMeta spec=PodSpec status=PodStatus
PodStatus: observedGeneration=i phase=s conditions=[PodCondition] message=s reason=s nominatedNodeName=s hostIP=s
    hostIPs=[HostIP] podIP=s podIPs=[PodIP] startTime=*t initContainerStatuses=[ContainerStatus]
    containerStatuses=[ContainerStatus] qosClass=s ephemeralContainerStatuses=[ContainerStatus] resize=s
    resourceClaimStatuses=[PodResourceClaimStatus] extendedResourceClaimStatus=*PodExtendedResourceClaimStatus
    allocatedResources={q} resources=*ResourceRequirements
    nodeAllocatableResourceClaimStatuses=[NodeAllocatableResourceClaimStatus]
PodCondition: type=s! observedGeneration=i status=s! lastProbeTime=t! lastTransitionTime=t! reason=s message=s
HostIP: ip=s!
PodIP: ip=s!
ContainerStatus: name=s! state=ContainerState lastState=ContainerState ready=b! restartCount=i! image=s! imageID=s!
    containerID=s started=*b allocatedResources={q} resources=*ResourceRequirements volumeMounts=[VolumeMountStatus]
    user=*ContainerUser allocatedResourcesStatus=[ResourceStatus] stopSignal=*s
ContainerState: waiting=*ContainerStateWaiting running=*ContainerStateRunning terminated=*ContainerStateTerminated
ContainerStateWaiting: reason=s message=s
ContainerStateRunning: startedAt=t!
ContainerStateTerminated: exitCode=i! signal=i reason=s message=s startedAt=t! finishedAt=t! containerID=s
VolumeMountStatus: name=s! mountPath=s! readOnly=b recursiveReadOnly=*s volumeStatus=*VolumeStatus
VolumeStatus: image=*ImageVolumeStatus
ImageVolumeStatus: imageRef=s
ContainerUser: linux=*LinuxContainerUser
LinuxContainerUser: uid=i! gid=i! supplementalGroups=[i]
ResourceStatus: name=s! resources=[ResourceHealth]
ResourceHealth: resourceID=s! health=s message=*s
PodResourceClaimStatus: name=s! resourceClaimName=*s
PodExtendedResourceClaimStatus: requestMappings=[ContainerExtendedResourceRequest]! resourceClaimName=s!
ContainerExtendedResourceRequest: containerName=s! resourceName=s! requestName=s!
NodeAllocatableResourceClaimStatus: resourceClaimName=s! containers=[s] resources={q}!
Secret: apiVersion=s kind=s metadata=ObjectMeta immutable=*b data={y} stringData={s} type=s
ConfigMap: apiVersion=s kind=s metadata=ObjectMeta immutable=*b data={s} binaryData={y}
Event: apiVersion=s kind=s metadata=ObjectMeta! involvedObject=ObjectReference! reason=s message=s source=EventSource
    firstTimestamp=t! lastTimestamp=t! count=i type=s eventTime=m! series=*EventSeries action=s
    related=*ObjectReference reportingComponent=s! reportingInstance=s!
ObjectReference: apiVersion=s kind=s namespace=s name=s uid=s resourceVersion=s fieldPath=s
EventSource: component=s host=s
EventSeries: count=i lastObservedTime=m!
Node: apiVersion=s kind=s metadata=ObjectMeta spec=NodeSpec status=NodeStatus
NodeSpec: podCIDR=s podCIDRs=[s] providerID=s unschedulable=b taints=[Taint] configSource=*NodeConfigSource
    externalID=s
Taint: key=s! value=s effect=s! timeAdded=*t
NodeConfigSource: configMap=*ConfigMapNodeConfigSource
ConfigMapNodeConfigSource: namespace=s! name=s! uid=s resourceVersion=s kubeletConfigKey=s!
NodeStatus: capacity={q} allocatable={q} phase=s conditions=[NodeCondition] addresses=[NodeAddress]
    daemonEndpoints=NodeDaemonEndpoints nodeInfo=NodeSystemInfo images=[ContainerImage] volumesInUse=[s]
    volumesAttached=[AttachedVolume] config=*NodeConfigStatus runtimeHandlers=[NodeRuntimeHandler]
    features=*NodeFeatures declaredFeatures=[s]
NodeCondition: type=s! status=s! lastHeartbeatTime=t! lastTransitionTime=t! reason=s message=s
NodeAddress: type=s! address=s!
NodeDaemonEndpoints: kubeletEndpoint=DaemonEndpoint
DaemonEndpoint: Port=i!
NodeSystemInfo: machineID=s! systemUUID=s! bootID=s! kernelVersion=s! osImage=s! containerRuntimeVersion=s!
    kubeletVersion=s! kubeProxyVersion=s! operatingSystem=s! architecture=s! swap=*NodeSwapStatus
NodeSwapStatus: capacity=*i
ContainerImage: names=[s]! sizeBytes=i
AttachedVolume: name=s! devicePath=s!
NodeConfigStatus: assigned=*NodeConfigSource active=*NodeConfigSource lastKnownGood=*NodeConfigSource error=s
NodeRuntimeHandler: name=s! features=*NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts=*b userNamespaces=*b
NodeFeatures: supplementalGroupsPolicy=*b
ServiceAccount: apiVersion=s kind=s metadata=ObjectMeta secrets=[ObjectReference]
    imagePullSecrets=[LocalObjectReference] automountServiceAccountToken=*b
Binding: apiVersion=s kind=s metadata=ObjectMeta target=ObjectReference!
EventsV1Event: apiVersion=s kind=s metadata=ObjectMeta! eventTime=m! series=*EventsV1EventSeries reportingController=s
    reportingInstance=s action=s reason=s regarding=ObjectReference related=*ObjectReference note=s type=s
    deprecatedSource=EventSource deprecatedFirstTimestamp=t! deprecatedLastTimestamp=t! deprecatedCount=i
EventsV1EventSeries: count=i! lastObservedTime=m!
"""
