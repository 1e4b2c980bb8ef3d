"""Statuses of a Job that is moved from a lost worker, and of one whose copy there counts after all (D14)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mirror.batch import conditions, times
from mirror.batch.conditions import SUSPENDED, TRUE
from mirror.kinds.batch_job.retry import record_of
from mirror.kinds.batch_job.status_own import MIRRORED_REASON, PLACED_REASON, starts_again_on
from mirror.kinds.batch_job.status_stored import (
    WORKER_DRAINED,
    WORKER_LOST,
    WORKER_RETURNED,
    StoredJob,
    leaving_text,
    served,
)
from mirror.kinds.stored_source import Status
from mirror.model import names
from mirror.model.drains import drains_text
from mirror.model.moves import Moves
from mirror.model.retries import RetryState


def moved_status(
    stored: StoredJob, moves: Moves, now: datetime, *, is_drained: bool = False, because: str = ""
) -> Status | None:
    """In one write it leaves its worker and is recorded on the next; nothing of it is known to run meanwhile.

    startTime, counters and indexes stay: a status does not go back (D7). A stored verdict is none to be moved.
    """
    if stored.verdict is not None:
        return None
    at = times.of(now)
    reason, why = (WORKER_DRAINED, "drained") if is_drained else (WORKER_LOST, "lost")
    text = f"{because[:1].upper()}{because[1:]}" if because else f"Worker {moves.origin} is {why}"
    text += starts_again_on(moves.to)
    listed = conditions.without(stored.conditions, names.MIRRORED)
    if (retries := stored.retries).is_under_way:
        over = retries.given_up("it was moved", keeps_start=retries.state is RetryState.PROVED)
        listed = conditions.upsert(listed, record_of(over, now))
    for one in (
        conditions.new(SUSPENDED, TRUE, reason=reason, message=text, at=at),
        conditions.new(names.PLACED, TRUE, reason=PLACED_REASON, message=moves.to, at=at),
        conditions.new(names.MOVED, TRUE, reason=reason, message=moves.message, at=at),
    ):
        listed = conditions.upsert(listed, one)
    if is_drained:
        said = drains_text(stored.drains + 1)
        drained = conditions.new(names.DRAINED, TRUE, reason=WORKER_DRAINED, message=said, at=at)
        listed = conditions.upsert(listed, drained)
    idle = {"active": 0, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    status = served({**stored.status, **idle, "conditions": listed})
    return None if stored.refusal(status) else status


def leaving_status(
    stored: StoredJob, status: Mapping[str, Any] | None, worker: str, mirror_uid: str, now: datetime
) -> Status | None:
    """Its mirror has stopped on a worker that is drained, and goes: with that stored, its absence is no loss.

    ``status``: the last that the mirror brings, if it is news. None: all of it is stored.
    """
    base, at = stored.status if status is None else status, times.of(now)
    listed = conditions.of(base)
    if conditions.verdict(listed) is not None:
        return None if status is None else dict(status)
    text = leaving_text(worker)
    shown = conditions.find(stored.conditions, SUSPENDED, TRUE) or {}
    if (shown.get("reason"), shown.get("message")) != (WORKER_DRAINED, text):
        shown = conditions.new(SUSPENDED, TRUE, reason=WORKER_DRAINED, message=text, at=at)
    mirrored = conditions.find(stored.conditions, names.MIRRORED, TRUE) or {}
    if mirrored.get("message") != mirror_uid:
        mirrored = conditions.new(names.MIRRORED, TRUE, reason=MIRRORED_REASON, message=mirror_uid, at=at)
    for one in (shown, mirrored):
        listed = conditions.upsert(listed, one)
    leaving = served({**base, "conditions": listed})
    return None if leaving == stored.status or stored.refusal(leaving) else leaving


def returned_status(
    stored: StoredJob, status: Mapping[str, Any] | None, worker: str, moves: Moves, now: datetime
) -> Status:
    """A status, or the stored one, with this worker recorded, where a copy was left behind."""
    base, at = stored.status if status is None else status, times.of(now)
    listed = conditions.of(base)
    placed = conditions.new(names.PLACED, TRUE, reason=PLACED_REASON, message=worker, at=at)
    listed = conditions.upsert(listed, placed)
    if moves.count or moves.left_behind:
        moved = conditions.new(names.MOVED, TRUE, reason=WORKER_RETURNED, message=moves.message, at=at)
        listed = conditions.upsert(listed, moved)
    else:
        listed = conditions.without(listed, names.MOVED)
    return served({**base, "conditions": listed})
