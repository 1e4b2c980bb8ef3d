"""A source of which no pod ever ran is tried on another worker: which step follows from what is seen (D31)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from doubles.jobs import condition
from msgspec.structs import replace
from worlds import (
    BEFORE,
    MIRRORED,
    MONOTONIC,
    NOW,
    ON_EAST,
    PLACED,
    actions_of,
    mirror,
    remembering,
    rule_of,
    seen,
    source,
)

from mirror.decide.identity import Identity
from mirror.decide.plan import AT_ONCE, AwaitMove, DeleteMirror, EmitEvent, Plan, ProvePods, ProveStep, WriteSource
from mirror.decide.retrying import seconds_until_due
from mirror.decide.rules import decide
from mirror.decide.snapshot import AssignmentState, Look, Memory, Policy, RetrySight, Snapshot, Source, WorkerSight
from mirror.kinds.base import Changes
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.model.move_requests import MoveRequest, Step, Why
from mirror.model.reasons import Obstruction, Reason
from mirror.model.retries import PodProof, ProofState, Retries, RetryState, Tried
from mirror.model.terms import request_in, term_of, with_request
from mirror.sharding.share import Part

AFTER = 600.0
POLICY = Policy(retry_after_seconds=AFTER)
START = (NOW - timedelta(seconds=AFTER)).strftime("%Y-%m-%dT%H:%M:%SZ")
PENDING: dict[str, Any] = {"active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": START}
IDLE = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": START}
SUSPENDED = condition("Suspended", BEFORE, reason="JobSuspended", message="Job suspended")
STOPPED: dict[str, Any] = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "conditions": [SUSPENDED]}
ANNOTATIONS = ON_EAST | {names.MIRROR_UID: "m"}
WEST = AssignmentState(assigned="west")
NEAR = WorkerSight("east", is_reachable=True)
MARK = "mark"
WATCHED = PodProof(ProofState.WATCHED, MARK)


def waiting_mirror(**more: Any) -> Object:
    return mirror(PENDING, spec={"parallelism": 1, "completions": 1}, generation=1, **more)


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def stopped_mirror(status: dict[str, Any] | None = None, *, generation: int = 2, **more: Any) -> Object:
    spec = {"parallelism": 1, "completions": 1, "suspend": True}
    annotations = {names.STOPPED_FOR: more.pop("mark", MARK)}
    return mirror(status or STOPPED, spec=spec, generation=generation, annotations=annotations, **more)


def retried(record: Retries | None = None, *listed: Any, spec: Any = None, **status: Any) -> Source:
    """Of which this is recorded."""
    conditions = [PLACED, MIRRORED, *listed]
    if record is not None and record.state is not None:
        conditions.append(
            condition(names.RETRYING, BEFORE, status=record.state.value, reason=record.reason, message=record.message)
        )
    return source({**(status or PENDING), "conditions": conditions}, spec=spec, annotations=ANNOTATIONS)


def look(of: Source, **more: Any) -> Snapshot:
    retry = RetrySight(more.pop("due_in", None), more.pop("proof", None), more.pop("has_room", True))
    return seen(of, **{"policy": POLICY, "retry": retry, **more})


def steps(plan: Plan) -> list[ProveStep]:
    return [one.step for one in plan.actions if isinstance(one, ProvePods)]


def record_in(plan: Plan) -> Retries | None:
    """What the plan writes."""
    for one in plan.actions:
        if isinstance(one, WriteSource) and one.status is not None:
            return retried_record(one.status)
    return None


def retried_record(status: Any) -> Retries:
    return source(status).stored.retries


# -- waiting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "due_in"),
    [
        pytest.param({}, 0.0, id="it is time"),
        pytest.param({"worker": replace(NEAR, clock_offset_seconds=-100.0)}, 100.0, id="by its worker's clock"),
        pytest.param({"policy": Policy(retry_after_seconds=660.0)}, 60.0, id="in a minute"),
        pytest.param({"policy": Policy()}, None, id="off"),
        pytest.param({"worker": replace(NEAR, is_reachable=False)}, None, id="its worker is lost"),
        pytest.param({"worker": replace(NEAR, drain="move")}, None, id="its worker is drained by moving"),
        pytest.param({"worker": replace(NEAR, drain="wait")}, 0.0, id="its worker is drained otherwise"),
        pytest.param({"worker": None}, None, id="it has none"),
        pytest.param({"mirror": None}, None, id="it has no mirror"),
        pytest.param({"mirror": waiting_mirror(deletionTimestamp=BEFORE)}, None, id="its mirror goes"),
        pytest.param({"source": retried(spec={"suspend": True})}, None, id="it is suspended"),
        pytest.param({"source": retried(Retries().draining("m"))}, None, id="it is under way"),
        pytest.param(
            {"source": retried(Retries(RetryState.OVER, tried=(Tried("a", BEFORE),) * 3))}, None, id="three were tried"
        ),
        pytest.param(
            {"source": retried(Retries(RetryState.OVER, tried=(Tried("a", BEFORE),) * 2))}, 0.0, id="two were tried"
        ),
        pytest.param(
            {"source": retried(None, condition(names.MOVED, BEFORE, message="move 1, from west to east"))},
            None,
            id="it was moved: what it left may have run",
        ),
        pytest.param(
            {"policy": Policy(retry_after_seconds=AFTER, on_loss=OnLoss.FENCE)}, None, id="it is to be fenced"
        ),
        pytest.param({"policy": Policy(retry_after_seconds=AFTER, on_loss=OnLoss.RESCHEDULE)}, 0.0, id="it may move"),
        pytest.param({"memory": remembering(retry_ruled_out="m")}, None, id="a pod of it has started"),
        pytest.param({"memory": remembering(retry_ruled_out="another")}, 0.0, id="one of another mirror has"),
        pytest.param({"memory": remembering(ended=waiting_mirror())}, None, id="it has ended"),
    ],
)
def test_when_it_is_due(changes: dict[str, Any], due_in: float | None) -> None:
    given: dict[str, Any] = {
        "source": retried(),
        "worker": NEAR,
        "mirror": waiting_mirror(),
        "policy": POLICY,
        "on_namespace": None,
        "memory": Memory("u"),
        **changes,
    }
    assert seconds_until_due(**given, now=NOW) == due_in


def test_before_it_is_due_it_is_followed() -> None:
    plan = decide(look(retried(), mirror=waiting_mirror(), due_in=50.0))
    assert plan.actions == ()
    assert plan.again_after_seconds == 50.0


@pytest.mark.parametrize(
    ("more", "actions"),
    [
        pytest.param({"assignment": AssignmentState()}, [], id="without another place it waits"),
        pytest.param(
            {"assignment": AssignmentState(available="west")}, ["RequestAssignment", "AwaitMove"], id="a place is kept"
        ),
        pytest.param({"assignment": WEST}, ["ProvePods", "AwaitMove"], id="its pods are looked at"),
        pytest.param({"assignment": WEST, "has_room": False}, [], id="unless others' are"),
        pytest.param(
            {"assignment": WEST, "proof": PodProof(ProofState.LOOKING, MARK)}, ["AwaitMove"], id="until they are known"
        ),
        pytest.param({"assignment": WEST, "proof": WATCHED}, ["WriteSource", "EmitEvent", "AwaitMove"], id="recorded"),
        pytest.param(
            {"assignment": WEST, "proof": PodProof(ProofState.STARTED, MARK, "x")}, ["ProvePods"], id="one ran"
        ),
        pytest.param(
            {"assignment": WEST, "proof": PodProof(ProofState.BROKEN, MARK, "x")},
            ["ProvePods", "EmitEvent"],
            id="not seen",
        ),
        pytest.param({"assignment": WEST, "memory": remembering(retry_at=MONOTONIC + 5)}, [], id="not again so soon"),
    ],
)
def test_what_is_done_once_it_is_due(more: dict[str, Any], actions: list[str]) -> None:
    assert actions_of(look(retried(), mirror=waiting_mirror(), due_in=0.0, **more)) == actions


def test_the_record_comes_before_it_is_suspended() -> None:
    """With the mirror's uid, by which alone it may be deleted later."""
    plan = decide(look(retried(), mirror=waiting_mirror(), due_in=0.0, assignment=WEST, proof=WATCHED))
    assert record_in(plan) == Retries(RetryState.DRAINING, "m")
    event = next(one for one in plan.actions if isinstance(one, EmitEvent))
    assert event.reason == "RetryingElsewhere"


