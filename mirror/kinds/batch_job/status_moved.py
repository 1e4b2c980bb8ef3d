"""Statuses of a Job that is moved from a lost worker, and of one whose copy there counts after all (D14)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mirror.batch import conditions, times
from mirror.batch.conditions import SUSPENDED, TRUE
from mirror.kinds.base import Status
from mirror.kinds.batch_job.status_own import MOVED_REASON, PLACED_REASON
from mirror.kinds.batch_job.status_stored import WORKER_LOST, StoredJob, served
from mirror.model import names
from mirror.model.moves import Moves


def moved_status(stored: StoredJob, moves: Moves, now: datetime) -> Status | None:
    """In one write it leaves the lost worker and is recorded on the next; nothing of it is known to run meanwhile.

    startTime, counters and indexes stay: a status does not go back (D7). A stored verdict is none to be moved.
    """
    if stored.verdict is not None:
        return None
    at = times.of(now)
    text = f"Worker {moves.origin} is lost; the Job starts again on {moves.to}"
    listed = conditions.without(stored.conditions, names.MIRRORED)
    for one in (
        conditions.new(SUSPENDED, TRUE, reason=WORKER_LOST, message=text, at=at),
        conditions.new(names.PLACED, TRUE, reason=PLACED_REASON, message=moves.to, at=at),
        conditions.new(names.MOVED, TRUE, reason=WORKER_LOST, message=moves.message, at=at),
    ):
        listed = conditions.upsert(listed, one)
    idle = {"active": 0, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    status = served({**stored.status, **idle, "conditions": listed})
    return None if stored.refusal(status) else status


def returned_status(
    stored: StoredJob, status: Mapping[str, Any] | None, worker: str, moves: Moves, now: datetime
) -> Status:
    """A status, or the stored one, with this worker recorded, where a copy was left behind."""
    base, at = stored.status if status is None else status, times.of(now)
    listed = conditions.of(base)
    placed = conditions.new(names.PLACED, TRUE, reason=PLACED_REASON, message=worker, at=at)
    listed = conditions.upsert(listed, placed)
    if moves.count or moves.left_behind:
        moved = conditions.new(names.MOVED, TRUE, reason=MOVED_REASON, message=moves.message, at=at)
        listed = conditions.upsert(listed, moved)
    else:
        listed = conditions.without(listed, names.MOVED)
    return served({**base, "conditions": listed})
