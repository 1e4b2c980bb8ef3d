"""Requests for another worker: made and withdrawn by the holder of a slot, fulfilled by who assigns (D14, S2, S8)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from worlds import BEFORE, MIRRORED, MONOTONIC, NEAR, ON_EAST, PLACED, RUNNING, lost, mirror, remembering, seen, source

from mirror.decide.plan import (
    AwaitMove,
    ConfirmRequest,
    CreateMirror,
    DeleteMirror,
    PatchMirror,
    Plan,
    RequestAssignment,
    WriteSource,
)
from mirror.decide.rules import decide
from mirror.decide.snapshot import AssignmentState, Look, Policy, Snapshot, Source, WorkerSight
from mirror.kinds.batch_job.status_stored import leaving_text
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.model.move_requests import MoveRequest, Step, Why
from mirror.model.moves import parse_moves
from mirror.model.terms import request_in, term_of, with_request, with_term
from mirror.sharding.share import Part

RESCHEDULE = Policy(on_loss=OnLoss.RESCHEDULE)
LOST = lost(901)
MOVE = MoveRequest()
TERM = "t2"
ON_WORKER = (CreateMirror, PatchMirror, DeleteMirror)
"""What nothing may do while a move is requested."""


def recorded(request: MoveRequest | None = None, *, term: str = TERM, spec: Any = None, **status: Any) -> Source:
    """Placed on east, where it runs."""
    plain = {"conditions": [PLACED, MIRRORED], **RUNNING, **status}
    return source(with_request(plain, request, term), annotations=ON_EAST, spec=spec, resourceVersion="7")


def holder(of: Source, *, is_current: bool = True, policy: Policy = RESCHEDULE, **more: Any) -> Snapshot:
    """As who holds the slot of its worker in ``TERM`` sees it."""
    request = request_in(of.stored.status)
    found = seen(of, policy=policy, part=Part.HOLDER, request=request, term=TERM, **more)
    return replace(found, is_request_current=request is not None and is_current)


def assigner(
    of: Source, to: str = "", *, is_current: bool = True, policy: Policy = RESCHEDULE, **more: Any
) -> Snapshot:
    """As who assigns workers sees it, with one assigned to it."""
    request = request_in(of.stored.status)
    found = seen(
        of,
        policy=policy,
        part=Part.ASSIGNER,
        request=request,
        assignment=AssignmentState(assigned=to or None),
        term="t9",
        **{"worker": LOST, **more},
    )
    return replace(found, is_request_current=is_current)


def status_of(plan: Plan) -> dict[str, Any]:
    """What is written of it."""
    (write,) = [one for one in plan.actions if isinstance(one, WriteSource)]
    return dict(write.status or {})


def kinds(plan: Plan) -> list[str]:
    return [type(one).__name__ for one in plan.actions]


# -- who holds the slot ------------------------------------------------------------------------------------------------


def test_another_worker_is_requested_once_its_own_is_lost_for_too_long() -> None:
    """D14, S2: with the uid of the mirror that is known to this process only."""
    found = source(with_term({"conditions": [PLACED], **RUNNING}, TERM), annotations=ON_EAST)
    plan = decide(holder(found, worker=LOST, memory=remembering(mirror_uid="m2")))
    status = status_of(plan)
    assert (request_in(status), term_of(status)) == (MOVE, TERM)
    assert [one["message"] for one in status["conditions"] if one["type"] == names.MIRRORED] == ["m2"]
    assert not any(isinstance(one, RequestAssignment | AwaitMove) for one in plan.actions)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (holder(recorded(), worker=lost(899)), "not yet"),
        (holder(recorded(), worker=LOST, policy=Policy()), "Wait"),
        (holder(recorded(spec={"suspend": True}), worker=LOST), "suspended"),
        (holder(recorded(), worker=LOST, moves_held="held"), "held"),
        (holder(recorded(), worker=LOST, settles_in_seconds=30.0), "S8"),
        (holder(recorded(), worker=LOST, memory=remembering(ended=mirror())), "its end was seen"),
        (holder(recorded(), worker=NEAR, mirror=mirror(RUNNING)), "reachable"),
    ],
)
def test_nothing_is_requested_before_all_of_it_has_held(found: Snapshot, why: str) -> None:
    """D14, S8."""
    plan = decide(found)
    assert not any(isinstance(one, WriteSource) and one.about_request for one in plan.actions), why


def test_what_waits_for_the_first_minute_looks_again_when_it_is_over() -> None:
    """S8."""
    assert decide(holder(recorded(), worker=LOST, settles_in_seconds=30.0)).again_after_seconds == 30.0


@pytest.mark.parametrize(
    ("sight", "memory", "why"),
    [
        (replace(LOST, is_gone=True), {}, MoveRequest(why=Why.GONE)),
        (LOST, {"first_create": True}, MoveRequest(is_unmade=True)),
    ],
)
def test_the_request_says_what_is_left(sight: WorkerSight, memory: Any, why: MoveRequest) -> None:
    """D14: who assigns knows nothing of the worker."""
    plan = decide(holder(recorded(), worker=sight, memory=remembering(**memory)))
    assert request_in(status_of(plan)) == why


def test_a_request_that_holds_is_made_once() -> None:
    assert decide(holder(recorded(MOVE), worker=LOST)).actions == ()


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(holder(recorded(MOVE), mirror=mirror(RUNNING)), id="its worker is back"),
        pytest.param(holder(recorded(MOVE)), id="back, and its mirror is gone"),
        pytest.param(holder(recorded(MOVE, spec={"suspend": True}), worker=LOST), id="suspended"),
        pytest.param(holder(recorded(MOVE), worker=LOST, policy=Policy()), id="its policy is Wait by now"),
        pytest.param(holder(recorded(MOVE, term="t1"), is_current=False, mirror=mirror(RUNNING)), id="another term's"),
        pytest.param(holder(recorded(MoveRequest(why=Why.DRAINED))), id="the drain was cancelled"),
        pytest.param(holder(recorded(MoveRequest(Step.FOUND, Why.DRAINED)), worker=LOST, policy=Policy()), id="lost"),
    ],
)
def test_a_request_is_withdrawn_before_anything_else(found: Snapshot) -> None:
    """S2: one write, upon the version that has the request, and nothing on the worker."""
    plan = decide(found)
    assert not any(isinstance(one, ON_WORKER) for one in plan.actions)
    status = status_of(plan)
    assert (request_in(status), term_of(status)) == (None, TERM)


def test_a_request_of_another_term_is_made_anew_after_the_first_minute() -> None:
    """S6, S8: in our name, if it holds."""
    found = recorded(MOVE, term="t1")
    early = decide(holder(found, is_current=False, worker=LOST, settles_in_seconds=12.0))
    assert (early.actions, early.again_after_seconds) == ((), 12.0)
    status = status_of(decide(holder(found, is_current=False, worker=LOST)))
    assert (request_in(status), term_of(status)) == (MOVE, TERM)


def test_a_request_without_an_answer_is_made_void_before_anything_else() -> None:
    """S2: the record is written anew; in its very second, that waits for the next one."""
    of = recorded()
    found = holder(of, mirror=mirror(RUNNING), memory=remembering(requested_upon="7"))
    plan = decide(found)
    assert kinds(plan) == ["WriteSource"]
    assert status_of(plan) != of.stored.status
    assert request_in(status_of(plan)) is None
    just_now = replace(found, now=datetime.fromisoformat(BEFORE).astimezone(UTC))
    assert (decide(just_now).actions, decide(just_now).again_after_seconds) == ((), 1.0)


def test_a_request_without_an_answer_is_made_again_while_it_holds() -> None:
    plan = decide(holder(recorded(), worker=LOST, memory=remembering(requested_upon="7")))
    assert request_in(status_of(plan)) == MOVE


def test_what_met_another_version_is_void_already() -> None:
    found = holder(recorded(), mirror=mirror(RUNNING), memory=remembering(requested_upon="6"))
    assert not any(isinstance(one, WriteSource) and one.about_request for one in decide(found).actions)


# -- who assigns -------------------------------------------------------------------------------------------------------

READY = {"move_at": MONOTONIC - 1}


CONFIRMED = remembering(**READY, request_confirmed="7")
PLACE, FOUND, GONE = (MoveRequest(step, Why.DRAINED) for step in (Step.PLACE, Step.FOUND, Step.MOVE))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (MOVE, "move 1, from east to west; left behind: east (uid m)"),
        (MoveRequest(why=Why.FENCED), "move 1, from east to west; left behind: east (uid m, fenced)"),
        (MoveRequest(why=Why.GONE), "move 1, from east to west; left behind: east (uid m, gone)"),
        (MoveRequest(why=Why.DRAINED), "move 1, from east to west"),
        (MoveRequest(is_unmade=True), "move 1, from east to west"),
    ],
    ids=lambda one: one.text if isinstance(one, MoveRequest) else "",
)
def test_the_move_is_one_write_by_what_the_record_says(request_: MoveRequest, message: str) -> None:
    """D14, S6: in the term of the next worker's slot, without the request."""
    of = recorded(request_)
    plan = decide(assigner(of, "west", memory=CONFIRMED))
    (write,) = [one for one in plan.actions if isinstance(one, WriteSource)]
    status = status_of(plan)
    assert (write.records, write.moves_from) == ("west", "east")
    assert (request_in(status), term_of(status)) == (None, "t9")
    found = next(one["message"] for one in status["conditions"] if one["type"] == names.MOVED)
    assert (found, parse_moves(found).count) == (message, 1)


