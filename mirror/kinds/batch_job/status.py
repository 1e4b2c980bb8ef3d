"""What to write on a source, computed from what is stored there and from its mirror's status (D7).

Pure: called by the controllers with values and the time, answers with a whole status that the API accepts. A Job's
status never goes back: verdicts and counters stay, and what a worker cannot know (a completion it forgot, a suspension
nobody saw) is kept or supplied. Statuses that no mirror dictates are in ``status_own``.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

import msgspec

from mirror.batch import conditions, indexes, times, views
from mirror.batch.conditions import COMPLETE, FAILED, FALSE, SUSPENDED, TRUE, Condition, Verdict
from mirror.batch.indexes import Intervals
from mirror.kinds.batch_job.status_clean import MAX_INDEX_TEXT, Cleaned, clean
from mirror.kinds.batch_job.status_own import (
    lost_status,
    mirrored_status,
    placed_status,
    suspended_status,
    terminal,
    with_conditions,
)
from mirror.kinds.batch_job.status_stored import (
    RETRIED,
    WORKER_DRAINED,
    WORKER_LOST,
    StoredJob,
    has_started,
    placed_worker,
    verdict,
    without_empty,
)
from mirror.kinds.stored_source import NextStatus, Status

__all__ = [
    "Cleaned",
    "StoredJob",
    "clean",
    "has_started",
    "lost_status",
    "mirrored_status",
    "next_status",
    "placed_status",
    "placed_worker",
    "suspended_status",
    "verdict",
]

MAX_CLOCK_OFFSET_SECONDS = 10.0


def next_status(
    stored: StoredJob,
    mirror_status: object,
    *,
    now: datetime,
    mirror_suspended: bool = False,
    clock_offset_seconds: float | None = None,
    settled: bool = False,
) -> NextStatus:
    """Decide what the source shows next. Never raises, whatever the worker answered.

    Args:
        stored: the source as its API server has it.
        mirror_status: the mirror's ``status``: any JSON value.
        now: our time, aware.
        mirror_suspended: the mirror's ``spec.suspend``, which its status follows only later.
        clock_offset_seconds: the worker's clock minus ours, when it was measured.
        settled: nothing of an ended mirror will change any more. Workers before 1.31 end Jobs whose pods are still
            terminating, and then never count them down.
    """
    if stored.is_finished:
        return NextStatus(None, "finished: nothing of it changes any more")
    wanted = stored.wanted
    mirror = clean(mirror_status, completions=wanted.completions if wanted.is_indexed else None)
    skewed = abs(clock_offset_seconds or 0.0) > MAX_CLOCK_OFFSET_SECONDS or _is_ahead(mirror.newest_time, now)
    seen = _Seen(stored, mirror, now, mirror_suspended=mirror_suspended, clock_skewed=skewed, settled=settled)
    is_missing_step = _missed_a_suspension(seen)
    status = without_empty(_suspended_before(seen) if is_missing_step else _following(seen))
    obstacle = "already stored" if status == stored.status else stored.refusal(status)
    return NextStatus(
        None if obstacle else status,
        obstacle or ("a suspension was missed and is shown first" if is_missing_step else _reason(seen)),
        more=is_missing_step and not obstacle,
        cut=mirror.cut,
        clock_skewed=skewed,
        waits_for_pods=seen.mirror_ended and not seen.finishes,
    )


class _Seen(msgspec.Struct, frozen=True, dict=True):
    """Everything that the next status follows from."""

    stored: StoredJob
    mirror: Cleaned
    at: datetime
    mirror_suspended: bool
    clock_skewed: bool
    settled: bool

    @property
    def now(self) -> str:
        return times.of(self.at)

    @cached_property
    def verdict(self) -> Verdict | None:
        """The stored one wins: a Job cannot change its mind (V30–V33, V38)."""
        return self.stored.verdict or conditions.verdict(self.mirror.conditions)

    @cached_property
    def mirror_ended(self) -> bool:
        return conditions.is_finished(self.mirror.conditions)

    @cached_property
    def finishes(self) -> bool:
        """A final condition waits for every pod (M6)."""
        mirror = self.mirror
        return self.mirror_ended and (self.settled or not (mirror.active or mirror.terminating or mirror.uncounted))

    @property
    def resumes(self) -> bool:
        """This write ends a stored suspension, so that startTime may move (V3, V37)."""
        suspension = _suspension(self)
        return suspension is not None and suspension["status"] == FALSE and self.stored.is_true(SUSPENDED)


def _is_ahead(time: str | None, now: datetime) -> bool:
    """Whether a worker's clock that said so is ahead of ours."""
    return time is not None and times.seconds(time) > now.timestamp() + MAX_CLOCK_OFFSET_SECONDS


