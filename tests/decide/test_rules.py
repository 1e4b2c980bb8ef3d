"""Each rule's branches: what is seen, which rule decides, and what is done."""

from __future__ import annotations

import pytest
from doubles.jobs import condition
from msgspec.structs import replace
from worlds import (
    BEFORE,
    CHANGES,
    ENDED,
    FINISHED,
    MONOTONIC,
    NEAR,
    ON_EAST,
    RUNNING,
    STARTED,
    SUSPENDED,
    UNPLACED,
    UNRECORDED,
    actions_of,
    lost,
    mirror,
    remembering,
    rule_of,
    seen,
    source,
)

from mirror.decide.identity import Identity
from mirror.decide.plan import EmitEvent
from mirror.decide.rules import RULES_OF_UNPLACED, Rule, decide
from mirror.decide.snapshot import AssignmentState, Look, Policy, Refusal, Snapshot, Source
from mirror.kinds.batch_job.changes import Changes
from mirror.model import names
from mirror.model.reasons import Obstruction, Reason

FULL = Obstruction(Reason.WORKERS_FULL, "east: at capacity")
MALFORMED = Obstruction(Reason.INVALID_ANNOTATION, "annotation x: bad")
TAKEN = Obstruction(Reason.MIRROR_CONFLICT, "worker east: taken")

REFUSED = remembering(
    sent_digest="d1", sent_times=1, patch_refused="worker east refuses", patch_refused_at=MONOTONIC - 1
)


