"""What a Kubernetes server calls the types of fields where it refuses a body: only messages need it.

A field whose type is not listed is called after its letter: ``string``, ``int32``, ``bool``, ``float64``, ``[]uint8``.
``int64`` is also what tells which integers may have more than 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

_NAMED = """
int64: ObjectMeta.generation ObjectMeta.deletionGracePeriodSeconds ServiceAccountTokenProjection.expirationSeconds
    Probe.terminationGracePeriodSeconds SleepAction.seconds SecurityContext.runAsUser SecurityContext.runAsGroup
    PodSpec.terminationGracePeriodSeconds PodSpec.activeDeadlineSeconds PodSecurityContext.runAsUser
    PodSecurityContext.runAsGroup PodSecurityContext.fsGroup Toleration.tolerationSeconds PodStatus.observedGeneration
    PodCondition.observedGeneration LinuxContainerUser.uid LinuxContainerUser.gid NodeSwapStatus.capacity
    ContainerImage.sizeBytes JobSpec.activeDeadlineSeconds CronJobSpec.startingDeadlineSeconds
    DeleteOptions.gracePeriodSeconds TokenRequestSpec.expirationSeconds JSONSchemaProps.maxLength
    JSONSchemaProps.minLength JSONSchemaProps.maxItems JSONSchemaProps.minItems JSONSchemaProps.maxProperties
    JSONSchemaProps.minProperties CustomResourceDefinitionCondition.observedGeneration
    CustomResourceDefinitionStatus.observedGeneration ListMeta.remainingItemCount ListOptions.timeoutSeconds
    ListOptions.limit
types.UID: ObjectMeta.uid OwnerReference.uid ObjectReference.uid ConfigMapNodeConfigSource.uid Preconditions.uid
    BoundObjectReference.uid StatusDetails.uid AdmissionRequest.uid AdmissionResponse.uid ConversionRequest.uid
    ConversionResponse.uid
v1.ResourceList: VolumeResourceRequirements.limits VolumeResourceRequirements.requests ResourceRequirements.limits
    ResourceRequirements.requests PodSpec.overhead ContainerStatus.allocatedResources PodStatus.allocatedResources
    NodeStatus.capacity NodeStatus.allocatable
v1.ConditionStatus: NamespaceCondition.status PodCondition.status NodeCondition.status
    PodFailurePolicyOnPodConditionsPattern.status JobCondition.status CustomResourceDefinitionCondition.status
