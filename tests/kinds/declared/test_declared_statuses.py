"""Statuses of kinds that are data: copied whole, with our record in them, until the end (D5, D7, D11, D25)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from declared_objects import built_in_kind, condition, job_set, mirror_of, source_of

from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.stored_source import NextStatus
from mirror.model import names
from mirror.model.reasons import Obstruction, Reason
from mirror.settings.load import parse

JOB_SET = built_in_kind("JobSet")
NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
AT = "2026-02-03T04:05:06Z"
PLACED = condition(names.PLACED, reason="Placed") | {"message": "east"}
Json = dict[str, Any]


def follow(kind: DeclaredKind, spec: Json, stored: Json | None, theirs: Json | None, **mirror: Any) -> NextStatus:
    source = source_of(kind, spec, stored)
    return kind.stored(source).next_status(mirror_of(kind, source, theirs, **mirror), now=NOW)


def recorded(kind: DeclaredKind, whole: Json) -> Any:
    """A source with this status, wherever our conditions of it are stored."""
    status, text = kind.as_stored(whole)
    return source_of(kind, {}, dict(status), annotations={} if text is None else {names.CONDITIONS: text})


def types(status: Any) -> list[str]:
    return [one["type"] for one in status["conditions"]]


def test_a_status_is_copied_whole_with_our_conditions_first() -> None:
    """Whatever stood there before of the worker's is gone; printer columns show the last condition."""
    stored = {"conditions": [condition("Old"), PLACED], "replicatedJobsStatus": [{"name": "old"}]}
    theirs = {"conditions": [condition("Suspended", "False")], "restarts": 0, "unknown": {"x": [1]}}
    following = follow(JOB_SET, job_set(), stored, theirs)
    assert following.status == {**theirs, "conditions": [PLACED, *theirs["conditions"]]}
    assert following.cut == 0
    assert follow(JOB_SET, job_set(), following.status, theirs).status is None


def test_in_tekton_ours_stand_last_and_what_the_schema_requires_is_there() -> None:
    """Tools of Tekton read the first condition; a TaskRun's status has a podName."""
    kind = built_in_kind("TaskRun")
    placed = kind.stored(source_of(kind, {})).placed_status("east", NOW)
    assert placed is not None
    assert placed["podName"] == ""
    following = follow(kind, {}, dict(placed), {"conditions": [condition("Succeeded", "Unknown")], "podName": "p"})
    assert following.status is not None
    assert types(following.status) == ["Succeeded", names.PLACED]
    assert following.status["podName"] == "p"


def test_what_has_ended_stays_so() -> None:
    """D7: whatever the worker says afterwards."""
    stored = {"conditions": [PLACED, condition("Completed")]}
    for listed in ([condition("Failed")], [condition("Completed", "False")], []):
        assert follow(JOB_SET, job_set(), stored, {"conditions": listed, "restarts": 1}).status is None
    lost = {"conditions": [PLACED, condition("Failed", reason="MirrorLost")]}
    assert follow(JOB_SET, job_set(), lost, {"conditions": [condition("Failed")], "restarts": 1}).status is None


def test_what_is_counted_after_the_end_is_told() -> None:
    """training-operator's Succeeded comes with the first pod that counts; what the others did, a moment later."""
    kind = built_in_kind("TFJob")
    succeeded = {"conditions": [condition("Succeeded")], "replicaStatuses": {"Worker": {"active": 1}}}
    settled = {"conditions": [condition("Succeeded")], "replicaStatuses": {"Worker": {"succeeded": 1}}}
    stored = follow(kind, {}, {"conditions": [PLACED]}, succeeded).status
    assert stored is not None
    after = follow(kind, {}, dict(stored), settled).status
    assert after == {**settled, "conditions": [PLACED, condition("Succeeded")]}
    assert follow(kind, {}, dict(after), settled).status is None
    ours = dict(stored) | {"conditions": [PLACED, {**condition("Succeeded"), "lastTransitionTime": AT}]}
    assert follow(kind, {}, ours, settled).status == {
        **settled,
        "conditions": ours["conditions"],
    }  # the end is as it was


