"""The schemas of built-in kinds as OpenAPI v3 has them: made of the tables, the merge rules and the descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from mirror.embedded.apiserver.apimachinery.batch_schema import STRUCTS as BATCH
from mirror.embedded.apiserver.apimachinery.batch_schema import read
from mirror.embedded.apiserver.apimachinery.schemas import access, core, extensions, gotypes, merging, models
from mirror.embedded.apiserver.apimachinery.schemas.dropped import KNOWN, PARTS
from mirror.embedded.apiserver.apimachinery.schemas.texts import TEXTS

Json: TypeAlias = dict[str, Any]

REFERENCE = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_TIME, _MICRO_TIME, _FIELDS = META + "Time", META + "MicroTime", META + "FieldsV1"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_NUMBER_OR_TEXT = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SCHEMA_OR = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOr"

SPECIAL: Mapping[str, Json] = {
    _TIME: {"type": "string", "format": "date-time", "description": "A moment, RFC 3339, in whole seconds."},
    _MICRO_TIME: {"type": "string", "format": "date-time", "description": "A moment, RFC 3339, with microseconds."},
    _QUANTITY: {
        "oneOf": [{"type": "string"}, {"type": "number"}],
        "description": "An amount: a number with a suffix such as m, k, M, G, Ki, Mi or Gi.",
    },
    _NUMBER_OR_TEXT: {
        "oneOf": [{"type": "integer"}, {"type": "string"}],
        "format": "int-or-string",
        "description": "A number, or a name that stands for one.",
    },
    _FIELDS: {"type": "object", "description": "A set of fields, as a tree of path elements."},
    _SCHEMA_OR + "Bool": {"description": "A schema, or whether anything is allowed."},
    _SCHEMA_OR + "Array": {"description": "A schema, or several."},
    _SCHEMA_OR + "StringArray": {"description": "A schema, or names of fields."},
}
_GROUPS = {
    **dict.fromkeys(("CronJob", "CronJobSpec", "CronJobStatus", "JobTemplateSpec"), "io.k8s.api.batch.v1."),
    **dict.fromkeys(("Lease", "LeaseSpec"), "io.k8s.api.coordination.v1."),
    **dict.fromkeys(("Scale", "ScaleSpec", "ScaleStatus"), "io.k8s.api.autoscaling.v1."),
    **dict.fromkeys(("EventsV1Event", "EventsV1EventSeries"), "io.k8s.api.events.v1."),
    "PriorityClass": "io.k8s.api.scheduling.v1.",
    "Eviction": "io.k8s.api.policy.v1.",
}
_BATCH_PREFIXES = ("Job", "PodFailurePolicy", "SuccessPolicy", "UncountedTerminatedPods")
_META_STRUCTS = frozenset(
    ("ObjectMeta", "LabelSelector", "LabelSelectorRequirement", "OwnerReference", "ManagedFieldsEntry")
)
_RBAC = ("Role", "ClusterRole", "PolicyRule", "Subject", "AggregationRule")
_RBAC_NOT = frozenset(("SubjectAccessReview", "SubjectAccessReviewSpec", "SubjectAccessReviewStatus"))
_AUTHENTICATION = ("Token", "UserInfo", "BoundObjectReference", "SelfSubjectReview")
_WEBHOOKS = ("Mutating", "Validating", "WebhookClientConfig", "ServiceReference", "RuleWith", "MatchCondition")
_RETAINED = frozenset((("PodSpec", "volumes"), ("PodSpec", "resourceClaims"), ("PodStatus", "resourceClaimStatuses")))


def name_of(struct: str) -> str:
    """What OpenAPI calls a struct: ``io.k8s.api.batch.v1.JobSpec``."""
    return _group(struct) + gotypes.name_of(struct)


def _group(struct: str) -> str:
    if struct in _GROUPS:
        return _GROUPS[struct]
    if struct in _META_STRUCTS:
        return META
    if struct in BATCH:
        return "io.k8s.api.batch.v1." if struct.startswith(_BATCH_PREFIXES) else "io.k8s.api.core.v1."
    if struct in _CORE:
        return "io.k8s.api.core.v1."
    if struct in _ACCESS:
        if struct.startswith(_RBAC) and struct not in _RBAC_NOT and not struct.startswith("SubjectRules"):
            return "io.k8s.api.rbac.v1."
        part = "authentication" if struct.startswith(_AUTHENTICATION) else "authorization"
        return f"io.k8s.api.{part}.v1."
    if struct in _EXTENSIONS:
        if struct.startswith(_WEBHOOKS):
            return "io.k8s.api.admissionregistration.v1."
        return "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
    return META


_CORE, _ACCESS = frozenset(read(core.TABLE)) | PARTS.keys(), frozenset(read(access.TABLE))
_EXTENSIONS = frozenset(read(extensions.TABLE))


def of_structs(structs: Iterable[str]) -> dict[str, Json]:
    """The schemas of these and of everything in them, by name."""
    found: dict[str, Json] = {}
    waiting = list(structs)
    while waiting:
        struct = waiting.pop()
        name = name_of(struct)
        if name in found:
            continue
        found[name] = of_struct(struct)
        for kind in KNOWN[struct].values():
            for part in _parts(kind):
                if part in KNOWN:
                    waiting.append(part)
                elif part in _SPECIAL_LETTERS:
                    special = _SPECIAL_LETTERS[part]
                    found[special] = SPECIAL[special]
    for name in SPECIAL:
        if name.startswith(_SCHEMA_OR) and _SCHEMA_OR.removesuffix("Or") in found:
            found[name] = SPECIAL[name]
    if META + "ManagedFieldsEntry" in found:
        found[_FIELDS] = SPECIAL[_FIELDS]
    return dict(sorted(found.items()))


def _parts(kind: str) -> list[str]:
    bare = kind.strip("*!")
    while bare[:1] in ("[", "{"):
        bare = bare[1:-1]
    return bare.replace("[", "").replace("]", "").split("|")


_SPECIAL_LETTERS = {"t": _TIME, "m": _MICRO_TIME, "q": _QUANTITY, "x": _NUMBER_OR_TEXT}


def of_struct(struct: str) -> Json:
    """The schema of one struct; others are referred to."""
    meanings = models.of_fields(struct)
    found: Json = {"type": "object"}
    text = TEXTS.get(struct)
    if text:
        found["description"] = text
    properties, required = {}, []
    for name, kind in KNOWN[struct].items():
        schema = _field(struct, name, kind.strip("*!"))
        meaning = meanings.get(name)
        described = (meaning.text if meaning else "") or TEXTS.get(_parts(kind)[0], "")
        if described:
            schema["description"] = described
        if meaning and meaning.is_required:
            required.append(name)
        properties[name] = schema
    if properties:
        found["properties"] = dict(sorted(properties.items()))
    if required:
        found["required"] = sorted(required)
    if struct in merging.ATOMIC_STRUCTS:
        found["x-kubernetes-map-type"] = "atomic"
    return found


def _field(struct: str, name: str, kind: str) -> Json:
    place = struct, name
    found = _of_type(kind, is_wide=gotypes.is_wide(struct, name), is_item=False)
    if place == ("ManagedFieldsEntry", "fieldsV1"):
        found = {"allOf": [{"$ref": REFERENCE + _FIELDS}]}
    default = merging.FIELD_DEFAULTS.get(place)
    if default is not None:
        found["default"] = default
    if kind.startswith("[") and "|" not in kind:
        keys = merging.KEYED.get(place)
        if keys:
            found["x-kubernetes-list-type"] = "map"
            found["x-kubernetes-list-map-keys"] = list(keys)
        else:
            found["x-kubernetes-list-type"] = "set" if place in merging.SETS else "atomic"
        merge_key = merging.MERGE_KEYS.get(place)
        if merge_key is not None:
            found["x-kubernetes-patch-strategy"] = "merge,retainKeys" if place in _RETAINED else "merge"
            if merge_key:
                found["x-kubernetes-patch-merge-key"] = merge_key
    if place in merging.ATOMIC_MAPS:
        found["x-kubernetes-map-type"] = "atomic"
    return found


def _of_type(kind: str, *, is_wide: bool, is_item: bool) -> Json:
    if "|" in kind and kind[0] not in "[{":
        suffix = {"b": "Bool", "[s]": "StringArray"}.get(kind.split("|")[1], "Array")
        return {"$ref": REFERENCE + _SCHEMA_OR + suffix}
    if kind in KNOWN:
        found: Json = {"allOf": [{"$ref": REFERENCE + name_of(kind)}]}
        return {**found, "default": {}} if is_item else found
    if kind in _SPECIAL_LETTERS:
        reference = {"$ref": REFERENCE + _SPECIAL_LETTERS[kind]}
        return reference if is_item else {"allOf": [reference]}
    if kind.startswith("["):
        return {"type": "array", "items": _of_type(kind[1:-1], is_wide=is_wide, is_item=True)}
    if kind.startswith("{"):
        inner = _of_type(kind[1:-1], is_wide=is_wide, is_item=True)
        return {"type": "object", "additionalProperties": inner}
    match kind:
        case "s":
            return {"type": "string"}
        case "i":
            return {"type": "integer", "format": "int64" if is_wide else "int32"}
        case "b":
            return {"type": "boolean"}
        case "f":
            return {"type": "number", "format": "double"}
        case "y":
            return {"type": "string", "format": "byte"}
        case _:
            return {"type": "object"} if not is_item else {}
