"""The numbers of fields in protobuf, where they are not just counted from 1 in the order of the tables.

``apiVersion`` and ``kind`` of whole objects have none and do not count; ``-``: the field has none either.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mirror.embedded.apiserver.apimachinery.schemas.fields import STRUCTS

_NUMBERS = """
JobSpec: 1 2 3 11 16 7 12 13 4 5 6 8 9 10 14 15
JobStatus: 1 2 3 4 5 6 11 7 10 8 9
ObjectMeta: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 17
OwnerReference: 5 1 3 4 6 7
ManagedFieldsEntry: 1 2 3 4 6 7 8
PodFailurePolicyRule: - 1 2 3
PodSpec: 1 20 2 34 3 4 5 6 7 8 9 21 10 11 12 13 27 14 15 16 17 18 19 22 23 24 25 26 28 29 30 31 32 33 35 36 37 38 39
    40 41
Volume: 1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 26 24 25 27 28 29 30
Container: 1 2 3 4 5 6 19 7 8 23 24 25 9 21 10 11 22 12 13 20 14 15 16 17 18
EphemeralContainer: 1 2 3 4 5 6 19 7 8 23 24 25 9 21 10 11 22 12 13 20 14 15 16 17 18 2
PodSecurityContext: 1 8 2 6 3 4 12 5 7 9 10 11 13
PodResourceClaim: 1 3 4
ISCSIVolumeSource: 1 2 3 4 5 6 7 8 11 10 12
VolumeMount: 1 2 7 3 4 5 6
Probe: 1 2 3 4 2 3 4 5 6 7
SecurityContext: 1 2 3 10 4 8 5 6 7 9 11 12
SecretProjection: 1 2 4
ConfigMapProjection: 1 2 4
PersistentVolumeClaimSpec: 1 4 2 3 5 6 7 8 9
NamespaceCondition: 1 2 4 5 6
PodStatus: 17 1 2 3 4 11 5 16 6 12 7 10 8 9 13 14 15 18 19 20 21
PodCondition: 1 7 2 3 4 5 6
ResourceHealth: 1 2 6
Secret: 1 5 2 4 3
ConfigMap: 1 4 2 3
ObjectReference: 5 1 2 3 4 6 7
NodeSpec: 1 7 3 4 5 6 2
NodeConfigSource: 2
CronJobSpec: 1 8 2 3 4 5 6 7
CronJobStatus: 1 4 5
TokenReviewStatus: 1 2 4 3
TokenRequestSpec: 1 4 3
BoundObjectReference: 2 1 3 4
SubjectAccessReviewStatus: 1 4 2 3
StatusDetails: 1 2 3 6 4 5
CreateOptions: 1 3 4
ListOptions: 1 2 3 9 4 10 5 7 8 11 15
MutatingWebhook: 1 2 3 4 9 5 11 6 7 8 10 12
WebhookClientConfig: 3 1 2
RuleWithOperations: 1 1 2 3 4
ValidatingWebhook: 1 2 3 4 9 5 10 6 7 8 11
CustomResourceDefinitionSpec: 1 3 4 7 9 10
CustomResourceDefinitionVersion: 1 2 3 7 8 4 5 6 9
WebhookConversion: 2 3
ApiextensionsWebhookClientConfig: 3 1 2
AdmissionRequest: 1 2 3 4 13 14 15 5 6 7 8 9 10 11 12
"""

EMBEDDED: Mapping[str, int] = {
    "Volume": 2,
    "EphemeralContainer": 1,
    "Probe": 1,
    "RuleWithOperations": 2,
    "ConfigMapVolumeSource": 1,
    "SecretProjection": 1,
    "ConfigMapProjection": 1,
    "ConfigMapEnvSource": 1,
    "SecretEnvSource": 1,
    "ConfigMapKeySelector": 1,
    "SecretKeySelector": 1,
}
"""Struct → the number of the struct that it embeds (``gotypes``); its fields have numbers of that one."""

_SELF_DESCRIBED = ("apiVersion", "kind")


@cache
def of_struct(struct: str) -> Mapping[str, int]:
    """Field → its number."""
    names = list(STRUCTS[struct])
    if (tuple(names[:2]) == _SELF_DESCRIBED and "metadata" in names[2:3]) or struct in _BARE:
        names = names[2:]
    listed = _listed().get(struct)
    if listed is None:
        return {name: position for position, name in enumerate(names, 1)}
    return {name: int(number) for name, number in zip(names, listed, strict=True) if number != "-"}


_OPTIONS = ("CreateOptions", "DeleteOptions", "ListOptions", "PatchOptions", "UpdateOptions")
_BARE = frozenset((*_OPTIONS, "AdmissionReview", "ConversionReview"))


@cache
def _listed() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in _NUMBERS.split():
        if word.endswith(":"):
            numbers = found.setdefault(word[:-1], [])
        else:
            numbers.append(word)
    return found
