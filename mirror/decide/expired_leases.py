"""A mirror that its lease has ended, while its worker was reachable or before that was lost: no verdict (D14). Pure."""

from __future__ import annotations

from mirror.decide.fencing import MARGIN_SECONDS, expired_mirror
from mirror.decide.following import ended_for_seconds
from mirror.decide.move_requests import request_move
from mirror.decide.moving import LIMIT_REACHED, move_in_turn, wait_for_place
from mirror.decide.plan import Plan
from mirror.decide.snapshot import Memory, Snapshot, Source
from mirror.decide.writing import source_write
from mirror.kinds.fenceable import Lease
from mirror.kube.objects import Object
from mirror.model.move_requests import MoveRequest, Why
from mirror.model.reasons import Obstruction, Reason
from mirror.sharding.share import Part

ENDING_LOOK_SECONDS = 30.0


def replace_expired(seen: Snapshot) -> Plan | None:
    """Its lease has expired: once nothing of it runs any more it is placed anew, at once (D14)."""
    source = seen.source
    if (found := _expired(seen)) is None:
        return None
    ended, lease = found
    request = MoveRequest(why=Why.EXPIRED, is_unmade=seen.memory.first_create)
    text = request.because(source.placed or "")
    if (plan := _keep_progress(seen, ended, text)) is not None:
        return plan
    if not _has_left(seen, ended, lease):
        text += "; the Job starts again once its pods there have ended"
        write, later = source_write(seen, waiting=Obstruction(Reason.LEASE_EXPIRED, text))
        return Plan(text, write, min(later or ENDING_LOOK_SECONDS, ENDING_LOOK_SECONDS))
    if source.is_suspended:
        status = source.stored.suspended_status(seen.now)
        write, later = source_write(seen, status=status)
        return Plan(f"{text}, and the Job is suspended", write, later)
    if source.stored.limited_moves >= seen.policy.move_limit:
        write, later = source_write(seen, waiting=Obstruction(Reason.LEASE_EXPIRED, text + LIMIT_REACHED))
        return Plan(text, write, later)
    if seen.part is Part.HOLDER:
        return request_move(seen, request)
    if seen.assignment.assigned is None:
        return wait_for_place(seen, request)
    return move_in_turn(seen, seen.assignment.assigned, request, because=text)


def request_by_expiry(seen: Snapshot) -> MoveRequest | None:
    """What it is to be placed anew for, where its lease has ended it, nothing of it runs, and all of that is stored."""
    source = seen.source
    if (
        source.is_suspended
        or source.stored.limited_moves >= seen.policy.move_limit
        or (found := _expired(seen)) is None
    ):
        return None
    if not _has_left(seen, *found) or _keep_progress(seen, found[0], "") is not None:
        return None
    return MoveRequest(why=Why.EXPIRED, is_unmade=seen.memory.first_create)


def _expired(seen: Snapshot) -> tuple[Object, Lease] | None:
    """Its mirror, which a lease has ended or is ending."""
    source, worker = seen.source, seen.worker
    if not seen.concerns_lease or source.placed is None or source.stored.has_verdict:
        return None
    mirror = seen.mirror if worker is not None and worker.is_reachable and not seen.mirror_is_stale else None
    return expired_mirror(source, mirror, seen.memory)


def _has_left(seen: Snapshot, ended: Object, lease: Lease) -> bool:
    """Whether nothing of it runs there any more."""
    return lease.has_ended and not (lease.has_pods and _may_have_pods(seen, ended))


def _may_have_pods(seen: Snapshot, ended: Object) -> bool:
    """Workers before 1.31 end a Job before its pods, and count those no more: they get as long as on a lost one."""
    fence = seen.source.kind.fence
    assert fence is not None
    return ended_for_seconds(seen, ended) < MARGIN_SECONDS + fence.grace_seconds(seen.source.found)


def has_ended_by_lease(source: Source, mirror: Object | None, memory: Memory) -> bool:
    """Whether it is to be placed anew for this, where ``mirror`` is what its worker shows now."""
    if source.placed is None or source.is_suspended or source.is_finished or source.is_deleting:
        return False
    found = expired_mirror(source, mirror, memory)
    return found is not None and found[1].has_ended


def _keep_progress(seen: Snapshot, ended: Object, text: str) -> Plan | None:
    """What it had done until then is stored first; what its lease has ended counts for nothing."""
    source, fence, worker = seen.source, seen.source.kind.fence, seen.worker
    assert fence is not None
    following = source.stored.next_status(
        fence.progress_of_expired(source.found, ended),
        now=seen.now,
        mirror_suspended=source.kind.is_suspended(ended),
        clock_offset_seconds=worker.clock_offset_seconds if worker is not None else None,
    )
    if following.status is None:
        return None
    write, _ = source_write(seen, status=following.status, waiting=Obstruction(Reason.LEASE_EXPIRED, text))
    return Plan(text, write, 0.1)