HOSTILE: dict[str, tuple[Any, list[str]]] = {
    "conditions of ours": ([condition(names.PLACED) | {"message": "west"}, condition("A")], ["A"]),
    "one type twice": ([condition("A", "False"), condition("A")], ["A"]),
    "a status that is none": ([condition("A") | {"status": "Maybe"}, condition("B")], ["B"]),
    "no mappings": ([1, None, "x", condition("A")], ["A"]),
    "more than anybody reads": ([condition(f"A{number}") for number in range(100)], [f"A{n}" for n in range(64)]),
}


@pytest.mark.parametrize(("listed", "kept"), HOSTILE.values(), ids=HOSTILE)
def test_conditions_that_nobody_may_write_are_left_out(listed: Any, kept: list[str]) -> None:
    """D18: one that is refused would keep the whole status from being stored; what is cut is counted."""
    following = follow(JOB_SET, job_set(), {"conditions": [PLACED]}, {"conditions": listed})
    assert following.status is not None
    assert types(following.status) == [names.PLACED, *kept]
    assert following.status["conditions"][0] == PLACED
    assert following.cut


def test_texts_of_a_worker_stay_on_their_line() -> None:
    """D18: of conditions, which are shown in terminals."""
    following = follow(
        JOB_SET, job_set(), None, {"conditions": [condition("A", reason="b c!") | {"message": "x\x1b[2J"}]}
    )
    assert following.status is not None
    (one,) = following.status["conditions"]
    assert (one["reason"], one["message"]) == ("b_c", "x\\x1b[2J")


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        pytest.param("BackoffLimitExceeded/", "BackoffLimitExceeded", id="mpi-operator's, of pods without a reason"),
        pytest.param("BackoffLimitExceeded/Error", "BackoffLimitExceeded_Error", id="mpi-operator's"),
        pytest.param("Couldn't get it", "Couldn_t_get_it", id="a sentence"),
        pytest.param("/OutOfMemory", "OutOfMemory", id="begins with what none may have"),
        pytest.param("137", "Unknown", id="nothing that a reason may begin with"),
        pytest.param("Started:ok,then", "Started:ok,then", id="all that it may have"),
    ],
)
def test_a_reason_that_no_condition_may_have_keeps_what_may_be(reason: str, kept: str) -> None:
    """People see why it failed, and the API server takes it."""
    following = follow(JOB_SET, job_set(), None, {"conditions": [condition("Failed", reason=reason)]})
    assert following.status is not None
    assert [one["reason"] for one in following.status["conditions"]] == [kept]


@pytest.mark.parametrize("found", [None, [], "x", 5, {}], ids=repr)
def test_a_status_that_is_none_changes_nothing(found: Any) -> None:
    """A worker may answer anything."""
    source = source_of(JOB_SET, job_set(), {"conditions": [PLACED]})
    mirror = mirror_of(JOB_SET, source, found)
    if isinstance(found, dict | None):
        assert JOB_SET.stored(source).next_status(mirror, now=NOW).status is None
    assert not JOB_SET.summary(mirror).is_finished


def test_a_status_that_is_too_large_loses_its_largest_field() -> None:
    """How it is going stays; what is dropped is counted."""
    theirs = {"conditions": [condition("A")], "small": 1, "large": ["x" * 1000] * 300}
    following = follow(JOB_SET, job_set(), {"conditions": [PLACED]}, theirs)
    assert following.status is not None
    assert following.status.keys() == {"conditions", "small"}
    assert following.cut == 1


