"""The lease of a fenced mirror: kept while its worker is reachable, counted on when it is lost (D14). Pure.

The states and what must stay true are in ``docs/decisions/0021-fence.md``. Times of a lease are by its worker's clock;
what is compared with ours has been converted by the offset between both. Not here: the move that follows (``moving``).
"""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil

import msgspec

from mirror.decide.identity import Identity
from mirror.decide.loss_policies import is_to_be_fenced
from mirror.decide.plan import Action, CoverLeases, Plan, RenewLease
from mirror.decide.snapshot import FenceState, Memory, Policy, Snapshot, Source, WorkerSight
from mirror.decide.writing import source_write
from mirror.kinds.fenceable import Fence, Lease
from mirror.kinds.queueing import queue_of
from mirror.kinds.stored_source import Status
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.fences import FENCED, VOIDED, mark_of, with_mark

LEAST_LEFT_SECONDS = 60.0
"""With less than this left a lease is not renewed: its controller may act by what it has cached (F3)."""
MARGIN_SECONDS = 120.0
SECONDS_PER_POD = 0.25
"""A worker's Job controller makes 20 requests a second, and about five for each pod."""
LEEWAY_SECONDS = 60.0
"""A lease that is longer than ours by more was started anew, or its worker's clock has moved."""
COUNTED_LEEWAY_SECONDS = 5.0
"""By so much its worker's time may be another each time that it is measured."""
OUTLIVED_SECONDS = 60.0
"""A worker's controller ends what is over within seconds, and may just have been elected."""
RENEW_AGAIN_SECONDS = 30.0
NO_CLOCK_SECONDS = 10.0


# -- while its worker is reachable -------------------------------------------------------------------------------------


def concerns(source: Source, mirror: Object | None, memory: Memory, *, is_wanted: bool) -> bool:
    """Whether a source's mirror has a lease, had one at its end, or is to have one: else no rule of them is asked."""
    if is_wanted or (memory.ended is not None and names.FENCE in memory.ended.annotations):
        return True
    return mirror is not None and (names.FENCE in mirror.annotations or bool(mark_of(source.stored.status)))


def marked(seen: Snapshot, status: Status) -> Status:
    """A status that records a worker anew says that the mirror to be made there gets a lease."""
    if not is_to_be_fenced(seen.source, seen.policy, seen.namespace_on_loss):
        return status
    return with_mark(status, FENCED)


def mark_lease(seen: Snapshot) -> Plan | None:
    """What the source says of its mirror's lease follows that, or goes before it is taken away (D14)."""
    if not seen.concerns_lease:
        return None
    source, worker, mirror, fence = seen.source, seen.worker, seen.mirror, seen.source.kind.fence
    if fence is None or worker is None or not worker.is_reachable:
        return None
    mark = mark_of(source.stored.status)
    if mirror is None or not (mark or names.FENCE in mirror.annotations) or seen.identity not in _MINE:
        return None
    wanted = _mark(seen, fence, mark)
    if wanted == mark:
        return None
    write, _ = source_write(seen, status=with_mark(source.stored.status, wanted))
    texts = {FENCED: "its mirror has a lease now", VOIDED: _voided_text(source, worker.name)}
    return Plan(texts.get(wanted, "its mirror is to have no lease any more"), write, 0.1)


def _mark(seen: Snapshot, fence: Fence, mark: str) -> str:
    source, mirror = seen.source, seen.mirror
    assert mirror is not None
    lease = fence.lease(mirror)
    if mark == VOIDED or lease.is_over:
        return mark
    if not is_to_be_fenced(source, seen.policy, seen.namespace_on_loss):
        return ""
    is_out_of_hand = source.has_started and _is_restarted_by_others(seen, fence, lease)
    if lease.is_ours and (is_out_of_hand or fence.is_run_by_queue(mirror)):
        return VOIDED
    return FENCED if lease.is_ours else mark


