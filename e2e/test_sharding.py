"""Several active managers on real control planes: each works on its slots, and none runs a Job twice (S1–S7)."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from e2e.commands import Said, administrator_says
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, condition, is_complete, is_over, job, placed_on, runs, until
from e2e.losing import MOVED_SECONDS, until_only_on
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy
from e2e.recorder import Recorder
from e2e.waves import assert_ran_once, until_over
from mirror.sharding.slots import slot_of_worker

LEASE_SECONDS = 10
ELECTION = {"leaseDuration": f"{LEASE_SECONDS}s", "renewDeadline": "8s", "retryPeriod": "1s"}
SLOTS = 4


@asynccontextmanager
async def replicas(
    management: ControlPlane, workers: dict[str, ControlPlane], count: int = 3, *, settings: Json | None = None
) -> AsyncIterator[list[ManagerProcess]]:
    """So many managers of one installation, each with the shipped rights; ``settings``: further sections."""
    async with AsyncExitStack() as stack:
        started: list[ManagerProcess] = []
        all_settings: Json = {"leaderElection": ELECTION, "sharding": {"slots": SLOTS}, **(settings or {})}
        for _ in range(count):
            identity, registered = (started[0].identity, None) if started else (None, workers)
            process = ManagerProcess.start(management, registered, identity=identity, settings=all_settings)
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


async def test_the_number_of_slots_changes_while_jobs_run(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """S9, S10: from none to four and back, with two processes at a time: each copy is made once, and goes on."""
    workers = {"east": east, "west": west}
    names = [f"runs-{number}" for number in range(4)]
    async with (
        AsyncExitStack() as stack,
        Recorder.watching(workers.values(), scene.namespace) as seen,
    ):
        started: list[ManagerProcess] = []
        for slots in (1, SLOTS, 1):
            settings: Json = {"leaderElection": ELECTION, "sharding": {"slots": slots}}
            identity, registered = (started[0].identity, None) if started else (None, workers)
            process = ManagerProcess.start(management, registered, identity=identity, settings=settings)
            started.append(await stack.enter_async_context(process))
            if len(started) > 1:
                await started[-2].stop()
            if len(started) == 1:
                await scene.create(*(job(name, started[0].managed_by, run_for="never") for name in names))
                for name in names:
                    await scene.source_until(name, runs())
            after = f"after-{len(started)}"
            await scene.create(job(after, started[0].managed_by, run_for="2s"))
            names.append(after)
            assert is_complete(await scene.source_until(after, is_over, seconds=CHANGED_SECONDS))
        for name in names[:4]:
            await scene.end_pods(str(placed_on(await scene.source(name))), name)
        await assert_ran_once(scene, await until_over(scene, names), seen)


CHANGED_SECONDS = 150.0
"""A Lease, and the minute after it (S10), and what else there is to do."""


async def managers_that(managers: list[ManagerProcess], role: str = "", *, slot: int | None = None) -> list[int]:
    """The indexes of those that have this role, or hold this slot, as ``mirror managers`` lists them."""
    said = await administrator_says(managers[0], "managers", "--output=json")
    pids = {
        str(row["name"]).split("_")[-2]
        for row in ready(said)
        if (role and row["role"] == role) or slot in [one["index"] for one in row["slots"]]
    }
    return [number for number, manager in enumerate(managers) if str(manager.pid) in pids]


async def test_jobs_of_a_lost_worker_move_although_managers_are_killed(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """D14, S8: kill -9 of who holds the slot of the lost worker, and then of who assigns; what is to move does so once.

    The copies go when the worker is back, and what stays goes on there.
    """
    async with (
        Proxy.before(east) as proxy,
        replicas(management, {"west": west}, settings={"workers": {"lostAfter": "5s"}}) as managers,
    ):
        await managers[0].register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await until(managers[0].metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        moving = [f"moves-{number}" for number in range(4)]
        bodies = [job(name, managers[0].managed_by, run_for="never", annotations=MOVES) for name in moving]
        stays = job("stays", managers[0].managed_by, run_for="never", annotations={"worker-order": "east"})
        await scene.create(stays, *bodies)
        for name in ("stays", *moving):
            assert placed_on(await scene.source_until(name, runs())) == "east"
        await managers[0].annotate_worker("west", {"cordoned": "true"})
        proxy.refuse()
        for name in moving:
            await scene.source_until(name, is_requested, seconds=MOVED_SECONDS)
        for one in (
            await managers_that(managers, slot=slot_of_worker("east", SLOTS).index),
            await managers_that(managers, "assigns"),
        ):
            assert len(one) == 1
            await managers[one[0]].kill()
            managers[one[0]].launch()
            await managers[one[0]].wait_until_ready(is_leading=False)
        await managers[0].annotate_worker("west", {"cordoned": None})
        for name in moving:
            moved = await scene.source_until(name, lambda found: placed_on(found) == "west", seconds=MOVED_SECONDS)
            text = condition(moved, "jobmirror.io/Moved")["message"]
            assert text.startswith("move 1, from east to west; left behind: east (uid ")
            await scene.source_until(name, runs())
        assert placed_on(await scene.source("stays")) == "east"
        await proxy.resume()
        for name in moving:
            await until_only_on(scene, "west", name)
            await scene.end_pods("west", name)
            assert is_complete(await scene.source_until(name, is_over))
        await until_only_on(scene, "east", "stays")
        await scene.end_pods("east", "stays")
        assert is_complete(await scene.source_until("stays", is_over))


MOVES = {"worker-order": "east", "on-worker-loss": "Reschedule"}


def is_requested(found: Json | None) -> bool:
    """Whether the holder of its worker's slot requests another one."""
    return "MoveWanted" in condition(found, "jobmirror.io/Placed").get("reason", "")