def test_a_ninth_condition_of_a_train_job_is_one_too_many() -> None:
    """Its schema allows eight: ours and the one that tells of the end have their place."""
    kind = built_in_kind("TrainJob")
    listed = [*(condition(f"A{number}") for number in range(8)), condition("Complete")]
    following = follow(kind, {}, {"conditions": [PLACED]}, {"conditions": listed})
    assert following.status is not None
    assert types(following.status) == [names.PLACED, *(f"A{number}" for number in range(6)), "Complete"]
    assert following.cut == 2


def test_generations_tell_of_the_source() -> None:
    """Of the source's where the mirror carries its present spec, else what was stored stays."""
    theirs = {"conditions": [condition("A", observedGeneration=1)], "observedGeneration": 1}
    following = follow(JOB_SET, job_set(), None, theirs)
    assert following.status is not None
    assert (following.status["observedGeneration"], following.status["conditions"][0]["observedGeneration"]) == (3, 3)

    source = source_of(JOB_SET, job_set())
    mirror = mirror_of(JOB_SET, source, theirs)
    changed = source_of(JOB_SET, job_set(suspend=True), following.status, generation=4)
    after = JOB_SET.stored(changed).next_status(mirror, now=NOW)
    assert after.status is None  # still 3

    behind = follow(JOB_SET, job_set(), None, theirs, generation=2)
    assert behind.status is not None
    assert "observedGeneration" not in behind.status


def test_the_record_is_a_condition() -> None:
    """D5, D25: written first, taken away with the mirror's uid."""
    stored = JOB_SET.stored(source_of(JOB_SET, job_set(), {"conditions": [condition("Suspended")]}))
    placed = stored.placed_status("east", NOW)
    assert placed is not None
    record = {"type": names.PLACED, "status": "True", "reason": "Placed", "message": "east", "lastTransitionTime": AT}
    assert placed["conditions"] == [record, condition("Suspended")]

    recorded = JOB_SET.stored(source_of(JOB_SET, job_set(), dict(placed)))
    assert recorded.placed_worker == "east"
    assert recorded.placed_status("east", NOW) is None
    mirrored = recorded.mirrored_status(None, "m-1", NOW)
    assert types(mirrored) == [names.PLACED, names.MIRRORED, "Suspended"]

    both = JOB_SET.stored(source_of(JOB_SET, job_set(), dict(mirrored)))
    assert both.mirror_uid == "m-1"
    cleared = both.placed_status(None, NOW)
    assert cleared is not None
    assert types(cleared) == ["Suspended"]


def test_a_reason_to_wait_is_said_once() -> None:
    """D22: as metav1 has conditions; and taken back."""
    stored = JOB_SET.stored(source_of(JOB_SET, job_set()))
    why = Obstruction(Reason.NO_MATCHING_WORKER, "no worker matches")
    said = stored.explained_status(None, why, is_placed=False, now=NOW)
    assert said is not None
    (one,) = said["conditions"]
    assert one.keys() == {"type", "status", "reason", "message", "lastTransitionTime"}
    again = JOB_SET.stored(source_of(JOB_SET, job_set(), dict(said)))
    assert again.obstruction_reason == "NoMatchingWorker"
    assert again.explained_status(None, why, is_placed=False, now=NOW) is None
    assert again.explained_status(None, None, is_placed=False, now=NOW) == {}


STARTED = {
    "nothing": ({}, False),
    "our record": ({"conditions": [PLACED]}, False),
    "suspended": (
        {"conditions": [condition("Suspended")], "replicatedJobsStatus": [{"suspended": 2, "active": 0}]},
        False,
    ),
    "a counter": ({"replicatedJobsStatus": [{"name": "a", "active": 1}]}, True),
    "a start": ({"startTime": AT}, True),
    "a condition": ({"conditions": [condition("StartupPolicyInProgress")]}, True),
    "its end": ({"conditions": [condition("Completed")]}, True),
}


@pytest.mark.parametrize(("status", "is_started"), STARTED.values(), ids=STARTED)
def test_what_says_that_it_has_started(status: Json, is_started: bool) -> None:
    """D11: in doubt it has."""
    assert JOB_SET.stored(source_of(JOB_SET, job_set(), status)).has_started is is_started