@pytest.mark.parametrize(
    ("found", "rule", "actions"),
    [
        pytest.param(
            seen(source(deletionTimestamp=BEFORE), mirror=mirror()),
            "ignore_deleting",
            [],
            id="D10: what goes gets nothing any more",
        ),
        pytest.param(
            seen(source(RUNNING)),
            "leave_what_others_write",
            ["WriteSource", "EmitEvent"],
            id="D20: it runs here, and we never placed it",
        ),
        pytest.param(
            seen(memory=remembering(foreign_status_writes=3), mirror=mirror()),
            "leave_what_others_write",
            ["WriteSource", "EmitEvent"],
            id="D20: somebody keeps writing its status",
        ),
        pytest.param(
            seen(memory=remembering(foreign_status_writes=2), mirror=mirror(RUNNING)),
            "follow",
            ["WriteSource"],
            id="D20: a few foreign writes are no pattern",
        ),
        pytest.param(seen(FINISHED), "keep_or_delete_finished", [], id="D8: finished, its mirror is gone already"),
        pytest.param(
            seen(FINISHED, worker=lost(5)), "keep_or_delete_finished", [], id="D8: finished, its worker is away"
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(), mirror_is_stale=True),
            "keep_or_delete_finished",
            [],
            id="D8: finished, the mirror is a namesake's",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror()),
            "keep_or_delete_finished",
            [],
            id="D8: by default it is kept",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(), policy=Policy(retention_seconds=90)),
            "keep_or_delete_finished",
            [],
            id="D8: the retention is not over",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(), policy=Policy(retention_seconds=60)),
            "keep_or_delete_finished",
            ["DeleteMirror"],
            id="D8: the retention is over",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(deletionTimestamp=BEFORE), policy=Policy(retention_seconds=0)),
            "keep_or_delete_finished",
            [],
            id="D8: it is being deleted",
        ),
        pytest.param(
            seen(FINISHED, mirror=mirror(uid="other")),
            "keep_or_delete_finished",
            ["DeleteMirror"],
            id="D2: another one beside a finished source must not run",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(found_on="east")),
            "restore_erased_record",
            ["WriteSource"],
            id="D5: the record was erased, the mirror tells",
        ),
        pytest.param(
            seen(source(RUNNING), assignment=AssignmentState(found_on="east")),
            "restore_erased_record",
            ["WriteSource"],
            id="D5: erased from one that runs",
        ),
        pytest.param(
            seen(source({}, spec={"suspend": True})),
            "hold_suspended",
            ["WriteSource", "EmitEvent"],
            id="D3: suspended from the start",
        ),
        pytest.param(
            seen(source({"conditions": [condition("Suspended", BEFORE)]}, spec={"suspend": True})),
            "hold_suspended",
            [],
            id="D3: and shown so already",
        ),
        pytest.param(
            seen(UNPLACED),
            "assign_worker",
            ["RequestAssignment"],
            id="D5: a new one requests an assignment",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(obstruction=FULL)),
            "assign_worker",
            ["RequestAssignment", "WriteSource", "EmitEvent"],
            id="D21: it says why it waits, and stays in the queue",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(obstruction=MALFORMED)),
            "assign_worker",
            ["WriteSource", "EmitEvent"],
            id="D21: nobody knows what it wants",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(assigned="west")),
            "assign_worker",
            ["WriteSource"],
            id="D5: it is recorded first",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(available="west")),
            "assign_worker",
            ["RequestAssignment", "WriteSource"],
            id="D5: assigned and recorded at once where a worker is available",
        ),
        pytest.param(
            seen(UNPLACED, memory=remembering(record_refused="422", record_refused_until=MONOTONIC + 9)),
            "wait_to_record",
            ["WriteSource"],
            id="D5: its worker could not be recorded: it requests none before it is tried again",
        ),
        pytest.param(
            seen(refused_now="east", memory=remembering(refusals=(("east", Refusal("403")),))),
            "assign_worker",
            ["WriteSource"],
            id="D5: refused: the record is cleared before another is requested",
        ),
        pytest.param(
            seen(worker=lost(5)),
            "wait_for_worker",
            [],
            id="D13: a moment is not worth a word",
        ),
        pytest.param(
            seen(worker=lost(61)),
            "wait_for_worker",
            ["WriteSource", "EmitEvent"],
            id="D13: a minute is",
        ),
        pytest.param(
            seen(worker=lost(901)),
            "wait_for_worker",
            ["WriteSource", "EmitEvent"],
            id="D14: the grace is over: it stays, and says so",
        ),
        pytest.param(
            seen(SUSPENDED, worker=lost(5)),
            "wait_for_worker",
            ["WriteSource", "EmitEvent"],
            id="D3: suspended, and nobody there to say it",
        ),
        pytest.param(
            seen(mirror=mirror(labels={names.SOURCE_UID: "earlier"}), mirror_is_stale=True),
            "make_room_for_mirror",
            ["JudgeMirror"],
            id="D10: the name is taken by a mirror of another source: whether that exists is found out for this one",
        ),
        pytest.param(seen(), "care_for_missing_mirror", ["CreateMirror"], id="D5: recorded, so create"),
        pytest.param(
            seen(SUSPENDED),
            "care_for_missing_mirror",
            ["WriteSource", "EmitEvent"],
            id="D3: suspended between record and create",
        ),
        pytest.param(
            seen(memory=remembering(in_the_way=TAKEN)),
            "care_for_missing_mirror",
            ["WriteSource", "EmitEvent", "CreateMirror"],
            id="D1: something is in the way: told, and tried again later",
        ),
        pytest.param(
            seen(STARTED),
            "care_for_missing_mirror",
            ["FindMirror"],
            id="D11: it was there: look before anything else",
        ),
        pytest.param(
            seen(memory=remembering(mirror_uid="m")),
            "care_for_missing_mirror",
            ["FindMirror"],
            id="D11: we made it a moment ago: look",
        ),
        pytest.param(
            seen(memory=remembering(mirror_uid="m", look=Look.GONE, looked_for="other")),
            "care_for_missing_mirror",
            ["FindMirror"],
            id="D11: that look was for another one",
        ),
        pytest.param(
            seen(memory=remembering(mirror_uid="m", look=Look.GONE, looked_for="m")),
            "care_for_missing_mirror",
            ["CreateMirror"],
            id="D11: gone before it started: created again",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(look=Look.ELSEWHERE, looked_for="m")),
            "care_for_missing_mirror",
            ["WriteSource", "EmitEvent", "FindMirror"],
            id="D11: it is there, in another namespace: not lost",
        ),
        pytest.param(
            seen(UNRECORDED, memory=remembering(look=Look.FOREIGN, looked_for="")),
            "care_for_missing_mirror",
            ["WriteSource", "EmitEvent", "FindMirror"],
            id="D11: no uid is recorded, so what is there may be the mirror",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING), identity=Identity.UNLABELED),
            "follow",
            ["RestoreLabels"],
            id="D1: the recorded mirror without labels: they are put back",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                identity=Identity.UNLABELED,
                is_watched=False,
                memory=remembering(relabeled_times=2, relabeled_at=MONOTONIC - 1),
            ),
            "follow",
            ["WriteSource", "EmitEvent", "FindMirror"],
            id="D11: its labels do not stay: reported, and read from time to time",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(ended=mirror(ENDED))),
            "store_seen_end",
            ["WriteSource"],
            id="D7: gone after it was seen to end: its end is stored",
        ),
        pytest.param(
            seen(STARTED, worker=lost(5), memory=remembering(ended=mirror(ENDED))),
            "store_seen_end",
            ["WriteSource"],
            id="D7: its worker was lost after it was seen to end",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING, uid="other"), memory=remembering(ended=mirror(ENDED))),
            "store_seen_end",
            ["WriteSource"],
            id="D7: replaced after it was seen to end",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(ended=mirror(ENDED | {"terminating": 1}), ended_seen_at=MONOTONIC)),
            "store_seen_end",
            ["WriteSource"],
            id="M6: pods were still terminating: only the interim condition for now",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(look=Look.GONE, looked_for="m")),
            "care_for_missing_mirror",
            ["WriteSource", "EmitEvent"],
            id="D11: gone after it started: failed",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(look=Look.FOREIGN, looked_for="m")),
            "care_for_missing_mirror",
            ["WriteSource", "EmitEvent"],
            id="D11: another object has its name",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING, uid="other")),
            "give_up_replaced_mirror",
            ["WriteSource", "EmitEvent"],
            id="D1: another object has its labels, too",
        ),
        pytest.param(seen(STARTED, mirror=mirror(RUNNING)), "follow", [], id="D6: nothing has changed"),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING), changes=CHANGES),
            "follow",
            ["PatchMirror"],
            id="D9: the user has changed something",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING, deletionTimestamp=BEFORE), changes=CHANGES),
            "follow",
            ["WriteSource", "EmitEvent"],
            id="D9: a mirror that goes is not changed any more; that it does is told",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING, deletionTimestamp="2026-03-01T11:59:58Z"), changes=CHANGES),
            "follow",
            [],
            id="D9: nor one that has just been deleted",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING), changes=Changes(must_wait_for_pods=True, digest="d1")),
            "follow",
            [],
            id="D9: the template has to wait for its pods",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                changes=CHANGES,
                memory=REFUSED,
            ),
            "follow",
            ["WriteSource", "EmitEvent"],
            id="D9: refused: told, not repeated",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                changes=CHANGES,
                memory=replace(REFUSED, patch_refused_at=MONOTONIC - 60),
            ),
            "follow",
            ["PatchMirror"],
            id="D9: refused a minute ago: the worker may think otherwise by now",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                changes=replace(CHANGES, reverted=("spec.parallelism",)),
                memory=remembering(sent_digest="d1", sent_times=1),
            ),
            "follow",
            ["PatchMirror"],
            id="D9: reverted once: sent again",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                changes=replace(CHANGES, reverted=("spec.parallelism",)),
                memory=remembering(sent_digest="d1", sent_times=2),
            ),
            "follow",
            ["WriteSource", "EmitEvent"],
            id="D9: reverted twice: reported, not fought",
        ),
    ],
)
def test_each_branch_of_the_rules(found: Snapshot, rule: str, actions: list[str]) -> None:
    """The first rule that has something to say decides."""
    assert (rule_of(found), actions_of(found)) == (rule, actions)