v1.PodConditionType: PodReadinessGate.conditionType PodCondition.type PodFailurePolicyOnPodConditionsPattern.type
v1.PullPolicy: ImageVolumeSource.pullPolicy Container.imagePullPolicy EphemeralContainer.imagePullPolicy
[]int64: PodSecurityContext.supplementalGroups LinuxContainerUser.supplementalGroups
[]types.UID: UncountedTerminatedPods.succeeded UncountedTerminatedPods.failed
[]v1.Capability: Capabilities.add Capabilities.drop
map[string]v1.ExtraValue: UserInfo.extra SubjectAccessReviewSpec.extra
v1.ContainerRestartPolicy: Container.restartPolicy EphemeralContainer.restartPolicy
v1.FailurePolicyType: MutatingWebhook.failurePolicy ValidatingWebhook.failurePolicy
v1.MatchPolicyType: MutatingWebhook.matchPolicy ValidatingWebhook.matchPolicy
v1.NodeInclusionPolicy: TopologySpreadConstraint.nodeAffinityPolicy TopologySpreadConstraint.nodeTaintsPolicy
v1.PreemptionPolicy: PodSpec.preemptionPolicy PriorityClass.preemptionPolicy
v1.RecursiveReadOnlyMode: VolumeMount.recursiveReadOnly VolumeMountStatus.recursiveReadOnly
v1.ResourceName: ContainerResizePolicy.resourceName ResourceStatus.name
v1.SideEffectClass: MutatingWebhook.sideEffects ValidatingWebhook.sideEffects
v1.Signal: Lifecycle.stopSignal ContainerStatus.stopSignal
v1.TaintEffect: Toleration.effect Taint.effect
v1.TerminationMessagePolicy: Container.terminationMessagePolicy EphemeralContainer.terminationMessagePolicy
[]v1.FinalizerName: NamespaceSpec.finalizers
[]v1.OperationType: RuleWithOperations.operations
[]v1.PersistentVolumeAccessMode: PersistentVolumeClaimSpec.accessModes
[]v1.UniqueVolumeName: NodeStatus.volumesInUse
map[v1.ResourceName]resource.Quantity: NodeAllocatableResourceClaimStatus.resources
v1.AppArmorProfileType: AppArmorProfile.type
v1.AzureDataDiskCachingMode: AzureDiskVolumeSource.cachingMode
v1.AzureDataDiskKind: AzureDiskVolumeSource.kind
v1.CauseType: StatusCause.reason
v1.CompletionMode: JobSpec.completionMode
v1.ConcurrencyPolicy: CronJobSpec.concurrencyPolicy
v1.ContainerRestartRuleAction: ContainerRestartRule.action
v1.ContainerRestartRuleOnExitCodesOperator: ContainerRestartRuleOnExitCodes.operator
v1.ConversionStrategyType: CustomResourceConversion.strategy
v1.CoordinatedLeaseStrategy: LeaseSpec.strategy
v1.CustomResourceDefinitionConditionType: CustomResourceDefinitionCondition.type
v1.DNSPolicy: PodSpec.dnsPolicy
v1.DeletionPropagation: DeleteOptions.propagationPolicy
v1.FieldSelectorOperator: FieldSelectorRequirement.operator
v1.FieldValueErrorReason: ValidationRule.reason
v1.HostPathType: HostPathVolumeSource.type
v1.JSONSchemaDefinitions: JSONSchemaProps.definitions
v1.JSONSchemaURL: JSONSchemaProps.$schema
v1.JobConditionType: JobCondition.type
v1.LabelSelectorOperator: LabelSelectorRequirement.operator
v1.ManagedFieldsOperationType: ManagedFieldsEntry.operation
v1.MountPropagationMode: VolumeMount.mountPropagation
v1.NamespaceConditionType: NamespaceCondition.type
v1.NamespacePhase: NamespaceStatus.phase
v1.NodeAddressType: NodeAddress.type
v1.NodeConditionType: NodeCondition.type
v1.NodePhase: NodeStatus.phase
v1.NodeSelectorOperator: NodeSelectorRequirement.operator
v1.OSName: PodOS.name
v1.Operation: AdmissionRequest.operation
v1.PatchType: AdmissionResponse.patchType
v1.PersistentVolumeMode: PersistentVolumeClaimSpec.volumeMode
v1.PodFSGroupChangePolicy: PodSecurityContext.fsGroupChangePolicy
v1.PodFailurePolicyAction: PodFailurePolicyRule.action
v1.PodFailurePolicyOnExitCodesOperator: PodFailurePolicyOnExitCodesRequirement.operator
v1.PodPhase: PodStatus.phase
v1.PodQOSClass: PodStatus.qosClass
v1.PodReplacementPolicy: JobSpec.podReplacementPolicy
v1.PodResizeStatus: PodStatus.resize
v1.PodSELinuxChangePolicy: PodSecurityContext.seLinuxChangePolicy
v1.ProcMountType: SecurityContext.procMount
v1.Protocol: ContainerPort.protocol
v1.ReinvocationPolicyType: MutatingWebhook.reinvocationPolicy
v1.ResourceHealthStatus: ResourceHealth.health
v1.ResourceID: ResourceHealth.resourceID
v1.ResourceResizeRestartPolicy: ContainerResizePolicy.restartPolicy
v1.ResourceScope: CustomResourceDefinitionSpec.scope
v1.ResourceVersionMatch: ListOptions.resourceVersionMatch
v1.RestartPolicy: PodSpec.restartPolicy
v1.ScopeType: RuleWithOperations.scope
v1.SeccompProfileType: SeccompProfile.type
v1.SecretType: Secret.type
v1.StatusReason: Status.reason
v1.StorageMedium: EmptyDirVolumeSource.medium
v1.SupplementalGroupsPolicy: PodSecurityContext.supplementalGroupsPolicy
v1.TolerationOperator: Toleration.operator
v1.URIScheme: HTTPGetAction.scheme
v1.UniqueVolumeName: AttachedVolume.name
v1.UnsatisfiableConstraintAction: TopologySpreadConstraint.whenUnsatisfiable
v1.ValidationRules: JSONSchemaProps.x-kubernetes-validations
"""

_EMBEDDED: Mapping[str, tuple[str, frozenset[str] | None]] = {
    "Volume": ("VolumeSource", None),
    "EphemeralContainer": ("EphemeralContainerCommon", None),
    "Probe": ("ProbeHandler", frozenset(("exec", "httpGet", "tcpSocket", "grpc"))),
    "RuleWithOperations": ("Rule", frozenset(("apiGroups", "apiVersions", "resources", "scope"))),
    **{
        struct: ("LocalObjectReference", frozenset(("name",)))
        for struct in (
            "ConfigMapVolumeSource",
            "SecretProjection",
            "ConfigMapProjection",
            "ConfigMapEnvSource",
            "SecretEnvSource",
            "ConfigMapKeySelector",
            "SecretKeySelector",
        )
    },
}
"""Struct → the struct that it embeds, and which of its fields come from there; None: all but its own."""
_OWN = frozenset((("Volume", "name"), ("EphemeralContainer", "targetContainerName")))

_LETTERS = {"s": "string", "i": "int32", "b": "bool", "f": "float64", "y": "[]uint8"}
_ITEMS = {
    "v1.ExtraValue": "string",
    "v1.JSONSchemaDefinitions": "v1.JSONSchemaProps",
    "v1.ResourceList": "resource.Quantity",
    "v1.ValidationRules": "v1.ValidationRule",
}
"""Named types that are lists or maps."""
_STRUCTS = {"EventsV1Event": "Event", "EventsV1EventSeries": "EventSeries"}


def name_of(struct: str) -> str:
    """The struct's own name, without a package."""
    return _STRUCTS.get(struct) or struct.removeprefix("Apiextensions")


