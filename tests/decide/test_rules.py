"""Each rule's branches: what is seen, what is done, and why."""

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
    seen,
    source,
)

from mirror.decide.identity import Identity
from mirror.decide.rules import decide
from mirror.decide.snapshot import AssignmentState, Look, Policy, Refusal, Snapshot
from mirror.kinds.batch_job.changes import Changes
from mirror.model import names

REFUSED = remembering(
    sent_digest="d1", sent_times=1, patch_refused="worker east refuses", patch_refused_at=MONOTONIC - 1
)


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
            ["WriteSource", "EmitEvent"],
            id="D20: it runs here, and we never placed it",
        ),
        pytest.param(
            seen(memory=remembering(foreign_status_writes=3), mirror=mirror()),
            "another controller writes this Job's status",
            ["WriteSource", "EmitEvent"],
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
            seen(UNPLACED, assignment=AssignmentState(found_on="east")),
            "its mirror was found on east",
            ["WriteSource"],
            id="D5: the record was erased, the mirror tells",
        ),
        pytest.param(
            seen(source(RUNNING), assignment=AssignmentState(found_on="east")),
            "its mirror was found on east",
            ["WriteSource"],
            id="D5: erased from one that runs",
        ),
        pytest.param(
            seen(source({}, spec={"suspend": True})),
            "suspended, not placed yet",
            ["WriteSource", "EmitEvent"],
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
            "waits for a worker",
            ["RequestAssignment"],
            id="D5: a new one requests an assignment",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(waiting_because="east: at capacity")),
            "east: at capacity",
            ["RequestAssignment", "WriteSource"],
            id="D21: it says why it waits, and stays in the queue",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(bad_annotation="annotation x: bad")),
            "annotation x: bad",
            ["WriteSource"],
            id="D21: nobody knows what it wants",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(assigned="west")),
            "placed on west",
            ["WriteSource"],
            id="D5: it is recorded first",
        ),
        pytest.param(
            seen(UNPLACED, assignment=AssignmentState(available="west")),
            "placed on west",
            ["RequestAssignment", "WriteSource"],
            id="D5: assigned and recorded at once where a worker is available",
        ),
        pytest.param(
            seen(UNPLACED, memory=remembering(record_refused="422", record_refused_until=MONOTONIC + 9)),
            "422",
            ["WriteSource"],
            id="D5: its worker could not be recorded: it requests none before it is tried again",
        ),
        pytest.param(
            seen(refused_now="east", memory=remembering(refusals=(("east", Refusal("403", MONOTONIC + 9)),))),
            "worker east has refused it",
            ["WriteSource"],
            id="D5: refused: the record is cleared before another is requested",
        ),
        pytest.param(
            seen(worker=lost(5)),
            "worker east is unreachable",
            [],
            id="D13: a moment is not worth a word",
        ),
        pytest.param(
            seen(worker=lost(61)),
            "worker east is unreachable",
            ["WriteSource"],
            id="D13: a minute is",
        ),
        pytest.param(
            seen(worker=lost(901)),
            "worker east is unreachable",
            ["WriteSource", "EmitEvent"],
            id="D14: the grace is over: it stays, and says so",
        ),
        pytest.param(
            seen(SUSPENDED, worker=lost(5)),
            "worker east is unreachable",
            ["WriteSource", "EmitEvent"],
            id="D3: suspended, and nobody there to say it",
        ),
        pytest.param(
            seen(mirror=mirror(labels={names.SOURCE_UID: "earlier"}), mirror_is_stale=True),
            "the mirror of an earlier namesake has to go first",
            ["JudgeMirror"],
            id="D10: the name is taken by a mirror of another source: whether that exists is found out for this one",
        ),
        pytest.param(seen(), "recorded, to be created", ["CreateMirror"], id="D5: recorded, so create"),
        pytest.param(
            seen(SUSPENDED),
            "suspended, not created yet",
            ["WriteSource", "EmitEvent"],
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
            seen(STARTED, memory=remembering(look=Look.ELSEWHERE, looked_for="m")),
            "the mirror on worker east is not in the expected namespace",
            ["WriteSource", "FindMirror"],
            id="D11: it is there, in another namespace: not lost",
        ),
        pytest.param(
            seen(UNRECORDED, memory=remembering(look=Look.FOREIGN, looked_for="")),
            "worker east has a Job of this name without our labels, which may be the mirror",
            ["WriteSource", "FindMirror"],
            id="D11: no uid is recorded, so what is there may be the mirror",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING), identity=Identity.UNLABELED),
            "follows its mirror",
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
            "follows its mirror",
            ["WriteSource", "FindMirror"],
            id="D11: its labels do not stay: reported, and read from time to time",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(ended=mirror(ENDED))),
            "its mirror was seen to end",
            ["WriteSource"],
            id="D7: gone after it was seen to end: its end is stored",
        ),
        pytest.param(
            seen(STARTED, worker=lost(5), memory=remembering(ended=mirror(ENDED))),
            "its mirror was seen to end",
            ["WriteSource"],
            id="D7: its worker was lost after it was seen to end",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING, uid="other"), memory=remembering(ended=mirror(ENDED))),
            "its mirror was seen to end",
            ["WriteSource"],
            id="D7: replaced after it was seen to end",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(ended=mirror(ENDED | {"terminating": 1}), ended_seen_at=MONOTONIC)),
            "its mirror was seen to end",
            ["WriteSource"],
            id="M6: pods were still terminating: only the interim condition for now",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(look=Look.GONE, looked_for="m")),
            "the mirror on worker east has vanished after it had started",
            ["WriteSource", "EmitEvent"],
            id="D11: gone after it started: failed",
        ),
        pytest.param(
            seen(STARTED, memory=remembering(look=Look.FOREIGN, looked_for="m")),
            "the mirror on worker east has vanished after it had started",
            ["WriteSource", "EmitEvent"],
            id="D11: another object has its name",
        ),
        pytest.param(
            seen(STARTED, mirror=mirror(RUNNING, uid="other")),
            "the mirror on worker east has vanished after it had started",
            ["WriteSource", "EmitEvent"],
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
                memory=REFUSED,
            ),
            "follows its mirror",
            ["WriteSource"],
            id="D9: refused: told, not repeated",
        ),
        pytest.param(
            seen(
                STARTED,
                mirror=mirror(RUNNING),
                changes=CHANGES,
                memory=replace(REFUSED, patch_refused_at=MONOTONIC - 60),
            ),
            "follows its mirror",
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
            "follows its mirror",
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
            "follows its mirror",
            ["WriteSource"],
            id="D9: reverted twice: reported, not fought",
        ),
    ],
)
def test_each_branch_of_the_rules(found: Snapshot, because: str, actions: list[str]) -> None:
    """The first rule that has something to say decides; the reason is what the log shows."""
    assert (decide(found).because, actions_of(found)) == (because, actions)


