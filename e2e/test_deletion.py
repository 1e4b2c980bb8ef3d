"""Where a source goes, its mirror and its pods go, at once and without a finalizer of ours (D1, D4, D10)."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from e2e.controlplane.plane import ControlPlane
from e2e.jobs import (
    Scene,
    is_complete,
    job,
    placed_on,
    runs,
    uid,
    until,
)
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder

OURS = "jobmirror.io/"
EXPECTATIONS_SECONDS = 300.0
"""So long kube-controller-manager 1.36 waits for a pod that it has created and seen, where the Job's namesake came
before the pod's event: ``addPod`` resolves the owner by name, finds another uid and counts nothing. Then it waits for a
change of the Job: the manager makes one (D30)."""


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_deleting_a_running_job_ends_it_on_the_worker(
    propagation: str, shared_manager: ManagerProcess, scene: Scene
) -> None:
    """However the user deletes: nothing keeps running there (D10)."""
    await scene.create(job("doomed", shared_manager.managed_by, run_for="never", parallelism=2, completions=2))
    source = await scene.source_until("doomed", runs(2))
    worker = placed_on(source)
    assert not source["metadata"].get("finalizers")

    await scene.delete("doomed", propagation=propagation)

    await scene.source_until("doomed", lambda found: found is None)
    await scene.mirror_until(worker, "doomed", lambda found: found is None)
    await scene.until_no_pods(worker, "doomed")


@pytest.mark.timeout(600)
async def test_a_namesake_created_at_once_runs_after_the_old_mirror_has_gone(
    shared_manager: ManagerProcess, scene: Scene, east: ControlPlane, west: ControlPlane
) -> None:
    """Delete and create with no pause, three times over: no Job has two mirrors, the last runs once (D1, D2)."""
    names = [f"again-{number}" for number in range(3)]
    async with Recorder.watching((east, west), scene.namespace) as recorder:
        await scene.create(*(job(name, shared_manager.managed_by, run_for="never") for name in names))
        await scene.sources_until(names, runs())
        for run_for in ("never", "never", "300ms"):
            await asyncio.gather(*(scene.delete(name) for name in names))
            created = await scene.create(*(job(name, shared_manager.managed_by, run_for=run_for) for name in names))
        ended = await scene.sources_until(names, is_complete, seconds=EXPECTATIONS_SECONDS + 120)

    assert all(len(mirrors) == 1 for mirrors in recorder.by_source().values())
    assert {uid(found) for found in ended} <= recorder.by_source().keys()
    assert [uid(found) for found in created] == [uid(found) for found in ended]
    for source in ended:
        name = source["metadata"]["name"]
        [(worker, mirror)] = (await scene.mirrors(name)).items()
        assert mirror["metadata"]["labels"][f"{OURS}source-uid"] == uid(source)
        assert placed_on(source) == worker
        assert source["status"]["succeeded"] == 1
        # Those of the mirrors before it may still be on their way out.
        await until(partial(pods_anywhere, scene, name), lambda pods: len(pods) == 1)


async def pods_anywhere(scene: Scene, name: str) -> set[str]:
    """The names of a Job's pods on all workers."""
    return {pod["metadata"]["name"] for there in scene.workers for pod in await scene.pods(there, name)}


async def test_a_ttl_on_the_source_deletes_it_and_then_its_mirror(shared_manager: ManagerProcess, scene: Scene) -> None:
    """The management cluster's TTL decides; the worker's would lose results (D4)."""
    # Looked for from the start: its end lasts but a second.
    ending = scene.source_until("short-lived", is_complete)
    body = job("short-lived", shared_manager.managed_by, ttlSecondsAfterFinished=1)
    source, _ = await asyncio.gather(ending, scene.create(body))

    await scene.source_until("short-lived", lambda found: found is None)
    await scene.until_no_mirror("short-lived")
    await scene.until_no_pods(placed_on(source), "short-lived")
