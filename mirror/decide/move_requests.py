"""Who holds the slot of a worker requests another one for a source there: the writes of it (S2, decision 0027). Pure.

When it does is decided where moves are (``moving``, ``expired_leases``, ``draining``); what becomes of a request, in
``requested_moves``.
"""

from __future__ import annotations

from msgspec.structs import replace

from mirror.batch import times
from mirror.decide.plan import AT_ONCE, REQUESTED, Action, AwaitMove, Plan, WriteSource
from mirror.decide.snapshot import Snapshot
from mirror.decide.writing import shown_obstruction, source_write
from mirror.model.move_requests import MoveRequest, Step, Why
from mirror.model.reasons import Obstruction, Reason
from mirror.model.terms import CARRIED_OUT_SECONDS, recorded_anew, term_of, with_request

WITHDRAWN, PLACE_REQUESTED, PLACE_FOUND, PLACE_LOST = "withdrawn", "place requested", "place found", "place lost"
LOOK_SECONDS = 15.0
A_SECOND = 1.0
"""Times in a status are whole ones."""


def request_move(seen: Snapshot, request: MoveRequest) -> Plan:
    """Write the request, with all that the move needs to know; not before S8 holds, nor twice."""
    source = seen.source
    if seen.request == request and seen.is_request_current:
        return Plan(f"{request.text} is requested", (), LOOK_SECONDS)
    if seen.settles_in_seconds > 0 and request.step is Step.MOVE:
        return Plan("what was sent there before may still be carried out", (), seen.settles_in_seconds)
    status, uid = source.stored.status, seen.recorded_uid
    if request.step is Step.MOVE and uid and uid != source.stored.mirror_uid:
        status = source.stored.mirrored_status(None, uid, seen.now)
    waiting, is_move = shown_obstruction(seen), request.step is Step.MOVE
    if is_move and request.why is not Why.DRAINED:
        waiting = Obstruction(Reason.WORKER_LOST, wait_text(request, source.placed or ""))
    write, later = source_write(seen, status=with_request(status, request, seen.term), waiting=waiting)
    told = _about(write, REQUESTED if is_move else PLACE_REQUESTED)
    return Plan(f"{request.text}: requested", told, min(later or LOOK_SECONDS, LOOK_SECONDS))


def wait_text(request: MoveRequest, worker: str) -> str:
    """What the source says while it has no other worker, where nothing is known of why."""
    return f"{request.because(worker)}; the Job waits for {'a worker' if request.may_stay else 'another worker'}"


def answer_found(seen: Snapshot, request: MoveRequest) -> Plan:
    """There is a worker for one that is to be drained; it is kept for it."""
    actions = (*_answer(seen, request, Step.FOUND, PLACE_FOUND), AwaitMove(takes_turn=False))
    return Plan("there is another worker for it", actions)


def answer_lost(seen: Snapshot, request: MoveRequest) -> Plan:
    """The worker that was kept for it is none any more, and there is no other: its holder waits for one again."""
    actions = _answer(seen, request, Step.PLACE, PLACE_LOST)
    return Plan("there is no other worker for it any more", actions, LOOK_SECONDS)


def _answer(seen: Snapshot, request: MoveRequest, step: Step, about: str) -> tuple[Action, ...]:
    stored = seen.source.stored.status
    status = with_request(stored, replace(request, step=step), term_of(stored))
    write, _ = source_write(seen, status=status, waiting=shown_obstruction(seen))
    return _about(write, about)


def withdraw(seen: Snapshot) -> Plan:
    """What it was requested for holds no more: the record is as it was before, of our own term."""
    status = with_request(seen.source.stored.status, None, seen.term)
    write, _ = source_write(seen, status=status, waiting=shown_obstruction(seen))
    return Plan("what another worker was requested for holds no more", _about(write, WITHDRAWN), AT_ONCE)


def void(seen: Snapshot) -> Plan:
    """A request may still be on its way: the record is written anew, so that it meets another version (S2)."""
    stored = seen.source.stored.status
    status = recorded_anew(stored, times.of(seen.now))
    if status == stored:
        return Plan("recorded just now", (), A_SECOND)
    write, _ = source_write(seen, status=status, waiting=shown_obstruction(seen))
    return Plan("a request for another worker may be on its way", _about(write, WITHDRAWN), AT_ONCE)


def seconds_until_carried_out(seen: Snapshot) -> float:
    """Until no create can arrive there any more: neither one of before we hold its slot, nor one without an answer."""
    return max(seen.settles_in_seconds, seen.memory.unanswered_at + CARRIED_OUT_SECONDS - seen.monotonic)


def _about(write: tuple[Action, ...], what: str) -> tuple[Action, ...]:
    return tuple(replace(one, about_request=what) if isinstance(one, WriteSource) else one for one in write)
