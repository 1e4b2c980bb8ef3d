"""batch/v1 Jobs: what is carried to a worker and what follows later (D4, D9). Status: ``job_status``."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, TypedDict, TypeVar

import msgspec

from mirror.adapters import rule_names
from mirror.adapters.carrying import (
    Json,
    Part,
    carried_of,
    read,
    without,
)
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import JOBS
from mirror.model import names

T = TypeVar("T")

RESOURCE = JOBS
KIND = "Job"

GENERATED_LABELS = frozenset(
    ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
)
HELD = "true"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SCALARS = (
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "maxFailedIndexes",
    "podReplacementPolicy",
    "manualSelector",
)
_KEPT = frozenset((names.ORIGIN, names.SOURCE_UID))
"""Labels of ours that are carried like a user's."""
_POD = ("spec", "template", "spec")
SUSPEND = Part("suspend", ("spec", "suspend"))
_PARTS = (
    SUSPEND,
    *(Part(scalar, ("spec", scalar)) for scalar in _SCALARS),
    Part("labels", ("metadata", "labels"), is_map=True),
    Part("annotations", ("metadata", "annotations"), is_map=True),
    Part("templateLabels", ("spec", "template", "metadata", "labels"), is_map=True, needs_mutable_template=True),
    Part(
        "templateAnnotations", ("spec", "template", "metadata", "annotations"), is_map=True, needs_mutable_template=True
    ),
    Part("nodeSelector", (*_POD, "nodeSelector"), is_map=True, needs_mutable_template=True),
    Part("tolerations", (*_POD, "tolerations"), needs_mutable_template=True),
    Part("schedulingGates", (*_POD, "schedulingGates"), needs_mutable_template=True),
    Part("nodeAffinity", (*_POD, "affinity", "nodeAffinity"), needs_mutable_template=True),
)


class Carrying(msgspec.Struct, frozen=True):
    """How sources are changed on their way (settings ``mirrors.strip`` and ``mirrors.set``)."""

    origin: str
    strip_labels: tuple[str, ...] = ()
    strip_annotations: tuple[str, ...] = ()
    set_labels: tuple[tuple[str, str], ...] = ()
    set_annotations: tuple[tuple[str, str], ...] = ()
    server_knows_rule_names: bool = False
    """The management cluster's stores names of rules (D17)."""


class _Head(msgspec.Struct, rename="camel", gc=False):
    managed_by: str | None = None
    suspend: bool | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""
    message: str | None = None


class _StatusHead(msgspec.Struct, gc=False):
    conditions: list[_Condition] | None = None


class _Deciding(TypedDict, total=False):
    suspend: Any
    completions: Any
    parallelism: Any
    completionMode: Any
    backoffLimitPerIndex: Any
    successPolicy: Any


_head = msgspec.json.Decoder(_Head | None)
_deciding = msgspec.json.Decoder(_Deciding | None)
_status_head = msgspec.json.Decoder(_StatusHead | None)


class Brief(msgspec.Struct, frozen=True):
    """What indexes and routes need of a status."""

    placed: str | None
    is_finished: bool
    mirror_uid: str | None = None
    """The uid of the mirror that is recorded."""


_NOTHING = Brief(placed=None, is_finished=False)


def brief(found: Object) -> Brief:
    """Where it is recorded, and whether it is over, without decoding the rest."""
    if b'"conditions"' not in bytes(found.status):
        return _NOTHING
    head = _skim(_status_head, found.status)
    listed = (head.conditions if head else None) or ()
    placed, is_finished, mirror_uid = None, False, None
    for one in reversed(listed):
        if one.status != "True":
            continue
        if one.type == names.PLACED:
            placed = one.message
        elif one.type == names.MIRRORED:
            mirror_uid = one.message
        elif one.type in ("Complete", "Failed"):
            is_finished = True
    return Brief(placed, is_finished, mirror_uid)


def state(found: Object) -> str:
    """A mirror's state for metrics: running, suspended or finished."""
    if brief(found).is_finished:
        return "finished"
    return "suspended" if is_suspended(found) else "running"


def is_final(status: Mapping[str, Any] | None) -> bool:
    """Whether a status says that the Job is over."""
    listed = (status or {}).get("conditions") or ()
    return any(c.get("type") in ("Complete", "Failed") and c.get("status") == "True" for c in listed)


def deciding_spec(found: Object) -> Mapping[str, Any]:
    """Those fields of a spec that decide about statuses (``batch.status_change.Spec``), without decoding the rest."""
    head = _skim(_deciding, found.spec)
    return found.spec_dict() if head is None else head


def managed_by(found: Object) -> str | None:
    """Who runs this Job; None when nobody is named."""
    if b'"managedBy"' not in bytes(found.spec):
        return None
    head = _skim(_head, found.spec)
    return head.managed_by if head else None


