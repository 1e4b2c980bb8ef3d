"""Each rule's branches: what is seen, what is done, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doubles.jobs import condition
from worlds import (
    BEFORE,
    COMPLETE,
    MONOTONIC,
    NOW,
    ON_EAST,
    PLACED,
    RUNNING,
    lost,
    mirror,
    seen,
    source,
)

from mirror.adapters.job import Changes
from mirror.decide import rules
from mirror.decide.plan import WriteSource
from mirror.decide.rules import decide
from mirror.decide.seen import AboutPlace, Look, Memory, Policy, Refusal, Seen
from mirror.model import names

UNPLACED = source({})
STARTED = source({"conditions": [PLACED], **RUNNING}, annotations=ON_EAST | {names.MIRROR_UID: "m"})
FINISHED = source(
    {"conditions": [*COMPLETE, PLACED], "startTime": BEFORE, "completionTime": BEFORE, "succeeded": 1},
    annotations=ON_EAST | {names.MIRROR_UID: "m"},
)
SUSPENDED = source({"conditions": [PLACED]}, spec={"suspend": True})
CHANGES = Changes(({"op": "add", "path": "/x", "value": 1},), "d1")


def actions_of(found: Seen) -> list[str]:
    """What the plan does, by name."""
    return [type(action).__name__ for action in decide(found).actions]


def remembering(**fields: object) -> Memory:
    return replace(Memory("u"), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "because", "actions"),
    [
        pytest.param(
            seen(source(deletionTimestamp=BEFORE), mirror=mirror()),
            "the source is being deleted",
            [],
            id="D10: what goes gets nothing any more",
        ),
        pytest.param(
            seen(source(RUNNING)),
            "another controller writes this Job's status",
            ["WriteSource", "Tell"],
            id="D20: it runs here, and we never placed it",
        ),
        pytest.param(
            seen(memory=remembering(foreign_status_writes=3), mirror=mirror()),
            "another controller writes this Job's status",
            ["WriteSource", "Tell"],
            id="D20: somebody keeps writing its status",
        ),
        pytest.param(
            seen(memory=remembering(foreign_status_writes=2), mirror=mirror(RUNNING)),
            "follows its mirror",
            ["WriteSource"],
            id="D20: a few foreign writes are no pattern",
        ),
        pytest.param(seen(FINISHED), "finished", [], id="D8: finished, its mirror is gone already"),
        pytest.param(seen(FINISHED, worker=lost(5)), "finished", [], id="D8: finished, its worker is away"),
        pytest.param(
            seen(FINISHED, mirror=mirror(), mirror_is_stale=True),
            "finished",
            [],
            id="D8: finished, the mirror is a namesake's",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror()),
            "finished, its mirror is kept as long as it",
            [],
            id="D8: by default it is kept",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(), policy=Policy(retention_seconds=90)),
            "finished, its mirror is kept for now",
            [],
            id="D8: the retention is not over",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(), policy=Policy(retention_seconds=60)),
            "finished, the retention of its mirror is over",
            ["DeleteMirror"],
            id="D8: the retention is over",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(deletionTimestamp=BEFORE), policy=Policy(retention_seconds=0)),
            "finished, its mirror is going",
            [],
            id="D8: it is being deleted",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(uid="other")),
            "finished, and this mirror is not the one that ran",
            ["DeleteMirror"],
            id="D2: another one beside a finished source must not run",
        ),
        pytest.param(
            seen(UNPLACED, about_place=AboutPlace(found_on="east")),
            "its mirror was found on east",
            ["WriteSource"],
            id="D5: the record was erased, the mirror tells",
        ),
        pytest.param(
            seen(source(RUNNING), about_place=AboutPlace(found_on="east")),
            "its mirror was found on east",
            ["WriteSource"],
            id="D5: erased from one that runs",
        ),
        pytest.param(
            seen(source({}, spec={"suspend": True})),
            "suspended, not placed yet",
            ["WriteSource", "Tell"],
            id="D3: suspended from the start",
        ),
        pytest.param(
            seen(source({"conditions": [condition("Suspended", BEFORE)]}, spec={"suspend": True})),
            "suspended, not placed yet",
            [],
            id="D3: and shown so already",
        ),
        pytest.param(
            seen(UNPLACED),
            "asks for a place",
            ["AskForPlace"],
            id="D5: a new one asks",
        ),
        pytest.param(
            seen(UNPLACED, about_place=AboutPlace(waiting_because="east: at capacity")),
            "east: at capacity",
            ["WriteSource", "AskForPlace"],
            id="D21: it says why it waits, and stays in the queue",
        ),
        pytest.param(
            seen(UNPLACED, about_place=AboutPlace(bad_annotation="annotation x: bad")),
            "annotation x: bad",
            ["WriteSource"],
            id="D21: nobody knows what it wants",
        ),
        pytest.param(
            seen(UNPLACED, about_place=AboutPlace(given="west")),
            "placed on west",
            ["WriteSource"],
            id="D5: it is recorded first",
        ),
        pytest.param(
            seen(refused_now="east", memory=remembering(refusals=(("east", Refusal("403", MONOTONIC + 9)),))),
            "asks for a place",
            ["WriteSource", "AskForPlace"],
            id="D5: refused: the record is cleared, the next is asked for",
        ),
        pytest.param(
            seen(worker=lost(5)),
            "worker east is out of reach (network)",
            [],
            id="D13: a moment is not worth a word",
        ),
        pytest.param(
            seen(worker=lost(61)),
            "worker east is out of reach (network)",
            ["WriteSource"],
            id="D13: a minute is",
        ),
        pytest.param(
            seen(worker=lost(901)),
            "worker east is out of reach (network)",
            ["WriteSource", "Tell"],
            id="D14: the grace is over: it stays, and says so",
        ),
        pytest.param(
            seen(SUSPENDED, worker=lost(5)),
            "worker east is out of reach (network)",
            ["WriteSource", "Tell"],
            id="D3: suspended, and nobody there to say it",
        ),
        pytest.param(
            seen(mirror=mirror(), mirror_is_stale=True),
            "the mirror of an earlier namesake has to go first",
            [],
            id="D1: the name is taken by a mirror that is going",
        ),
        pytest.param(seen(), "recorded, to be created", ["CreateMirror"], id="D5: recorded, so create"),
        pytest.param(
            seen(SUSPENDED),
            "suspended, not created yet",
            ["WriteSource", "Tell"],
            id="D3: suspended between record and create",
        ),
        pytest.param(
            seen(memory=remembering(in_the_way="worker east: taken")),
            "worker east: taken",
            ["WriteSource", "CreateMirror"],
            id="D1: something is in the way: told, and tried again later",
        ),
        pytest.param(
            seen(STARTED),
            "its mirror is not in the cache",
            ["FindMirror"],
            id="D11: it was there: look before anything else",
        ),
        pytest.param(
            seen(memory=remembering(mirror_uid="m")),
            "its mirror is not in the cache",
            ["FindMirror"],
            id="D11: we made it a moment ago: look",
        ),
        pytest.param(
            seen(memory=remembering(mirror_uid="m", look=Look.GONE, looked_for="other")),
            "its mirror is not in the cache",
            ["FindMirror"],
            id="D11: that look was for another one",
        ),
        pytest.param(
            seen(memory=remembering(mirror_uid="m", look=Look.GONE, looked_for="m")),
            "recorded, to be created",
            ["CreateMirror"],
            id="D11: gone before it started: created again",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(look=Look.UNLABELLED, looked_for="m")),
            "its mirror lost our labels",
            ["RestoreLabels"],
            id="D11: it is there without labels",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(look=Look.GONE, looked_for="m")),
            "the mirror on worker east has vanished after it had started",
            ["WriteSource", "Tell"],
            id="D11: gone after it started: failed",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(look=Look.FOREIGN, looked_for="m")),
            "the mirror on worker east has vanished after it had started",
            ["WriteSource", "Tell"],
            id="D11: another object has its name",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING, uid="other")),
            "the mirror on worker east has vanished after it had started",
            ["WriteSource", "Tell"],
            id="D1: another object has its labels, too",
        ),
        pytest.param(seen(STARTED, mirror=mirror(RUNNING)), "follows its mirror", [], id="D6: nothing has changed"),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING), changes=CHANGES),
            "follows its mirror",
            ["PatchMirror"],
            id="D9: the user has changed something",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING, deletionTimestamp=BEFORE), changes=CHANGES),
            "follows its mirror",
            [],
            id="D9: a mirror that goes is not changed any more",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING), changes=Changes(must_wait_for_pods=True, digest="d1")),
            "follows its mirror",
            [],
            id="D9: the template has to wait for its pods",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                changes=CHANGES,
                memory=remembering(sent_digest="d1", sent_times=1, patch_refused="worker east refuses"),
            ),
            "follows its mirror",
            ["WriteSource"],
            id="D9: refused: told, not repeated",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                changes=replace(CHANGES, undone=True),
                memory=remembering(sent_digest="d1", sent_times=1),
            ),
            "follows its mirror",
            ["PatchMirror"],
            id="D9: undone once: sent again",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                changes=replace(CHANGES, undone=True),
                memory=remembering(sent_digest="d1", sent_times=2),
            ),
            "follows its mirror",
            ["WriteSource"],
            id="D9: undone twice: told, not fought",
        ),
    ],
)
def test_each_branch_of_the_rules(found: Seen, because: str, actions: list[str]) -> None:
    """The first rule that has something to say decides; the reason is what the log shows."""
    assert (decide(found).because, actions_of(found)) == (because, actions)


def write_of(found: Seen) -> WriteSource:
    (write,) = [action for action in decide(found).actions if isinstance(action, WriteSource)]
    return write


def test_the_record_goes_in_one_write_and_ends_the_waiting() -> None:
    """D5, D21: condition, annotation and the end of ``waiting-because`` together; the create comes after."""
    waiting = source({}, annotations={names.WAITING_BECAUSE: "east: at capacity"})
    plan = decide(seen(waiting, about_place=AboutPlace(given="west"), memory=remembering(waiting_written_at=MONOTONIC)))
    (write,) = plan.actions
    assert isinstance(write, WriteSource)
    assert write.records == "west"
    assert write.status is not None
    assert write.status["conditions"][0]["type"] == names.PLACED
    assert dict(write.annotations) == {names.ASSIGNED_WORKER: "west", names.WAITING_BECAUSE: None}
    assert plan.remember == (("first_create", True),)


def test_a_cleared_record_leaves_no_trace() -> None:
    """D5: condition and annotation go in the same write."""
    refusals = (("east", Refusal("403", MONOTONIC + 9)),)
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
        pytest.param(seen(mirror=mirror(), mirror_is_stale=True), 1, id="a namesake's mirror goes soon"),
        pytest.param(seen(memory=remembering(in_the_way="x")), 10, id="a conflict is told after ten quiet seconds"),
        pytest.param(
            seen(UNPLACED, memory=remembering(refusals=(("east", Refusal("403", MONOTONIC + 15)),))),
            15,
            id="when a refusal is forgotten",
        ),
    ],
)
def test_when_to_look_again(found: Seen, seconds: float | None) -> None:
    """Only for what no event will tell."""
    told_now = replace(found.memory, waiting_written_at=MONOTONIC) if found.memory.in_the_way else found.memory
    assert decide(replace(found, memory=told_now)).again_after_seconds == seconds


def test_the_loss_is_told_once() -> None:
    """D14: one event a process, whatever else changes."""
    told = seen(worker=lost(901), memory=remembering(worker_loss_told=True))
    assert actions_of(told) == ["WriteSource"]
    assert decide(seen(worker=lost(901))).remember == (("worker_loss_told", True),)


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