def test_a_status_of_one_word_has_started_where_its_entry_says_so() -> None:
    """D11: else nothing tells it from one that waits, and its mirror would be made again."""
    text = b"kinds: [{kind: Simulation, resource: simulations.v1.example.com, lost: {set: {phase: Lost}}, "
    text += b"started: [phase=Running|Paused, stage!=init], done: {succeeded: [phase=Done], failed: [phase=Lost]}}]"
    kind = kinds_of(parse(text, "mirror.yaml").kinds)["Simulation"]
    for status, is_started in (
        ({"phase": "Running"}, True),
        ({"phase": "Paused", "stage": "one"}, True),
        ({"phase": "Running", "stage": "init"}, False),
        ({"phase": "Queued"}, False),
        ({"phase": "Queued", "steps": 3}, True),
        ({"phase": "Done"}, True),
    ):
        assert kind.stored(source_of(kind, {}, status)).has_started is is_started, status


@pytest.mark.parametrize("name", [one for one in built_in() if not built_in()[one].done.never])
def test_a_lost_mirror_ends_it_in_the_kinds_own_words(name: str) -> None:
    """D11: it has failed then, once, for our reason; and it is over for everybody who looks."""
    kind = built_in_kind(name)
    source = recorded(kind, {"conditions": [PLACED]})
    lost = kind.stored(source).lost_status(NOW, message="gone", reason="MirrorLost")
    assert lost is not None
    after = recorded(kind, dict(lost))
    assert kind.is_final(lost)
    assert kind.stored(after).lost_status(NOW, message="gone", reason="MirrorLost") is None
    progress = kind.progress(after)
    assert (progress.end, progress.end_reason, progress.ended_at) == ("Failed", "MirrorLost", AT)
    assert progress.placed == "east"
    assert kind.summary(after).is_finished
    assert kind.describe(lost) == ("Finished", "Failed: MirrorLost")
    assert kind.seconds_since_end(lost, NOW) == 0


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("JobSet", {"conditions": [PLACED, {"type": "Suspended", "status": "True"}]}, "Suspended"),
        (
            "JobSet",
            {"replicatedJobsStatus": [{"name": "a", "active": 2}, {"name": "b", "succeeded": 1}]},
            "active 2, succeeded 1",
        ),
        ("PyTorchJob", {"replicaStatuses": {"Worker": {"active": 2, "failed": 1}}}, "active 2, failed 1"),
        ("AppWrapper", {"phase": "Resuming"}, "phase is Resuming"),
        ("TaskRun", {}, ""),
    ],
)
def test_a_status_on_its_way_in_a_timeline(name: str, status: Json, text: str) -> None:
    """By its conditions, else by what its kind says of itself, else by what it counts."""
    assert built_in_kind(name).describe(status) == ("Status", text)


@pytest.mark.parametrize("name", [one for one in built_in() if built_in()[one].done.never])
def test_one_that_never_ends_begins_anew_where_its_mirror_is_lost(name: str) -> None:
    """D8, D11: nothing of what ran is shown, it is where it was, and nothing is said to have started."""
    kind = built_in_kind(name)
    ran = {"conditions": [PLACED, condition(names.MIRRORED), condition("Up")], "readyWorkerReplicas": 3}
    lost = kind.stored(source_of(kind, {}, ran)).lost_status(NOW, message="gone", reason="MirrorLost")
    assert lost is not None
    after = kind.stored(source_of(kind, {}, dict(lost)))
    assert not kind.is_final(lost)
    assert (after.placed_worker, after.mirror_uid, after.has_started, after.is_finished) == ("east", None, False, False)
    assert {one["reason"] for one in lost["conditions"][1:]} == {"MirrorLost"}
    assert "readyWorkerReplicas" not in lost