HELD = {"annotations": {names.HELD: "true"}, "spec": {"suspend": True}}
REFUSED_RELEASE = remembering(release_refused="not allowed", release_refused_at=MONOTONIC - 1)


@pytest.mark.parametrize(
    ("found", "because", "actions"),
    [
        pytest.param(
            seen(source({}, **HELD)),
            "waits for a worker",
            ["RequestAssignment"],
            id="D16: it requests one though suspended",
        ),
        pytest.param(
            seen(source({}, **HELD), assignment=AssignmentState(assigned="east")),
            "placed on east",
            ["WriteSource"],
            id="D5: the record comes first",
        ),
        pytest.param(
            seen(source(annotations=ON_EAST | {names.HELD: "true"}, spec={"suspend": True})),
            "held, and placed on east",
            ["ReleaseSource"],
            id="D16: then it is released, and nothing else",
        ),
        pytest.param(
            seen(source(annotations=ON_EAST | {names.HELD: "true"}, spec={"suspend": True}), worker=lost(9)),
            "held, and placed on east",
            ["ReleaseSource"],
            id="D16: wherever its worker is",
        ),
        pytest.param(
            seen(source(annotations=ON_EAST | {names.HELD: "true"}, spec={"suspend": True}), memory=REFUSED_RELEASE),
            "not allowed",
            ["WriteSource"],
            id="D16: who may not says so, and tries again in a minute",
        ),
        pytest.param(
            seen(source({}, annotations={names.HELD: "no"}, spec={"suspend": True})),
            "suspended, not placed yet",
            ["WriteSource", "EmitEvent"],
            id="D16: only our own mark counts",
        ),
        pytest.param(
            seen(source(annotations=ON_EAST | {names.HELD: "true"})),
            "recorded, to be created",
            ["CreateMirror"],
            id="D16: one that is not suspended needs no release",
        ),
    ],
)
def test_held(found: Snapshot, because: str, actions: list[str]) -> None:
    """What our webhook suspended is placed, then released (D16)."""
    assert decide(found).because == because
    assert actions_of(found) == actions
