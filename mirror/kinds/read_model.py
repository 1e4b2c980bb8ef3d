"""A source as people see it: its state, and what it says of its own past. Pure, from its kind (D24).

The page, ``access`` and commands show this and nothing else: ``controllers/known`` adds what only a manager knows (why
a Job waits, how late its status is, what was seen), commands read it from the object alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mirror.kinds.base import Kind, Progress, is_held
from mirror.kinds.explaining import LONGEST_MESSAGE
from mirror.kinds.queueing import queue_of
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.text import clean
from mirror.model.views import JobView, Moment

MOST_FINALIZERS = 3
"""Named of those that keep a source."""


def view_of(kind: Kind, found: Object, *, because: str | None = None, lag_seconds: float | None = None) -> JobView:
    """One source.

    Args:
        kind: of the source.
        found: the source.
        because: why it waits or makes no progress; None: as its annotation says. A finished one has its reason
            instead, and one that is being deleted what keeps it; where there is nothing to say, its state says why.
        lag_seconds: how long its newest status on the worker is not stored.
    """
    metadata, progress = found.metadata, kind.progress(found)
    state = state_of(kind, found, progress)
    if because is None:
        because = found.annotations.get(names.WAITING_BECAUSE, "")
    if progress.end:
        because = progress.end_reason
    if state == "Deleting" or not because:
        because = _plain_reason(kind, found, progress, state)
    return JobView(
        kind=kind.name,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        state=state,
        worker=progress.placed,
        because=because,
        message=clean(progress.end_message, longest=LONGEST_MESSAGE) if because == progress.end_reason else "",
        reason=kind.summary(found).reason,
        obstructed_at=progress.obstructed_at,
        created=metadata.creation_timestamp or "",
        started=progress.started_at,
        finished=progress.ended_at,
        active=progress.active,
        succeeded=progress.succeeded,
        failed=progress.failed,
        completions=progress.completions,
        lag_seconds=lag_seconds,
        labels=found.labels,
    )


def state_of(kind: Kind, found: Object, progress: Progress) -> str:
    """One of ``model.views.STATES``, or the type of a final condition that only this kind has."""
    if found.metadata.deletion_timestamp is not None:
        return "Deleting"
    if progress.end:
        return progress.end
    is_placed = bool(progress.placed)
    if progress.is_suspended:
        # One that our webhook holds waits for a worker like any other (D16).
        return "Waiting" if is_held(kind, found) and not is_placed else "Suspended"
    if not is_placed:
        return "Waiting"
    # Some kinds do not say when they started.
    return "Running" if progress.started_at or progress.active or progress.has_begun else "Placed"


def _plain_reason(kind: Kind, found: Object, progress: Progress, state: str) -> str:
    """Why it is in this state, where nothing else says so; empty where nobody would ask: it runs, or is complete."""
    match state:
        case "Waiting":
            return "no worker assigned yet"
        case "Suspended":
            return _suspended_by(kind, found, progress)
        case "Placed":
            return progress.why_no_pods or progress.words or "not started on the worker yet"
        case "Running":
            has_none = kind.counts_pods and not progress.active
            return (progress.why_no_pods or "no pod is active") if has_none else ""
        case "Failed":
            return "failed; no reason is given"
        case "Deleting":
            return _kept_by(found.metadata.finalizers or [])
    return ""


def _suspended_by(kind: Kind, found: Object, progress: Progress) -> str:
    if not kind.is_suspended(found):
        return f"suspended on worker {progress.placed}"
    said = kind.set_suspended(True)
    value = said.get("value")
    field = str(said["path"]).strip("/").replace("/", ".")
    text = f"{field} is {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
    queue = queue_of(found)
    return f"{text}; queue {queue} has not admitted it" if queue and not progress.placed else text


def _kept_by(finalizers: Sequence[str]) -> str:
    """What a source that is being deleted waits for; none of it is ours (D10)."""
    if not finalizers:
        return "deletion requested"
    listed, more = ", ".join(finalizers[:MOST_FINALIZERS]), len(finalizers) - MOST_FINALIZERS
    many = "" if len(finalizers) == 1 else "s"
    return f"deletion requested; waits for finalizer{many} {listed}{f' and {more} more' if more > 0 else ''}"


def moments_of(kind: Kind, found: Object, *, was_held: bool = False) -> tuple[Moment, ...]:
    """What a source says of its own past, in the order of a Job's life.

    Args:
        kind: of the source.
        found: the source.
        was_held: it is known that the webhook held it; its annotation is gone since.
    """
    metadata, progress = found.metadata, kind.progress(found)
    created = metadata.creation_timestamp or ""
    moments = [Moment(at=created, kind="Created", text=_created_by(found))]
    if was_held or names.HELD in found.annotations:
        moments.append(Moment(at=created, kind="Held", text="suspended by the webhook until a worker is assigned"))
    if progress.placed:
        moments.append(Moment(at=progress.placed_at, kind="Placed", text="", worker=progress.placed))
    if progress.started_at:
        moments.append(Moment(at=progress.started_at, kind="Started", text="Job started", worker=progress.placed))
    if progress.end:
        name, text = kind.describe(found.status_dict())
        moments.append(Moment(at=progress.ended_at, kind=name, text=text))
    if metadata.deletion_timestamp:
        moments.append(Moment(at=metadata.deletion_timestamp, kind="Deleting", text="deletion requested"))
    return tuple(moments)


def _created_by(found: Object) -> str:
    owner = next((one for one in found.metadata.owner_references or () if one.controller), None)
    return "created" if owner is None else f"created by {owner.kind} {owner.name}"