def _is_restarted_by_others(seen: Snapshot, fence: Fence, lease: Lease) -> bool:
    """Suspended there although its source may run, or started anew with a lease that none of ours is (F4)."""
    source, mirror = seen.source, seen.mirror
    if mirror is None or source.is_suspended:
        return False
    if source.kind.is_suspended(mirror):
        return seen.changes is None or not (seen.changes.operations or seen.changes.must_wait_for_pods)
    left = seconds_left(seen, lease)
    is_another_start = lease.started_at != fence.running_since(source.stored.status)
    return is_another_start and left is not None and left > seen.policy.fence_ttl_seconds + LEEWAY_SECONDS


def _voided_text(source: Source, worker: str) -> str:
    if queue := queue_of(source.found):
        return f"queue {queue} of worker {worker} may start its mirror anew"
    return f"its mirror was restarted on worker {worker}"


def keep_lease(seen: Snapshot) -> tuple[tuple[Action, ...], tuple[Action, ...], float | None]:
    """What to do about the lease of a mirror before its status is stored and after it, and when to look again."""
    if not seen.concerns_lease:
        return (), (), None
    source, mirror, worker, fence = seen.source, seen.mirror, seen.worker, seen.source.kind.fence
    if fence is None or mirror is None or worker is None or seen.identity not in _MINE:
        return (), (), None
    has_lease = names.FENCE in mirror.annotations
    is_wanted = is_to_be_fenced(source, seen.policy, seen.namespace_on_loss)
    mark = mark_of(source.stored.status) if has_lease or is_wanted else ""
    is_wanted = is_wanted and mark != VOIDED
    if not has_lease and not is_wanted:
        return (), (), None
    lease = fence.lease(mirror)
    if lease.is_over or mirror.metadata.deletion_timestamp is not None:
        return (), (), None
    renewal, again = None, None
    if is_wanted:
        renewal, again = _renewal(seen, fence, lease)
    elif mark != FENCED:
        renewal, again = _restored(seen, fence, lease)
    refused_for = seen.monotonic - seen.memory.lease_refused_at
    if renewal is not None and refused_for < RENEW_AGAIN_SECONDS:
        renewal, again = None, RENEW_AGAIN_SECONDS - refused_for
    return _cover(seen, lease), () if renewal is None else (renewal,), again


def lease_of_resume(seen: Snapshot) -> RenewLease | None:
    """A mirror that we resume starts anew, and its lease with it: in the same write (F4)."""
    source, mirror, fence = seen.source, seen.mirror, seen.source.kind.fence
    if fence is None or mirror is None or seen.worker is None or names.FENCE not in mirror.annotations:
        return None
    if source.is_suspended or not source.kind.is_suspended(mirror):
        return None
    return _first(seen, fence)


def must_stop_first(seen: Snapshot) -> bool:
    """Whether a mirror with a lease is not to be resumed yet: its controller has not seen that it was suspended.

    It would go on from the start that it had, and a lease from there on may be over already.
    """
    mirror, fence = seen.mirror, seen.source.kind.fence
    if fence is None or mirror is None or lease_of_resume(seen) is None:
        return False
    return fence.running_since(mirror.status_dict()) is not None


def _restored(seen: Snapshot, fence: Fence, lease: Lease) -> tuple[RenewLease | None, float | None]:
    """The policy is another by now: it gets what its user wants, unless its lease is about to end."""
    left = seconds_left(seen, lease)
    if lease.started_at is not None and not lease.is_held and (left is None or left < LEAST_LEFT_SECONDS):
        return None, NO_CLOCK_SECONDS if left is None else None
    return RenewLease(_worker(seen), fence.user_seconds(seen.source.found), is_ours=False), None


