"""The mirror, end to end, with workers whose Jobs our Job controller runs instead of kube-controller-manager's.

The scenes are those of the mirror's own tests (``test_lifecycle``, ``test_deletion``): nothing in them may depend on
who runs Jobs over there. Not here: what a Job controller does beside that, and workers that fail.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.plane import ControlPlane
from e2e.job_controller import CHOSEN, WITHOUT_JOBS, JobController
from e2e.jobs import (
    Scene,
    condition,
    indexed,
    is_complete,
    is_failed,
    is_over,
    is_suspended,
    job,
    placed_on,
    runs,
    uid,
)
from e2e.manager import ManagerProcess
from e2e.test_lifecycle import ENDINGS, active, on, ours, told_by_a_worker
from mirror.model import names

WORKERS = ("north", "south")
TWO_RULES = {
    "rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [41]}},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
}


@dataclass(frozen=True, slots=True)
class Region:
    """Two workers, each with its Job controller."""

    clusters: dict[str, Cluster]
    controllers: dict[str, JobController]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def region(binaries: None) -> AsyncIterator[Region]:
    """Workers of this module, since the shared ones have kube-controller-manager's controller."""
    async with AsyncExitStack() as stack:
        started = await asyncio.gather(
            *(stack.enter_async_context(Cluster.start(name, WITHOUT_JOBS)) for name in WORKERS)
        )
        clusters = dict(zip(WORKERS, started, strict=True))
        controllers = {
            name: await stack.enter_async_context(JobController.start(cluster, CHOSEN))
            for name, cluster in clusters.items()
        }
        yield Region(clusters, controllers)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(management: ControlPlane, region: Region) -> AsyncIterator[ManagerProcess]:
    """A manager that places Jobs there."""
    async with ManagerProcess.start(management, region.clusters) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def scene(management: ControlPlane, region: Region) -> AsyncIterator[Scene]:
    """The Jobs of this test alone: its namespace on all three clusters."""
    one = Scene(management, region.clusters, f"e2e-{uuid.uuid4().hex[:10]}")
    for worker in ("", *WORKERS):
        await one.make_namespace(worker)
    yield one
    await one.remove_namespaces()
    await one.close()


async def test_jobs_of_every_shape_end_as_their_mirrors_do(manager: ManagerProcess, scene: Scene) -> None:
    """Verdict, reason, message, counters, indexes and times come over, whatever the shape (D6, D7)."""
    wanted = {ending.body["metadata"]["name"]: ending for ending in ENDINGS}

    await scene.create(*(ours(ending.body, manager) for ending in ENDINGS))
    ended = await scene.sources_until(wanted, is_over)

    for source, (name, ending) in zip(ended, wanted.items(), strict=True):
        found = condition(source, ending.verdict)
        assert found.get("reason") == ending.reason, source["status"]
        assert ending.message in found["message"]
        assert {key: source["status"].get(key) for key in ending.status} == ending.status
        [(_, mirror)] = (await scene.mirrors(name)).items()
        assert told_by_a_worker(source) == told_by_a_worker(mirror)
        assert "managedBy" not in mirror["spec"]  # else nobody would have run it
    assert {placed_on(source) for source in ended} == set(WORKERS)


async def test_the_name_of_a_failure_policys_rule_arrives_at_the_source(manager: ManagerProcess, scene: Scene) -> None:
    """By the annotation, since servers drop the field; an unnamed rule has its index, other Jobs nothing (D17)."""
    rule_names = {names.RULE_NAMES: json.dumps({"0": "Unused", "1": "OutOfMemory"})}
    unnamed = {names.RULE_NAMES: json.dumps({"0": "Unused"})}
    expected = {
        "named": "PodFailurePolicy_OutOfMemory",
        "by-index": "PodFailurePolicy_1",
        "plain": "PodFailurePolicy",
    }
    policy: Json = {"exit_code": 42, "backoffLimit": 6, "podFailurePolicy": TWO_RULES}
    await scene.create(
        job("named", manager.managed_by, annotations=rule_names, **policy),
        job("by-index", manager.managed_by, annotations=unnamed, **policy),
        job("plain", manager.managed_by, **policy),
    )
    ended = await scene.sources_until(expected, is_failed)

    for source, reason in zip(ended, expected.values(), strict=True):
        for kind in ("FailureTarget", "Failed"):
            assert condition(source, kind)["reason"] == reason
            assert condition(source, kind)["message"].endswith("matching FailJob rule at index 1")