def _reason(seen: _Seen) -> str:
    if seen.finishes:
        return f"the mirror has ended: {seen.verdict}"
    if seen.mirror_ended:
        return "the mirror has ended, its pods have not"
    return "the mirror's status changed"


def _missed_a_suspension(seen: _Seen) -> bool:
    """The mirror was suspended and resumed since the last write: only through a suspension may startTime move (M11)."""
    stored, start = seen.stored, seen.stored.start
    if start is None or seen.mirror.start in (None, start):
        return False
    reported = seen.mirror.condition(SUSPENDED)
    return (
        not stored.wanted.suspend
        and stored.verdict is None
        and not stored.is_true(SUSPENDED)
        and reported is not None
        and reported["status"] == FALSE
    )


def _suspended_before(seen: _Seen) -> Status:
    """What is stored, suspended: the step between two starts."""
    resumed = seen.mirror.condition(SUSPENDED) or {}
    at = views.optional_text(resumed.get("lastTransitionTime")) or seen.now
    suspended = conditions.new(SUSPENDED, TRUE, reason=conditions.JOB_SUSPENDED, message="Job suspended", at=at)
    return with_conditions(seen.stored, conditions.upsert(seen.stored.conditions, suspended))


def _following(seen: _Seen) -> Status:
    """The whole next status; fields that we do not know stay as they are stored."""
    stored, mirror = seen.stored, seen.mirror
    start = _start(seen)
    reported: Status = {
        "active": 0 if seen.finishes else mirror.active,
        "terminating": mirror.terminating and (0 if seen.finishes else mirror.terminating),
        "uncountedTerminatedPods": mirror.uncounted and ({} if seen.finishes else mirror.uncounted),
    }
    active = views.number(reported["active"])
    return {
        **stored.status,
        **reported,
        "ready": None if mirror.ready is None else min(mirror.ready, active),
        "failed": max(views.number(stored.status.get("failed")), mirror.failed),
        **_successes(seen),
        "startTime": start,
        "completionTime": _completion(seen, start),
        "conditions": _conditions(seen, start),
    }


def _start(seen: _Seen) -> str | None:
    """startTime: set once; it moves with a resumption, and freely while the source is suspended (V37)."""
    stored, before, reported = seen.stored, seen.stored.start, seen.mirror.start
    if before is None:
        if stored.wanted.suspend and seen.verdict is None:
            # A queue takes it away so that it may change the template (D26); the mirror is about to be suspended, too.
            return None
        return reported or (_supplied_start(seen) if seen.finishes else None)
    if stored.wanted.suspend:
        # A Job whose end is decided needs its start for the end (V21).
        return reported or (before if seen.verdict else None)
    return reported if reported and reported != before and seen.resumes else before


def _supplied_start(seen: _Seen) -> str | None:
    """A finished Job has started, except a suspended one that had nothing to do (V4, V21)."""
    wanted = seen.stored.wanted
    return None if wanted.suspend and wanted.completions == 0 else seen.mirror.completion or seen.now


def _completion(seen: _Seen, start: str | None) -> str | None:
    """completionTime: of a complete Job only, never before its start, never changed (V15–V17, V36)."""
    stored = seen.stored.completion
    if stored or not (seen.finishes and seen.verdict == COMPLETE):
        return stored
    return max(seen.mirror.completion or _ended_at(seen, start), start or "")


def _ended_at(seen: _Seen, start: str | None) -> str:
    """When the final condition was set, by the worker's clock if it can be believed (M7, D7)."""
    ended = seen.mirror.condition(COMPLETE) or seen.mirror.condition(FAILED) or {}
    at = views.optional_text(ended.get("lastTransitionTime"))
    return seen.now if at is None or seen.clock_skewed or at < (start or "") else at