def _renewal(seen: Snapshot, fence: Fence, lease: Lease) -> tuple[RenewLease | None, float | None]:
    """Its value counts from its start; a third of the TTL may pass before it is set again."""
    ttl, user = seen.policy.fence_ttl_seconds, fence.user_seconds(seen.source.found)
    if lease.started_at is None or lease.is_held:
        first = _first(seen, fence)
        return (None if lease.is_ours and lease.seconds == first.seconds else first), None
    elapsed, left = _elapsed(seen, lease), seconds_left(seen, lease)
    if elapsed is None:
        return None, NO_CLOCK_SECONDS
    if left is not None and left < LEAST_LEFT_SECONDS:
        return None, None  # it ends: what is past is never renewed (F3)
    value = ceil(elapsed) + ttl
    if value < 1:
        return None, NO_CLOCK_SECONDS  # its worker's clock is before its start: no deadline is so short
    if user is not None:
        value = min(value, user)
    renewal = RenewLease(_worker(seen), value, lasts_seconds=max(0.0, value - elapsed))
    if left is None or not lease.is_ours:
        return renewal, None
    is_above_user = user is not None and (lease.seconds or 0) > user
    due_in = left - 2 * ttl / 3
    if is_above_user or left > ttl + LEEWAY_SECONDS or due_in <= 0:
        return (None if lease.seconds == value else renewal), None
    return None, due_in


def _first(seen: Snapshot, fence: Fence) -> RenewLease:
    ttl, user = seen.policy.fence_ttl_seconds, fence.user_seconds(seen.source.found)
    return RenewLease(_worker(seen), ttl if user is None else min(ttl, user), lasts_seconds=ttl)


def _cover(seen: Snapshot, lease: Lease) -> tuple[Action, ...]:
    """Before a start is stored from which on a lease ends later than is written down for its worker, or counted by us.

    A resume may have been sent long before its worker's controller starts the Job (F4).
    """
    worker, ends_in, counted = seen.worker, seconds_left(seen, lease), seen.memory.lease_ends_at
    if worker is None or ends_in is None or not lease.is_ours or lease.is_held:
        return ()
    is_written = worker.fenced_until is not None and (worker.fenced_until - seen.now).total_seconds() >= ends_in
    is_counted = counted is None or counted - seen.monotonic + COUNTED_LEEWAY_SECONDS >= ends_in
    return () if is_written and is_counted else (CoverLeases(worker.name, ends_in),)


def seconds_left(seen: Snapshot, lease: Lease) -> float | None:
    """Of a lease of a mirror that runs; None where that cannot be known."""
    elapsed = _elapsed(seen, lease)
    return None if elapsed is None or lease.seconds is None else lease.seconds - elapsed


def _elapsed(seen: Snapshot, lease: Lease) -> float | None:
    offset = seen.worker.clock_offset_seconds if seen.worker is not None else None
    if lease.started_at is None or offset is None:
        return None
    return seen.now.timestamp() + offset - lease.started_at


def _worker(seen: Snapshot) -> str:
    assert seen.worker is not None
    return seen.worker.name


# -- when its lease has ended it ---------------------------------------------------------------------------------------


def expired_mirror(source: Source, mirror: Object | None, memory: Memory) -> tuple[Object, Lease] | None:
    """The mirror that a lease has ended, or is ending, before the deadline of its user: that is no verdict."""
    fence, is_marked = source.kind.fence, mark_of(source.stored.status) == FENCED
    for found in (mirror, memory.ended):
        # Admission there may have taken the annotation away: the mark says so, too.
        if fence is None or found is None or not (names.FENCE in found.annotations or is_marked):
            continue
        lease, user = fence.lease(found), fence.user_seconds(source.found)
        if lease.has_expired and (user is None or (lease.seconds or 0) < user):
            return found, lease
    return None


# -- when its worker is lost -------------------------------------------------------------------------------------------


class Instant(msgspec.Struct, frozen=True):
    """One moment, by both of this machine's clocks."""

    now: datetime
    monotonic: float


