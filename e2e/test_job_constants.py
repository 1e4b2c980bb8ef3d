"""The Job controller's constants, set in its environment to other times and to small numbers (K2–K4).

One controller has all of them changed, and each shows in a Job of its own: what was written, and when, is in the audit
log. Upstream's own constants are fixed, so it has no part here.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
import pytest_asyncio

from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.job_controller import WITHOUT_JOBS, Flags, JobController, Kind
from e2e.jobs import Scene, is_complete, is_failed, job, runs, until

BATCH, API, API_MOST, FAILURE, FAILURE_MOST = 1.5, 2.0, 2.5, 2.9, 3.0
UNCOUNTED, AT_ONCE = 3, 4
CONSTANTS = {
    "JOB_BATCH_PERIOD_SECONDS": str(BATCH),
    "JOB_API_BACKOFF_SECONDS": str(API),
    "JOB_API_BACKOFF_MAX_SECONDS": str(API_MOST),
    "JOB_POD_FAILURE_BACKOFF_SECONDS": str(FAILURE),
    "JOB_MAX_POD_FAILURE_BACKOFF_SECONDS": str(FAILURE_MOST),
    "JOB_MAX_UNCOUNTED_PODS": str(UNCOUNTED),
    "JOB_MAX_POD_CREATE_DELETE_PER_SYNC": str(AT_ONCE),
}
DEFAULT_FAILURE = 10.0
"""What the others are by default is less, so that waiting longer shows them; this one, and maxima, show by a bound
that is seconds away: machines have pauses."""
CLOCK = 1.0
"""Pods' own times are whole seconds, so that what is counted from them may come this much early."""
HERE = "here"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(binaries: None) -> AsyncIterator[Cluster]:
    """A cluster with our Job controller, its constants changed, and an audit log that has the bodies."""
    shape = replace(WITHOUT_JOBS, audit="Request")
    flags = Flags(constants=CONSTANTS)
    async with Cluster.start("constants", shape) as one, JobController.start(one, Kind.OURS, flags):
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def scene(cluster: Cluster) -> AsyncIterator[Scene]:
    """The Jobs of this test alone."""
    one = Scene(cluster, {HERE: cluster}, f"e2e-{uuid.uuid4().hex[:10]}")
    await one.make_namespace()
    yield one
    await one.remove_namespaces()
    await one.close()


async def test_a_pods_end_is_gathered_for_the_batch_period(cluster: Cluster, scene: Scene) -> None:
    """A status is written no sooner after a pod has ended than it says (K2)."""
    await scene.create(job("one", run_for="5s"))  # by then nothing else that was gathered is under way
    await scene.source_until("one", is_complete)

    ended = [entry.received for entry in await audit(cluster, scene) if is_pod_status(entry, "Succeeded")]
    told = [
        entry.received
        for entry in await audit(cluster, scene)
        if is_job_status(entry, "one") and "SuccessCriteriaMet" in condition_types(entry)
    ]
    assert told[0] - ended[0] >= timedelta(seconds=BATCH)


async def test_a_refused_request_is_repeated_after_the_api_backoff(cluster: Cluster, scene: Scene) -> None:
    """Doubled each time, up to its maximum (K2, A8)."""
    enforced = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await scene.client.merge(f"/api/v1/namespaces/{scene.namespace}", enforced)
    await scene.create(job("refused"))

    async def attempts() -> list[datetime]:
        return [entry.received for entry in await audit(cluster, scene) if is_pod_creation(entry, 403)]

    times = await until(attempts, lambda found: len(found) >= 6)
    gaps = [(after - before).total_seconds() for before, after in pairwise(times[:6])]
    # The first may be shorter: what was written of the Job itself has it looked at again, after the batch period.
    for number, gap in enumerate(gaps[1:], start=1):
        assert gap >= min(API * 2**number, API_MOST) - 0.05, gaps
    assert gaps[-1] < API * 2**4 / 2  # to which it would have grown


