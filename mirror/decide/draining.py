"""A source leaves a worker that is drained by moving, which is reachable, so that nothing is in doubt (D14, D15). Pure.

Exclusive: the mirror is suspended, its pods end, its last status is stored, it is deleted in that very version, and
only its proven absence lets the record go elsewhere. Each step follows from what is stored (decision 0023): it is
resumed after a crash, and cancelled until the record is written; a loss in between is a loss.
"""

from __future__ import annotations

from msgspec.structs import replace

from mirror.decide.fencing import mark_lease
from mirror.decide.following import follow, problem_and_patch
from mirror.decide.identity import Identity
from mirror.decide.loss_policies import policy_of
from mirror.decide.move_requests import request_move, seconds_until_carried_out
from mirror.decide.moving import had_turn, move_to, request_place, wait_for_turn, wait_obstruction
from mirror.decide.plan import AT_ONCE, NO_TURN, Action, AwaitMove, DeleteMirror, FindMirror, Plan
from mirror.decide.snapshot import Look, Memory, Policy, Snapshot, Source, WorkerSight
from mirror.decide.writing import FromMirror, shown_obstruction, source_write
from mirror.kinds.base import Changes
from mirror.kinds.queueing import queue_of
from mirror.kube.objects import Object
from mirror.model.drains import MOVE_STARTED, MOVING
from mirror.model.losses import OnLoss, OnNamespace
from mirror.model.move_requests import MoveRequest, Step, Why
from mirror.model.reasons import Obstruction, Reason
from mirror.model.terms import CARRIED_OUT_SECONDS
from mirror.sharding.share import Part

GOES_LOOK_SECONDS = 1.0
STOPS_LOOK_SECONDS = 30.0
PLACE_LOOK_SECONDS = 60.0
STOP = "stopped for a drain"
"""Names the change that suspends a mirror."""


def is_to_leave(
    source: Source, worker: WorkerSight | None, mirror: Object | None, policy: Policy, on_namespace: OnNamespace
) -> bool:
    """Whether it leaves its worker as soon as there is another place: nothing of it runs, or it may be stopped."""
    if worker is None or not worker.is_reachable or worker.drain not in MOVING or not source.kind.can_move:
        return False
    if source.is_finished or source.is_deleting or source.is_held or source.stored.has_verdict:
        return False
    if mirror is None or source.kind.is_suspended(mirror):
        return True
    if queue_of(mirror):
        return False  # its worker's queue resumes what it runs
    if _would_be_complete(source, mirror):
        return False
    has_started = source.has_started or bool(source.kind.progress(mirror).started_at)
    if not has_started or worker.drain == MOVE_STARTED:
        return True
    return policy_of(source, policy, on_namespace).on_loss is not OnLoss.WAIT


def _would_be_complete(source: Source, mirror: Object) -> bool:
    """Whether stopping it would end it well, with its work undone: it ends where it is."""
    kind = source.kind
    return kind.ends_when_suspended(mirror) and (kind.has_succeeded(mirror) or kind.has_succeeded(source.found))


def leave_draining_worker(seen: Snapshot) -> Plan | None:
    """Its worker is drained by moving: it stops there, and goes on elsewhere (D14, D15)."""
    source, mirror, worker = seen.source, seen.mirror, seen.worker
    if worker is None or not worker.drain:
        return None
    if seen.mirror_is_stale or seen.identity is Identity.REPLACED or seen.memory.ended is not None:
        return None
    if not is_to_leave(source, worker, mirror, seen.policy, seen.namespace_on_loss):
        return None
    if mirror is None:
        return _go(seen)
    kind = source.kind
    if mirror.metadata.deletion_timestamp is not None:
        if not source.stored.is_leaving:
            return None
        return Plan(f"its mirror on {worker.name} is being deleted", (_KEEP,), GOES_LOOK_SECONDS)
    if kind.summary(mirror).is_finished or kind.is_held_for_seed(mirror):
        return None
    if not kind.has_stopped(mirror):
        return _stop(seen, mirror)
    return _let_it_go(seen, mirror)


def stay_after_drain(seen: Snapshot) -> Plan | None:
    """Its drain is over, and its mirror had stopped, and may have been deleted already: that is found out first (D15).

    What the cache has is no proof, and what is stored on the strength of it would make of a mirror that we have deleted
    one that has vanished (D11). A resume tells; where its user has suspended it, a read.
    """
    mirror, stored, worker = seen.mirror, seen.source.stored, seen.worker
    if mirror is None or worker is None or not stored.is_leaving or stored.mirror_uid != mirror.metadata.uid:
        return None
    if not worker.is_reachable or not seen.source.kind.is_suspended(mirror):
        return None
    problem, patch = problem_and_patch(seen)
    if problem is None and patch:
        return Plan(f"goes on on {worker.name}", patch, GOES_LOOK_SECONDS)
    if seen.monotonic - seen.memory.read_at < GOES_LOOK_SECONDS:
        return None
    return Plan("whether its mirror is still there", (FindMirror(worker.name, mirror.metadata.uid),), AT_ONCE)