def test_its_lease_is_read_after_its_request_was_seen() -> None:
    """S6: at each version anew."""
    of = recorded(MOVE)
    for memory in (remembering(**READY), remembering(**READY, request_confirmed="6")):
        plan = decide(assigner(of, "west", memory=memory))
        assert plan.actions == (ConfirmRequest("east", TERM), AwaitMove(takes_turn=False))


def test_it_waits_for_its_turn_first() -> None:
    """D14: ``moveRate``."""
    of = recorded(MOVE)
    assert kinds(decide(assigner(of, "west"))) == ["AwaitMove"]


def test_its_turn_comes_before_a_place_is_taken_for_it() -> None:
    """D14: a place that is free is kept for nobody who waits, so that namespaces have their turns at places, too."""
    free = AssignmentState(available="west")
    for of, memory, does in (
        (recorded(MOVE), remembering(), ["AwaitMove"]),
        (recorded(MOVE), remembering(**READY), ["RequestAssignment", "AwaitMove"]),
        (recorded(MOVE), remembering(move_at=MONOTONIC - 500), ["AwaitMove"]),
        (recorded(PLACE), remembering(), ["AwaitMove"]),
        (recorded(PLACE), remembering(**READY), ["RequestAssignment", "AwaitMove"]),
        (recorded(PLACE), remembering(move_at=MONOTONIC - 500), ["AwaitMove"]),
        (recorded(GONE), remembering(move_at=MONOTONIC - 500), ["AwaitMove"]),
    ):
        near = {"worker": NEAR} if request_in(of.stored.status) != MOVE else {}
        assert kinds(decide(replace(assigner(of, memory=memory, **near), assignment=free))) == does


