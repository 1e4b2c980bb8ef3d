"""The manager itself dies, at any moment, and starts again: nothing runs twice, nothing is written for it (D2, D5)."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter

import pytest

from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import SOON_SECONDS, Scene, annotation, is_complete, is_suspended, job, runs
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder
from e2e.shipped import user_of
from e2e.waves import assert_ran_once, mirrored_events, until_over, until_sources

KILLS = 8
ALONE = {"leaderElection": {"enabled": False}}
READS = ("get", "list", "watch")
QUIET_SECONDS = 2.0


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_manager_that_is_killed_again_and_again_runs_each_job_once(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene, seed: int
) -> None:
    """SIGKILL at any moment of a wave: each Job ends well, and in its whole life had one mirror on one worker."""
    chance = random.Random(seed)
    names = [f"wave-{number}" for number in range(64)]
    workers = {"east": east, "west": west}
    async with (
        ManagerProcess.start(management, workers, settings=ALONE) as manager,
        Recorder.watching(workers.values(), scene.namespace) as recorder,
    ):

        async def come_in() -> None:
            for name in names:
                await scene.create(job(name, manager.managed_by, run_for=f"{chance.randrange(100, 1500)}ms"))
                await asyncio.sleep(0.1)  # the wave's own pace, so that there is something new at each moment

        async with asyncio.TaskGroup() as scope:
            scope.create_task(come_in(), name="wave")
            for _ in range(KILLS):
                await asyncio.sleep(chance.uniform(0.0, 0.8))  # the moment
                await manager.kill()
                manager.launch()
                await manager.wait_until_ready()

        ended = await until_over(scene, names)
        await assert_ran_once(scene, ended, recorder)
        assert set(recorder.most_at_once.values()) == {1}
        await manager.stop()  # what is still to be told is told; for some it may have died with a manager
        assert set((await mirrored_events(scene)).values()) <= {1}


async def test_a_manager_that_is_told_to_stop_in_a_wave_ends_cleanly_and_soon(
    manager: ManagerProcess, scene: Scene
) -> None:
    """Whatever is under way is ended or left: exit code 0 within seconds, no task or file forgotten, no Job lost."""
    names = [f"wave-{number}" for number in range(60)]
    await scene.create(*(job(name, manager.managed_by) for name in names))
    await scene.event("wave-0", "Mirrored")

    began = time.monotonic()
    await manager.stop()  # looks at the exit code and at the log
    took = time.monotonic() - began
    manager.launch()
    ended = await until_over(scene, names)
    await manager.wait_until_ready()  # all may have ended before; who starts cannot be told to stop yet

    print(f"stopped in {took:.2f} s")
    assert took < SOON_SECONDS
    assert all(map(is_complete, ended.values()))


async def test_a_restart_among_running_jobs_writes_nothing(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """What is right already is left alone: no Job, event or Secret is written on any cluster because we started."""
    running, done = [f"runs-{number}" for number in range(40)], [f"done-{number}" for number in range(5)]
    planes = {"management": management, "east": east, "west": west}
    async with ManagerProcess.start(management, {"east": east, "west": west}) as manager:
        ours = manager.managed_by
        await scene.create(*(job(name, ours, run_for="never") for name in running), *(job(name, ours) for name in done))
        await scene.create(
            job("held", ours, suspend=True), job("nowhere", ours, annotations={"worker-selector": "name=north"})
        )
        await until_sources(scene, running, runs())
        await until_sources(scene, done, is_complete)
        await until_sources(scene, ["held"], is_suspended)
        await until_sources(scene, ["nowhere"], lambda found: annotation(found, "waiting-because"))

        await manager.stop()
        before = {name: len(await plane.audit_entries()) for name, plane in planes.items()}
        await manager.restart()
        await asyncio.sleep(QUIET_SECONDS)  # nothing announces that nothing happens

        for name, plane in planes.items():
            entries = (await plane.audit_entries())[before[name] :]
            written = Counter(described(entry) for entry in entries if is_write_of(manager, entry))
            assert not written, name


def is_write_of(manager: ManagerProcess, entry: AuditEntry) -> bool:
    """Whether this manager, and not the one of other tests, changed something that matters to others than itself."""
    is_own = entry.resource in ("leases", "configmaps")
    is_own = is_own or entry.name == "jobmirror-start"  # a dry run: it is not stored
    return entry.user == user_of(manager.namespace) and entry.verb not in READS and not is_own


def described(entry: AuditEntry) -> str:
    """One line for a failure's message."""
    return f"{entry.verb} {entry.resource}/{entry.subresource} {entry.name}"
