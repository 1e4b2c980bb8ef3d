"""The fields of a Job, down to the last field of its pod template, with their types.

One struct a paragraph, one field a word: ``name=type``. Types: ``s`` text, ``i`` integer, ``b`` bool, ``q`` quantity,
``t`` time, ``m`` time with microseconds, ``x`` number or text, ``f`` number, ``y`` bytes as base64, ``?`` anything,
``T|U`` either, ``[T]`` list, ``{T}`` map, a name: that struct. ``*``: absent is not the same as empty or zero; ``!``:
it is served even if it is empty. ``canonical`` and ``printing`` read it.

Fields of gates that are off in 1.36 are not there, since a server drops them: lifecycle.stopSignal, schedulingGroup,
clusterTrustBundle and podCertificate of projected volumes. ``podFailurePolicy.rules[].name`` is ours (RN1).
"""

from __future__ import annotations

from collections.abc import Mapping

_TABLE = """
Job: apiVersion=s kind=s metadata=ObjectMeta spec=JobSpec status=JobStatus
JobSpec: parallelism=*i completions=*i activeDeadlineSeconds=*i podFailurePolicy=*PodFailurePolicy
    successPolicy=*SuccessPolicy backoffLimit=*i backoffLimitPerIndex=*i maxFailedIndexes=*i selector=*LabelSelector
    manualSelector=*b template=PodTemplateSpec! ttlSecondsAfterFinished=*i completionMode=*s suspend=*b
    podReplacementPolicy=*s managedBy=*s
JobStatus: conditions=[JobCondition] startTime=*t completionTime=*t active=i succeeded=i failed=i terminating=*i
    completedIndexes=s failedIndexes=*s uncountedTerminatedPods=*UncountedTerminatedPods ready=*i
ObjectMeta: name=s generateName=s namespace=s selfLink=s uid=s resourceVersion=s generation=i creationTimestamp=t
    deletionTimestamp=*t deletionGracePeriodSeconds=*i labels={s} annotations={s} ownerReferences=[OwnerReference]
    finalizers=[s] managedFields=[ManagedFieldsEntry]
PodFailurePolicy: rules=[PodFailurePolicyRule]!
SuccessPolicy: rules=[SuccessPolicyRule]!
LabelSelector: matchLabels={s} matchExpressions=[LabelSelectorRequirement]
PodTemplateSpec: metadata=ObjectMeta spec=PodSpec
JobCondition: type=s! status=s! lastProbeTime=t! lastTransitionTime=t! reason=s message=s
UncountedTerminatedPods: succeeded=[s] failed=[s]
OwnerReference: apiVersion=s! kind=s! name=s! uid=s! controller=*b blockOwnerDeletion=*b
ManagedFieldsEntry: manager=s operation=s apiVersion=s time=*t fieldsType=s fieldsV1=? subresource=s
PodFailurePolicyRule: name=*s action=s! onExitCodes=*PodFailurePolicyOnExitCodesRequirement
    onPodConditions=[PodFailurePolicyOnPodConditionsPattern]
SuccessPolicyRule: succeededIndexes=*s succeededCount=*i
LabelSelectorRequirement: key=s! operator=s! values=[s]
PodSpec: volumes=[Volume] initContainers=[Container] containers=[Container]!
    ephemeralContainers=[EphemeralContainer] restartPolicy=s terminationGracePeriodSeconds=*i
    activeDeadlineSeconds=*i dnsPolicy=s nodeSelector={s} serviceAccountName=s serviceAccount=s
    automountServiceAccountToken=*b nodeName=s hostNetwork=b hostPID=b hostIPC=b shareProcessNamespace=*b
    securityContext=*PodSecurityContext imagePullSecrets=[LocalObjectReference] hostname=s subdomain=s
    affinity=*Affinity schedulerName=s tolerations=[Toleration] hostAliases=[HostAlias] priorityClassName=s
    priority=*i dnsConfig=*PodDNSConfig readinessGates=[PodReadinessGate] runtimeClassName=*s enableServiceLinks=*b
    preemptionPolicy=*s overhead={q} topologySpreadConstraints=[TopologySpreadConstraint] setHostnameAsFQDN=*b
    os=*PodOS hostUsers=*b schedulingGates=[PodSchedulingGate] resourceClaims=[PodResourceClaim]
    resources=*ResourceRequirements hostnameOverride=*s
PodFailurePolicyOnExitCodesRequirement: containerName=*s operator=s! values=[i]!
PodFailurePolicyOnPodConditionsPattern: type=s! status=s!
Volume: name=s! hostPath=*HostPathVolumeSource emptyDir=*EmptyDirVolumeSource
    gcePersistentDisk=*GCEPersistentDiskVolumeSource awsElasticBlockStore=*AWSElasticBlockStoreVolumeSource
    gitRepo=*GitRepoVolumeSource secret=*SecretVolumeSource nfs=*NFSVolumeSource iscsi=*ISCSIVolumeSource
    glusterfs=*GlusterfsVolumeSource persistentVolumeClaim=*PersistentVolumeClaimVolumeSource rbd=*RBDVolumeSource
    flexVolume=*FlexVolumeSource cinder=*CinderVolumeSource cephfs=*CephFSVolumeSource flocker=*FlockerVolumeSource
    downwardAPI=*DownwardAPIVolumeSource fc=*FCVolumeSource azureFile=*AzureFileVolumeSource
    configMap=*ConfigMapVolumeSource vsphereVolume=*VsphereVirtualDiskVolumeSource quobyte=*QuobyteVolumeSource
    azureDisk=*AzureDiskVolumeSource photonPersistentDisk=*PhotonPersistentDiskVolumeSource
    projected=*ProjectedVolumeSource portworxVolume=*PortworxVolumeSource scaleIO=*ScaleIOVolumeSource
    storageos=*StorageOSVolumeSource csi=*CSIVolumeSource ephemeral=*EphemeralVolumeSource image=*ImageVolumeSource
Container: name=s! image=s command=[s] args=[s] workingDir=s ports=[ContainerPort] envFrom=[EnvFromSource]
    env=[EnvVar] resources=ResourceRequirements resizePolicy=[ContainerResizePolicy] restartPolicy=*s
    restartPolicyRules=[ContainerRestartRule] volumeMounts=[VolumeMount] volumeDevices=[VolumeDevice]
    livenessProbe=*Probe readinessProbe=*Probe startupProbe=*Probe lifecycle=*Lifecycle terminationMessagePath=s
    terminationMessagePolicy=s imagePullPolicy=s securityContext=*SecurityContext stdin=b stdinOnce=b tty=b
EphemeralContainer: name=s! image=s command=[s] args=[s] workingDir=s ports=*[ContainerPort] envFrom=[EnvFromSource]
    env=[EnvVar] resources=ResourceRequirements resizePolicy=*[ContainerResizePolicy] restartPolicy=*s
    restartPolicyRules=*[ContainerRestartRule] volumeMounts=[VolumeMount] volumeDevices=[VolumeDevice]
    livenessProbe=*Probe readinessProbe=*Probe startupProbe=*Probe lifecycle=*Lifecycle terminationMessagePath=s
    terminationMessagePolicy=s imagePullPolicy=s securityContext=*SecurityContext stdin=b stdinOnce=b tty=b
    targetContainerName=s
PodSecurityContext: seLinuxOptions=*SELinuxOptions windowsOptions=*WindowsSecurityContextOptions runAsUser=*i
    runAsGroup=*i runAsNonRoot=*b supplementalGroups=[i] supplementalGroupsPolicy=*s fsGroup=*i sysctls=[Sysctl]
    fsGroupChangePolicy=*s seccompProfile=*SeccompProfile appArmorProfile=*AppArmorProfile seLinuxChangePolicy=*s
LocalObjectReference: name=s
Affinity: nodeAffinity=*NodeAffinity podAffinity=*PodAffinity podAntiAffinity=*PodAntiAffinity
Toleration: key=s operator=s value=s effect=s tolerationSeconds=*i
HostAlias: ip=s! hostnames=[s]
PodDNSConfig: nameservers=[s] searches=[s] options=[PodDNSConfigOption]
PodReadinessGate: conditionType=s!
TopologySpreadConstraint: maxSkew=i! topologyKey=s! whenUnsatisfiable=s! labelSelector=*LabelSelector minDomains=*i
    nodeAffinityPolicy=*s nodeTaintsPolicy=*s matchLabelKeys=[s]
PodOS: name=s!
PodSchedulingGate: name=s!
PodResourceClaim: name=s! resourceClaimName=*s resourceClaimTemplateName=*s
ResourceRequirements: limits={q} requests={q} claims=[ResourceClaim]
HostPathVolumeSource: path=s! type=*s
EmptyDirVolumeSource: medium=s sizeLimit=*q
GCEPersistentDiskVolumeSource: pdName=s! fsType=s partition=i readOnly=b
AWSElasticBlockStoreVolumeSource: volumeID=s! fsType=s partition=i readOnly=b
GitRepoVolumeSource: repository=s! revision=s directory=s
SecretVolumeSource: secretName=s items=[KeyToPath] defaultMode=*i optional=*b
NFSVolumeSource: server=s! path=s! readOnly=b
ISCSIVolumeSource: targetPortal=s! iqn=s! lun=i! iscsiInterface=s fsType=s readOnly=b portals=[s]
    chapAuthDiscovery=b chapAuthSession=b secretRef=*LocalObjectReference initiatorName=*s
GlusterfsVolumeSource: endpoints=s! path=s! readOnly=b
PersistentVolumeClaimVolumeSource: claimName=s! readOnly=b
RBDVolumeSource: monitors=[s]! image=s! fsType=s pool=s user=s keyring=s secretRef=*LocalObjectReference readOnly=b
FlexVolumeSource: driver=s! fsType=s secretRef=*LocalObjectReference readOnly=b options={s}
CinderVolumeSource: volumeID=s! fsType=s readOnly=b secretRef=*LocalObjectReference
CephFSVolumeSource: monitors=[s]! path=s user=s secretFile=s secretRef=*LocalObjectReference readOnly=b
FlockerVolumeSource: datasetName=s datasetUUID=s
DownwardAPIVolumeSource: items=[DownwardAPIVolumeFile] defaultMode=*i
FCVolumeSource: targetWWNs=[s] lun=*i fsType=s readOnly=b wwids=[s]
AzureFileVolumeSource: secretName=s! shareName=s! readOnly=b
ConfigMapVolumeSource: name=s items=[KeyToPath] defaultMode=*i optional=*b
VsphereVirtualDiskVolumeSource: volumePath=s! fsType=s storagePolicyName=s storagePolicyID=s
QuobyteVolumeSource: registry=s! volume=s! readOnly=b user=s group=s tenant=s
AzureDiskVolumeSource: diskName=s! diskURI=s! cachingMode=*s fsType=*s readOnly=*b kind=*s
PhotonPersistentDiskVolumeSource: pdID=s! fsType=s
ProjectedVolumeSource: sources=[VolumeProjection]! defaultMode=*i
PortworxVolumeSource: volumeID=s! fsType=s readOnly=b
ScaleIOVolumeSource: gateway=s! system=s! secretRef=*LocalObjectReference! sslEnabled=b protectionDomain=s
    storagePool=s storageMode=s volumeName=s fsType=s readOnly=b
StorageOSVolumeSource: volumeName=s volumeNamespace=s fsType=s readOnly=b secretRef=*LocalObjectReference
CSIVolumeSource: driver=s! readOnly=*b fsType=*s volumeAttributes={s} nodePublishSecretRef=*LocalObjectReference
EphemeralVolumeSource: volumeClaimTemplate=*PersistentVolumeClaimTemplate
ImageVolumeSource: reference=s pullPolicy=s
ContainerPort: name=s hostPort=i containerPort=i! protocol=s hostIP=s
EnvFromSource: prefix=s configMapRef=*ConfigMapEnvSource secretRef=*SecretEnvSource
EnvVar: name=s! value=s valueFrom=*EnvVarSource
ContainerResizePolicy: resourceName=s! restartPolicy=s!
ContainerRestartRule: action=s exitCodes=*ContainerRestartRuleOnExitCodes
VolumeMount: name=s! readOnly=b recursiveReadOnly=*s mountPath=s! subPath=s mountPropagation=*s subPathExpr=s
VolumeDevice: name=s! devicePath=s!
Probe: exec=*ExecAction httpGet=*HTTPGetAction tcpSocket=*TCPSocketAction grpc=*GRPCAction initialDelaySeconds=i
    timeoutSeconds=i periodSeconds=i successThreshold=i failureThreshold=i terminationGracePeriodSeconds=*i
Lifecycle: postStart=*LifecycleHandler preStop=*LifecycleHandler
SecurityContext: capabilities=*Capabilities privileged=*b seLinuxOptions=*SELinuxOptions
    windowsOptions=*WindowsSecurityContextOptions runAsUser=*i runAsGroup=*i runAsNonRoot=*b
    readOnlyRootFilesystem=*b allowPrivilegeEscalation=*b procMount=*s seccompProfile=*SeccompProfile
    appArmorProfile=*AppArmorProfile
SELinuxOptions: user=s role=s type=s level=s
WindowsSecurityContextOptions: gmsaCredentialSpecName=*s gmsaCredentialSpec=*s runAsUserName=*s hostProcess=*b
Sysctl: name=s! value=s!
SeccompProfile: type=s! localhostProfile=*s
AppArmorProfile: type=s! localhostProfile=*s
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution=*NodeSelector
    preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm]
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
    preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
    preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
PodDNSConfigOption: name=s value=*s
ResourceClaim: name=s! request=s
KeyToPath: key=s! path=s! mode=*i
DownwardAPIVolumeFile: path=s! fieldRef=*ObjectFieldSelector resourceFieldRef=*ResourceFieldSelector mode=*i
VolumeProjection: secret=*SecretProjection downwardAPI=*DownwardAPIProjection configMap=*ConfigMapProjection
    serviceAccountToken=*ServiceAccountTokenProjection
PersistentVolumeClaimTemplate: metadata=ObjectMeta spec=PersistentVolumeClaimSpec!
ConfigMapEnvSource: name=s optional=*b
SecretEnvSource: name=s optional=*b
EnvVarSource: fieldRef=*ObjectFieldSelector resourceFieldRef=*ResourceFieldSelector
    configMapKeyRef=*ConfigMapKeySelector secretKeyRef=*SecretKeySelector fileKeyRef=*FileKeySelector
ContainerRestartRuleOnExitCodes: operator=s values=[i]
ExecAction: command=[s]
HTTPGetAction: path=s port=x! host=s scheme=s httpHeaders=[HTTPHeader]
TCPSocketAction: port=x! host=s
GRPCAction: port=i! service=*s!
LifecycleHandler: exec=*ExecAction httpGet=*HTTPGetAction tcpSocket=*TCPSocketAction sleep=*SleepAction
Capabilities: add=[s] drop=[s]
NodeSelector: nodeSelectorTerms=[NodeSelectorTerm]!
PreferredSchedulingTerm: weight=i! preference=NodeSelectorTerm!
PodAffinityTerm: labelSelector=*LabelSelector namespaces=[s] topologyKey=s! namespaceSelector=*LabelSelector
    matchLabelKeys=[s] mismatchLabelKeys=[s]
WeightedPodAffinityTerm: weight=i! podAffinityTerm=PodAffinityTerm!
ObjectFieldSelector: apiVersion=s fieldPath=s!
ResourceFieldSelector: containerName=s resource=s! divisor=q
SecretProjection: name=s items=[KeyToPath] optional=*b
DownwardAPIProjection: items=[DownwardAPIVolumeFile]
ConfigMapProjection: name=s items=[KeyToPath] optional=*b
ServiceAccountTokenProjection: audience=s expirationSeconds=*i path=s!
PersistentVolumeClaimSpec: accessModes=[s] selector=*LabelSelector resources=VolumeResourceRequirements volumeName=s
    storageClassName=*s volumeMode=*s dataSource=*TypedLocalObjectReference dataSourceRef=*TypedObjectReference
    volumeAttributesClassName=*s
ConfigMapKeySelector: name=s key=s! optional=*b
SecretKeySelector: name=s key=s! optional=*b
FileKeySelector: volumeName=s! path=s! key=s! optional=*b
HTTPHeader: name=s! value=s!
SleepAction: seconds=i!
NodeSelectorTerm: matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]
VolumeResourceRequirements: limits={q} requests={q}
TypedLocalObjectReference: apiGroup=*s! kind=s! name=s!
TypedObjectReference: apiGroup=*s! kind=s! name=s! namespace=*s
NodeSelectorRequirement: key=s! operator=s! values=[s]
"""


def read(table: str) -> dict[str, dict[str, str]]:
    """Struct → field → type, of a table like the one above."""
    structs: dict[str, dict[str, str]] = {}
    fields: dict[str, str] = {}
    for word in table.split():
        if word.endswith(":"):
            fields = structs.setdefault(word[:-1], {})
        else:
            name, _, kind = word.partition("=")
            fields[name] = kind
    return structs


STRUCTS: Mapping[str, Mapping[str, str]] = read(_TABLE)
"""Struct → field → type, in the server's order."""