@pytest.mark.parametrize("name", ["MPIJob", "TrainJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob"])
def test_what_a_lost_one_has_ended_by_comes_last(name: str) -> None:
    """A printer column of these kinds shows the last condition, whatever it is."""
    kind = built_in_kind(name)
    source = recorded(kind, {"conditions": [PLACED, condition("Created")]})
    lost = kind.stored(source).lost_status(NOW, message="gone", reason="MirrorLost")
    assert types(lost)[-1] == "Failed"


RAY_JOB = built_in_kind("RayJob")


def test_the_record_of_a_kind_without_conditions_is_an_annotation() -> None:
    """D25: all that we say stands there, and the status stays the mirror's."""
    source = source_of(RAY_JOB, {}, {"jobDeploymentStatus": "Running"})
    placed = RAY_JOB.stored(source).placed_status("east", NOW)
    assert placed is not None
    status, text = RAY_JOB.as_stored(placed)
    assert status == {"jobDeploymentStatus": "Running"}
    found = source_of(RAY_JOB, {}, dict(status), annotations={names.CONDITIONS: text})
    assert RAY_JOB.summary(found).placed == "east"
    assert RAY_JOB.stored(found).placed_status("east", NOW) is None
    why = Obstruction(Reason.MIRROR_REFUSED, "no")
    said = RAY_JOB.stored(found).explained_status(None, why, is_placed=True, now=NOW)
    assert said is not None
    status, text = RAY_JOB.as_stored(said)
    found = source_of(RAY_JOB, {}, dict(status), annotations={names.CONDITIONS: text})
    assert RAY_JOB.summary(found).reason == "MirrorRefused"
    assert RAY_JOB.as_stored({"jobStatus": "x"}) == ({"jobStatus": "x"}, None)


MADE_UP: dict[str, str] = {
    "no JSON": "{",
    "no list": '{"type": "jobmirror.io/Placed"}',
    "no mappings": "[1, null]",
    "a field that is no text": json.dumps([{**PLACED, "message": 5}]),
    "a field that is missing": json.dumps([{"type": names.PLACED, "status": "True", "message": "east"}]),
    "none of ours": json.dumps([{**PLACED, "type": "Placed"}]),
    "larger than anything of ours": json.dumps([PLACED, {**PLACED, "message": "x" * 20_000}]),
}


@pytest.mark.parametrize("text", MADE_UP.values(), ids=MADE_UP)
def test_an_annotation_that_is_none_of_ours_records_nothing(text: str) -> None:
    """Users can write it: it is read as if it was not there, and nothing breaks (D18)."""
    found = source_of(RAY_JOB, {}, {"jobStatus": "RUNNING"}, annotations={names.CONDITIONS: text})
    assert RAY_JOB.summary(found).placed is None
    assert RAY_JOB.stored(found).status == {"jobStatus": "RUNNING"}


def test_conditions_in_the_status_of_such_a_kind_are_no_record() -> None:
    """One of ours in a status of a RayJob was not written by us."""
    assert RAY_JOB.summary(source_of(RAY_JOB, {}, {"conditions": [PLACED]})).placed is None


def test_what_ran_on_a_lost_mirror_runs_no_more() -> None:
    """Counters of what is active become 0, others stay."""
    counts = {"name": "a", "active": 2, "ready": 1, "succeeded": 3, "failed": 0, "suspended": 0}
    lost = JOB_SET.stored(source_of(JOB_SET, job_set(), {"replicatedJobsStatus": [counts]})).lost_status(
        NOW, message="", reason="MirrorLost"
    )
    assert lost is not None
    assert lost["replicatedJobsStatus"] == [counts | {"active": 0, "ready": 0}]
    assert lost["terminalState"] == "Failed"


@pytest.mark.parametrize("name", [one for one in built_in() if built_in()[one].suspend.path])
def test_one_that_is_suspended_without_a_mirror_says_so(name: str) -> None:
    """D3, once; and it is not over by it."""
    kind = built_in_kind(name)
    said = kind.stored(source_of(kind, {})).suspended_status(NOW)
    assert said is not None
    assert not kind.is_final(said)
    assert kind.stored(source_of(kind, {}, dict(said))).suspended_status(NOW) is None
    assert not kind.stored(source_of(kind, {}, dict(said))).has_started


