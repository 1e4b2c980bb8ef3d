"""A Job's timeline, from what can be read: the Job, its events, and the manager's answer if there is one.

Pure; ``explain`` asks and prints. The Job's conditions carry times, so that most of the story is there when nothing but
the Job may be read; events fill in what was said on the way; the manager knows why a worker was chosen. Texts quote
workers, and are cleaned where they are printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from mirror.batch import times, views
from mirror.kinds import read_model
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.views import Moment

Json = Mapping[str, object]

SAME_WITHIN_SECONDS = 5
"""Two moments of one kind that are no further apart are one: events and conditions are written one after the other."""

_ORDER = ("Created", "Held", "Waiting", "Moved", "Placed", "Mirrored", "Started", "Status", "Finished", "Deleting")
"""Moments of the same second stand in this order; others are before the last two."""
_ONCE = ("Created", "Held", "Placed", "Mirrored", "Started", "Finished", "Deleting")
"""Kinds of which there are no two in a few seconds."""
_SEVERAL = ("Error", "Event", "Moved")
"""Kinds of which there may be more than the manager remembers."""
_KIND_OF_EVENT = {
    "Mirrored": "Mirrored",
    "Suspended": "Status",
    "Moved": "Moved",
    "WorkerLost": "Lost",
    "MirrorLost": "Lost",
}
_SUSPENDED = "suspended"


def timeline(kind: Kind, job: Object, events: Iterable[Json], told: Sequence[Moment] = ()) -> tuple[Moment, ...]:
    """Everything, oldest first.

    Args:
        kind: of the source.
        job: the source.
        events: Kubernetes events about it.
        told: the manager's timeline. It knows more than the Job: of what both tell, its version counts.
    """
    reported = [*_of_events(_without_end(events, kind.progress(job).end_reason))]
    moves = [one.text for one in (*told, *reported) if one.kind == "Moved"]  # they have more than the condition
    own = [one for one in _of_job(kind, job) if one.kind != "Moved" or not _begins_any(one.text, moves)] + reported
    known = {moment.kind for moment in told}
    merged = [_completed(moment, own) for moment in told]
    for moment in own:
        is_known = moment.kind in known and moment.kind not in _SEVERAL
        is_known = is_known or (moment.kind == "Started" and "Status" in known)
        if not is_known and not any(_is_same(moment, other) for other in merged):
            merged.append(moment)
    return tuple(sorted(merged, key=lambda moment: (_seconds(moment.at), _rank(moment.kind))))


def _begins_any(text: str, texts: Iterable[str]) -> bool:
    return any(one.startswith(text) for one in texts)


def _completed(moment: Moment, own: Sequence[Moment]) -> Moment:
    """An entry that the manager reports without a text, with that of the Job, where that has one of its kind."""
    if moment.text or moment.kind not in _ONCE:
        return moment
    texts = (one.text for one in own if one.kind == moment.kind and one.worker in ("", moment.worker))
    return msgspec.structs.replace(moment, text=next(texts, ""))


def last_error(moments: Iterable[Moment]) -> Moment | None:
    """The newest moment that went wrong; None if nothing did."""
    bad = [moment for moment in moments if moment.kind in ("Error", "Lost")]
    return bad[-1] if bad else None


def _of_job(kind: Kind, job: Object) -> Iterator[Moment]:
    """What the read model has, with the words of an assignment, and the steps on the way to the end."""
    for moment in read_model.moments_of(kind, job):
        text = _placed_text(moment.worker, job.annotations) if moment.kind == "Placed" else moment.text
        yield msgspec.structs.replace(moment, text=text)
    yield from kind.steps(job)


def _placed_text(worker: str, annotations: Mapping[str, str]) -> str:
    """Where, and as much of the reason as the Job itself holds."""
    selector = annotations.get(names.WORKER_SELECTOR, "")
    matching = f" that match {selector}" if selector else ""
    order, label = annotations.get(names.WORKER_ORDER, ""), annotations.get(names.SPREAD_BY, "")
    if order or label:
        asked = ", ".join(filter(None, (order and f"by worker-order {order}", label and f"spread by {label}")))
        return f"assigned to {worker}: {asked} among eligible workers{matching}"
    return f"assigned to {worker}: best score among eligible workers{matching}"


def _of_events(events: Iterable[Json]) -> Iterator[Moment]:
    for event in events:
        reason, message = views.text(event.get("reason")), views.text(event.get("message"))
        is_bad = event.get("type") == "Warning"
        kind = _KIND_OF_EVENT.get(reason, "Error" if is_bad else "Event")
        yield Moment(at=time_of_event(event), kind=kind, text=_event_text(event), worker=_worker_of(reason, message))


def _without_end(events: Iterable[Json], reason: str) -> Iterator[Json]:
    """All events except those that repeat the Job's end, such as ``MirrorLost``: its condition has more."""
    return (event for event in events if not reason or views.text(event.get("reason")) != reason)


def _event_text(event: Json) -> str:
    reason, message = views.text(event.get("reason")), views.text(event.get("message"))
    count = views.number(event.get("count"))
    text = {"Mirrored": message, "Moved": message, "Suspended": _SUSPENDED}.get(reason, f"{reason}: {message}")
    return f"{text} ({count} times)" if count > 1 else text


def _worker_of(reason: str, message: str) -> str:
    return message.rpartition(" worker ")[2] if reason == "Mirrored" else ""


def time_of_event(event: Json) -> str:
    """When it happened last, from whichever field is set."""
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
