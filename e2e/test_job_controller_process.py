"""``mirror job-controller`` as a process: how it starts, tells, hands over, ends, and whom it will not fight (D20)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest_asyncio

from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import WORKER
from e2e.job_controller import LEASE, WITHOUT_JOBS, JobController, Kind, WithKubeconfig
from e2e.jobs import SOON_SECONDS, Scene, is_complete, job, runs, until
from e2e.manager import ManagerProcess

HERE = "here"
RIGHTS = Path(__file__).parents[1] / "config" / "rbac" / "job-controller.yaml"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(binaries: None) -> AsyncIterator[Cluster]:
    """A cluster whose Jobs nobody runs yet."""
    async with Cluster.start("process", WITHOUT_JOBS) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def scene(cluster: Cluster) -> AsyncIterator[Scene]:
    """The Jobs of this test alone."""
    one = Scene(cluster, {HERE: cluster}, f"e2e-{uuid.uuid4().hex[:10]}")
    await one.make_namespace()
    yield one
    await one.remove_namespaces()
    await one.close()


async def holder(cluster: Cluster) -> str:
    async with cluster.client() as client:
        return str((await client.get(LEASE))["spec"]["holderIdentity"])


async def told(scene: Scene, name: str, reason: str) -> Json:
    """The event of the Job controller, waited for: events are sent beside the work."""
    path = f"/api/v1/namespaces/{scene.namespace}/events"
    choice = f"involvedObject.name={name},reason={reason}"
    found = await until(lambda: scene.client.list(path, fieldSelector=choice), describe=lambda: scene.describe(name))
    return found[0]


async def ended(controller: JobController) -> bool:
    """Whether it has ended by itself; gives it a second for that."""
    try:
        await controller.wait_until_ended(seconds=1)
    except TimeoutError:
        return False
    return True


async def test_it_needs_little_more_cpu_to_be_ready_than_its_libraries(cluster: Cluster) -> None:
    """From the start of the process to ``/readyz``: some 0.6 s on a machine where the libraries take 0.3 s."""
    libraries = await asyncio.to_thread(library_seconds)
    controller = JobController(cluster)
    try:
        began = time.monotonic()
        controller.launch()
        await controller.wait_until_ready()
        took, used = time.monotonic() - began, cpu_seconds(controller.pid)
        print(f"ready after {took:.2f} s, with {used:.2f} s of CPU; the libraries take {libraries:.2f} s")
        assert used < 5 * libraries
        await controller.stop()
    finally:
        await controller.close()


def library_seconds() -> float:
    """The CPU that loading what it is made of takes here and now."""
    loading = "import time, aiohttp.web, msgspec; print(time.process_time())"
    return float(subprocess.run([sys.executable, "-c", loading], capture_output=True, check=True).stdout)


def cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_it_runs_a_job_and_tells(cluster: Cluster, scene: Scene) -> None:
    """Complete, with events; upstream's metrics and ours; SIGTERM ends it at once, with 0, and frees the Lease."""
    async with JobController.start(cluster) as controller:
        await scene.create(job("hello", completions=2, parallelism=2))
        await scene.source_until("hello", is_complete)
        assert (await told(scene, "hello", "Completed"))["source"] == {"component": "job-controller"}

        ended = {"completion_mode": "NonIndexed", "result": "succeeded"}
        counter = "job_controller_jobs_finished_total"
        done = ended | {"reason": "CompletionsReached"}
        samples = await until(controller.metrics, lambda found: found.value(counter, **done) == 1)
        assert samples.value("job_controller_job_pods_finished_total", **ended) == 2
        named = {(metric, dict(labels).get("name")): value for (metric, labels), value in samples.values.items()}
        assert named["workqueue_adds_total", "job"] > 0
        assert named["leader_election_master_status", "jobmirror-job-controller"] == 1
        assert samples.value("jobmirror_api_requests_total", cluster="management", verb="create", code="201") > 0
        assert await controller.fetch("/healthz") == (200, "loop: ok alive\n")

        began = time.monotonic()
        await controller.stop()
        assert time.monotonic() - began < SOON_SECONDS
        assert await holder(cluster) == ""