_KEEP = AwaitMove(takes_turn=False)
PLACE_BY_DRAIN = MoveRequest(Step.PLACE, Why.DRAINED)
GONE_BY_DRAIN = MoveRequest(Step.MOVE, Why.DRAINED)


def _stop(seen: Snapshot, mirror: Object) -> Plan | None:
    """Suspend the mirror once there is another place for its source; its status is followed until its pods are gone.

    One that was resumed is not before its controller has answered that: what its status says of the suspension before
    would pass for an answer to this one, while that controller makes pods.
    """
    worker, source = seen.worker, seen.source
    assert worker is not None
    is_stopping = source.kind.is_suspended(mirror)
    if not is_stopping and (waiting := _wait_for_place_and_turn(seen)) is not None:
        return waiting
    if source.kind.is_resuming(mirror):
        plan = _go_on(seen)
        again = min(plan.again_after_seconds or STOPS_LOOK_SECONDS, STOPS_LOOK_SECONDS)
        why = f"runs again on {worker.name} before it stops there"
        return replace(plan, because=why, actions=(*plan.actions, _KEEP), again_after_seconds=again)
    problem: Obstruction | None = None
    patch: tuple[Action, ...] = ()
    if not is_stopping:
        changes = Changes(operations=source.kind.stopping(mirror), digest=STOP)
        problem, patch = problem_and_patch(replace(seen, changes=changes))
    write, again = _follow_status(seen, mirror, problem)
    return Plan(f"stops on {worker.name}, which is drained", (*write, *patch, _KEEP), again)


def _follow_status(seen: Snapshot, mirror: Object, problem: Obstruction | None) -> tuple[tuple[Action, ...], float]:
    """What its mirror says is stored, and nothing is sent there; and when to look again."""
    following = seen.source.stored.next_status(
        mirror,
        now=seen.now,
        mirror_suspended=seen.source.kind.is_suspended(mirror),
        clock_offset_seconds=seen.worker.clock_offset_seconds if seen.worker is not None else None,
    )
    shown = problem or shown_obstruction(seen)
    write, later = source_write(seen, waiting=shown, mirror=FromMirror(mirror.metadata.uid, following))
    return write, min(later or STOPS_LOOK_SECONDS, STOPS_LOOK_SECONDS)


def _let_it_go(seen: Snapshot, mirror: Object) -> Plan | None:
    """It has stopped: what it counted last is stored, with the word that it goes, and then that very version goes."""
    worker, source = seen.worker, seen.source
    assert worker is not None
    stored, uid = source.stored, mirror.metadata.uid
    if not stored.is_leaving and (waiting := _wait_for_place_and_turn(seen)) is not None:
        return waiting
    following = stored.next_status(
        mirror, now=seen.now, mirror_suspended=True, clock_offset_seconds=worker.clock_offset_seconds
    )
    if following.more:
        write, _ = source_write(seen, status=following.status, waiting=shown_obstruction(seen))
        return Plan("a suspension is shown first", (*write, _KEEP), AT_ONCE)
    status = stored.leaving_status(following.status, worker.name, uid, seen.now)
    if status is not None:
        write, later = source_write(seen, status=status)
        return Plan(f"has stopped on {worker.name}, which is drained", (*write, _KEEP), min(later or AT_ONCE, AT_ONCE))
    if not stored.is_leaving or stored.mirror_uid != uid:
        why = "what is stored in its status does not allow it to leave a drained worker"
        write, later = source_write(seen, waiting=Obstruction(Reason.STATUS_REFUSED, why))
        return Plan(why, write, later)
    version = mirror.metadata.resource_version
    delete = DeleteMirror(worker.name, uid, version, "its source leaves the drained worker")
    return Plan(f"its mirror on {worker.name} has stopped, and goes", (delete, _KEEP), GOES_LOOK_SECONDS)


def _go(seen: Snapshot) -> Plan | None:
    """Nothing of it is in the cache: where that is proven, its record goes elsewhere, in one write."""
    worker, source, memory = seen.worker, seen.source, seen.memory
    assert worker is not None
    if not memory.first_create:
        if not (source.stored.is_leaving or is_unmade(source, memory)):
            return None  # it may be there, or come: it is made or found first
        if (left := seconds_until_carried_out(seen)) > 0:
            return Plan("one that was sent before may come yet", (_KEEP,), left)
        if not _has_looked(seen):
            find = FindMirror(worker.name, source.stored.mirror_uid or "")
            return Plan("its mirror is not in the cache", (find, _KEEP), GOES_LOOK_SECONDS)
        if not _is_absent(seen):
            return None
    if seen.part is Part.HOLDER:
        return request_move(seen, GONE_BY_DRAIN)
    if (waiting := _wait_for_place_and_turn(seen)) is not None:
        return waiting
    return move_to(seen, seen.assignment.assigned or "", GONE_BY_DRAIN)


