"""``retryable.Retry`` of batch/v1 Jobs: which one can be proved never to have run (D31, decision 0016). Pure.

A pod that ran leaves a trace: it is there, or it was counted before its finalizer went (T9). The exceptions are those
whose finalizer goes uncounted: pods of a Job that is suspended or scaled down (both change its spec, and so its
generation), and those that a podFailurePolicy ignores (F3). A Job that had any of these is left where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mirror.batch import conditions, times, views
from mirror.batch.conditions import SUSPENDED, TRUE
from mirror.kinds.batch_job import spec_rare, stopping
from mirror.kinds.batch_job.status_stored import RETRIED, StoredJob, retries_of, served
from mirror.kinds.queueing import queue_of
from mirror.kinds.stored_source import Status
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.retries import Retries, Tried

_RETRYING = names.RETRYING.encode()
_COUNTED = ("succeeded", "failed", "ready", "completedIndexes", "failedIndexes")
_PODS = ("active", "ready", "terminating")


class JobRetry:
    """See ``retryable.Retry``."""

    def unready_since(self, source: Object, mirror: Object) -> int | None:
        spec, wanted, status = spec_rare.read(mirror), spec_rare.read(source), mirror.status_dict()
        if spec is None or wanted is None or spec.suspend or spec.parallelism == 0 or spec.manual_selector:
            return None
        if mirror.metadata.generation != 1 or queue_of(mirror) or names.FENCE in mirror.annotations:
            return None
        if self.has_counted(mirror) or self.has_counted(source) or _is_decided(status) or _has_suspension(status):
            return None
        if spec.ignores_failures or wanted.ignores_failures:
            return None
        return spec_rare.started_at(status)

    def is_drained(self, mirror: Object) -> bool:
        status = mirror.status_dict()
        if not self.is_only_stopped(mirror) or self.has_counted(mirror) or self.has_pods(mirror):
            return False
        return not _is_decided(status) and conditions.is_true(conditions.of(status), SUSPENDED)

    def stopping(self, mirror: Object, mark: str) -> tuple[Mapping[str, Any], ...]:
        suspend, annotate = stopping.operations(mirror)
        return suspend, {**annotate, "value": {**annotate["value"], names.STOPPED_FOR: mark}}

    def is_only_stopped(self, mirror: Object, mark: str = "") -> bool:
        spec = spec_rare.read(mirror)
        if mark and mirror.annotations.get(names.STOPPED_FOR) != mark:
            return False
        return spec is not None and spec.suspend is True and mirror.metadata.generation == 2

    def has_counted(self, found: Object) -> bool:
        status = found.status_dict()
        if any(status.get(name) for name in _COUNTED):
            return True
        return any(views.mapping(status.get("uncountedTerminatedPods")).values())

    def has_pods(self, found: Object) -> bool:
        status = found.status_dict()
        return any(status.get(name) for name in _PODS)

    def tried(self, source: Object) -> tuple[Tried, ...]:
        if _RETRYING not in bytes(source.status):
            return ()
        return retries_of(conditions.of(source.status_dict())).tried


def retrying_status(
    stored: StoredJob, status: Mapping[str, Any] | None, retries: Retries, now: datetime
) -> Status | None:
    """A status, or the stored one, with this record of a retry."""
    base = stored.status if status is None else status
    listed = conditions.upsert(conditions.of(base), record_of(retries, now))
    return _accepted(stored, {**base, "conditions": listed})


def retried_status(stored: StoredJob, retries: Retries, now: datetime) -> Status | None:
    """It has no worker any more: nothing of it ever ran, and what it started on the last one counts for nothing."""
    at = times.of(now)
    listed = conditions.without(stored.conditions, names.PLACED, names.MIRRORED, names.PROGRESSING)
    workers = ", ".join(one.worker for one in retries.tried)
    text = f"No pod of it became ready on {workers}, and none ran; the Job starts on another worker"
    suspended = conditions.new(SUSPENDED, TRUE, reason=RETRIED, message=text, at=at)
    for one in (suspended, record_of(retries, now)):
        listed = conditions.upsert(listed, one)
    return _accepted(stored, {**stored.status, "conditions": listed})


def record_of(retries: Retries, now: datetime) -> dict[str, object]:
    """The condition of this record."""
    state = retries.state
    assert state is not None, "only what is recorded is written"
    return conditions.new(names.RETRYING, state.value, reason=retries.reason, message=retries.message, at=times.of(now))


def _accepted(stored: StoredJob, status: Status) -> Status | None:
    shaped = served(status)
    return None if stored.refusal(shaped) else shaped


def _is_decided(status: Mapping[str, Any]) -> bool:
    return any(one.get("status") == TRUE and one.get("type") in conditions.DECIDING for one in conditions.of(status))


def _has_suspension(status: Mapping[str, Any]) -> bool:
    """It was suspended at some time, whatever its generation says (W1)."""
    return conditions.find(conditions.of(status), SUSPENDED) is not None
