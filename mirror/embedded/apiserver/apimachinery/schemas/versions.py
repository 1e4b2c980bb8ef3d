"""The built-in kinds by version: which a server knows, and from which Go package they come.

Also knows kinds that are not served here, since a server has other words for a kind that does not exist at all.
"""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery.schemas.fields import STRUCTS

_KINDS = """
v1: Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim
    Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount
apps/v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet Scale
batch/v1: CronJob Job
autoscaling/v1: HorizontalPodAutoscaler Scale
coordination.k8s.io/v1: Lease
events.k8s.io/v1: Event
policy/v1: Eviction PodDisruptionBudget
scheduling.k8s.io/v1: PriorityClass
rbac.authorization.k8s.io/v1: ClusterRole ClusterRoleBinding Role RoleBinding
authentication.k8s.io/v1: SelfSubjectReview TokenRequest TokenReview
authorization.k8s.io/v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
admissionregistration.k8s.io/v1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
    ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration
networking.k8s.io/v1: Ingress IngressClass IPAddress NetworkPolicy ServiceCIDR
node.k8s.io/v1: RuntimeClass
storage.k8s.io/v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass
discovery.k8s.io/v1: EndpointSlice
certificates.k8s.io/v1: CertificateSigningRequest
apiextensions.k8s.io/v1: CustomResourceDefinition
"""
_EVERYWHERE = frozenset(("CreateOptions", "DeleteOptions", "ListOptions", "PatchOptions", "UpdateOptions"))
_PACKAGES = {"": "core", "rbac.authorization.k8s.io": "rbac", "events.k8s.io": "core"}


def _read() -> frozenset[tuple[str, str]]:
    found, version = [], ""
    for word in _KINDS.split():
        if word.endswith(":"):
            version = word[:-1]
        else:
            found.append((version, word))
            if not word.endswith(("Review", "Binding", "Eviction", "Scale", "TokenRequest")) or "Role" in word:
                found.append((version, word + "List"))
    return frozenset(found)


_KNOWN = _read()
_VERSIONS = frozenset(version for version, _ in _KNOWN)


def is_known(api_version: str, kind: str) -> bool:
    """Whether a server has this kind in this version."""
    return (api_version, kind) in _KNOWN or (kind in _EVERYWHERE and api_version in _VERSIONS)


def struct_of(api_version: str, kind: str) -> str:
    """The struct of a kind that ``schemas`` has; empty: it has none."""
    struct = "EventsV1Event" if (api_version, kind) == ("events.k8s.io/v1", "Event") else kind
    return struct if (api_version, kind) in _KNOWN and struct in STRUCTS else ""


def package(api_version: str, kind: str) -> str:
    """The Go package of the kind, as messages call it."""
    group = api_version.rpartition("/")[0]
    return _PACKAGES.get(group) or group.partition(".")[0]