async def test_suspending_and_resuming_reach_the_pods(manager: ManagerProcess, scene: Scene) -> None:
    """Counters survive, pods go and come, the new start is told, and what was changed meanwhile is in them (D3)."""
    await scene.create(
        indexed("paused", manager.managed_by, run_for="never", pods={"exit-code-index-0": "0"}, annotations=on("north"))
    )
    before = await scene.source_until("paused", runs(3))

    await scene.patch("paused", {"spec": {"suspend": True}})
    paused = await scene.source_until("paused", lambda found: is_suspended(found) and not active(found))
    await scene.until_no_pods("north", "paused")
    await scene.source_until("paused", lambda found: not (found or {})["status"].get("terminating"))
    assert condition(paused, "Suspended")["reason"] == "JobSuspended"
    assert paused["status"].get("failed", 0) == 0

    template = {
        "metadata": {"annotations": {"e2e.jobmirror.io/run-for": "300ms"}},
        "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}},
    }
    await scene.patch("paused", {"spec": {"suspend": False, "template": template}})
    ended = await scene.source_until("paused", is_complete)

    [mirror] = (await scene.mirrors("paused")).values()
    assert ended["status"]["completedIndexes"] == "0-2"
    assert ended["status"]["startTime"] >= before["status"]["startTime"]
    assert told_by_a_worker(ended) == told_by_a_worker(mirror)
    for pod in await scene.pods("north", "paused"):
        assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_deleting_a_source_takes_mirror_and_pods_with_it(
    manager: ManagerProcess, scene: Scene, propagation: str
) -> None:
    """No pod keeps a finalizer of a Job that is gone (D10, A12)."""
    await scene.create(job("doomed", manager.managed_by, run_for="never", parallelism=2, completions=2))
    source = await scene.source_until("doomed", runs(2))

    await scene.delete("doomed", propagation=propagation)

    await scene.source_until("doomed", lambda found: found is None)
    await scene.until_no_mirror("doomed")
    await scene.until_no_pods(placed_on(source), "doomed")


async def test_a_namesake_made_at_once_runs_anew(manager: ManagerProcess, scene: Scene) -> None:
    """Nothing of the first Job's counts or backoff is left for the second (Q9)."""
    await scene.create(job("again", manager.managed_by, exit_code=1, backoffLimit=6))
    first = await scene.source_until("again", lambda found: (found or {})["status"].get("failed"))

    await scene.delete("again")
    await scene.source_until("again", lambda found: found is None)
    [second] = await scene.create(job("again", manager.managed_by))
    ended = await scene.source_until("again", is_complete)

    assert uid(first) != uid(second) == uid(ended)
    assert ended["status"].get("failed", 0) == 0


async def test_scaling_an_indexed_job_reaches_its_pods(manager: ManagerProcess, scene: Scene) -> None:
    """Up and down again, in step with the mirror (U3, D9, I2)."""
    await scene.create(indexed("elastic", manager.managed_by, completions=2, run_for="never", annotations=on("south")))
    await scene.source_until("elastic", runs(2))
    await scene.patch("elastic", {"spec": {"completions": 4, "parallelism": 4}})
    await scene.source_until("elastic", runs(4))
    await scene.patch("elastic", {"spec": {"completions": 1, "parallelism": 1}})
    await scene.source_until("elastic", runs(1))


async def test_a_job_controller_that_is_killed_changes_nothing_in_the_end(
    manager: ManagerProcess, scene: Scene, region: Region
) -> None:
    """SIGKILL while Jobs run on both workers: when it is back, each ends as it would have (Q4)."""
    numbers = range(12)
    await scene.create(
        *(indexed(f"wave-{number}", manager.managed_by, completions=3, run_for="400ms") for number in numbers)
    )
    wave = [f"wave-{number}" for number in numbers]
    for controller in region.controllers.values():
        await scene.source_until("wave-0", lambda found: (found or {})["status"].get("startTime"))
        await controller.kill()
        controller.launch()
    for controller in region.controllers.values():
        await controller.wait_until_ready()

    for source in await scene.sources_until(wave, is_complete):
        assert source["status"]["completedIndexes"] == "0-2"
        assert source["status"]["succeeded"] == 3
        assert source["status"].get("failed", 0) == 0
