"""When failed pods may be replaced (B4–B6, L6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from mirror.jobcontroller.decide.values import BackoffRecord, Constants, Container, Pod

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_MOST_DOUBLINGS = 62


def finish_time(pod: Pod) -> datetime:
    """When a pod ended, as well as can be told (B6)."""
    if (ended := _containers_ended(pod)) is not None:
        return ended
    ready = next((one for one in pod.conditions if one.type == "Ready"), None)
    if ready is not None and ready.status == "False" and ready.since is not None:
        return ready.since
    if pod.deleted is not None:
        return pod.deleted - timedelta(seconds=pod.grace_seconds)
    return pod.created or _LONG_AGO


def next_record(before: BackoffRecord | None, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> BackoffRecord:
    """The record once these pods have ended: a success forgets every failure that is not later than it (B5)."""
    before = before or BackoffRecord()
    times = sorted(map(finish_time, failed))
    if not succeeded:
        return BackoffRecord(before.failures + len(times), times[-1]) if times else before
    success = max(map(finish_time, succeeded))
    later = [at for at in times if at > success]
    return BackoffRecord(len(later), later[-1]) if later else BackoffRecord()


def remaining_seconds(record: BackoffRecord, now: datetime, constants: Constants) -> float:
    """How long the next pod has to wait (B4); at most 0 when it has not."""
    if not record.failures or record.last_failure is None:
        return 0.0
    doubled = constants.pod_failure_backoff_seconds * 2.0 ** min(record.failures - 1, _MOST_DOUBLINGS)
    delay = min(doubled, constants.max_pod_failure_backoff_seconds)
    return max(0.0, delay - (now - record.last_failure).total_seconds())


def index_remaining_seconds(held: Pod | None, now: datetime, constants: Constants) -> float:
    """The same for one index, whose failures its held-back pod carries (L6)."""
    if held is None:
        return 0.0
    failures = held.index_failures + held.index_ignored_failures + 1
    return remaining_seconds(BackoffRecord(failures, finish_time(held)), now, constants)


def _containers_ended(pod: Pod) -> datetime | None:
    """The last end of a container that counts, sidecars after the others, as upstream looks at them.

    None while one has not ended or its end is not known; sidecars that have all ended tell it alone, though.
    """
    ended = _last_end((one for one in pod.containers if not one.is_init), None)
    return _last_end((one for one in pod.containers if one.is_sidecar), ended)


def _last_end(containers: Iterable[Container], last: datetime | None) -> datetime | None:
    for one in containers:
        if one.finished_at is None:
            return None
        if last is None or one.finished_at > last:
            last = one.finished_at
    return last