def test_what_is_drained_takes_one_turn() -> None:
    """D15: when its place is found, however long its pods take to end: else a drain goes at half of ``moveRate``."""
    of = recorded(MoveRequest(why=Why.DRAINED))
    plan = decide(assigner(of, "west", memory=remembering(move_at=MONOTONIC - 500, request_confirmed="7")))
    assert [one.records for one in plan.actions if isinstance(one, WriteSource)] == ["west"]


@pytest.mark.parametrize("request_", [MOVE, PLACE, FOUND, GONE], ids=lambda one: one.text)
def test_who_waits_for_a_place_waits_for_a_turn_once_more(request_: MoveRequest) -> None:
    """D14: what is assigned later was not in that turn, however long ago that was."""
    near = {"worker": NEAR} if request_ != MOVE else {}
    plan = decide(assigner(recorded(request_), memory=remembering(**READY), **near))
    assert "RequestAssignment" in kinds(plan)
    assert plan.remember == {"move_at": None}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(assigner(recorded(MOVE), "west", is_current=False), id="of another term"),
        pytest.param(assigner(recorded(MOVE, spec={"suspend": True}), "west"), id="suspended since"),
        pytest.param(assigner(recorded(MOVE), "west", policy=Policy()), id="its policy is Wait by now"),
        pytest.param(
            assigner(recorded(MOVE), "west", memory=remembering(**READY, other_manager="other")), id="another's"
        ),
    ],
)
def test_what_is_not_to_be_moved_is_left_to_its_holder(found: Snapshot) -> None:
    """S2: nothing is written, and no place is kept for it."""
    assert decide(found).actions == ()