async def test_the_shipped_rights_suffice(cluster: Cluster, scene: Scene) -> None:
    """A service account's token with ``config/rbac/job-controller.yaml`` and nothing else; not one 403."""
    await cluster.kubectl("apply", "-f", str(RIGHTS))
    robot = WithKubeconfig(cluster, await cluster.service_account_kubeconfig("jobmirror-system", "jobmirror"))
    before = len(await cluster.audit_entries())
    try:
        robot.launch()
        await robot.wait_until_ready()
        await scene.create(job("short", ttlSecondsAfterFinished=0), job("stopped", run_for="never"))
        await scene.source_until("stopped", runs())
        await scene.patch("stopped", {"spec": {"suspend": True}})
        await until(lambda: scene.source("short"), lambda found: found is None)
        await told(scene, "stopped", "Suspended")
        await robot.stop()
    finally:
        await robot.close()
    refused = [entry for entry in (await cluster.audit_entries())[before:] if entry.code == 403]
    assert refused == []


async def test_of_two_one_leads_and_the_other_takes_over(cluster: Cluster, scene: Scene) -> None:
    """Standing by is ready; a stopped leader hands over at once."""
    first, second = JobController(cluster), JobController(cluster)
    try:
        first.launch()
        await first.wait_until_ready()
        await until(lambda: first.fetch("/readyz"), lambda found: "leading" in found[1])
        second.launch()
        await second.wait_until_ready()
        assert "standby" in (await second.fetch("/readyz"))[1]

        await first.stop()
        began = time.monotonic()
        await scene.create(job("later"))
        await scene.source_until("later", is_complete)
        print(f"handed over and done after {time.monotonic() - began:.2f} s")
        assert "leading" in (await second.fetch("/readyz"))[1]
        await second.stop()
    finally:
        await first.close()
        await second.close()


async def test_what_an_earlier_controller_left_is_no_fight(cluster: Cluster, scene: Scene) -> None:
    """kube-controller-manager began these Jobs and was ended; ours goes on with them, and stays."""
    names = [f"left-{number}" for number in range(4)]
    async with JobController.start(cluster, Kind.UPSTREAM):
        await scene.create(*(job(name, run_for="8s") for name in names))
        for name in names:
            await scene.source_until(name, runs())
    async with JobController.start(cluster) as ours:
        for name in names:
            await scene.source_until(name, is_complete)
        assert ours.pid
        assert "another controller wrote" not in ours.log


async def test_it_ends_rather_than_fight(binaries: None) -> None:
    """Beside kube-controller-manager's Job controller it stops: exit code 1, and a line that says what to do."""
    async with Cluster.start("fought", replace(WORKER, audit=None)) as cluster:
        scene = Scene(cluster, {HERE: cluster}, f"e2e-{uuid.uuid4().hex[:10]}")
        await scene.make_namespace()
        ours = JobController(cluster)
        try:
            ours.launch()
            await ours.wait_until_ready()
            begun = 0
            async with asyncio.timeout(300):
                while not await ended(ours):
                    await scene.create(*(job(f"both-{begun + number}", run_for="1s") for number in range(3)))
                    begun += 3
            assert await ours.wait_until_ended() == 1
            complaint = ours.log.splitlines()[-1]
            assert complaint.startswith("mirror: kube-controller-manager keeps writing the statuses of jobs")
            assert "--controllers=*,-job-controller" in complaint
            assert await holder(cluster) == ""
        finally:
            await ours.close()
            await scene.close()


async def test_the_manager_runs_jobs_where_it_is_told_to(cluster: Cluster, scene: Scene) -> None:
    """``jobController.enabled``: unmanaged Jobs of the management cluster run beside the mirror, in one process."""
    settings: Json = {"jobController": {"enabled": True, "qps": 0, "batchPeriod": "100ms"}}
    async with ManagerProcess.start(cluster, settings=settings) as manager:
        await scene.create(job("ours"), job("theirs", "example.com/other"))
        await scene.source_until("ours", is_complete)
        finished, external = "job_controller_jobs_finished_total", "job_controller_jobs_by_external_controller_total"
        await until(manager.metrics, lambda found: found.value(finished, result="succeeded") == 1)
        await until(manager.metrics, lambda found: found.value(external, controller_name="example.com/other") == 1)
        assert (await scene.source("theirs") or {}).get("status") == {}