def test_what_its_pods_say_is_told_once() -> None:
    """Why it is not tried elsewhere; and it is not tried again at once."""
    proof = PodProof(ProofState.BROKEN, MARK, "its pods cannot be listed: no")
    found = look(retried(), mirror=waiting_mirror(), due_in=0.0, assignment=WEST, proof=proof)
    plan = decide(found)
    assert plan.remember["retry_at"] > MONOTONIC
    again = replace(found, memory=remembering(retry_told=plan.remember["retry_told"]))
    assert not [one for one in decide(again).actions if isinstance(one, EmitEvent)]


@pytest.mark.parametrize(
    "more",
    [{"identity": Identity.UNLABELED}, {"identity": Identity.REPLACED}, {"is_watched": False}],
    ids=["its labels are gone", "another one", "its watch does not show it"],
)
def test_what_is_not_certainly_its_mirror_is_left(more: dict[str, Any]) -> None:
    found = look(retried(), mirror=waiting_mirror(), due_in=0.0, assignment=WEST, proof=WATCHED, **more)
    assert not steps(decide(found))
    assert record_in(decide(found)) is None or not record_in(decide(found)).is_under_way


# -- draining ----------------------------------------------------------------------------------------------------------

DRAINING = Retries().draining("m")


def test_it_is_suspended_as_it_was_looked_at() -> None:
    plan = decide(look(retried(DRAINING), mirror=waiting_mirror(), proof=WATCHED))
    assert [type(one).__name__ for one in plan.actions] == ["PatchMirror", "AwaitMove"]