def fence_state(
    source: Source, worker: WorkerSight, policy: Policy, mirror: Object | None, memory: Memory, at: Instant
) -> FenceState:
    """What may be counted on of a lease on a lost worker: the newest that this process had an answer to, if it has one.

    One that was sent before may have been another manager's, and what is recorded of it from a backup: no lease was
    sent since the worker was lost.
    """
    fence = source.kind.fence
    if memory.first_create:
        return FenceState()  # no create can have happened
    if why_not := _why_not_fenced(source, worker, policy, mirror, memory, at):
        return FenceState(f"it is not fenced: {why_not}")
    assert fence is not None
    if memory.lease_ends_at is not None:
        ends_in = memory.lease_ends_at - at.monotonic
    elif worker.fenced_until is not None:
        recorded = (worker.fenced_until - at.now).total_seconds()
        ends_in = max(recorded, policy.fence_ttl_seconds - worker.lost_for_seconds)
    else:
        return FenceState("it is not fenced: when its lease ends was not recorded")
    margin = MARGIN_SECONDS + fence.grace_seconds(source.found) + SECONDS_PER_POD * worker.fenced_pods
    return FenceState(safe_in_seconds=ends_in + margin, ends_in_seconds=ends_in)


def _why_not_fenced(
    source: Source, worker: WorkerSight, policy: Policy, mirror: Object | None, memory: Memory, at: Instant
) -> str:
    """Why its end cannot be known; empty: it can."""
    fence, mark, queue = source.kind.fence, mark_of(source.stored.status), queue_of(source.found)
    if fence is None or not mark:
        return "it had no lease"
    if mark == VOIDED or (queue and (mirror is None or fence.is_run_by_queue(mirror))):
        return _voided_text(source, worker.name)
    if worker.fence_doubt:
        return worker.fence_doubt
    if mirror is not None and _had_outlived(fence.lease(mirror), worker, memory, at):
        return f"it had outlived its lease on worker {worker.name}"
    is_resumed = mirror is not None and memory.resumed_version == mirror.metadata.resource_version
    if _is_known_to_run(source, fence, mirror) or (_is_held(fence, mirror, policy) and not is_resumed):
        return ""
    return "it was not seen to start"


def _had_outlived(lease: Lease, worker: WorkerSight, memory: Memory, at: Instant) -> bool:
    """Whether it ran on after its end when its worker was seen last: nobody enforces that there."""
    if not lease.is_ours or lease.is_over or lease.started_at is None or lease.seconds is None:
        return False
    if memory.lease_ends_at is not None:
        ended_for = at.monotonic - memory.lease_ends_at
    else:
        ended_for = at.now.timestamp() + (worker.clock_offset_seconds or 0.0) - lease.started_at - lease.seconds
    return ended_for > worker.lost_for_seconds + OUTLIVED_SECONDS


def _is_known_to_run(source: Source, fence: Fence, mirror: Object | None) -> bool:
    """Its start is stored; one that was suspended when its worker was lost already was last seen to run from there."""
    status = source.stored.status
    if not source.has_started or fence.running_since(status) is not None:
        return source.has_started
    if mirror is None or source.kind.is_suspended(mirror):
        return False
    lease = fence.lease(mirror)
    return lease.is_ours and lease.started_at is not None and lease.started_at == fence.started_at(status)


def _is_held(fence: Fence, mirror: Object | None, policy: Policy) -> bool:
    """We suspended it, and saw that nothing of it ran any more: whenever it goes on, it does so for the TTL only."""
    if mirror is None:
        return False
    lease = fence.lease(mirror)
    return lease.is_ours and lease.is_held and lease.seconds is not None and lease.seconds <= policy.fence_ttl_seconds


def moment(seen: Snapshot, in_seconds: float) -> str:
    """For people, and not another text at each look (D21): a quarter of a minute is exact enough."""
    at = ceil((seen.now.timestamp() + in_seconds) / 15) * 15
    when = datetime.fromtimestamp(at, UTC)
    day = "" if when.date() == seen.now.astimezone(UTC).date() else f"{when:%Y-%m-%d} "
    return f"{day}{when:%H:%M:%S} UTC"


_MINE = (Identity.OURS, Identity.UNLABELED)
