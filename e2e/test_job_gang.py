"""Gang scheduling (gate ``WorkloadWithJob``) on real API servers: with its API, without it, and as the gate changes.

Each test holds for upstream's Job controller, too. What either writes is compared in ``job_scenarios.groups.gang``.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import pytest_asyncio

from e2e.controlplane.client import Client, Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.job_controller import GANG_GATES, WITHOUT_JOBS, Flags, JobController, Kind, with_gangs
from e2e.jobs import Scene, indexed, is_complete, job, runs, until
from mirror.kube.resources import POD_GROUPS, WORKLOADS, Resource

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]

HERE = "here"
QUICK = {"JOB_BATCH_PERIOD_SECONDS": "0.1", "JOB_POD_FAILURE_BACKOFF_SECONDS": "0.1"}
ON, OFF = Flags(gates=GANG_GATES, constants=QUICK), Flags(constants=QUICK)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(binaries: None) -> AsyncIterator[Cluster]:
    """Its API server has Workloads and PodGroups, its scheduler heeds them; tests start a Job controller."""
    async with Cluster.start("gangs", with_gangs(WITHOUT_JOBS)) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def scene(cluster: Cluster) -> AsyncIterator[Scene]:
    """The Jobs of this test alone."""
    async with scene_on(cluster) as one:
        yield one


@asynccontextmanager
async def scene_on(cluster: Cluster) -> AsyncIterator[Scene]:
    scene = Scene(cluster, {HERE: cluster}, f"e2e-{uuid.uuid4().hex[:10]}")
    await scene.make_namespace()
    try:
        yield scene
    finally:
        await scene.remove_namespaces()
        await scene.close()


@pytest.mark.parametrize("kind", Kind)
async def test_a_gang_runs_under_a_scheduler_that_knows_gangs(cluster: Cluster, scene: Scene, kind: Kind) -> None:
    """One Workload, one PodGroup, which every pod names; both go with the Job."""
    async with JobController.start(cluster, kind, ON):
        await scene.create(indexed("gang", run_for="never"))
        await scene.source_until("gang", runs(3))
        (workload,), (group,) = await found(scene, WORKLOADS), await found(scene, POD_GROUPS)
        assert {one["kind"] for one in group["metadata"]["ownerReferences"]} == {"Job", "Workload"}
        assert group["spec"]["podGroupTemplateRef"]["workload"]["workloadName"] == workload["metadata"]["name"]
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        assert await groups_of_pods(scene, "gang") == [group["metadata"]["name"]] * 3
        await scene.end_pods(HERE, "gang")
        await scene.source_until("gang", is_complete)
        await scene.delete("gang")
        await until(lambda: found(scene, WORKLOADS), lambda left: not left)
        await until(lambda: found(scene, POD_GROUPS), lambda left: not left)


@pytest.mark.parametrize("kind", Kind)
async def test_a_gang_that_does_not_fit_waits_as_a_whole(cluster: Cluster, scene: Scene, kind: Kind) -> None:
    """None of its pods is bound, though there is room for some of them."""
    huge, alone = indexed("huge", completions=3, run_for="never"), job("fits", run_for="never")
    for body in (huge, alone):
        (container,) = body["spec"]["template"]["spec"]["containers"]
        container["resources"] = {"requests": {"cpu": "40000"}}  # of 100,000
    async with JobController.start(cluster, kind, ON):
        await scene.create(huge)
        await until(lambda: groups_of_pods(scene, "huge"), lambda groups: len(groups) == 3)
        await scene.create(alone)
        await scene.source_until("fits", runs(1))
        assert [pod["spec"].get("nodeName") for pod in await scene.pods(HERE, "huge")] == [None] * 3


@pytest.mark.parametrize("kind", Kind)
async def test_jobs_keep_what_they_began_with_as_the_gate_changes(cluster: Cluster, scene: Scene, kind: Kind) -> None:
    """On: a Job that ran without stays without. Off: new pods of a gang belong to no group; on again, to the same."""
    async with JobController.start(cluster, kind, OFF):
        await scene.create(indexed("before", run_for="never", backoffLimit=9))
        await scene.source_until("before", runs(3))
    async with JobController.start(cluster, kind, ON):
        await scene.create(indexed("gang", run_for="never", backoffLimit=9))
        await scene.source_until("gang", runs(3))
        await replace_pod(scene, "before")
        assert await groups_of_pods(scene, "before") == [""] * 3
    (group,) = await found(scene, POD_GROUPS)
    name = group["metadata"]["name"]
    async with JobController.start(cluster, kind, OFF):
        await replace_pod(scene, "gang")
        assert await groups_of_pods(scene, "gang") == ["", name, name]
    async with JobController.start(cluster, kind, ON):
        await replace_pod(scene, "gang", lacking="schedulingGroup")
        assert await groups_of_pods(scene, "gang") == [name] * 3
    assert len(await found(scene, WORKLOADS)) == len(await found(scene, POD_GROUPS)) == 1


@pytest.mark.parametrize("kind", Kind)
async def test_without_the_api_no_job_is_run(binaries: None, kind: Kind) -> None:
    """The caches are never complete. Ours is not ready and says why; upstream's says that it cannot list."""
    async with Cluster.start("plain", BARE) as plain, scene_on(plain) as scene:
        controller = JobController(plain, kind, ON)
        try:
            controller.launch()
            await scene.create(job("waits"))
            if kind is Kind.OURS:
                for plural in ("workloads", "podgroups"):
                    await until(partial(said, controller, f"does not serve {plural} of scheduling.k8s.io/v1alpha2"))
                code, text = await controller.fetch("/readyz")
                assert code == 503
                assert "--runtime-config=scheduling.k8s.io/v1alpha2=true" in text
            else:
                await until(partial(said, controller, "failed to list *v1alpha2.Workload"))
            assert (await scene.source("waits") or {}).get("status") == {}
        finally:
            await controller.close()


async def said(controller: JobController, text: str) -> bool:
    return text in controller.log


async def found(scene: Scene, resource: Resource) -> list[Json]:
    return await client(scene).list(resource.path(scene.namespace))


async def groups_of_pods(scene: Scene, name: str) -> list[str]:
    """The PodGroups that the live pods of a Job name, sorted; empty for a pod that names none."""
    pods = [pod for pod in await scene.pods(HERE, name) if "deletionTimestamp" not in pod["metadata"]]
    return sorted(pod["spec"].get("schedulingGroup", {}).get("podGroupName", "") for pod in pods)


async def replace_pod(scene: Scene, name: str, *, lacking: str = "") -> None:
    """Delete a pod of a Job, one that lacks this field of its spec if one is given, and wait for another."""
    pods = await scene.pods(HERE, name)
    gone = next(pod["metadata"] for pod in pods if not lacking or lacking not in pod["spec"])
    await client(scene).delete(f"/api/v1/namespaces/{scene.namespace}/pods/{gone['name']}")

    async def others() -> list[str]:
        left = await scene.pods(HERE, name)
        return [pod["metadata"]["uid"] for pod in left if "deletionTimestamp" not in pod["metadata"]]

    await until(others, lambda uids: len(uids) == 3 and gone["uid"] not in uids)


def client(scene: Scene) -> Client:
    return scene.client_of(HERE)
