"""batch/v1 Jobs: what is carried to a worker and what follows later (D4, D9). Status: ``job_status``."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, TypedDict, TypeVar

import msgspec

from mirror.adapters import rule_names
from mirror.adapters.carrying import (
    Carried,
    Cause,
    Difference,
    Json,
    Part,
    Sent,
    carried_of,
    contains,
    differences,
    digest,
    patch_operations,
    read,
    without,
)
from mirror.batch import conditions
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
_POD = ("spec", "template", "spec")
_PARTS = (
    Part("suspend", ("spec", "suspend")),
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


class Changes(msgspec.Struct, frozen=True):
    """What has to be written to a mirror so that it is as its source wants it."""

    operations: tuple[Mapping[str, Any], ...] = ()
    digest: str = ""
    """Names this write, for telling a repeated attempt from a new one."""
    reverted: tuple[str, ...] = ()
    """Fields, where only such differ as were changed on the worker: not the user's change."""
    only_note: bool = False
    """The mirror is as it should be; only the note on it is not."""
    overridden: tuple[str, ...] = ()
    """Fields of the pod template that the worker has otherwise, and that are left so (D9)."""
    must_wait_for_pods: bool = False
    """The template changed and the mirror's pods are not gone yet (U4): its next status decides."""


def changes(source: Object, mirror: Object, *, carrying: Carrying) -> Changes | None:
    """Compare a source with its mirror; None when there is nothing to write (D9).

    While the mirror's template is immutable, only a change of the user's is worth its pods: what was changed on the
    worker, or differs although nothing is known of what was carried, is left as it is and reported.
    """
    want_body = mirror_body(source, namespace=mirror.metadata.namespace, carrying=carrying)
    want_annotations = dict(want_body["metadata"]["annotations"])
    carried_text = want_annotations.pop(names.CARRIED)
    want_annotations.pop(names.RULE_NAMES, None)  # fixed when it was created (D17)
    want_body["metadata"]["annotations"] = want_annotations
    if mirror.annotations.get(names.CARRIED) == carried_text and _is_intact(want_body, mirror):
        return None
    have_body = _body_of(mirror)
    parts = parts_of(want_body)
    noted = Carried.of_text(mirror.annotations.get(names.CARRIED))
    found = list(differences(part_values(want_body, parts), part_values(have_body, parts), noted, parts))
    # A mirror that the worker's own queueing suspends is left to it.
    found = [d for d in found if not (d.part.name == "suspend" and d.cause is Cause.REVERTED and d.want is False)]
    overridden: tuple[str, ...] = ()
    if not _template_is_mutable(have_body):
        kept = [d for d in found if _is_left_to_worker(d)]
        overridden = tuple(d.part.field for d in kept)
        found = [d for d in found if d not in kept]
        if any(_changes_template(d) for d in found):
            return _before_template(found, have_body, noted, carried_text, overridden)
    if found:
        return _changes_of(found, have_body, None, carried_text, overridden=overridden)
    return Changes(digest=carried_text, overridden=overridden) if overridden else None


def _is_left_to_worker(difference: Difference) -> bool:
    """Whether a difference in an immutable template is none of the user's (D9)."""
    of_template = difference.part.needs_mutable_template and not difference.is_satisfied
    return of_template and difference.cause is not Cause.CHANGED


def _changes_template(difference: Difference) -> bool:
    return difference.part.needs_mutable_template and not difference.is_satisfied