def _conditions(seen: _Seen, start: str | None) -> list[Condition]:
    """Stored conditions in their order, those of the mirror in place or after them, and the verdict."""
    listed = list(seen.stored.conditions)
    for one in seen.mirror.conditions:
        if one["type"] not in conditions.STANDARD:
            listed = conditions.upsert(listed, one)
    if suspension := _suspension(seen):
        listed = conditions.upsert(listed, suspension)
    ending = seen.verdict
    if ending is None:
        return listed
    at = _ended_at(seen, start)
    interim = conditions.find(listed, conditions.INTERIM[ending], TRUE)
    if interim is None:
        interim = _interim(seen.mirror, ending, at)
        listed = conditions.upsert(listed, interim)
    return conditions.upsert(listed, terminal(interim, ending, at)) if seen.finishes else listed


def _interim(mirror: Cleaned, ending: Verdict, at: str) -> Condition:
    """The mirror's, or one like the final condition that it has (older workers set only that)."""
    reported = mirror.condition(conditions.INTERIM[ending])
    if reported is not None and reported["lastTransitionTime"]:
        return reported
    like = reported or mirror.condition(ending) or {}
    reason, message = views.text(like.get("reason")), views.text(like.get("message"))
    return conditions.new(conditions.INTERIM[ending], TRUE, reason=reason, message=message, at=at)


def _suspension(seen: _Seen) -> Condition | None:
    """The condition Suspended to show; None leaves what is stored."""
    stored, mirror = seen.stored, seen.mirror
    if reported := mirror.condition(SUSPENDED):
        is_ours = reported.get("reason") in (WORKER_LOST, WORKER_DRAINED, RETRIED)  # only we say why
        return {**reported, "reason": conditions.JOB_SUSPENDED} if is_ours else reported
    is_suspended = stored.is_true(SUSPENDED)
    if seen.mirror_suspended:
        # Its own controller has not said so yet; but where nothing ever ran, there is nothing to wait for.
        is_idle = mirror.start is None and not mirror.active and seen.verdict is None
        if is_suspended or not is_idle:
            return None
        return conditions.new(SUSPENDED, TRUE, reason=conditions.JOB_SUSPENDED, message="Job suspended", at=seen.now)
    if is_suspended and mirror.start is not None and not stored.wanted.suspend:
        return conditions.new(SUSPENDED, FALSE, reason=conditions.JOB_RESUMED, message="Job resumed", at=mirror.start)
    return None


def _successes(seen: _Seen) -> Status:
    """succeeded and the index texts. Where there are indexes, they are what is counted (Y11)."""
    stored, mirror, wanted = seen.stored, seen.mirror, seen.stored.wanted
    before = views.number(stored.status.get("succeeded"))
    if not wanted.is_indexed or wanted.completions is None:
        return {"succeeded": max(before, mirror.succeeded)}
    completed = _kept(stored, "completedIndexes", mirror.completed_indexes)
    succeeded = indexes.count(completed)
    texts: Status = {"completedIndexes": _text(stored, "completedIndexes", completed)}
    if wanted.has_backoff_limit_per_index and (
        mirror.failed_indexes is not None or stored.status.get("failedIndexes") is not None
    ):
        failed = indexes.minus(_kept(stored, "failedIndexes", mirror.failed_indexes or ()), completed)
        texts["failedIndexes"] = _text(stored, "failedIndexes", failed)
    return {"succeeded": succeeded if wanted.is_elastic else max(before, succeeded), **texts}


def _kept(stored: StoredJob, name: str, reported: Intervals) -> Intervals:
    """What is stored or reported, of the indexes that the source has (V23)."""
    before = indexes.read(views.text(stored.status.get(name)), stored.wanted.completions or 0)
    both = indexes.union(before, reported)
    return both if len(indexes.write(both)) <= MAX_INDEX_TEXT else before


def _text(stored: StoredJob, name: str, intervals: Intervals) -> str:
    """The canonical text, unless what is stored says the same already."""
    before = views.text(stored.status.get(name))
    try:
        return (
            before if indexes.parse(before, stored.wanted.completions or 0) == intervals else indexes.write(intervals)
        )
    except indexes.BadIndexes:
        return indexes.write(intervals)