def test_what_would_resume_it_is_not_sent() -> None:
    """Its source wants it to run: that is left alone as long as it is drained."""
    changes = Changes(({"op": "replace", "path": "/spec/suspend", "value": False},), "d")
    found = look(retried(DRAINING), mirror=stopped_mirror(), proof=WATCHED, changes=changes)
    assert rule_of(found) == "retry_elsewhere"
    assert "PatchMirror" not in actions_of(found)


IS_IDLE = retried(DRAINING, SUSPENDED, **IDLE)


def is_shown(of: Source) -> Source:
    """It says already that it is tried elsewhere."""
    first = decide(look(of, mirror=stopped_mirror(), proof=WATCHED))
    write = next(one for one in first.actions if isinstance(one, WriteSource))
    annotations = dict(of.found.annotations) | {key: value for key, value in write.annotations if value is not None}
    return source(dict(write.status or of.stored.status), annotations=annotations)


@pytest.mark.parametrize(
    ("proof", "step"),
    [
        (WATCHED, ProveStep.CONFIRM),
        (PodProof(ProofState.CONFIRMING, MARK), ProveStep.CONFIRM),
        (PodProof(ProofState.CONFIRMED, MARK, confirmed_version="6"), ProveStep.CONFIRM),
    ],
    ids=["all went", "they are listed again", "it was another version"],
)
def test_once_it_has_no_pod_that_is_confirmed(proof: PodProof, step: ProveStep) -> None:
    """As of the very version that says so."""
    plan = decide(look(is_shown(IS_IDLE), mirror=stopped_mirror(resourceVersion="7"), proof=proof))
    assert steps(plan) == [step]


def test_once_that_is_confirmed_it_is_recorded() -> None:
    proof = PodProof(ProofState.CONFIRMED, MARK, confirmed_version="7")
    plan = decide(look(is_shown(IS_IDLE), mirror=stopped_mirror(resourceVersion="7"), proof=proof))
    assert record_in(plan) == Retries(RetryState.PROVED, "m", START)


