"""How fields are merged: which lists are sets or maps, which maps are one piece, and by which key a patch merges lists.

What is not listed: lists are atomic, structs and maps merge field by field, and a strategic merge patch replaces a
list.
"""

from __future__ import annotations

from collections.abc import Mapping

SETS: frozenset[tuple[str, str]] = frozenset(
    (
        ("ObjectMeta", "finalizers"),
        ("ContainerRestartRuleOnExitCodes", "values"),
        ("NodeAllocatableResourceClaimStatus", "containers"),
        ("NodeSpec", "podCIDRs"),
        ("PodFailurePolicyOnExitCodesRequirement", "values"),
        ("UncountedTerminatedPods", "failed"),
        ("UncountedTerminatedPods", "succeeded"),
    )
)
"""Lists of which each value is there once, and is owned for itself."""

_CONTAINER_LISTS = {
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
}
_BY_NAME = ("name",)

KEYED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("ObjectMeta", "ownerReferences"): ("uid",),
    ("NamespaceStatus", "conditions"): ("type",),
    ("PodSpec", "containers"): _BY_NAME,
    ("PodSpec", "ephemeralContainers"): _BY_NAME,
    ("PodSpec", "hostAliases"): ("ip",),
    ("PodSpec", "imagePullSecrets"): _BY_NAME,
    ("PodSpec", "initContainers"): _BY_NAME,
    ("PodSpec", "resourceClaims"): _BY_NAME,
    ("PodSpec", "schedulingGates"): _BY_NAME,
    ("PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
    ("PodSpec", "volumes"): _BY_NAME,
    **{
        (struct, name): keys
        for struct in ("Container", "EphemeralContainer")
        for name, keys in _CONTAINER_LISTS.items()
    },
    ("ResourceRequirements", "claims"): _BY_NAME,
    ("PodStatus", "conditions"): ("type",),
    ("PodStatus", "podIPs"): ("ip",),
    ("PodStatus", "resourceClaimStatuses"): _BY_NAME,
    ("ContainerStatus", "allocatedResourcesStatus"): _BY_NAME,
    ("ContainerStatus", "volumeMounts"): ("mountPath",),
    ("ResourceStatus", "resources"): ("resourceID",),
    ("NodeStatus", "addresses"): ("type",),
    ("NodeStatus", "conditions"): ("type",),
    ("ServiceAccount", "secrets"): _BY_NAME,
    ("MutatingWebhookConfiguration", "webhooks"): _BY_NAME,
    ("MutatingWebhook", "matchConditions"): _BY_NAME,
    ("ValidatingWebhookConfiguration", "webhooks"): _BY_NAME,
    ("ValidatingWebhook", "matchConditions"): _BY_NAME,
    ("JSONSchemaProps", "x-kubernetes-validations"): ("rule",),
    ("CustomResourceDefinitionStatus", "conditions"): ("type",),
}
"""Lists that are maps: struct and field → the fields of an item that together are its key."""

_PORTS: Mapping[str, str | int] = {"containerPort": 0, "protocol": "TCP"}

KEY_DEFAULTS: Mapping[tuple[str, str], Mapping[str, str | int]] = {
    **{place: dict.fromkeys(keys, "") for place, keys in KEYED.items()},
    ("Container", "ports"): _PORTS,
    ("EphemeralContainer", "ports"): _PORTS,
    ("ServiceAccount", "secrets"): {},
}
"""What a key is where an item lacks it."""

ATOMIC_STRUCTS = frozenset(
    (
        "OwnerReference",
        "LocalObjectReference",
        "ObjectFieldSelector",
        "ResourceFieldSelector",
        "LabelSelector",
        "TypedLocalObjectReference",
        "ConfigMapKeySelector",
        "SecretKeySelector",
        "FileKeySelector",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectReference",
        "Subject",
        "RoleRef",
    )
)
"""Structs that one manager owns as a whole."""
ATOMIC_MAPS = frozenset((("PodSpec", "nodeSelector"),))

MERGE_KEYS: Mapping[tuple[str, str], str] = {
    **{
        field: keys[0]
        for field, keys in KEYED.items()
        if field != ("CustomResourceDefinitionStatus", "conditions")
        and field not in (("ResourceRequirements", "claims"), ("ResourceStatus", "resources"))
    },
    ("PodStatus", "hostIPs"): "ip",
    ("JobStatus", "conditions"): "type",
    ("ObjectMeta", "finalizers"): "",
    ("NodeSpec", "podCIDRs"): "",
}
"""Lists that a strategic merge patch merges: by this key of their items, or, if it is empty, as sets of values."""

FIELD_DEFAULTS: Mapping[tuple[str, str], str] = {
    ("ContainerPort", "protocol"): "TCP",
    ("ISCSIVolumeSource", "iscsiInterface"): "default",
    ("RBDVolumeSource", "keyring"): "/etc/ceph/keyring",
    ("RBDVolumeSource", "pool"): "rbd",
    ("RBDVolumeSource", "user"): "admin",
    ("AzureDiskVolumeSource", "cachingMode"): "ReadWrite",
    ("AzureDiskVolumeSource", "fsType"): "ext4",
    ("AzureDiskVolumeSource", "kind"): "Shared",
    ("ScaleIOVolumeSource", "fsType"): "xfs",
    ("ScaleIOVolumeSource", "storageMode"): "ThinProvisioned",
}
"""Defaults that OpenAPI tells clients."""
