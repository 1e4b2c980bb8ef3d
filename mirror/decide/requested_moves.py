"""What becomes of a request for another worker: withdrawn by who made it, or fulfilled by who assigns (S2). Pure.

States and what must stay true are in decision 0027. While a move is requested, the holder of the worker's slot does
nothing there: ``settle_request`` comes before all rules that would.
"""

from __future__ import annotations

from mirror.decide.draining import PLACE_LOOK_SECONDS, is_place_wanted, request_by_drain
from mirror.decide.expired_leases import request_by_expiry
from mirror.decide.loss_policies import policy_of
from mirror.decide.move_requests import LOOK_SECONDS, answer_found, answer_lost, request_move, void, withdraw
from mirror.decide.moving import had_turn, move_to, request_by_loss, request_place, wait_for_place, wait_for_turn
from mirror.decide.plan import AT_ONCE, NO_TURN, AwaitMove, ConfirmRequest, Plan, RequestAssignment
from mirror.decide.retrying import is_to_be_retried
from mirror.decide.snapshot import Snapshot
from mirror.decide.writing import source_write
from mirror.model.losses import OnLoss
from mirror.model.move_requests import MoveRequest, Step, Why
from mirror.model.reasons import Obstruction, Reason
from mirror.model.terms import term_of
from mirror.sharding.share import Part

BY_POLICY = (Why.LOST, Why.FENCED)
"""What is moved because its worker is believed to be lost, as its policy says: it may be us who are cut off (D14)."""


def settle_request(seen: Snapshot) -> Plan | None:
    """Nothing is done on a worker while it is requested that a source leaves it, or may be (D14, S2)."""
    if seen.part is not Part.HOLDER or seen.source.placed is None:
        return None
    if seen.request is None:
        upon = seen.memory.requested_upon
        is_on_its_way = bool(upon) and upon == seen.source.found.metadata.resource_version
        return void(seen) if is_on_its_way and wanted_request(seen) is None else None
    wanted = wanted_request(seen)
    if wanted is not None:
        return request_move(seen, wanted)
    # While a place is wanted, or kept for it, its mirror is followed (``draining``, ``retrying``).
    is_wanted = is_to_be_retried if seen.request.why is Why.RETRIED else is_place_wanted
    return None if seen.request.step is not Step.MOVE and is_wanted(seen) else withdraw(seen)


def wanted_request(seen: Snapshot) -> MoveRequest | None:
    """What the holder of its worker's slot would request now, of whatever held or does not hold that."""
    if seen.worker is None:
        return None
    if (found := request_by_expiry(seen)) is not None:
        return found
    if seen.source.stored.has_verdict:
        return None
    return request_by_drain(seen) if seen.worker.is_reachable else request_by_loss(seen)


def move_as_requested(seen: Snapshot) -> Plan | None:
    """The holder of its worker's slot requests another one, which whoever assigns gives it, in one write (D14, S2)."""
    request, source = seen.request, seen.source
    if seen.part is not Part.ASSIGNER or request is None or source.placed is None:
        return None
    if not _may_be_moved(seen, request):
        return Plan("the request is about to be withdrawn")
    if not seen.is_request_current:
        # The worker that was found for it may be what its holder has stopped it for, in a term that has ended since.
        is_kept = request.step is Step.FOUND and seen.assignment.assigned is not None
        return Plan("requested in another term", (AwaitMove(takes_turn=False),) if is_kept else (), LOOK_SECONDS)
    if seen.moves_held:
        text = f"{request.because(source.placed)}; the Job stays assigned to it ({seen.moves_held})"
        write, later = source_write(seen, waiting=Obstruction(Reason.WORKER_LOST, text))
        return Plan(text, write, min(later or LOOK_SECONDS, LOOK_SECONDS))
    assigned = seen.assignment.assigned
    if assigned == source.placed and not request.may_stay:
        assigned = None
    if request.step is Step.FOUND and assigned is None and (plan := _find_again(seen, request)) is not None:
        return plan
    if request.why is Why.RETRIED:
        return _find_place_to_retry(seen, request, assigned)
    if request.step is not Step.MOVE:
        return _find_place(seen, request, assigned)
    if assigned is None:
        return wait_for_place(seen, request)
    is_its_turn = request.why is Why.DRAINED and had_turn(seen)  # it was when a place was found for it
    if not is_its_turn and (waiting := wait_for_turn(seen, assigned)) is not None:
        return waiting
    if seen.memory.request_confirmed != source.found.metadata.resource_version:
        confirm = ConfirmRequest(source.placed, term_of(source.stored.status))
        return Plan("whether who requested it holds that slot", (confirm, AwaitMove(takes_turn=False)), LOOK_SECONDS)
    because = request.because(source.placed) if request.why is Why.EXPIRED else ""
    return move_to(seen, assigned, request, because=because)


def _find_again(seen: Snapshot, request: MoveRequest) -> Plan | None:
    """A place was found for it, by whoever assigned before, or on a worker that takes nothing by now.

    It has one, so it comes before all who wait. Where there is none any more its holder has to know, since it would
    stop for that; None: it has stopped for good, or whether there is one is not known yet.
    """
    available, stored = seen.assignment.available, seen.source.stored
    if available is not None and available != seen.source.placed:
        actions = RequestAssignment(available), AwaitMove(takes_turn=False)
        return Plan(f"{available} is kept for it", actions, AT_ONCE, NO_TURN)
    if seen.assignment.obstruction is None or stored.retries.is_under_way or stored.is_leaving:
        return None
    return answer_lost(seen, request)


def _find_place(seen: Snapshot, request: MoveRequest, assigned: str | None) -> Plan:
    """What is to be drained goes on where it is until there is another worker for it, which is then kept."""
    if assigned is None:
        to, actions = request_place(seen)
        if to is not None:
            return wait_for_turn(seen, to) or Plan(f"may go on on {to}", actions, AT_ONCE)
        return Plan("waits for another worker", actions, PLACE_LOOK_SECONDS, NO_TURN)
    if request.step is Step.FOUND:
        return Plan(f"{assigned} is kept for it", (AwaitMove(takes_turn=False),), PLACE_LOOK_SECONDS)
    return wait_for_turn(seen, assigned) or answer_found(seen, request)


def _find_place_to_retry(seen: Snapshot, request: MoveRequest, assigned: str | None) -> Plan:
    """The same for what is to be tried elsewhere: it takes no turn, and stands in nobody's way while there is none."""
    available, keep = seen.assignment.available, AwaitMove(takes_turn=False)
    if assigned is None:
        if available is None:
            return Plan("waits for another worker to be tried on", (), PLACE_LOOK_SECONDS)
        return Plan(f"may be tried on {available}", (RequestAssignment(available), keep), AT_ONCE, NO_TURN)
    if request.step is Step.FOUND:
        return Plan(f"{assigned} is kept for it", (keep,), PLACE_LOOK_SECONDS)
    return answer_found(seen, request)


def _may_be_moved(seen: Snapshot, request: MoveRequest) -> bool:
    """Whether nothing that its user has written since speaks against it."""
    source = seen.source
    if source.is_finished or source.is_deleting or source.stored.has_verdict:
        return False
    if source.is_suspended and request.why is not Why.DRAINED:
        return False
    if seen.memory.other_manager:
        return False
    if request.why is Why.RETRIED:
        return request.step is not Step.MOVE
    if not source.kind.can_move:
        return False
    if request.why not in BY_POLICY:
        return True
    return policy_of(source, seen.policy, seen.namespace_on_loss).on_loss is not OnLoss.WAIT
