"""What plays JobSets and MPIJobs in ``mirror demo --kinds``: what they are made of, and what is said of that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.objects import decode_object
from mirror.kube.resources import JOBS, PODS
from mirror.planes import other_kinds

Json = dict[str, Any]
NOW, LATER = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
KINDS = kinds_of(other_kinds.ENTRIES)
JOB_SET, MPI_JOB = ({**one, "metadata": {**one["metadata"], "uid": "u-1"}} for one in other_kinds.samples("me"))


def held(found: Json) -> Json:
    """The same, suspended."""
    spec = found["spec"]
    if "runPolicy" in spec:
        return {**found, "spec": {**spec, "runPolicy": {**spec["runPolicy"], "suspend": True}}}
    return {**found, "spec": {**spec, "suspend": True}}


def with_status(found: Json, job_status: Json, phase: str = "Running") -> dict[str, Json]:
    """Its parts, the Jobs with this status and the pods in this phase."""
    made = other_kinds.parts(found)
    statuses = {JOBS: job_status, PODS: {"phase": phase}}
    return {body["metadata"]["name"]: {**body, "status": statuses[kind]} for kind, body in made}


def true(kind: str) -> Json:
    return {"conditions": [{"type": kind, "status": "True"}]}


def conditions(status: Json) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status["conditions"]}


def test_a_sample_is_of_a_kind_that_the_manager_mirrors() -> None:
    """And it is ours."""
    for sample in (JOB_SET, MPI_JOB):
        kind = KINDS[sample["kind"]]
        assert kind.managed_by(decode_object(msgspec.json.encode(sample))) == "me"
        assert kind.resource in (other_kinds.JOBSETS, other_kinds.MPIJOBS)


def test_a_job_set_is_made_of_a_job_for_each_replica() -> None:
    """Owned by it, with the labels by which its pods are found."""
    made = other_kinds.parts(JOB_SET)
    assert [body["metadata"]["name"] for _, body in made] == [
        "jobset-1-leader-0",
        "jobset-1-workers-0",
        "jobset-1-workers-1",
    ]
    for kind, body in made:
        assert kind == JOBS
        assert body["metadata"]["ownerReferences"][0]["uid"] == "u-1"
        assert body["spec"]["template"]["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == "jobset-1"


def test_an_mpi_job_is_made_of_a_launcher_and_pods_that_do_not_end() -> None:
    """While it is suspended there is the launcher alone, which is suspended, too."""
    made = other_kinds.parts(MPI_JOB)
    assert [(kind, body["metadata"]["name"]) for kind, body in made] == [
        (JOBS, "mpijob-1-launcher"),
        (PODS, "mpijob-1-worker-0"),
        (PODS, "mpijob-1-worker-1"),
    ]
    assert made[1][1]["metadata"]["annotations"] == {"e2e.jobmirror.io/run-for": "never"}
    ((_, launcher),) = other_kinds.parts(held(MPI_JOB))
    assert launcher["spec"]["suspend"] is True


@pytest.mark.parametrize(
    ("found", "jobs", "said", "ended"),
    [
        pytest.param(JOB_SET, {"active": 1, "ready": 1}, {}, "", id="JobSet runs"),
        pytest.param(JOB_SET, true("Complete"), {"Completed": "True"}, "Completed", id="JobSet completes"),
        pytest.param(JOB_SET, true("Failed"), {"Failed": "True"}, "Failed", id="JobSet fails"),
        pytest.param(held(JOB_SET), {}, {"Suspended": "True"}, "", id="JobSet is suspended"),
        pytest.param(MPI_JOB, {"active": 1}, {"Running": "True"}, "", id="MPIJob runs"),
        pytest.param(MPI_JOB, true("Complete"), {"Running": "False", "Succeeded": "True"}, "Succeeded", id="succeeds"),
        pytest.param(MPI_JOB, true("Failed"), {"Running": "False", "Failed": "True"}, "Failed", id="MPIJob fails"),
        pytest.param(held(MPI_JOB), {}, {"Suspended": "True", "Running": "False"}, "", id="MPIJob is suspended"),
    ],
)
def test_a_status_says_how_its_parts_are(found: Json, jobs: Json, said: Json, ended: str) -> None:
    """In the words by which the manager knows an end."""
    status = other_kinds.status_of(found, with_status(found, jobs), NOW)
    assert conditions(status) == said
    assert other_kinds.status_ends(status) is bool(ended)
    over = decode_object(msgspec.json.encode({**found, "status": status}))
    assert KINDS[found["kind"]].summary(over).is_finished is bool(ended)


def test_a_status_that_has_not_changed_is_the_same_later() -> None:
    """So nothing is written for it."""
    for found, jobs in ((JOB_SET, {"active": 1, "ready": 1}), (MPI_JOB, {"active": 1})):
        parts = with_status(found, jobs)
        status = other_kinds.status_of(found, parts, NOW)
        assert other_kinds.status_of({**found, "status": status}, parts, LATER) == status


def test_a_resumed_one_says_so() -> None:
    """Only one that was suspended ever has the condition."""
    before = other_kinds.status_of(held(JOB_SET), with_status(held(JOB_SET), {}), NOW)
    after = other_kinds.status_of({**JOB_SET, "status": before}, with_status(JOB_SET, {"active": 1}), LATER)
    assert conditions(after) == {"Suspended": "False"}