def test_while_a_pod_goes_it_waits() -> None:
    found = look(retried(DRAINING), mirror=stopped_mirror(STOPPED | {"terminating": 1}), proof=WATCHED)
    assert not steps(decide(found))


GIVEN_UP: list[tuple[str, dict[str, Any], str]] = [
    ("another process", {"proof": None}, "this process has not seen all of its pods"),
    ("a pod started", {"proof": PodProof(ProofState.STARTED, MARK, "pod x is Running")}, "pod x is Running"),
    ("something was missed", {"proof": PodProof(ProofState.BROKEN, MARK, "gap")}, "gap"),
    ("it is suspended", {"of": retried(DRAINING, spec={"suspend": True})}, "the Job was suspended"),
    ("somebody else has suspended it", {"mirror": stopped_mirror(mark="another")}, "it was changed there"),
    ("it was resumed there", {"mirror": stopped_mirror(generation=4)}, "it was changed there"),
    ("another mirror", {"mirror": stopped_mirror(uid="n")}, "its mirror there is not the one that was looked at"),
    ("it vanished", {"mirror": None}, "its mirror there is not the one that was looked at"),
    ("it goes", {"mirror": stopped_mirror(deletionTimestamp=BEFORE)}, "its mirror is being deleted there"),
    ("counted", {"mirror": stopped_mirror(STOPPED | {"failed": 1})}, "pods of it were counted"),
    ("it was changed", {"mirror": mirror(PENDING, generation=2)}, "it was changed there"),
    ("drained", {"worker": replace(NEAR, drain="move")}, "the worker is drained"),
    ("fenced", {"policy": Policy(retry_after_seconds=AFTER, on_loss=OnLoss.FENCE)}, "it is to be fenced"),
    ("refused", {"mirror": waiting_mirror(), "memory": None}, "no"),
]


@pytest.mark.parametrize(("what", "changes", "why"), GIVEN_UP, ids=[what for what, *_ in GIVEN_UP])
def test_what_ends_it_while_it_drains(what: str, changes: dict[str, Any], why: str) -> None:
    """The record says why, so that what is suspended is resumed; and what was seen of its pods is dropped."""
    given: dict[str, Any] = {"mirror": stopped_mirror(), "proof": WATCHED, **changes}
    if what == "refused":
        digest = "stopped to be tried elsewhere: m"
        given["memory"] = remembering(sent_digest=digest, patch_refused=why, patch_refused_at=MONOTONIC)
    plan = decide(look(given.pop("of", retried(DRAINING)), **given))
    assert record_in(plan) == DRAINING.given_up(why, keeps_start=False)
    assert steps(plan) == [ProveStep.DROP]
    assert not any(isinstance(one, DeleteMirror) for one in plan.actions)


@pytest.mark.parametrize("record", [DRAINING, DRAINING.proved(START)], ids=["draining", "proved"])
def test_a_lost_worker_stays_where_it_is(record: Retries) -> None:
    """D13: in each state."""
    lost = WorkerSight("east", is_reachable=False, lost_for_seconds=5.0)
    assert rule_of(look(retried(record), mirror=stopped_mirror(), worker=lost)) == "wait_for_worker"


# -- proved, and gone --------------------------------------------------------------------------------------------------

PROVED = DRAINING.proved(START)
IS_PROVED = retried(PROVED, SUSPENDED, **IDLE)