def _before_template(
    found: list[Difference], have_body: Json, noted: Carried, carried_text: str, overridden: tuple[str, ...]
) -> Changes:
    """The template changed and cannot be written yet (U4): what can go before it, a suspension among that.

    A resume waits, since it goes in one write with the template (D3). A mirror that runs although the template changed
    meanwhile (it was suspended and resumed while its worker was away) is suspended first.
    """
    wants_to_run = not any(d.part.name == "suspend" and d.want for d in found)
    first = [d for d in found if not _changes_template(d) and not (d.part.name == "suspend" and not d.want)]
    if wants_to_run and not read(have_body, ("spec", "suspend")):
        suspend = next(part for part in _PARTS if part.name == "suspend")
        first.append(Difference(suspend, want=True, new_value=True, cause=Cause.CHANGED))
        carried_text = _note_with(carried_text, suspend.name, True)
    if all(d.cause is Cause.REVERTED or d.is_satisfied for d in first):
        return Changes(must_wait_for_pods=True, digest=carried_text, overridden=overridden)
    changed = _changes_of(first, have_body, noted, carried_text, overridden=overridden)
    # The rest follows under the name of the whole: it is no repetition of this part.
    return msgspec.structs.replace(changed, digest=f"first: {changed.digest}")


def _note_with(carried_text: str, name: str, value: Json) -> str:
    note = Carried.of_text(carried_text)
    return Carried({**note.parts, name: Sent(digest(value))}, note.version).as_text()


def _changes_of(
    found: list[Difference],
    have_body: Json,
    noted: Carried | None,
    carried_text: str,
    *,
    overridden: tuple[str, ...],
) -> Changes:
    """Operations for these differences; with ``noted``, parts that are not sent stay noted as they were."""
    new_note = Carried.of_text(carried_text)
    if noted is not None:
        sent = {difference.part.name for difference in found}
        new_note = Carried(
            {name: part for name, part in noted.parts.items() if name not in sent}
            | {name: part for name, part in new_note.parts.items() if name in sent},
            noted.version,
        )
    annotations = next((d.new_value for d in found if d.part.name == "annotations"), None)
    if annotations is None:
        annotations = dict(read(have_body, ("metadata", "annotations")) or {})
    operations: list[Mapping[str, Any]] = []
    for difference in found:
        if difference.part.name != "annotations" and not difference.is_satisfied:
            operations += patch_operations(difference, have_body)
    noted_annotations = annotations | {names.CARRIED: new_note.as_text()}
    operations.append({"op": "add", "path": "/metadata/annotations", "value": noted_annotations})
    is_reverted = all(d.cause is Cause.REVERTED for d in found)
    return Changes(
        tuple(operations),
        digest=carried_text,
        reverted=tuple(d.part.field for d in found) if is_reverted else (),
        only_note=all(d.is_satisfied for d in found),
        overridden=overridden,
    )


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
        values[name] = without(read(body, (metadata, name)), _is_ours)
    return values


def _is_ours(key: str) -> bool:
    return key.startswith(names.PREFIX) and key not in (names.ORIGIN, names.SOURCE_UID)


def is_as_sent(sent: dict[str, Json], created: Object) -> bool:
    """Whether the worker has stored what was sent, all but additions."""
    carried = sent["metadata"]["annotations"].get(names.CARRIED)
    return created.annotations.get(names.CARRIED) == carried and _is_intact(sent, created)


def _is_intact(want_body: Json, mirror: Object) -> bool:
    """The note matches: is everything that was carried still on the mirror?"""
    parts = parts_of(want_body)
    have = part_values(_body_of(mirror), parts)
    return all(
        contains(have[name], value) or (name == "suspend" and value is False)
        for name, value in part_values(want_body, parts).items()
    )


def _body_of(found: Object) -> dict[str, Json]:
    metadata = {"labels": dict(found.labels), "annotations": dict(found.annotations)}
    return {"metadata": metadata, "spec": found.spec_dict(), "status": found.status_dict()}


def _template_is_mutable(body: Json) -> bool:
    """U4: judged on the mirror as it is now."""
    status = body.get("status") or {}
    suspended = conditions.is_true(conditions.of(status), conditions.SUSPENDED)
    no_start = status.get("startTime") is None
    return bool(body["spec"].get("suspend")) and not status.get("active") and (no_start or suspended)


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
    return any(fnmatchcase(key, glob) for glob in globs)
