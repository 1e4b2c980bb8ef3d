"""When a CronJob is due, as upstream's controller (v2) reckons it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from mirror.embedded import schedules
from mirror.embedded.controllers.kubelet.podspec import moment
from mirror.embedded.schedules import Schedule

DELTA = timedelta(milliseconds=100)
"""How long after its minute a CronJob is looked at: clocks differ a little."""
MANY = 100
NEVER = datetime.min.replace(tzinfo=UTC)
"""Go's zero time: what a schedule that never comes is next due at."""


class Unreasonable(ValueError):
    """A schedule that reads well and never comes (the 31st of February)."""


class Missed(Enum):
    """How many starts were missed, roughly."""

    NONE = "none"
    FEW = "few"
    MANY = "many"


@dataclass(frozen=True, slots=True)
class Recent:
    """What is behind us."""

    earliest: datetime
    """From when starts count: the last one, or the creation."""
    due: datetime | None
    """The last time at or before now that a Job should have been created; None: there was none."""
    missed: Missed


@dataclass(frozen=True, slots=True)
class Timing:
    """What of a CronJob decides when it is due."""

    created: datetime
    last: datetime | None
    deadline_seconds: int | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Timing:
        """Of a whole CronJob."""
        return cls(
            moment(body["metadata"].get("creationTimestamp")) or NEVER,
            moment(body["status"].get("lastScheduleTime")),
            body["spec"].get("startingDeadlineSeconds"),
        )


def text_of(spec: Mapping[str, Any]) -> str:
    """The schedule with its time zone before it, as it is parsed; a zone that is none is left out."""
    text, zone = str(spec.get("schedule") or ""), spec.get("timeZone")
    if "TZ" in text or zone is None:
        return text
    try:
        schedules.zone(zone)
    except schedules.BadZone:
        return text
    return f"TZ={zone} {text}"


def recent(timing: Timing, now: datetime, schedule: Schedule, *, heeds_deadline: bool) -> Recent:
    """Look back from now.

    Raises:
        Unreasonable: the schedule never comes.
    """
    earliest = timing.created if timing.last is None else timing.last
    if heeds_deadline and timing.deadline_seconds is not None:
        earliest = max(earliest, _before(now, timing.deadline_seconds))
    first = schedule.next(earliest) or NEVER
    second = schedule.next(first) or NEVER
    if now < first:
        return Recent(earliest, None, Missed.NONE)
    if now < second:
        return Recent(earliest, first, Missed.NONE)
    apart = _seconds(second - first)
    if apart < 1:
        raise Unreasonable("time difference between two schedules is less than 1 second")
    count = _seconds(now - first) // apart + 1
    # A schedule may be irregular: from one interval earlier than reckoned, it is asked itself.
    due: datetime | None = None
    candidate = schedule.next(first + timedelta(seconds=(count - 2) * apart))
    while candidate is not None and candidate <= now:
        due, candidate = candidate, schedule.next(candidate)
    return Recent(earliest, due, Missed.MANY if count > MANY else Missed.FEW)


def seconds_to_next(timing: Timing, now: datetime, schedule: Schedule) -> float | None:
    """How long until it should be looked at again; None: never."""
    try:
        found = recent(timing, now, schedule, heeds_deadline=False)
    except Unreasonable:
        last = now
    else:
        last = found.due or (found.earliest if found.missed is Missed.NONE else now)
    following = schedule.next(last)
    return None if following is None else (following + DELTA - now).total_seconds()


def is_too_late(due: datetime, deadline_seconds: int | None, now: datetime) -> bool:
    """Whether a start may not be made up for any more."""
    return deadline_seconds is not None and due < _before(now, deadline_seconds)


def _before(now: datetime, seconds: int) -> datetime:
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return NEVER


def _seconds(span: timedelta) -> int:
    """Whole seconds, cut towards zero."""
    return int(span / timedelta(seconds=1))
