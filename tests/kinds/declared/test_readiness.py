"""Whether what a kind that is data consists of is ready, by the counts of its entry (D22)."""

from __future__ import annotations

from typing import Any

import pytest
from declared_objects import built_in_kind, condition, source_of

from mirror.kinds.declared.choosing import built_in
from mirror.kinds.declared.kind import DeclaredKind
from mirror.settings.load import SettingsError, parse

Json = dict[str, Any]
TRAIN = {"runPolicy": {}, "pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}}


def counts(active: int = 0, ready: int = 0, succeeded: int = 0, **more: int) -> Json:
    return {"active": active, "ready": ready, "succeeded": succeeded, "failed": 0, "suspended": 0, **more}


def jobs(*listed: Json, **more: Any) -> Json:
    return {"replicatedJobsStatus": [{"name": f"j{number}", **one} for number, one in enumerate(listed)], **more}


def said(kind: DeclaredKind, spec: Json, status: Json | None) -> tuple[bool, bool, bool]:
    """Whether something is not ready, nothing is there, and nobody has begun it."""
    found = source_of(kind, spec, status)
    return kind.has_unready_pods(found), kind.lacks_pods(found), kind.is_unstarted(found)


NOTHING, UNREADY, NONE, UNSTARTED = (False, False), (True, False), (False, True), (False, True)


@pytest.mark.parametrize(
    ("name", "spec", "status", "expected"),
    [
        pytest.param("JobSet", {}, None, UNSTARTED, id="a JobSet of which nobody has written a word"),
        pytest.param("JobSet", {"suspend": True}, None, NOTHING, id="that is suspended"),
        pytest.param("JobSet", {}, jobs(counts(2, 2), counts(1, 0)), UNREADY, id="one child Job is not ready"),
        pytest.param("JobSet", {}, jobs(counts(2, 2), counts(1, 1)), NOTHING, id="all are"),
        pytest.param("JobSet", {"suspend": True}, jobs(counts(1, 0)), NOTHING, id="while it is being suspended"),
        pytest.param("JobSet", {}, jobs(counts(), counts()), NONE, id="child Jobs without pods"),
        pytest.param("JobSet", {}, jobs(counts(), counts(1, 1)), NOTHING, id="one has pods"),
        pytest.param("JobSet", {}, {"restarts": 0}, NOTHING, id="a status that counts nothing"),
        pytest.param(
            "JobSet", {}, jobs(counts(1), conditions=[condition("Completed")]), NOTHING, id="it is over, with a rest"
        ),
        pytest.param("JobSet", {}, jobs(counts(), conditions=[condition("Failed")]), NOTHING, id="it has failed"),
        pytest.param("JobSet", {}, {"replicatedJobsStatus": 7}, NOTHING, id="a status of nonsense"),
        pytest.param("JobSet", {}, jobs({"active": "x", "ready": None}), NONE, id="counts of nonsense"),
        pytest.param("TrainJob", {}, {"jobsStatus": [counts(1, 0)]}, UNREADY, id="a TrainJob's JobSet"),
        pytest.param("TrainJob", {}, {"conditions": []}, NOTHING, id="a runtime that counts none"),
        pytest.param("PyTorchJob", TRAIN, None, UNSTARTED, id="a PyTorchJob without an operator"),
        pytest.param(
            "PyTorchJob", TRAIN, {"replicaStatuses": {"Master": {}, "Worker": {}}}, UNREADY, id="none of its pods runs"
        ),
        pytest.param(
            "PyTorchJob", TRAIN, {"replicaStatuses": {"Master": {"active": 1}, "Worker": {"active": 2}}}, UNREADY,
            id="one does not",
        ),
        pytest.param(
            "PyTorchJob", TRAIN,
            {"replicaStatuses": {"Master": {"active": 1}, "Worker": {"active": 1, "succeeded": 2}}}, NOTHING,
            id="all run or have succeeded",
        ),
        pytest.param(
            "PyTorchJob", {**TRAIN, "runPolicy": {"suspend": True}}, {"replicaStatuses": {"Master": {}}}, NOTHING,
            id="its pods were taken away",
        ),
        pytest.param("RayCluster", {}, {"desiredWorkerReplicas": 2, "readyWorkerReplicas": 1}, UNREADY, id="Ray"),
        pytest.param("RayCluster", {}, {"state": "ready"}, NOTHING, id="a RayCluster of a head alone"),
        pytest.param("PipelineRun", {}, None, NOTHING, id="a kind that counts nothing, without a status"),
        pytest.param("PipelineRun", {}, {"conditions": [condition("Succeeded", "Unknown")]}, NOTHING, id="with one"),
    ],
)  # fmt: skip
def test_what_is_not_ready_is_known_by_counts(
    name: str, spec: Json, status: Json | None, expected: tuple[bool, bool]
) -> None:
    """Of what goes on and may run; nothing is claimed where nothing is counted."""
    unready, none, unstarted = said(built_in_kind(name), spec, status)
    assert (unready, none) == expected
    assert unstarted == (not status)


def test_which_kinds_count_what_is_ready() -> None:
    """The others say nothing of it: an AppWrapper and Tekton's have conditions in words of their own."""
    silent = {name for name in built_in() if not built_in_kind(name).counts_ready}
    assert silent == {"PipelineRun", "TaskRun", "AppWrapper"}


def test_what_is_desired_is_a_path_from_the_top() -> None:
    """Of the spec or the status; all other counts are of the status."""
    entry = b"kinds: [{kind: JobSet, counts: {desired: [%s]}}]"
    assert parse(entry % b"spec.replicas", "mirror.yaml").kinds[0].counts.desired == ("spec.replicas",)
    with pytest.raises(SettingsError, match=r"kinds\[0\].counts.desired\[0\]"):
        parse(entry % b"replicas", "mirror.yaml")
