"""Drains and losers with Job controllers that are real: what they make of a suspension decides (D2, D14, D15)."""

from __future__ import annotations

import asyncio

import pytest
from doubles.managers import conditions, placed
from flow_world import MANAGER, SIMULATED, FlowWorld, flow_world, job, path

from mirror.decide.snapshot import Policy
from mirror.embedded.faults.kinds import Slow
from mirror.embedded.faults.targets import Which
from mirror.model import names

pytestmark = pytest.mark.looptime

PODS = "/api/v1/namespaces/default/pods"


async def run_on_east(world: FlowWorld, body: object) -> None:
    """It is placed there, and then west takes Jobs as well."""
    await world.register("west", cordoned="true")
    await asyncio.sleep(1)
    await world.management.api.create(path(""), body)
    await asyncio.sleep(10)
    assert placed(await world.source()) == "east"


async def work_queue_with_a_success(world: FlowWorld) -> None:
    """Two of three pods run, and are to go on."""
    annotations = {names.ON_WORKER_LOSS: "Reschedule"}
    await run_on_east(world, job("train", run_for="3000s", parallelism=3, annotations=annotations))
    api = world.workers["east"].api
    name = (await api.list(PODS))[0]["metadata"]["name"]
    await api.merge(f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})
    await asyncio.sleep(10)
    await world.register("west")
    await asyncio.sleep(1)
    status = (await world.source())["status"]
    assert (status["succeeded"], status["active"]) == (1, 2)


async def pods_that_run(world: FlowWorld, worker: str) -> int:
    found = await world.workers[worker].api.list(PODS)
    return sum((one.get("status") or {}).get("phase") in ("Pending", "Running") for one in found)


async def test_a_work_queue_is_not_ended_by_a_drain() -> None:
    """It would be complete: one pod has succeeded, and none runs once it is suspended."""
    async with flow_world("east", "west") as world:
        await work_queue_with_a_success(world)
        await world.register("east", drain="move-started")
        await asyncio.sleep(60)
        source = await world.source()
        assert (placed(source), source["status"]["active"]) == ("east", 2)
        assert "Complete" not in conditions(source)


async def test_a_work_queue_that_was_left_does_not_win_by_being_suspended() -> None:
    """The copy on the worker that is back is deleted although losers are to be kept."""
    async with flow_world("east", "west", suspends_losers=True) as world:
        await asyncio.sleep(61)
        await work_queue_with_a_success(world)
        world.workers["east"].faults.go_down(MANAGER)
        await asyncio.sleep(75)
        assert placed(await world.source()) == "west"
        world.workers["east"].faults.restore()
        await asyncio.sleep(25)
        source = await world.source()
        assert (placed(source), await world.mirrors()) == ("west", ["west"])
        assert "Complete" not in conditions(source)


@pytest.mark.parametrize("pause", [0.5, 4.2])
async def test_what_is_drained_right_after_it_was_resumed_never_runs_twice(pause: float) -> None:
    """Its controller makes pods, one in two seconds, while its status says Suspended of before."""
    async with flow_world("east", "west", policy=Policy(seed_progress=True)) as world:
        body = job("train", run_for="3000s", parallelism=4, completions=4, completionMode="Indexed")
        body["spec"]["template"]["metadata"]["annotations"][f"{SIMULATED}stop-after"] = "20s"
        await run_on_east(world, body)
        await world.change("train", {"spec": {"suspend": True}})
        await asyncio.sleep(60)
        await world.register("west")
        assert await pods_that_run(world, "east") == 0
        world.workers["east"].faults.arrange(Slow(1.5), Which("create", "pods"), times=1_000)
        await world.change("train", {"spec": {"suspend": False}})
        await asyncio.sleep(pause)
        await world.register("east", drain="move-started")
        for _ in range(600):
            await asyncio.sleep(0.1)
            assert not (await pods_that_run(world, "east") and await pods_that_run(world, "west"))
        assert placed(await world.source()) == "west"
        assert await pods_that_run(world, "west") == 4
