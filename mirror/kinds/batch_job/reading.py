"""What a batch/v1 Job says of itself, read without decoding what is not needed: a worker may answer anything (D7)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from mirror.batch import conditions, views
from mirror.batch.label_selectors import selector_of
from mirror.kinds.base import Progress, StatusSummary
from mirror.kinds.batch_job.spec_facts import Size, facts_of
from mirror.kinds.batch_job.status_stored import RETRIED
from mirror.kube.objects import JUNK, Object
from mirror.model import names
from mirror.model.moves import Moves, parse_moves

T = TypeVar("T")
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
POD_INDEX = "batch.kubernetes.io/job-completion-index"
"""The label and annotation of a pod that hold its index."""


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""
    message: str | None = None
    reason: str | None = None


class _StatusHead(msgspec.Struct, gc=False):
    conditions: list[_Condition] | None = None


class _DatedCondition(_Condition, gc=False, rename="camel"):
    last_transition_time: str | None = None


class _Counts(msgspec.Struct, gc=False, rename="camel"):
    conditions: list[_DatedCondition] | None = None
    start_time: str | None = None
    active: int | None = None
    ready: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    terminating: int | None = None

    def true(self) -> dict[str, _DatedCondition]:
        """The conditions that are True: of a type the first one."""
        return {one.type: one for one in reversed(self.conditions or ()) if one.status == conditions.TRUE}

    @property
    def is_over(self) -> bool:
        return not self.true().keys().isdisjoint(conditions.FINAL)


class _PodSpec(msgspec.Struct, gc=False, rename="camel"):
    priority_class_name: str | None = None


class _Template(msgspec.Struct, gc=False):
    spec: _PodSpec | None = None


class _Templated(msgspec.Struct, gc=False):
    template: _Template | None = None


_status_head = msgspec.json.Decoder(_StatusHead | None)
_counts = msgspec.json.Decoder(_Counts | None)
_templated = msgspec.json.Decoder(_Templated | None)


_NOTHING = StatusSummary(placed=None, is_finished=False)


_LONGEST_REMEMBERED_BYTES = 8192
"""Statuses are a tenth of that; what a worker may make longer is read each time it is asked for."""


def summary(found: Object) -> StatusSummary:
    """Where it is recorded, and whether it is over, without decoding the rest."""
    status = bytes(found.status)
    if b'"conditions"' not in status:
        return _NOTHING
    return _summary(status) if len(status) <= _LONGEST_REMEMBERED_BYTES else _summary.__wrapped__(status)


# One status is asked about three times and more while it is the newest one: indexes, routes, what is observed.
@lru_cache(maxsize=256)
def _summary(status: bytes) -> StatusSummary:
    head = _skim(_status_head, status)
    listed = (head.conditions if head else None) or ()
    placed, is_finished, mirror_uid, reason = None, False, None, ""
    moves = Moves()
    for one in reversed(listed):
        if one.status != "True":
            if one.type in (names.PLACED, names.PROGRESSING):
                reason = one.reason or ""
        elif one.type == names.PLACED:
            placed = one.message
        elif one.type == names.MIRRORED:
            mirror_uid = one.message
        elif one.type in conditions.FINAL:
            is_finished = True
        elif one.type == names.MOVED:
            moves = parse_moves(one.message or "")
    return StatusSummary(placed, is_finished, mirror_uid, "" if is_finished else reason, moves.left_behind, moves.count)


def is_final(status: Mapping[str, Any] | None) -> bool:
    """Whether a status says that the Job is finished."""
    return conditions.is_finished(conditions.of(status or {}))


def progress(found: Object) -> Progress:
    """How far it is; whatever cannot be read is left out."""
    status, spec = _skim(_counts, found.status) or _Counts(), facts_of(found.spec).size or Size()
    true = status.true()
    end = next(filter(None, map(true.get, conditions.FINAL)), None)
    placed, held = true.get(names.PLACED), true.get(conditions.SUSPENDED)
    is_mirrored = placed is not None and names.MIRRORED in true
    is_held_there = is_mirrored and held is not None and held.reason == conditions.JOB_SUSPENDED
    obstructed = next((one for one in status.conditions or () if one.type == names.PROGRESSING), None)
    return Progress(
        end=end.type if end else "",
        end_reason=(end.reason or "") if end else "",
        end_message=(end.message or "") if end and end.type == conditions.FAILED else "",
        ended_at=(end.last_transition_time or "") if end else "",
        # Of a mirror of which nothing ran, and that is gone, the API keeps a start (V37, D31).
        started_at="" if held is not None and held.reason == RETRIED else status.start_time or "",
        placed_at=(placed.last_transition_time or "") if placed else "",
        placed=(placed.message or "") if placed else "",
        obstructed_at=(obstructed.last_transition_time or "") if obstructed and not end else "",
        is_suspended=bool(spec.suspend) or is_held_there,
        active=status.active or 0,
        succeeded=status.succeeded or 0,
        failed=status.failed or 0,
        completions=spec.completions,
        why_no_pods="spec.parallelism is 0" if spec.parallelism == 0 else "",
    )


def priority_class(found: Object) -> str:
    """The PriorityClass that its pod template names; empty where it names none, or cannot be read."""
    read = _skim(_templated, found.spec)
    spec = read.template.spec if read is not None and read.template is not None else None
    return (spec.priority_class_name or "") if spec is not None else ""


def has_unready_pods(found: Object) -> bool:
    """Whether fewer of its pods are ready than are active, or all that it has are being deleted."""
    status = _skim(_counts, found.status)
    if status is None:
        return False
    if not status.active:
        return bool(status.terminating) and not status.is_over
    return status.ready is not None and status.active > status.ready


def lacks_pods(found: Object) -> bool:
    """Whether it is not over, and has no pod although it should; also where its controller has not written a word."""
    status, spec = _skim(_counts, found.status) or _Counts(), facts_of(found.spec).size
    if spec is None or spec.suspend or spec.parallelism == 0:
        return False
    return not (status.active or status.terminating or status.is_over)


def is_unstarted(found: Object) -> bool:
    """Whether it has no startTime, which its controller writes first, or none that counts."""
    return not progress(found).started_at


def managed_by(found: Object) -> str | None:
    """Who runs this Job; None when nobody is named."""
    return facts_of(found.spec).managed_by


def is_suspended(found: Object) -> bool:
    return facts_of(found.spec).is_suspended


def _skim(decoder: msgspec.json.Decoder[T | None], part: msgspec.Raw | bytes) -> T | None:
    """A part's head; None where there is none, or none of use: a worker may answer anything (D7)."""
    try:
        return decoder.decode(part)
    except JUNK:
        return None


def seconds_since_end(status: Mapping[str, object], now: datetime) -> float:
    """Since the final condition of a status; 0 without one, or without a time that makes sense."""
    end = (conditions.final(conditions.of(status)) or {}).get("lastTransitionTime")
    try:
        return (now - datetime.fromisoformat(views.text(end))).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def pod_selector(mirror: Object) -> str:
    """How its pods are found on its worker: by the Job's uid, or by its own selector where its user wrote one."""
    spec = mirror.spec_dict()
    if spec.get("manualSelector") is not True:
        return f"{CONTROLLER_UID}={mirror.metadata.uid}"
    return str(selector_of(spec.get("selector")))
