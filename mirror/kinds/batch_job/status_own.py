"""Statuses of a source that no mirror dictates: suspended without one, failed by a loss, placed on a worker.

Each is the whole status to write, made from what is stored so that the API accepts it, or None when there is nothing to
write or nothing would be accepted. What follows from a mirror's status is in ``status``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from mirror.batch import conditions, times, views
from mirror.batch.conditions import COMPLETE, FAILED, SUSPENDED, TRUE, Condition
from mirror.kinds.batch_job.status_clean import clean_message
from mirror.kinds.batch_job.status_stored import StoredJob, served
from mirror.kinds.explaining import explained
from mirror.kinds.stored_source import Status
from mirror.model import names
from mirror.model.reasons import UNKNOWN, Obstruction

MIRROR_LOST = "MirrorLost"
PLACED_REASON = "Placed"
MIRRORED_REASON = "MirrorCreated"
WAITING_FOR_WORKER = "WaitingForWorker"


def suspended_status(stored: StoredJob, now: datetime) -> Status | None:
    """For a suspended source that no worker can speak for: Suspended as the Job controller says it (D3, W1).

    Counts and startTime stay as they were last known. A Job whose end is decided is not shown as suspended any more.
    """
    if stored.verdict is not None or (stored.is_true(SUSPENDED) and not _waits_as_suspended(stored)):
        return None
    suspended = conditions.new(
        SUSPENDED, TRUE, reason=conditions.JOB_SUSPENDED, message="Job suspended", at=times.of(now)
    )
    return _accepted(stored, with_conditions(stored, conditions.upsert(stored.conditions, suspended)))


def lost_status(stored: StoredJob, now: datetime, *, message: str, reason: str = MIRROR_LOST) -> Status | None:
    """End a Job whose mirror is gone, in one write that is always accepted (D11, M12).

    A verdict that is stored decides how it ends, and why; without one it has failed for the given reason.
    """
    if stored.is_finished:
        return None
    ending, at = stored.verdict or FAILED, times.of(now)
    start = stored.start or at
    interim = conditions.find(stored.conditions, conditions.INTERIM[ending], TRUE)
    listed = list(stored.conditions)
    if interim is None:
        interim = conditions.new(conditions.INTERIM[ending], TRUE, reason=reason, message=clean_message(message), at=at)
        listed = conditions.upsert(listed, interim)
    listed = conditions.upsert(listed, terminal(interim, ending, at))
    status = with_conditions(stored, listed) | {
        "startTime": start,
        "active": 0,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    if ending == COMPLETE:
        status["completionTime"] = stored.completion or max(at, start)
    return _accepted(stored, status)


def placed_status(stored: StoredJob, worker: str | None, now: datetime) -> Status | None:
    """Record the worker on the source, or with None that it has none (D5)."""
    if worker is None:
        listed: Sequence[Condition] = conditions.without(stored.conditions, names.PLACED, names.MIRRORED)
    else:
        placed = conditions.new(names.PLACED, TRUE, reason=PLACED_REASON, message=worker, at=times.of(now))
        same = conditions.find(stored.conditions, names.PLACED, TRUE)
        is_recorded = same is not None and same.get("message") == worker
        listed = stored.conditions if is_recorded else conditions.upsert(_moved_on(stored, worker), placed)
        if not stored.has_started and _waits_as_suspended(stored):
            listed = conditions.without(listed, SUSPENDED)
    return _accepted(stored, with_conditions(stored, listed))


def starts_again_on(worker: str) -> str:
    """How the reason to be suspended ends, of a Job that was moved."""
    return f"; the Job starts again on {worker}"


def _moved_on(stored: StoredJob, worker: str) -> Sequence[Condition]:
    """The stored conditions, with this worker as the one that it was moved to: the one that they name has refused it.

    But for the one that it came from, of which nothing is left: that would read as if it had started over there.
    """
    moves = stored.moves
    to = msgspec.structs.replace(moves, to=worker)
    if not moves.count or to == moves or to.is_start_over:
        return stored.conditions
    was, now = starts_again_on(moves.to), starts_again_on(worker)

    def changed(one: Condition) -> Condition:
        text = views.text(one.get("message"))
        match one.get("type"):
            case names.MOVED:
                return {**one, "message": to.message}
            case conditions.SUSPENDED if stored.waits_after_move and text.endswith(was):
                return {**one, "message": text.removesuffix(was) + now}
            case _:
                return one

    return tuple(map(changed, stored.conditions))


def mirrored_status(stored: StoredJob, status: Mapping[str, Any] | None, mirror_uid: str, now: datetime) -> Status:
    """A status, or the stored one, with the uid of the mirror recorded (D1)."""
    base = stored.status if status is None else status
    mirrored = conditions.new(names.MIRRORED, TRUE, reason=MIRRORED_REASON, message=mirror_uid, at=times.of(now))
    return {**base, "conditions": conditions.upsert(conditions.of(base), mirrored)}


def explained_status(
    stored: StoredJob, status: Mapping[str, Any] | None, why: Obstruction | None, *, is_placed: bool, now: datetime
) -> Status | None:
    """A status, or the stored one, that says why the Job waits for a worker or makes no progress on one (D22).

    One that waits and never ran is shown as suspended: ``kubectl get`` would call it running. So is one with a worker,
    as long as something keeps its mirror from being made there.
    """
    base = stored.status if status is None else status
    listed, at = conditions.of(base), times.of(now)
    changed = explained(listed, why, is_placed=is_placed, at=at)
    may_have_mirror = is_placed and (bool(stored.mirror_uid) or status is not None)
    waits = why is not None and why.reason not in UNKNOWN and not stored.has_started and not may_have_mirror
    if waits and not conditions.is_true(listed, SUSPENDED):
        what = "Waiting for its copy on the worker" if is_placed else "Waiting for a worker"
        changed = conditions.upsert(
            changed, conditions.new(SUSPENDED, TRUE, reason=WAITING_FOR_WORKER, message=what, at=at)
        )
    if why is None and is_placed and status is None and not stored.has_started and _waits_as_suspended(stored):
        changed = conditions.without(changed, SUSPENDED)
    return _accepted(stored, {**base, "conditions": changed}) if changed != listed else None


def _waits_as_suspended(stored: StoredJob) -> bool:
    """Whether it is shown as suspended only because it has no worker."""
    shown = conditions.find(stored.conditions, SUSPENDED, TRUE)
    return shown is not None and shown.get("reason") == WAITING_FOR_WORKER


def with_conditions(stored: StoredJob, listed: Sequence[Condition]) -> Status:
    """The stored status with these conditions instead of its own."""
    return {**stored.status, "conditions": list(listed)}


def terminal(interim: Condition, ending: conditions.Verdict, at: str) -> Condition:
    """The final condition that follows from an interim one (T8, D11)."""
    reason, message = views.text(interim.get("reason")), views.text(interim.get("message"))
    return conditions.new(ending, TRUE, reason=reason, message=message, at=at)


def _accepted(stored: StoredJob, status: Status) -> Status | None:
    shaped = served(status)
    return None if shaped == stored.status or stored.refusal(shaped) else shaped