@pytest.mark.parametrize("rule", RULES_OF_UNPLACED, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("of", [source(), STARTED, FINISHED, SUSPENDED], ids=["recorded", "runs", "ended", "suspended"])
@pytest.mark.parametrize(
    "assignment",
    [
        AssignmentState(assigned="west"),
        AssignmentState(available="west"),
        AssignmentState(obstruction=FULL),
        AssignmentState(found_on="west"),
    ],
    ids=["assigned", "available", "full", "found"],
)
def test_rules_of_sources_without_a_worker(rule: Rule, of: Source, assignment: AssignmentState) -> None:
    """``decide`` does not ask them where a worker is recorded (D5): they would have nothing to say."""
    for worker in (NEAR, lost(901)):
        memory = remembering(record_refused="not now", record_refused_until=MONOTONIC + 1)
        assert rule(seen(of, worker=worker, assignment=assignment, memory=memory)) is None


HELD = {"annotations": {names.HELD: "true"}, "spec": {"suspend": True}}
REFUSED_RELEASE = remembering(release_refused="not allowed", release_refused_at=MONOTONIC - 1)


@pytest.mark.parametrize(
    ("found", "rule", "actions"),
    [
        pytest.param(
            seen(source({}, **HELD)),
            "assign_worker",
            ["RequestAssignment"],
            id="D16: it requests one though suspended",
        ),
        pytest.param(
            seen(source({}, **HELD), assignment=AssignmentState(assigned="east")),
            "assign_worker",
            ["WriteSource"],
            id="D5: the record comes first",
        ),
        pytest.param(
            seen(source(annotations=ON_EAST | {names.HELD: "true"}, spec={"suspend": True})),
            "release_held",
            ["ReleaseSource"],
            id="D16: then it is released, and nothing else",
        ),
        pytest.param(
            seen(source(annotations=ON_EAST | {names.HELD: "true"}, spec={"suspend": True}), worker=lost(9)),
            "release_held",
            ["ReleaseSource"],
            id="D16: wherever its worker is",
        ),
        pytest.param(
            seen(source(annotations=ON_EAST | {names.HELD: "true"}, spec={"suspend": True}), memory=REFUSED_RELEASE),
            "release_held",
            ["WriteSource", "EmitEvent"],
            id="D16: who may not says so, and tries again in a minute",
        ),
        pytest.param(
            seen(source({}, annotations={names.HELD: "no"}, spec={"suspend": True})),
            "hold_suspended",
            ["WriteSource", "EmitEvent"],
            id="D16: only our own mark counts",
        ),
        pytest.param(
            seen(source(annotations=ON_EAST | {names.HELD: "true"})),
            "care_for_missing_mirror",
            ["CreateMirror"],
            id="D16: one that is not suspended needs no release",
        ),
    ],
)
def test_held(found: Snapshot, rule: str, actions: list[str]) -> None:
    """What our webhook suspended is placed, then released (D16)."""
    assert (rule_of(found), actions_of(found)) == (rule, actions)


def test_a_mirror_that_runs_after_its_end_is_reported_once() -> None:
    """D7, D21: a worker that rejects its suspension is asked again each minute, and each status of it is a look."""
    changes = Changes(digest="d", operations=({"op": "add", "path": "/spec/suspend", "value": True},))
    memory = remembering(sent_digest="d", patch_refused="no", patch_refused_at=MONOTONIC)
    found = seen(FINISHED, mirror=mirror(RUNNING), changes=changes, memory=memory)
    plan = decide(found)
    assert [one.reason for one in plan.actions if isinstance(one, EmitEvent)] == ["ChangeRefused"]
    again = decide(replace(found, memory=replace(memory, **plan.remember)))
    assert not any(isinstance(one, EmitEvent) for one in again.actions)
    runs = decide(seen(FINISHED, mirror=mirror(RUNNING), changes=changes))
    assert [one.reason for one in runs.actions if isinstance(one, EmitEvent)] == ["MirrorChanged"]
