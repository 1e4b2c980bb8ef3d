"""What is in a plan: the writes, when to look again, and what is told once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from worlds import (
    FINISHED,
    MONOTONIC,
    NOW,
    ON_EAST,
    PLACED,
    RUNNING,
    STARTED,
    UNPLACED,
    actions_of,
    lost,
    mirror,
    remembering,
    seen,
    source,
)

from mirror.decide import rules
from mirror.decide.plan import EmitEvent, WriteSource
from mirror.decide.rules import decide
from mirror.decide.snapshot import AssignmentState, Look, Policy, Refusal, Snapshot
from mirror.model import names
from mirror.model.reasons import Obstruction, Reason

FULL = Obstruction(Reason.WORKERS_FULL, "east: at capacity")
TAKEN = Obstruction(Reason.MIRROR_CONFLICT, "worker east: taken")


def write_of(found: Snapshot) -> WriteSource:
    (write,) = [action for action in decide(found).actions if isinstance(action, WriteSource)]
    return write


def test_the_record_goes_in_one_write_and_ends_the_waiting() -> None:
    """D5, D21: condition, annotation and the end of ``waiting-because`` together; the create comes after."""
    waiting = source({}, annotations={names.WAITING_BECAUSE: "east: at capacity"})
    plan = decide(
        seen(waiting, assignment=AssignmentState(assigned="west"), memory=remembering(waiting_written_at=MONOTONIC))
    )
    (write,) = plan.actions
    assert isinstance(write, WriteSource)
    assert write.records == "west"
    assert write.status is not None
    assert write.status["conditions"][0]["type"] == names.PLACED
    assert dict(write.annotations) == {names.ASSIGNED_WORKER: "west", names.WAITING_BECAUSE: None}
    assert plan.remember == {"first_create": True}


def test_a_cleared_record_leaves_no_trace() -> None:
    """D5: condition and annotation go in the same write."""
    refusals = (("east", Refusal("403")),)
    write = write_of(seen(refused_now="east", memory=remembering(refusals=refusals)))
    assert write.clears
    assert write.status == {}
    assert dict(write.annotations) == {names.ASSIGNED_WORKER: None}


def test_a_mirrored_status_names_its_mirror_and_keeps_the_record() -> None:
    """D5: every status that we write keeps the condition; the uid is recorded with the first one."""
    write = write_of(seen(mirror=mirror(RUNNING)))
    assert write.is_mirrored_status
    assert write.status is not None
    assert PLACED["type"] in {one["type"] for one in write.status["conditions"]}
    assert dict(write.annotations)[names.MIRROR_UID] == "m"


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        pytest.param(seen(worker=lost(5)), 55, id="when the loss is to be told"),
        pytest.param(seen(worker=lost(61)), 839, id="when the grace ends"),
        pytest.param(seen(worker=lost(901)), None, id="nothing comes after that"),
        pytest.param(
            seen(worker=lost(5), policy=Policy(lost_after_seconds=20)), 15, id="a short grace is told at its end"
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(), policy=Policy(retention_seconds=90)), 30, id="the retention's end"
        ),
        pytest.param(seen(mirror=mirror(), mirror_is_stale=True), 5, id="a namesake's mirror goes soon"),
        pytest.param(
            seen(memory=remembering(in_the_way=TAKEN)),
            10,
            id="a conflict is told after ten quiet seconds",
        ),
        pytest.param(
            seen(UNPLACED, memory=remembering(refusals=(("east", Refusal("403")),))),
            60,
            id="who was refused is woken",
        ),
        pytest.param(
            seen(UNPLACED, memory=remembering(record_refused="422", record_refused_until=MONOTONIC + 7)),
            7,
            id="when recording is tried again",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(obstruction=FULL)),
            None,
            id="who was told why it waits is woken",
        ),
        pytest.param(seen(UNPLACED), 60, id="who was told nothing yet looks for it"),
    ],
)
def test_when_to_look_again(found: Snapshot, seconds: float | None) -> None:
    """Only for what no event will tell."""
    told_now = replace(found.memory, waiting_written_at=MONOTONIC) if found.memory.in_the_way else found.memory
    assert decide(replace(found, memory=told_now)).again_after_seconds == seconds


def test_the_loss_is_told_once() -> None:
    """D14: what is stored says that it was told, over restarts too."""
    (write, tell) = decide(seen(worker=lost(901))).actions
    assert isinstance(write, WriteSource)
    assert isinstance(tell, EmitEvent)
    assert tell.message == "worker east is lost (network); the Job stays assigned to it"
    waits = {names.WAITING_BECAUSE: dict(write.annotations)[names.WAITING_BECAUSE]}
    told = source(dict(write.status or {}), annotations=ON_EAST | waits)
    assert actions_of(seen(told, worker=lost(950))) == []


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_rule_has_a_fact(rule: object) -> None:
    """Style 1: its docstring says what holds, and by which rule of the design."""
    assert "(D" in (rule.__doc__ or "")


def test_the_clock_is_given() -> None:
    """Decisions are repeatable: the same snapshot gives the same plan."""
    found = seen(STARTED, memory=remembering(look=Look.GONE, looked_for="m"))
    assert decide(found) == decide(found)
    assert write_of(found).status is not None
    assert str(NOW.date()) in str(write_of(found).status)