def of_field(struct: str, field: str, kind: str) -> str:
    """The type of a field whose type in the tables is ``kind``."""
    return _named().get((struct, field)) or _default(kind.strip("*!"))


def of_item(type_name: str) -> str:
    """The type of an item of a list or map of this type."""
    if type_name.startswith("[]"):
        return type_name[2:]
    if type_name.startswith("map["):
        return type_name[type_name.index("]") + 1 :]
    return _ITEMS.get(type_name, type_name)


def embedding(struct: str, field: str) -> str:
    """The name of the embedded struct through which this one has the field; empty: it is its own."""
    found = _EMBEDDED.get(struct)
    if found is None or (struct, field) in _OWN:
        return ""
    name, fields = found
    return name if fields is None or field in fields else ""


def is_wide(struct: str, field: str) -> bool:
    """Whether an integer field, or a list of integers, has 64 bits."""
    return _named().get((struct, field)) in ("int64", "[]int64")


def _default(kind: str) -> str:
    if kind.startswith("["):
        return "[]" + _default(kind[1:-1])
    if kind.startswith("{"):
        return "map[string]" + _default(kind[1:-1])
    return _LETTERS.get(kind) or "v1." + name_of(kind)


@cache
def _named() -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    name = ""
    for word in _NAMED.split():
        if word.endswith(":"):
            name = word[:-1]
        else:
            struct, _, field = word.partition(".")
            found[struct, field] = name
    return found