def is_unmade(source: Source, memory: Memory) -> bool:
    """Whether nothing is known of a mirror there, as where a create was refused and its manager restarted since."""
    if source.placed is None or source.has_started or source.stored.mirror_uid or memory.ran:
        return False
    return not memory.mirror_uid or memory.mirror_uid in {one.uid for one in source.stored.moves.left_behind}


def _has_looked(seen: Snapshot) -> bool:
    """Whether a live look has said what is there, and nothing that was sent before it can be carried out since."""
    memory = seen.memory
    if memory.look is None or memory.looked_for != (seen.source.stored.mirror_uid or ""):
        return False
    return memory.read_at >= memory.unanswered_at + CARRIED_OUT_SECONDS


def _is_absent(seen: Snapshot) -> bool:
    """Whether that look has shown that its mirror is not there; one without our labels may be of an unknown uid."""
    look = seen.memory.look
    return look is Look.GONE or (look is Look.FOREIGN and seen.source.stored.is_leaving)


def is_place_wanted(seen: Snapshot) -> bool:
    """Whether its worker is drained, and it is to leave that once there is another one for it."""
    worker, mirror = seen.worker, seen.mirror
    return is_to_leave(seen.source, worker, mirror, seen.policy, seen.namespace_on_loss)


def request_by_drain(seen: Snapshot) -> MoveRequest | None:
    """What it is to be moved for, where nothing of it is on its worker any more: that was never made, or is proved."""
    if seen.mirror is not None or not is_place_wanted(seen):
        return None
    if seen.memory.first_create:
        return GONE_BY_DRAIN
    may_go = seen.source.stored.is_leaving or is_unmade(seen.source, seen.memory)
    is_proved = may_go and seconds_until_carried_out(seen) <= 0 and _has_looked(seen) and _is_absent(seen)
    return GONE_BY_DRAIN if is_proved else None


def _wait_for_place_and_turn(seen: Snapshot) -> Plan | None:
    """Until it is its turn (``workers.moveRate``), and another worker is assigned, it goes on where it is."""
    if seen.part is Part.HOLDER:
        return _wait_until_found(seen)
    assigned = seen.assignment.assigned
    if assigned is not None and assigned != seen.source.placed:
        waiting = None if had_turn(seen) else wait_for_turn(seen, assigned)
        return None if waiting is None else _beside(waiting, _until_its_turn(seen))
    to, actions = request_place(seen)
    if to is None:
        return _beside(Plan("waits for another worker", actions, remember=NO_TURN), _meanwhile(seen))
    # Whose turn it is takes the place, as after a loss (decision 0020).
    waiting = wait_for_turn(seen, to)
    return Plan(f"may go on on {to}", actions, AT_ONCE) if waiting is None else _beside(waiting, _until_its_turn(seen))


def _beside(waiting: Plan, meanwhile: Plan) -> Plan:
    """It waits, and what is done for it meanwhile is done."""
    return replace(
        meanwhile,
        because=f"{waiting.because}; {meanwhile.because}",
        actions=(*waiting.actions, *meanwhile.actions),
        remember={**meanwhile.remember, **waiting.remember},
    )


def _wait_until_found(seen: Snapshot) -> Plan | None:
    """The same where whoever assigns says so in the record."""
    if seen.request is not None and seen.is_request_current:
        if seen.request.step is not Step.PLACE:
            return None
        return _meanwhile(seen)
    return replace(request_move(seen, PLACE_BY_DRAIN), again_after_seconds=AT_ONCE)


def _until_its_turn(seen: Snapshot) -> Plan:
    """What is done for it while there is a place for it: it is followed.

    What has been stopped already, by whatever that was, is not resumed for so short a time: one that has started could
    not be stopped again without consent, and would stay.
    """
    mirror = seen.mirror
    if mirror is None:
        return Plan("nothing of it runs")
    if not seen.source.kind.is_suspended(mirror):
        return _go_on(seen)
    if seen.source.stored.is_leaving:
        return Plan("nothing of it runs")
    write, again = _follow_status(seen, mirror, None)
    return Plan("its mirror is stopped", write, again)


def _meanwhile(seen: Snapshot) -> Plan:
    """What is done for it while it has no other place: it is followed, unless it has stopped already."""
    mirror, stored = seen.mirror, seen.source.stored
    if mirror is None or (stored.is_leaving and seen.source.kind.is_suspended(mirror)):
        status = stored.suspended_status(seen.now) if seen.source.is_suspended and not stored.is_leaving else None
        write, later = source_write(seen, status=status, waiting=wait_obstruction(seen, GONE_BY_DRAIN))
        plan = Plan("has stopped, and waits for another worker", write, later)
    else:
        plan = _go_on(seen)
    again = min(plan.again_after_seconds or PLACE_LOOK_SECONDS, PLACE_LOOK_SECONDS)
    return replace(plan, again_after_seconds=again)


def _go_on(seen: Snapshot) -> Plan:
    """As on a worker that is not drained; what its source says of a lease first."""
    return mark_lease(seen) or follow(seen) or Plan("goes on where it is")