ENDS: dict[str, tuple[str, list[Json], str]] = {
    "a JobSet that completed": ("JobSet", [condition("Completed")], "Complete"),
    "a JobSet that failed": ("JobSet", [condition("Failed")], "Failed"),
    "a JobSet that goes on": ("JobSet", [condition("Completed", "False")], ""),
    "an MPIJob that failed": ("MPIJob", [condition("Failed")], "Failed"),
    "an MPIJob whose workers were evicted": ("MPIJob", [condition("Failed", reason="MPIJobEvicted")], ""),
    "a TrainJob at its deadline": ("TrainJob", [condition("Failed", reason="DeadlineExceeded")], "Failed"),
    "a TrainJob without its runtime": ("TrainJob", [condition("Failed", reason="TrainingRuntimeNotSupported")], ""),
    "a PyTorchJob that succeeded": ("PyTorchJob", [condition("Succeeded")], "Complete"),
    "a PipelineRun that runs": ("PipelineRun", [condition("Succeeded", "Unknown")], ""),
    "a PipelineRun that failed": ("PipelineRun", [condition("Succeeded", "False")], "Failed"),
}


PHASES: dict[str, tuple[str, Json, str]] = {
    "a RayJob that succeeded": ("RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, "Complete"),
    "a RayJob that was stopped": ("RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}, "Failed"),
    "a RayJob that failed": ("RayJob", {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED"}, "Failed"),
    "a RayJob whose submitter failed": ("RayJob", {"jobDeploymentStatus": "Failed"}, "Failed"),
    "a RayJob whose deadline came first": (
        "RayJob",
        {"jobDeploymentStatus": "Failed", "jobStatus": "SUCCEEDED"},
        "Failed",
    ),
    "a RayJob that is over but not cleared up": ("RayJob", {"jobStatus": "SUCCEEDED"}, ""),
    "a RayJob that is tried again": ("RayJob", {"jobDeploymentStatus": "Retrying", "jobStatus": "FAILED"}, ""),
    "a RayJob that is invalid": ("RayJob", {"jobDeploymentStatus": "ValidationFailed"}, "Failed"),
    "a RayJob that became invalid as it ran": (
        "RayJob",
        {"jobDeploymentStatus": "ValidationFailed", "jobStatus": "RUNNING"},
        "Failed",
    ),
    "a RayJob that is suspended": ("RayJob", {"jobDeploymentStatus": "Suspended"}, ""),
    "a RayCluster that failed": ("RayCluster", {"state": "failed"}, ""),
    "an MPIJob whose workers were evicted, and whose launcher failed of it": (
        "MPIJob",
        {"conditions": [condition("Failed", reason="MPIJobEvicted")], "completionTime": AT},
        "Failed",
    ),
    "an MPIJob whose workers were evicted as its launcher succeeded": (
        "MPIJob",
        {"conditions": [condition("Succeeded"), condition("Failed", reason="MPIJobEvicted")], "completionTime": AT},
        "Complete",
    ),
    "an AppWrapper that succeeded": ("AppWrapper", {"phase": "Succeeded"}, "Complete"),
    "an AppWrapper that clears up": (
        "AppWrapper",
        {"phase": "Failed", "conditions": [condition("ResourcesDeployed")]},
        "",
    ),
    "an AppWrapper that has failed": (
        "AppWrapper",
        {"phase": "Failed", "conditions": [condition("ResourcesDeployed", "False")]},
        "Failed",
    ),
}


@pytest.mark.parametrize(("name", "status", "end"), PHASES.values(), ids=PHASES)
def test_how_each_kind_with_phases_ends(name: str, status: Json, end: str) -> None:
    """As its controller says it."""
    kind = built_in_kind(name)
    found = source_of(kind, {}, status)
    assert kind.progress(found).end == end
    assert kind.summary(found).is_finished is bool(end)


@pytest.mark.parametrize(("name", "listed", "end"), ENDS.values(), ids=ENDS)
def test_how_each_kind_ends(name: str, listed: list[Json], end: str) -> None:
    """As its controller says it."""
    kind = built_in_kind(name)
    found = source_of(kind, {}, {"conditions": listed})
    assert kind.progress(found).end == end
    assert kind.summary(found).is_finished is bool(end)


LARGE: Json = {"conditions": [condition("Succeeded")], "pipelineSpec": {"a": "x" * 500_000}, "results": "x" * 499_000}


@pytest.mark.parametrize(
    ("spec", "annotations", "kept"),
    [
        pytest.param({}, {}, {"conditions", "pipelineSpec", "results"}, id="a small source"),
        pytest.param({"a": "x" * 700_000}, {}, {"conditions", "results"}, id="a large spec"),
        pytest.param({}, {"a": "x" * 600_000}, {"conditions", "results"}, id="large annotations"),
        pytest.param(
            {"a": [{"name": f"n-{number:05}"} for number in range(8000)]},
            {},
            {"conditions", "results"},
            id="many members",
        ),
        pytest.param({"a": "x" * 1_100_000}, {}, {"conditions"}, id="hardly any room"),
        pytest.param({"a": "x" * 1_600_000}, {}, {"conditions"}, id="more than an API server stores"),
    ],
)
def test_a_status_has_the_room_that_its_source_leaves(spec: Json, annotations: Json, kept: set[str]) -> None:
    """An API server refuses what is more than 1.5 MiB as a whole: its end would never be stored."""
    kind = built_in_kind("PipelineRun")
    source = source_of(kind, spec, annotations=annotations)
    mirror = mirror_of(kind, source_of(kind, {}), LARGE)
    following = kind.stored(source).next_status(mirror, now=NOW)
    assert following.status is not None
    assert set(following.status) == kept
    assert following.cut == len(LARGE) - len(kept)
    assert kind.is_final(following.status)


def test_a_status_has_no_more_values_than_its_source_could_be_read_with() -> None:
    """Managed fields name each of them anew."""
    listed = [{"name": f"n-{number}", "ready": 0} for number in range(6000)]
    following = follow(JOB_SET, job_set(), None, {"replicatedJobsStatus": listed, "restarts": 1})
    assert following.status == {"restarts": 1}
    assert following.cut == 1


TRAIN_JOB = built_in_kind("TrainJob")
FAILED_JOBS = condition("Failed", reason="FailedJobs")


def test_an_end_that_may_be_withdrawn_counts_once_nothing_can_begin_anew() -> None:
    """Trainer takes such a failure away at each look: without its JobSet the TrainJob would train again.

    The pause is ours, and is not told as the user's.
    """
    stored = {"conditions": [PLACED], "jobsStatus": [{"name": "node", "active": 1}]}
    theirs = {"conditions": [FAILED_JOBS], "jobsStatus": [{"name": "node", "active": 0}]}
    assert follow(TRAIN_JOB, {}, stored, theirs).status is None

    paused = {**theirs, "conditions": [condition("Suspended", reason="Suspended"), FAILED_JOBS]}
    source, mirror = (
        source_of(TRAIN_JOB, {}, stored),
        mirror_of(TRAIN_JOB, source_of(TRAIN_JOB, {"suspend": True}), paused),
    )
    following = TRAIN_JOB.stored(source).next_status(mirror, now=NOW)
    assert following.status == {**theirs, "conditions": [PLACED, FAILED_JOBS]}

    ended = TRAIN_JOB.stored(source_of(TRAIN_JOB, {}, dict(following.status)))
    assert ended.is_finished
    assert ended.next_status(mirror, now=NOW).status is None
    anew = mirror_of(TRAIN_JOB, source_of(TRAIN_JOB, {}), {"conditions": [condition("Suspended")]})
    assert ended.next_status(anew, now=NOW).status is None


def test_a_pause_of_its_users_is_told_with_an_end_that_may_be_withdrawn() -> None:
    """And one that was over before stays told so."""
    theirs = {"conditions": [condition("Suspended", reason="Suspended"), FAILED_JOBS]}
    assert follow(TRAIN_JOB, {"suspend": True}, None, theirs).status == theirs
    resumed = condition("Suspended", "False", reason="Resumed")
    source = source_of(TRAIN_JOB, {}, {"conditions": [resumed]})
    mirror = mirror_of(TRAIN_JOB, source_of(TRAIN_JOB, {"suspend": True}), theirs)
    following = TRAIN_JOB.stored(source).next_status(mirror, now=NOW)
    assert following.status == {"conditions": [resumed, FAILED_JOBS]}


def test_a_pause_of_ours_that_has_kept_no_end_is_not_told() -> None:
    """The end was withdrawn before its mirror was suspended, which is about to be resumed; a worker's own is told."""
    theirs = {"conditions": [condition("Suspended", reason="Suspended")], "jobsStatus": [{"name": "node", "active": 0}]}
    held = mirror_of(TRAIN_JOB, source_of(TRAIN_JOB, {"suspend": True}), theirs)
    source = TRAIN_JOB.stored(source_of(TRAIN_JOB, {}, {"conditions": [PLACED]}))
    following = source.next_status(held, now=NOW)
    assert following.status == {**theirs, "conditions": [PLACED]}

    note = mirror_of(TRAIN_JOB, source_of(TRAIN_JOB, {"suspend": False})).annotations
    by_worker = mirror_of(TRAIN_JOB, source_of(TRAIN_JOB, {"suspend": True}), theirs, annotations=dict(note))
    assert source.next_status(by_worker, now=NOW).status == {**theirs, "conditions": [PLACED, *theirs["conditions"]]}


@pytest.mark.parametrize(
    "end", [condition("Complete"), condition("Failed", reason="DeadlineExceeded")], ids=["success", "deadline"]
)
def test_an_end_that_stays_is_stored_at_once(end: Json) -> None:
    """Of those that Trainer leaves alone."""
    assert follow(TRAIN_JOB, {}, None, {"conditions": [end]}).status == {"conditions": [end]}


@pytest.mark.parametrize("what", ["explained", "mirrored", "lost", "suspended"])
def test_a_condition_of_ours_takes_the_place_of_the_least_important_one(what: str) -> None:
    """A TrainJob has eight at most: a ninth would refuse the whole status."""
    kind = built_in_kind("TrainJob")
    stored = {"conditions": [PLACED, *(condition(f"A{number}", "False") for number in range(7))]}
    source = kind.stored(source_of(kind, {}, stored))
    said = {
        "explained": source.explained_status(None, Obstruction(Reason.WORKER_LOST, "x"), is_placed=True, now=NOW),
        "mirrored": source.mirrored_status(None, "m-1", NOW),
        "lost": source.lost_status(NOW, message="gone", reason="MirrorLost"),
        "suspended": source.suspended_status(NOW),
    }[what]
    assert said is not None
    assert len(said["conditions"]) == 8
    assert PLACED in said["conditions"]
    assert kind.is_final(said) is (what == "lost")


def test_what_a_rule_of_the_definition_wants_whole_is_left_out_where_it_is_not() -> None:
    """A TrainJob's trainerStatus says when it was updated, or nothing."""
    kind = built_in_kind("TrainJob")
    theirs = {"trainerStatus": {"progressPercentage": 5}, "jobsStatus": []}
    whole = {"trainerStatus": {"lastUpdatedTime": AT}}
    kind.learn_status({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    assert follow(kind, {}, None, theirs).status == {"jobsStatus": []}
    assert follow(kind, {}, None, whole).status == whole