def is_suspended(found: Object) -> bool:
    head = _skim(_head, found.spec)
    return bool(head and head.suspend)


def is_held(found: Object) -> bool:
    """Whether our webhook suspended it and nobody has released it since (D16).

    A user who wants it to stay suspended takes the annotation away.
    """
    return found.annotations.get(names.HELD) == HELD and is_suspended(found)


def release_operations(found: Object) -> list[Mapping[str, Any]]:
    """The JSON Patch that unsuspends a source as it was seen, and takes the mark away."""
    mark = names.HELD.replace("~", "~0").replace("/", "~1")
    return [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": found.metadata.resource_version},
        {"op": "replace", "path": "/spec/suspend", "value": False},
        {"op": "remove", "path": f"/metadata/annotations/{mark}"},
    ]


def _skim(decoder: msgspec.json.Decoder[T | None], part: msgspec.Raw) -> T | None:
    """A part's head; None where there is none, or none of use: a worker may answer anything (D7)."""
    try:
        return decoder.decode(part)
    except JUNK:
        return None


def mirror_body(source: Object, *, namespace: str, carrying: Carrying) -> dict[str, Json]:
    """The whole mirror of a source, as it is created (D4)."""
    spec = source.spec_dict()
    keep = _selected_labels(spec)
    for key in ("managedBy", "ttlSecondsAfterFinished", *(() if spec.get("manualSelector") else ("selector",))):
        spec.pop(key, None)
    template_metadata = read(spec, ("template", "metadata")) or {}
    labels = without(template_metadata.get("labels"), lambda key: key in GENERATED_LABELS - keep)
    spec["template"] = {
        **(spec.get("template") or {}),
        "metadata": {key: template_metadata[key] for key in ("annotations",) if template_metadata.get(key)}
        | ({"labels": labels} if labels else {}),
    }
    spec["suspend"] = bool(spec.get("suspend"))
    body: dict[str, Json] = {
        "apiVersion": RESOURCE.api_version,
        "kind": KIND,
        "metadata": {
            "name": source.metadata.name,
            "namespace": namespace,
            "labels": _own_labels(source, carrying),
            "annotations": _own_annotations(source, carrying),
        },
        "spec": spec,
    }
    parts = parts_of(body)
    body["metadata"]["annotations"] = {
        **body["metadata"]["annotations"],
        names.CARRIED: carried_of(part_values(body, parts), parts).as_text(),
        **rule_names.for_mirror(source, spec, server_knows_names=carrying.server_knows_rule_names),
    }
    return body


def parts_of(body: Json) -> tuple[Part, ...]:
    """All parts of a Job, its containers' resources among them."""
    containers = [
        Part(f"{field}{i}", (*_POD, field, i, "resources"), needs_mutable_template=True)
        for field in ("containers", "initContainers")
        for i in range(len(read(body, (*_POD, field)) or ()))
    ]
    return (*_PARTS, *containers)


def part_values(body: Json, parts: tuple[Part, ...]) -> dict[str, Json]:
    values = {part.name: read(body, part.path) for part in parts}
    for name, metadata in (("labels", "metadata"), ("annotations", "metadata")):
        found = read(body, (metadata, name)) or {}
        values[name] = {key: value for key, value in found.items() if not key.startswith(names.PREFIX) or key in _KEPT}
    return values


def _selected_labels(spec: Json) -> frozenset[str]:
    """Labels that a kept, manual selector asks for: they must stay in the template."""
    if not spec.get("manualSelector"):
        return frozenset()
    selector = spec.get("selector") or {}
    expressions = (expression.get("key", "") for expression in selector.get("matchExpressions") or ())
    return frozenset((*(selector.get("matchLabels") or {}), *expressions))


def _own_labels(source: Object, carrying: Carrying) -> dict[str, str]:
    def drop(key: str) -> bool:
        return key in GENERATED_LABELS or key.startswith(names.PREFIX) or _any(key, carrying.strip_labels)

    ours = {names.ORIGIN: carrying.origin, names.SOURCE_UID: source.metadata.uid}
    return without(source.metadata.labels, drop) | dict(carrying.set_labels) | ours


def _own_annotations(source: Object, carrying: Carrying) -> dict[str, str]:
    def drop(key: str) -> bool:
        return key == LAST_APPLIED or key.startswith(names.PREFIX) or _any(key, carrying.strip_annotations)

    return without(source.metadata.annotations, drop) | dict(carrying.set_annotations)


def _any(key: str, globs: tuple[str, ...]) -> bool:
    return bool(globs) and any(fnmatchcase(key, glob) for glob in globs)  # mostly there are none
