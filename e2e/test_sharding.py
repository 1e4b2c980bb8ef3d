"""Several active managers on real control planes: each works on its slots, and none runs a Job twice (S1–S7)."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from e2e.commands import Said, administrator_says
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, job, until
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder
from e2e.waves import assert_ran_once, until_over

LEASE_SECONDS = 10
ELECTION = {"leaseDuration": f"{LEASE_SECONDS}s", "renewDeadline": "8s", "retryPeriod": "1s"}
SLOTS = 4


@asynccontextmanager
async def replicas(
    management: ControlPlane, workers: dict[str, ControlPlane], count: int = 3
) -> AsyncIterator[list[ManagerProcess]]:
    """So many managers of one installation, each with the shipped rights."""
    async with AsyncExitStack() as stack:
        started: list[ManagerProcess] = []
        settings: Json = {"leaderElection": ELECTION, "sharding": {"slots": SLOTS}}
        for _ in range(count):
            identity, registered = (started[0].identity, None) if started else (None, workers)
            process = ManagerProcess.start(management, registered, identity=identity, settings=settings)
            started.append(await stack.enter_async_context(process))
        yield started


def ready(said: Said) -> list[Json]:
    """The managers that ``mirror managers`` lists as ready."""
    return [row for row in json.loads(said.output)["items"] if row["state"] == "Ready"]


async def test_a_wave_is_run_once_although_managers_are_killed(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """kill -9 of one after the other, each started again: what it held is taken over, and every Job runs once.

    Afterwards ``mirror managers`` lists the three, one of which assigns, and all slots as held; ``mirror worker list``,
    what the holders say of their workers.
    """
    workers = {"east": east, "west": west}
    names = [f"wave-{number}" for number in range(40)]
    async with (
        replicas(management, workers) as managers,
        Recorder.watching(workers.values(), scene.namespace) as seen,
    ):
        for number, manager in enumerate(managers):
            await scene.create(*(job(name, manager.managed_by, run_for="2s") for name in names[number * 10 :][:10]))
            await manager.kill()
            began = time.monotonic()
            manager.launch()
            await manager.wait_until_ready(is_leading=False)
            print(f"killed and started again: {time.monotonic() - began:.1f} s")
        await scene.create(*(job(name, managers[0].managed_by) for name in names[30:]))
        await assert_ran_once(scene, await until_over(scene, names), seen)

        said = await until(
            lambda: administrator_says(managers[0], "managers", "--output=json"),
            lambda found: len(ready(found)) == len(managers) and "nobody" not in found.errors,
        )
        assert [row["role"] for row in ready(said) if row["role"]] == ["assigns"]
        assert sorted(slot["index"] for row in ready(said) for slot in row["slots"]) == [*range(SLOTS)]
        said = await administrator_says(managers[0], "worker", "list", "--output=json")
        found = [(row["name"], row["state"]) for row in json.loads(said.output)["items"]]
        assert found == [("east", "Connected"), ("west", "Connected")]