def test_a_place_that_was_found_stays_kept_when_its_holder_changes() -> None:
    """S2: it may have been stopped for that by now; who holds it next goes on, and nobody else gets the place."""
    found = assigner(recorded(MoveRequest(Step.FOUND, Why.RETRIED)), "west", is_current=False)
    assert kinds(decide(found)) == ["AwaitMove"]
    assert decide(found).needs_assignment


def test_without_a_place_it_says_why_and_waits() -> None:
    """D14: there is no move without one; the worker that it is on is none."""
    for assigned in ("", "east"):
        plan = decide(assigner(recorded(MOVE), assigned, memory=CONFIRMED))
        assert "RequestAssignment" in kinds(plan)
        assert not any(isinstance(one, WriteSource) and one.records for one in plan.actions)


def test_one_whose_lease_has_ended_it_may_stay() -> None:
    """D14: the worker is as good as any other."""
    of = recorded(MoveRequest(why=Why.EXPIRED))
    plan = decide(assigner(of, "east", memory=CONFIRMED, worker=NEAR))
    assert [one.records for one in plan.actions if isinstance(one, WriteSource)] == ["east"]


def test_what_holds_moves_is_said_on_it() -> None:
    """D14: by who knows all workers."""
    plan = decide(assigner(recorded(MOVE), "west", memory=CONFIRMED, moves_held="most are lost"))
    (write,) = [one for one in plan.actions if isinstance(one, WriteSource)]
    assert "stays assigned to it (most are lost)" in str(dict(write.annotations)[names.WAITING_BECAUSE])
    assert write.records is None


def test_a_place_is_found_before_anything_stops() -> None:
    """D15: and kept; its turn comes first."""
    of = recorded(MoveRequest(Step.PLACE, Why.DRAINED))
    assert kinds(decide(assigner(of, "west", worker=NEAR))) == ["AwaitMove"]
    plan = decide(assigner(of, "west", worker=NEAR, memory=remembering(**READY)))
    assert request_in(status_of(plan)) == MoveRequest(Step.FOUND, Why.DRAINED)
    assert AwaitMove(takes_turn=False) in plan.actions
    kept = decide(assigner(recorded(MoveRequest(Step.FOUND, Why.DRAINED)), "west", worker=NEAR))
    assert kept.actions == (AwaitMove(takes_turn=False),)


# -- a drain, by its holder --------------------------------------------------------------------------------------------

DRAINED = replace(NEAR, drain="move-started")


