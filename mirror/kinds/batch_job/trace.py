"""A Job's life as spans: waiting for a worker, starting there, running, and its final status on its way back.

Pure; called by ``controllers/tracing`` with what is stored on the source. Times are those of clusters whose clocks
differ, in whole seconds: each is moved between its neighbours rather than shown as a negative stretch.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mirror.batch import conditions, times, views
from mirror.batch.conditions import FAILED, TRUE, Condition
from mirror.model import names
from mirror.model.text import clean
from mirror.telemetry.spans import Span, span_id, trace_id

ROOT = "Job"


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A source whose final status is stored."""

    uid: str
    namespace: str
    name: str
    created: str
    status: Mapping[str, object]


def ended_at(status: Mapping[str, object]) -> int | None:
    """When the Job ended, by its final condition; nanoseconds since 1970."""
    final = conditions.final(conditions.of(status))
    if final is None:
        return None
    at = _instant(final.get("lastTransitionTime"))
    return _instant(status.get("completionTime")) if at is None else at


def spans_of(job: Ended, *, stored_at: int | None) -> tuple[Span, ...]:
    """The trace of a Job, its root first; nothing without a final condition or a time of creation.

    Args:
        job: what is stored.
        stored_at: when its final status was stored, nanoseconds since 1970; None where nobody knows any more: then
            the trace ends with the Job.
    """
    listed = conditions.of(job.status)
    final, created = conditions.final(listed), _instant(job.created)
    if final is None or created is None:
        return ()
    placed = conditions.find(listed, names.PLACED, TRUE) or {}
    ended = ended_at(job.status)
    waypoints = {
        "waiting": _instant(placed.get("lastTransitionTime")),
        "starting": _instant(job.status.get("startTime")),
        "running": ended,
        "status": stored_at,
    }
    about = _about(job, placed)
    end = ended if stored_at is None else stored_at
    root = _span(job, ROOT, created, max(created, end or 0), attributes=about + _result(final), error=_error(final))
    return root, *_children(job, root, waypoints, about)


def _children(
    job: Ended, root: Span, waypoints: Mapping[str, int | None], about: tuple[tuple[str, str], ...]
) -> list[Span]:
    """Each stretch ends at its waypoint and begins at the one before; one that lacks either is left out."""
    found: list[Span] = []
    begin, is_known = root.start, True
    for name, at in waypoints.items():
        if at is None:
            is_known = False
            continue
        at = min(max(at, begin), root.end)
        if is_known:
            found.append(_span(job, name, begin, at, parent=root.id, attributes=about))
        begin, is_known = at, True
    return found


def _span(  # noqa: PLR0913 - the fields of a span
    job: Ended,
    name: str,
    start: int,
    end: int,
    *,
    parent: int = 0,
    attributes: tuple[tuple[str, str], ...],
    error: str | None = None,
) -> Span:
    return Span(
        trace=trace_id(job.uid),
        id=span_id(job.uid, name),
        parent=parent,
        name=name,
        start=start,
        end=end,
        attributes=attributes,
        error=error,
    )


def _about(job: Ended, placed: Condition) -> tuple[tuple[str, str], ...]:
    """Whose it is, on each span; names as OpenTelemetry's conventions have them."""
    worker = clean(views.text(placed.get("message")))
    about = (("k8s.namespace.name", job.namespace), ("k8s.job.name", job.name), ("k8s.job.uid", job.uid))
    return (*about, ("jobmirror.worker", worker)) if worker else about


def _result(final: Condition) -> tuple[tuple[str, str], ...]:
    reason = clean(views.text(final.get("reason")))
    result = ("jobmirror.result", views.text(final.get("type")))
    return (result, ("jobmirror.reason", reason)) if reason else (result,)


def _error(final: Condition) -> str | None:
    """A worker may have written any of it (D18)."""
    if final.get("type") != FAILED:
        return None
    return clean(": ".join(filter(None, (views.text(final.get("reason")), views.text(final.get("message"))))))


def _instant(value: object) -> int | None:
    """Nanoseconds since 1970; None for what is no time, or one before that, which a trace cannot tell."""
    try:
        at = times.instant(views.text(value))
    except times.BadTime:
        return None
    return at if at >= 0 else None
