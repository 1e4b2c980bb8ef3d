"""Moving a source from a lost worker, and what becomes of a copy that comes back (D14). Pure; ``rules`` asks in order.

The record is taken from the lost worker only by the write that gives it to the next one: without a place there is no
move, and a worker that is back before has lost nothing.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from mirror.decide.fencing import marked, moment
from mirror.decide.loss_policies import is_to_be_fenced, policy_of
from mirror.decide.move_requests import request_move, wait_text
from mirror.decide.plan import AT_ONCE, NO_TURN, Action, AwaitMove, EmitEvent, Plan, RequestAssignment, WriteSource
from mirror.decide.snapshot import FenceState, Policy, Snapshot, Source, WorkerSight
from mirror.decide.terms import in_term
from mirror.decide.writing import source_write
from mirror.kinds.base import Kind
from mirror.kinds.stored_source import Status
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.losses import OnLoss, OnNamespace
from mirror.model.move_requests import MoveRequest, Why
from mirror.model.moves import LeftBehind
from mirror.model.reasons import OF_NO_WORKER, Obstruction, Reason
from mirror.model.views import COMPLETE
from mirror.sharding.share import Part

HELD_LOOK_SECONDS = 15.0
WAITING_LOOK_SECONDS = 60.0
RESUMED_FIRST = " (it is moved once it is resumed)"
LIMIT_REACHED = " (it was moved as often as workers.moveLimit allows)"
TURN_LASTS_SECONDS = 60.0
"""A turn that was not taken for so long is none any more."""


def is_to_be_moved(
    source: Source,
    worker: WorkerSight | None,
    policy: Policy,
    namespace_on_loss: OnNamespace,
    fence: FenceState | None = None,
) -> bool:
    """Whether it is moved as soon as nothing holds that and there is a place."""
    if worker is None or worker.is_reachable or source.is_suspended or source.is_finished or source.is_deleting:
        return False
    if worker.is_gone:
        return source.kind.can_move
    if worker.lost_for_seconds < policy.lost_after_seconds or worker.lost_for_seconds <= 0:
        return False
    if source.stored.limited_moves >= policy.move_limit:
        return False
    match policy_of(source, policy, namespace_on_loss).on_loss:
        case OnLoss.RESCHEDULE:
            return True
        case OnLoss.FENCE:
            return fence is not None and not fence.why_not and fence.safe_in_seconds <= 0
        case _:
            return False


def move_from_lost_worker(seen: Snapshot) -> Plan | None:
    """Its worker is lost for too long, and it may run elsewhere: one write takes the record there (D14)."""
    if seen.worker is None or seen.worker.is_reachable:
        return None
    source, assignment = seen.source, seen.assignment
    if seen.moves_held or (request := request_by_loss(seen)) is None:
        return None
    if source.stored.has_verdict:
        return _end_as_decided(seen)
    if seen.part is Part.HOLDER:
        return request_move(seen, request)
    if assignment.assigned is None or assignment.assigned == source.placed:
        return wait_for_place(seen, request)
    return move_in_turn(seen, assignment.assigned, request)


def request_by_loss(seen: Snapshot) -> MoveRequest | None:
    """What it is to be moved for, where its worker is lost; whether anything holds moves is not looked at."""
    if seen.memory.ended is not None:
        return None
    if not is_to_be_moved(seen.source, seen.worker, seen.policy, seen.namespace_on_loss, seen.fence):
        return None
    why = Why.LOST
    if seen.worker is not None and seen.worker.is_gone:
        why = Why.GONE
    elif is_to_be_fenced(seen.source, seen.policy, seen.namespace_on_loss):
        why = Why.FENCED
    # Where no create can have happened there is nothing to be left behind, and nothing that may run twice.
    return MoveRequest(why=why, is_unmade=seen.memory.first_create)


def move_in_turn(seen: Snapshot, to: str, request: MoveRequest, *, because: str = "") -> Plan:
    """Move it, or wait until it is its turn."""
    return wait_for_turn(seen, to) or move_to(seen, to, request, because=because)


def wait_for_turn(seen: Snapshot, to: str) -> Plan | None:
    """None: it is its turn (``workers.moveRate``); its key is named when it is."""
    turn = seen.memory.move_at
    if turn is not None and seen.monotonic <= turn + TURN_LASTS_SECONDS:
        return None
    return Plan(f"is moved to {to} when it is its turn", (AwaitMove(),))


def had_turn(seen: Snapshot) -> bool:
    """Whether it took the place that it is assigned to in its turn, however long what is drained took to stop since."""
    return seen.memory.move_at is not None


def wait_for_place(seen: Snapshot, request: MoveRequest) -> Plan:
    """Have it assigned to another worker, or where it may stay to the same."""
    to, actions = request_place(seen, may_stay=request.may_stay)
    if to is not None:
        # Whose turn it is takes the place: those who come first must not take all, whichever namespace they are of.
        return wait_for_turn(seen, to) or Plan(f"may be moved to {to}", actions, AT_ONCE)
    waiting = wait_obstruction(seen, request)
    write, later = source_write(seen, waiting=waiting)
    again = min(later or WAITING_LOOK_SECONDS, WAITING_LOOK_SECONDS)
    return Plan(waiting.text, (*actions, *write), again, NO_TURN)


def wait_obstruction(seen: Snapshot, request: MoveRequest) -> Obstruction:
    """What the source says while there is no other worker for it."""
    why = seen.assignment.obstruction
    text = wait_text(request, seen.source.placed or "") + (f": {why.text}" if why else "")
    if request.why is not Why.DRAINED:
        return Obstruction(Reason.WORKER_LOST, text)
    return Obstruction(why.reason if why is not None else Reason.WORKERS_FULL, text)


def request_place(seen: Snapshot, *, may_stay: bool = False) -> tuple[str | None, tuple[Action, ...]]:
    """The worker that is free for it, if there is one beside its own, and what has it assigned, now or later."""
    to, why = seen.assignment.available, seen.assignment.obstruction
    if to is not None and (may_stay or to != seen.source.placed):
        return to, (RequestAssignment(to), AwaitMove())
    if why is not None and why.reason in OF_NO_WORKER:
        return None, ()
    return None, (RequestAssignment(is_reason_reported=why is not None),)


def move_to(seen: Snapshot, to: str, request: MoveRequest, *, because: str = "") -> Plan:
    """Take the record from its worker, and give it to this one, in one write."""
    source, east = seen.source, seen.source.placed or ""
    left, is_drained = request.left_on(east, seen.recorded_uid), request.why is Why.DRAINED
    # Whose mirror there is known had none before it in the way; what is drained is moved once that is gone.
    moves = source.stored.moves.moved(east, to, left, is_gone=is_drained and bool(seen.recorded_uid))
    status = source.stored.moved_status(moves, seen.now, is_drained=is_drained, because=because)
    if status is None:
        why = "what is stored in its status allows no move"
        write, later = source_write(seen, waiting=Obstruction(Reason.STATUS_REFUSED, why))
        return Plan(why, write, later)
    write, _ = source_write(seen, status=in_term(seen, marked(seen, status)), records=to)
    write = tuple(replace(one, moves_from=east) if isinstance(one, WriteSource) else one for one in write)
    drained = ", which is drained," if is_drained else ""
    return Plan(f"moved from {east}{drained} to {to}", write, remember={"first_create": True})


def _end_as_decided(seen: Snapshot) -> Plan:
    """It is known how it ends: it does so, instead of running again (D11)."""
    message = f"worker {seen.source.placed} is lost"
    status = seen.source.stored.lost_status(seen.now, reason="WorkerLost", message=message)
    write, later = source_write(seen, status=status)
    return Plan(f"{message}, and how the Job ends was known", write, later)


def move_text(seen: Snapshot) -> str:
    """While its worker is unreachable: when the Job is moved; nothing where it is not."""
    source, worker, policy, fence = seen.source, seen.worker, seen.policy, seen.fence
    if worker is None or not worker.lost_for_seconds:
        return ""
    lost = replace(worker, lost_for_seconds=max(1.0, policy.lost_after_seconds))
    ended = replace(fence, safe_in_seconds=0.0) if fence is not None else None
    if not is_to_be_moved(source, lost, policy, seen.namespace_on_loss, ended):
        return f"; {fence.why_not}" if fence is not None and fence.why_not else ""
    wait = max(policy.lost_after_seconds - worker.lost_for_seconds, fence.safe_in_seconds if fence else 0.0)
    if fence is not None and not seen.memory.first_create:
        lease = f"its lease ends at {moment(seen, fence.ends_in_seconds)}"
        return f"; the Job is moved to another one at {moment(seen, wait)} unless it is back ({lease})"
    at = seen.now + timedelta(seconds=round(wait))
    return f"; the Job is moved to another one at {at:%H:%M:%S} UTC unless it is back"


def lost_text(seen: Snapshot) -> str:
    """Why it stays on a worker that has been lost for ``lostAfter``; more than nothing only where somebody asked."""
    source, policy = seen.source, policy_of(seen.source, seen.policy, seen.namespace_on_loss)
    if seen.worker is not None and seen.worker.is_gone:
        if not source.kind.can_move:
            return f" (a {source.kind.name} is not moved)"
        return RESUMED_FIRST if source.is_suspended else ""
    if policy.mistake:
        return f" ({policy.mistake}: treated as Wait)"
    if policy.on_loss is OnLoss.WAIT:
        return ""
    if source.stored.limited_moves >= seen.policy.move_limit:
        return LIMIT_REACHED
    if source.is_suspended:
        return RESUMED_FIRST
    if seen.fence is not None and seen.fence.why_not:
        return f" ({seen.fence.why_not})"
    if seen.fence is not None and seen.fence.safe_in_seconds > 0:
        lease = f"its lease ends at {moment(seen, seen.fence.ends_in_seconds)}"
        return f" until {moment(seen, seen.fence.safe_in_seconds)} ({lease})"
    return f" ({seen.moves_held})" if seen.moves_held else ""


def is_completed_copy(kind: Kind, source: Object, left: LeftBehind, found: Object) -> bool:
    """Whether an object is the copy that was left behind, and Complete."""
    progress = kind.progress(found)
    if found.metadata.deletion_timestamp is not None or progress.end != COMPLETE:
        return False
    return not why_uncounted(kind, source, left, found)


def why_uncounted(kind: Kind, source: Object, left: LeftBehind, found: Object) -> str:
    """Why what an object says is not the end of its source: by its uid and our labels it is not what was left (D1).

    Or it never heard that an elastic Job was scaled up, and has not done what that wants; or the Job fails already, and
    what is stored of that stays (D7). Empty: nothing is amiss.

    Raises:
        BadAnswer: the source cannot be decoded.
    """
    if not left.uid:
        return "which copy was left there is not known"
    if found.metadata.uid != left.uid:
        return "it is another one than was left there"
    if found.labels.get(names.SOURCE_UID) != source.metadata.uid:
        return "its labels were changed there"
    if kind.stored(source).is_failing:
        return "that the Job fails was decided before"
    wanted, has = kind.progress(source).completions, kind.progress(found).completions
    return "" if wanted is None or (has is not None and has >= wanted) else "it was to complete less than is wanted now"


def take_returned_completion(seen: Snapshot) -> Plan | None:
    """A copy that was left behind is Complete, and nothing else of the source is: it counts (D14)."""
    returned = seen.returned
    if returned is None:
        return None
    source = seen.source
    if source.is_finished or source.is_deleting or source.placed is None:
        return None
    following = source.stored.next_status(
        returned.mirror, now=seen.now, clock_offset_seconds=returned.clock_offset_seconds, settled=True
    )
    if following.status is None:
        return None
    if following.more:
        write, _ = source_write(seen, status=following.status)
        return Plan("a copy that was left behind is complete; a suspension is shown first", write, 0.1)
    status = _returned(seen, following.status, returned.worker, returned.mirror.metadata.uid)
    write, later = source_write(seen, status=in_term(seen, status), waiting=None, records=returned.worker)
    text = f"the copy on {returned.worker} had completed, and counts; one that was made since is deleted"
    return Plan(text, (*write, EmitEvent("EarlierCopyCompleted", text)), later)


def _returned(seen: Snapshot, status: Status, worker: str, uid: str) -> Status:
    stored = seen.source.stored
    is_alone = seen.memory.first_create or seen.source.placed == worker  # the next one cannot be made in its place
    left = None if is_alone else LeftBehind(seen.source.placed or "", seen.recorded_uid)
    status = stored.mirrored_status(status, uid, seen.now)
    return stored.returned_status(status, worker, stored.moves.returned(worker, left), seen.now)