def test_what_is_proved_is_deleted_in_that_version() -> None:
    plan = decide(look(IS_PROVED, mirror=stopped_mirror(resourceVersion="7")))
    delete = next(one for one in plan.actions if isinstance(one, DeleteMirror))
    assert (delete.worker, delete.uid, delete.version) == ("east", "m", "7")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        pytest.param({"mirror": stopped_mirror(uid="n")}, "its mirror there is not the one", id="another mirror"),
        pytest.param({"mirror": waiting_mirror()}, "it was changed there", id="it runs"),
        pytest.param({"mirror": stopped_mirror(generation=4)}, "it was changed there", id="it ran meanwhile"),
        pytest.param({"mirror": stopped_mirror(STOPPED | {"active": 1})}, "it was changed there", id="it has a pod"),
        pytest.param({"mirror": stopped_mirror(STOPPED | {"failed": 1})}, "pods of it were counted", id="one failed"),
        pytest.param(
            {"memory": remembering(look=Look.FOREIGN, looked_for="m")}, "something else has its name", id="the name"
        ),
        pytest.param(
            {"memory": remembering(look=Look.ELSEWHERE, looked_for="m")}, "something else has its name", id="elsewhere"
        ),
    ],
)
def test_what_is_not_what_was_proved_is_not_deleted(more: dict[str, Any], why: str) -> None:
    plan = decide(look(IS_PROVED, **more))
    assert not any(isinstance(one, DeleteMirror) for one in plan.actions)
    record = record_in(plan)
    assert record is not None
    assert why in record.why
    assert record.state is RetryState.OVER


def test_its_absence_is_asked_for() -> None:
    """What no watch shows proves nothing (D11)."""
    assert actions_of(look(IS_PROVED)) == ["FindMirror", "AwaitMove"]
    stale = remembering(look=Look.GONE, looked_for="another")
    assert actions_of(look(IS_PROVED, memory=stale)) == ["FindMirror", "AwaitMove"]


@pytest.mark.parametrize("spec", [{}, {"suspend": True}], ids=["it may run", "it is suspended"])
def test_what_is_gone_leaves_its_worker_in_one_write(spec: dict[str, Any]) -> None:
    of = retried(PROVED, SUSPENDED, spec=spec, **IDLE)
    plan = decide(look(of, memory=remembering(look=Look.GONE, looked_for="m")))
    write = next(one for one in plan.actions if isinstance(one, WriteSource))
    assert (write.clears, write.retry) == (True, "Retried")
    assert dict(write.annotations) == {names.ASSIGNED_WORKER: None, names.MIRROR_UID: None}
    assert write.status is not None
    types = {one["type"]: one for one in write.status["conditions"]}
    assert set(types) == {"Suspended", names.RETRYING}
    record = retried_record(write.status)
    assert (record.state, record.start, [one.worker for one in record.tried]) == (RetryState.OVER, START, ["east"])


def test_a_mirror_that_goes_is_waited_for() -> None:
    found = look(IS_PROVED, mirror=stopped_mirror(deletionTimestamp=BEFORE))
    assert actions_of(found) == ["AwaitMove"]


# -- with several slots (S2) -------------------------------------------------------------------------------------------

TERM = "t2"
PLACE, FOUND = (MoveRequest(step, Why.RETRIED) for step in (Step.PLACE, Step.FOUND))


def recorded(request: MoveRequest | None, record: Retries | None = None) -> Source:
    """Placed on east in ``TERM``, with this request."""
    of = retried(record)
    return source(with_request(of.stored.status, request, TERM), annotations=ANNOTATIONS)


def holder(of: Source, *, is_current: bool = True, **more: Any) -> Snapshot:
    """As who holds the slot of its worker sees it."""
    request = request_in(of.stored.status)
    found = replace(look(of, **more), part=Part.HOLDER, request=request, term=TERM)
    return replace(found, is_request_current=request is not None and is_current)


def assigner(of: Source, assignment: AssignmentState) -> Snapshot:
    """As who assigns workers sees it, who is connected to none."""
    found = seen(of, policy=POLICY, part=Part.ASSIGNER, request=request_in(of.stored.status), assignment=assignment)
    return replace(found, is_request_current=True)


def request_of(plan: Plan) -> MoveRequest | None:
    """What is requested by the record that the plan writes."""
    (status,) = [one.status for one in plan.actions if isinstance(one, WriteSource)]
    assert status is not None
    assert term_of(status) == TERM
    return request_in(status)