def test_a_drain_asks_for_a_place_and_goes_on_meanwhile() -> None:
    """D15: a full cluster drains nothing."""
    assert request_in(status_of(decide(holder(recorded(), worker=DRAINED, mirror=mirror(RUNNING))))) == PLACE
    followed = decide(holder(recorded(PLACE), worker=DRAINED, mirror=mirror(RUNNING | {"active": 2})))
    assert request_in(status_of(followed)) == PLACE
    assert not any(isinstance(one, PatchMirror) for one in followed.actions)


def test_with_a_place_its_mirror_stops() -> None:
    plan = decide(holder(recorded(FOUND), worker=DRAINED, mirror=mirror(RUNNING)))
    assert "PatchMirror" in kinds(plan)


def test_a_place_of_another_term_is_asked_for_again() -> None:
    """S6: whoever assigns may have kept it for who held the slot before."""
    found = holder(recorded(FOUND, term="t1"), is_current=False, worker=DRAINED, mirror=mirror(RUNNING))
    status = status_of(decide(found))
    assert (request_in(status), term_of(status)) == (PLACE, TERM)


def test_a_drained_job_is_requested_to_go_once_its_absence_is_proved() -> None:
    """S8: by a look after the first minute, and after one since a create that nobody has answered."""
    at = {"lastTransitionTime": BEFORE, "lastProbeTime": BEFORE}
    stops = {"type": "Suspended", "status": "True", "reason": "WorkerDrained", "message": leaving_text("east"), **at}
    of = recorded(FOUND, conditions=[PLACED, MIRRORED, stops], active=0, ready=0)
    early = decide(holder(of, worker=DRAINED, settles_in_seconds=20.0))
    assert (kinds(early), early.again_after_seconds) == (["AwaitMove"], 20.0)
    unanswered = decide(holder(of, worker=DRAINED, memory=remembering(unanswered_at=MONOTONIC - 50)))
    assert (kinds(unanswered), unanswered.again_after_seconds) == (["AwaitMove"], 10.0)
    assert "FindMirror" in kinds(decide(holder(of, worker=DRAINED)))
    gone = remembering(look=Look.GONE, looked_for="m")
    assert request_in(status_of(decide(holder(of, worker=DRAINED, memory=gone)))) == GONE
    known_before = remembering(look=Look.GONE, looked_for="m", unanswered_at=MONOTONIC - 50)
    unproved = decide(holder(of, worker=DRAINED, memory=known_before))
    assert (kinds(unproved), unproved.again_after_seconds) == (["AwaitMove"], 10.0)


def test_what_was_never_made_is_requested_to_leave_a_drained_worker_once_it_was_looked_for() -> None:
    """S8: no earlier than what is known to have been there; something without our labels may be its mirror (D11)."""
    of = source(with_request({"conditions": [PLACED]}, None, TERM), annotations=ON_EAST)
    early = decide(holder(of, worker=DRAINED, settles_in_seconds=20.0))
    assert (kinds(early), early.again_after_seconds) == (["AwaitMove"], 20.0)
    assert "FindMirror" in kinds(decide(holder(of, worker=DRAINED)))
    gone = remembering(look=Look.GONE, looked_for="")
    assert request_in(status_of(decide(holder(of, worker=DRAINED, memory=gone)))) == GONE
    late = replace(gone, unanswered_at=MONOTONIC - 70, read_at=MONOTONIC - 30)
    assert "FindMirror" in kinds(decide(holder(of, worker=DRAINED, memory=late)))
    for look in (Look.FOREIGN, Look.ELSEWHERE):
        found = decide(holder(of, worker=DRAINED, memory=remembering(look=look, looked_for="")))
        assert not any(isinstance(one, WriteSource) and one.about_request for one in found.actions)


# -- who held its worker before ----------------------------------------------------------------------------------------


def test_who_has_what_it_left_writes_its_end_alone() -> None:
    """S2: whatever else is to be done is its present holder's."""
    found = seen(recorded(), worker=None, part=Part.FORMER, term=TERM)
    assert decide(found).actions == ()
