"""What happened to a Job, told from what can be read: the Job, its events, and the manager's answer if there is one.

Pure; ``explain`` asks and prints. The Job's conditions carry times, so that most of the story is there when nothing but
the Job may be read; events fill in what was said on the way; the manager knows why a worker was chosen. Texts quote
workers, and are cleaned where they are printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from mirror.batch import conditions, times, views
from mirror.cli.user import sources
from mirror.model import names
from mirror.model.views import Moment

Json = Mapping[str, object]

SAME_WITHIN_SECONDS = 5
"""Two moments of one kind that are no further apart are one: events and conditions are written one after the other."""

_ORDER = ("Created", "Held", "Waiting", "Placed", "Mirrored", "Started", "Status", "Finished", "Deleting")
"""Moments of the same second stand in this order; others are before the last two."""
_ONCE = ("Created", "Held", "Placed", "Mirrored", "Started", "Finished", "Deleting")
"""Kinds of which there are no two in a few seconds."""
_KIND_OF_EVENT = {"Mirrored": "Mirrored", "Suspended": "Status", "WorkerLost": "Lost", "MirrorLost": "Lost"}
_SUSPENDED = "suspended"
_TEXT_OF_CONDITION = {
    conditions.SUCCESS_CRITERIA_MET: "success criteria met; terminating pods",
    conditions.FAILURE_TARGET: "failed; terminating pods",
}


def timeline(job: Json, events: Iterable[Json], told: Sequence[Moment] = ()) -> tuple[Moment, ...]:
    """Everything, oldest first.

    Args:
        job: the source.
        events: Kubernetes events about it.
        told: the manager's timeline. It knows more than the Job: of what both tell, its version counts.
    """
    own = [*_of_job(job), *_of_events(_without_end(events, job))]
    known = {moment.kind for moment in told}
    merged = [_completed(moment, own) for moment in told]
    for moment in own:
        is_known = moment.kind in known and moment.kind not in ("Error", "Event")
        is_known = is_known or (moment.kind == "Started" and "Status" in known)
        if not is_known and not any(_is_same(moment, other) for other in merged):
            merged.append(moment)
    return tuple(sorted(merged, key=lambda moment: (_seconds(moment.at), _rank(moment.kind))))


def _completed(moment: Moment, own: Sequence[Moment]) -> Moment:
    """A moment that the manager tells without words, in those of the Job."""
    if moment.text:
        return moment
    texts = (one.text for one in own if one.kind == moment.kind and one.worker in ("", moment.worker))
    return msgspec.structs.replace(moment, text=next(texts, ""))


def last_error(moments: Iterable[Moment]) -> Moment | None:
    """The newest moment that went wrong; None if nothing did."""
    bad = [moment for moment in moments if moment.kind in ("Error", "Lost")]
    return bad[-1] if bad else None


def _of_job(job: Json) -> Iterator[Moment]:
    metadata, status = views.mapping(job.get("metadata")), views.mapping(job.get("status"))
    annotations, worker = sources.annotations_of(job), sources.placed(job)
    created = views.text(metadata.get("creationTimestamp"))
    yield Moment(at=created, kind="Created", text=_created_text(job))
    if names.HELD in annotations:
        yield Moment(at=created, kind="Held", text="suspended by the webhook until a worker is chosen")
    for condition in conditions.of(status):
        found = _of_condition(condition, annotations)
        if found is not None:
            yield found
    started = views.text(status.get("startTime"))
    if started:
        yield Moment(at=started, kind="Started", text="Job started", worker=worker)
    deleted = views.text(metadata.get("deletionTimestamp"))
    if deleted:
        yield Moment(at=deleted, kind="Deleting", text="deletion requested")


def _created_text(job: Json) -> str:
    owners = views.items(views.mapping(job.get("metadata")).get("ownerReferences"))
    owner = next((one for one in map(views.mapping, owners) if one.get("controller") is True), None)
    if owner is None:
        return "created"
    return f"created by {views.text(owner.get('kind'))} {views.text(owner.get('name'))}"


def _of_condition(condition: Json, annotations: Json) -> Moment | None:
    kind, at = views.text(condition.get("type")), views.text(condition.get("lastTransitionTime"))
    is_true, because = condition.get("status") == conditions.TRUE, _because(condition)
    if kind == names.PLACED:
        worker = views.text(condition.get("message"))
        return Moment(at=at, kind="Placed", text=_placed_text(worker, annotations), worker=worker) if is_true else None
    if kind == names.MIRRORED:
        return None  # a uid, for us; that it was created is an event
    if kind == conditions.SUSPENDED:
        return Moment(at=at, kind="Status", text=_SUSPENDED if is_true else "resumed")
    if not is_true:
        return None
    if kind in (conditions.COMPLETE, conditions.FAILED):
        return Moment(at=at, kind="Finished", text=f"{kind}{because}")
    if kind in _TEXT_OF_CONDITION:
        return Moment(at=at, kind="Status", text=f"{_TEXT_OF_CONDITION[kind]}{because}")
    return Moment(at=at, kind="Status", text=f"{kind}{because}")


def _placed_text(worker: str, annotations: Json) -> str:
    """Where, and as much of the reason as the Job itself holds."""
    selector = views.text(annotations.get(names.WORKER_SELECTOR))
    if selector:
        return f"placed on {worker}: lowest weighted load among eligible workers that match {selector}"
    return f"placed on {worker}: lowest weighted load among eligible workers"


def _because(condition: Json) -> str:
    told = [views.text(condition.get(part)) for part in ("reason", "message")]
    return ": " + ", ".join(filter(None, told)) if any(told) else ""


def _of_events(events: Iterable[Json]) -> Iterator[Moment]:
    for event in events:
        reason, message = views.text(event.get("reason")), views.text(event.get("message"))
        is_bad = event.get("type") == "Warning"
        kind = _KIND_OF_EVENT.get(reason, "Error" if is_bad else "Event")
        yield Moment(at=time_of_event(event), kind=kind, text=_event_text(event), worker=_worker_of(reason, message))


def _without_end(events: Iterable[Json], job: Json) -> Iterator[Json]:
    """All events but those that repeat the Job's end, such as ``MirrorLost``: its condition tells that better."""
    status, ends = views.mapping(job.get("status")), (conditions.COMPLETE, conditions.FAILED)
    true = [one for one in conditions.of(status) if one.get("status") == conditions.TRUE]
    reasons = {views.text(one.get("reason")) for one in true if one.get("type") in ends}
    return (event for event in events if views.text(event.get("reason")) not in reasons - {""})


def _event_text(event: Json) -> str:
    reason, message = views.text(event.get("reason")), views.text(event.get("message"))
    count = views.number(event.get("count"))
    text = {"Mirrored": message, "Suspended": _SUSPENDED}.get(reason, f"{reason}: {message}")
    return f"{text} ({count} times)" if count > 1 else text


def _worker_of(reason: str, message: str) -> str:
    return message.rpartition(" worker ")[2] if reason == "Mirrored" else ""


def time_of_event(event: Json) -> str:
    """When it happened last, whichever of its fields says so."""
    series = views.mapping(event.get("series"))
    candidates = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    found = next(filter(None, map(views.text, candidates)), "")
    return found or views.text(views.mapping(event.get("metadata")).get("creationTimestamp"))


def _is_same(one: Moment, other: Moment) -> bool:
    """Whether two moments are one: events and conditions are written one after the other."""
    if abs(_seconds(one.at) - _seconds(other.at)) > SAME_WITHIN_SECONDS:
        return False
    return one.text == other.text or (one.kind == other.kind and one.kind in _ONCE)


def _seconds(at: str) -> int:
    try:
        return times.seconds(at)
    except times.BadTime:
        return 0


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER) - 3