def test_a_holder_looks_at_its_pods_before_it_requests_a_place() -> None:
    """What they prove costs no write, and who has no room for that takes no place from others."""
    found = holder(recorded(None), mirror=waiting_mirror(), due_in=0.0)
    assert actions_of(found) == ["ProvePods", "AwaitMove"]
    assert steps(decide(found)) == [ProveStep.BEGIN]
    waits = decide(holder(recorded(None), mirror=waiting_mirror(), due_in=0.0, has_room=False))
    assert (waits.actions, waits.again_after_seconds) == ((), 15.0)


def test_a_holder_requests_a_place_before_anything_is_stopped() -> None:
    """S2: where else it may run, who assigns knows alone; in its own term, once it could go on there at once."""
    given: dict[str, Any] = {"mirror": waiting_mirror(), "due_in": 0.0, "proof": WATCHED}
    plan = decide(holder(recorded(None), **given))
    assert (request_of(plan), steps(plan), plan.remember["place_wanted_at"]) == (PLACE, [], MONOTONIC)
    anew = decide(holder(recorded(FOUND), is_current=False, **given))
    assert (request_of(anew), steps(anew)) == (PLACE, [])


def test_what_its_pods_prove_is_kept_for_a_while_until_there_is_a_place() -> None:
    """Then others prove theirs; the request stands, and its pods are looked at again once there is one."""
    given: dict[str, Any] = {"mirror": waiting_mirror(), "due_in": 0.0}
    early = holder(recorded(PLACE), memory=remembering(place_wanted_at=MONOTONIC - 10), proof=WATCHED, **given)
    assert (decide(early).actions, decide(early).again_after_seconds) == ((), 5.0)
    late = decide(holder(recorded(PLACE), memory=remembering(place_wanted_at=MONOTONIC - 15), proof=WATCHED, **given))
    assert (actions_of(early), steps(late), late.again_after_seconds) == ([], [ProveStep.DROP], 60.0)
    assert decide(holder(recorded(PLACE), **given)).actions == ()
    assert steps(decide(holder(recorded(FOUND), **given))) == [ProveStep.BEGIN]
    no_room = decide(holder(recorded(FOUND), has_room=False, **given))
    assert (request_of(no_room), steps(no_room)) == (None, [])


@pytest.mark.parametrize("state", [ProofState.STARTED, ProofState.BROKEN])
def test_pods_that_prove_nothing_give_a_place_back_at_once(state: ProofState) -> None:
    """Nothing else would name the key."""
    given: dict[str, Any] = {"mirror": waiting_mirror(), "due_in": 0.0, "proof": PodProof(state, MARK, "x")}
    assert decide(holder(recorded(FOUND), **given)).again_after_seconds == AT_ONCE
    assert (decide(holder(recorded(None), **given)).again_after_seconds or 0.0) > AT_ONCE


def test_what_is_given_up_needs_no_place() -> None:
    """In one write."""
    plan = decide(holder(recorded(FOUND, DRAINING), mirror=waiting_mirror()))
    assert (request_of(plan), getattr(record_in(plan), "is_under_way", None)) == (None, False)


@pytest.mark.parametrize(
    ("more", "is_kept"),
    [
        pytest.param(
            {"worker": replace(NEAR, is_reachable=False, lost_for_seconds=59.0)}, True, id="lost a moment ago"
        ),
        pytest.param({"worker": replace(NEAR, is_reachable=False, lost_for_seconds=60.0)}, False, id="lost"),
        pytest.param({"mirror": stopped_mirror(deletionTimestamp=ago(59))}, True, id="it goes"),
        pytest.param({"mirror": stopped_mirror(deletionTimestamp=ago(60))}, False, id="it does not go"),
        pytest.param({"mirror": stopped_mirror(deletionTimestamp="never")}, False, id="deleted at no time"),
    ],
)
def test_a_place_is_not_kept_for_what_cannot_go_on(more: dict[str, Any], is_kept: bool) -> None:
    """For whatever time: others wait."""
    plan = decide(holder(recorded(FOUND, PROVED), **more))
    withdrawn = [one for one in plan.actions if isinstance(one, WriteSource) and one.about_request == "withdrawn"]
    assert bool(withdrawn) is not is_kept