async def test_a_failed_pod_is_replaced_after_the_failure_backoff(cluster: Cluster, scene: Scene) -> None:
    """Doubled with each failure since the last success, up to its maximum; counted from the pod's end (B4, B6)."""
    await scene.create(job("fails", exit_code=1, run_for="100ms", backoffLimit=3))
    await scene.source_until("fails", is_failed)

    entries = await audit(cluster, scene)
    ended = [entry.received for entry in entries if is_pod_status(entry, "Failed")]
    made = [entry.received for entry in entries if is_pod_creation(entry, 201)]
    assert (len(ended), len(made)) == (4, 4)
    expected = [FAILURE, FAILURE_MOST, FAILURE_MOST]
    for delay, end, birth in zip(expected, ended, made[1:], strict=False):
        waited = (birth - end).total_seconds()
        assert delay - CLOCK <= waited < DEFAULT_FAILURE, (waited, expected)


async def test_no_status_holds_more_uncounted_pods_than_it_may(cluster: Cluster, scene: Scene) -> None:
    """Nine pods that end together are counted in several syncs, and none is lost (K3, T6)."""
    await scene.create(job("many", run_for="1s", completions=9, parallelism=9))
    done = await scene.source_until("many", is_complete)

    assert done["status"]["succeeded"] == 9
    uncounted = [
        len(entry.body["status"].get("uncountedTerminatedPods", {}).get("succeeded", ()))
        for entry in await audit(cluster, scene)
        if is_job_status(entry, "many")
    ]
    assert max(uncounted) == UNCOUNTED


async def test_no_sync_makes_or_removes_more_pods_than_it_may(cluster: Cluster, scene: Scene) -> None:
    """Ten pods come, and go again when there shall be none, a few a sync (K3, A3, A7)."""
    await scene.create(job("wide", run_for="never", completions=10, parallelism=10))
    await scene.source_until("wide", runs(10))
    await scene.patch("wide", {"spec": {"parallelism": 0}})
    await scene.source_until("wide", lambda found: found and not found["status"].get("active"))

    actives = [
        entry.body["status"].get("active", 0) for entry in await audit(cluster, scene) if is_job_status(entry, "wide")
    ]
    steps = [after - before for before, after in pairwise([0, *actives])]
    assert max(steps) == AT_ONCE
    assert min(steps) == -AT_ONCE


@pytest.mark.parametrize(
    ("flags", "culprit"),
    [
        pytest.param(Flags(gates={"JobManagedByy": False}), "JobManagedByy", id="a gate that nobody knows"),
        pytest.param(
            Flags(constants={"JOB_FEATURE_GATES": "JobManagedBy=no"}), "JobManagedBy", id="neither true nor false"
        ),
        pytest.param(
            Flags(constants={"JOB_BATCH_PERIOD_SECONDS": "soon"}), "JOB_BATCH_PERIOD_SECONDS", id="no number of seconds"
        ),
    ],
)
async def test_a_mistake_in_a_gate_or_a_constant_is_refused_at_the_start(
    cluster: Cluster, flags: Flags, culprit: str
) -> None:
    """It ends at once, says what is wrong, and shows no traceback."""
    controller = JobController(cluster, Kind.OURS, flags)
    try:
        controller.launch()
        assert await controller.wait_until_ended() != 0
        assert culprit in controller.log
        assert "Traceback" not in controller.log
    finally:
        await controller.close()


async def audit(cluster: Cluster, scene: Scene) -> list[AuditEntry]:
    """The requests about this test's namespace."""
    return [entry for entry in await cluster.audit_entries() if entry.namespace == scene.namespace]


def is_pod_creation(entry: AuditEntry, code: int) -> bool:
    """Whether it asked for a pod, and was answered so."""
    return (entry.verb, entry.resource, entry.subresource, entry.code) == ("create", "pods", "", code)


def is_pod_status(entry: AuditEntry, phase: str) -> bool:
    """Whether by it the node told that a pod is in this phase."""
    is_node = (entry.user, entry.resource, entry.subresource) == ("kwok", "pods", "status")
    return is_node and (entry.body or {}).get("status", {}).get("phase") == phase


def is_job_status(entry: AuditEntry, name: str) -> bool:
    """Whether it stored a status of this Job."""
    return (entry.resource, entry.subresource, entry.name, entry.code) == ("jobs", "status", name, 200)


def condition_types(entry: AuditEntry) -> set[str]:
    """Of the status that was written."""
    body: Json = entry.body
    return {one["type"] for one in body["status"].get("conditions", ())}