def test_with_a_place_the_holder_stops_it() -> None:
    """D31: and goes on as one manager does."""
    plan = decide(holder(recorded(FOUND), mirror=waiting_mirror(), due_in=0.0, proof=WATCHED))
    assert record_in(plan) == Retries(RetryState.DRAINING, "m")
    assert request_of(plan) == FOUND


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"due_in": None}, id="a pod of it is ready"),
        pytest.param({"due_in": 0.0, "memory": remembering(retry_at=MONOTONIC + 5)}, id="its pods prove nothing now"),
    ],
)
@pytest.mark.parametrize("request_", [PLACE, FOUND], ids=lambda one: one.text)
def test_what_is_not_to_be_tried_elsewhere_any_more_needs_no_place(request_: MoveRequest, more: dict[str, Any]) -> None:
    """S2: withdrawn before anything else."""
    plan = decide(holder(recorded(request_), mirror=waiting_mirror(), **more))
    assert request_of(plan) is None


def test_a_place_is_not_given_back_since_its_workers_clock_is_known_better_now() -> None:
    """To about a second: it waits for that."""
    plan = decide(holder(recorded(FOUND), mirror=waiting_mirror(), due_in=0.5))
    assert (plan.actions, plan.again_after_seconds) == ((), 0.5)


def test_a_holder_takes_no_record_away_before_what_was_sent_has_been_carried_out() -> None:
    """S8: a create of who held the slot before may still arrive, though the mirror is gone."""
    of, memory = recorded(FOUND, PROVED), remembering(look=Look.GONE, looked_for="m")
    early = replace(holder(of, memory=memory), settles_in_seconds=30.0)
    assert (actions_of(early), decide(early).again_after_seconds) == (["AwaitMove"], 30.0)
    late = decide(holder(of, memory=memory))
    assert [one.clears for one in late.actions if isinstance(one, WriteSource)] == [True]


@pytest.mark.parametrize(
    ("request_", "assignment", "actions"),
    [
        (PLACE, AssignmentState(), []),
        (PLACE, AssignmentState(available="west"), ["RequestAssignment", "AwaitMove"]),
        (PLACE, WEST, ["WriteSource", "AwaitMove"]),
        (PLACE, AssignmentState(assigned="east"), []),
        (FOUND, WEST, ["AwaitMove"]),
        (FOUND, AssignmentState(available="west"), ["RequestAssignment", "AwaitMove"]),
        (FOUND, AssignmentState(), []),
    ],
)
def test_who_assigns_keeps_a_place_for_it_without_a_turn(
    request_: MoveRequest, assignment: AssignmentState, actions: list[str]
) -> None:
    """It moves nothing: nothing of it has run."""
    plan = decide(assigner(recorded(request_), assignment))
    assert [type(one).__name__ for one in plan.actions] == actions
    assert all(one == AwaitMove(takes_turn=False) for one in plan.actions if isinstance(one, AwaitMove))
    if "WriteSource" in actions:
        assert request_of(plan) == FOUND


def test_a_place_that_is_none_any_more_is_told_to_its_holder() -> None:
    """S2: it would stop for that; what has stopped already goes on."""
    gone = AssignmentState(obstruction=Obstruction(Reason.WORKERS_FULL, "full"))
    assert request_of(decide(assigner(recorded(FOUND), gone))) == PLACE
    assert decide(assigner(recorded(FOUND, DRAINING), gone)).actions == ()


def test_a_move_of_it_is_never_made() -> None:
    """Nobody requests one: whoever has written that is no holder."""
    of = recorded(MoveRequest(why=Why.RETRIED))
    assert decide(assigner(of, WEST)).actions == ()
    assert request_of(decide(holder(of, mirror=waiting_mirror(), due_in=0.0))) is None
