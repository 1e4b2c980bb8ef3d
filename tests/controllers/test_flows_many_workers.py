"""What is done for one Job, or for one worker, costs the same with ten workers and with three hundred; and what is done
for all of them is done some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from doubles.candidates import candidate_for
from doubles.counting import Count, Turns, as_the_managers
from doubles.jobs import job
from doubles.known import check_known
from doubles.world import RunningManager, World, manager_of

from mirror.runtime.slices import SLICE
from mirror.workers.known_workers import CHECK_WEIGHT
from mirror.workers.worker import HEARTBEAT_SECONDS, Worker

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

FEW, MANY = 10, 300
WARM_SECONDS = 3.5 * HEARTBEAT_SECONDS
"""All workers are connected by then, and between two heartbeats."""
STEP_SECONDS = 0.5


def world_of(workers: int) -> World:
    world = World()
    for number in range(workers):
        world.add_worker(f"worker-{number:03d}")
    return world


@asynccontextmanager
async def managed(workers: int) -> AsyncIterator[tuple[World, RunningManager]]:
    """A manager at rest that has so many workers."""
    world = world_of(workers)
    with as_the_managers():
        running = manager_of(world)
        manager = await running.__aenter__()
    try:
        await asyncio.sleep(WARM_SECONDS)
        yield world, manager
    finally:
        await running.__aexit__(None, None, None)


async def live(world: World, name: str) -> None:
    """A Job's whole life."""
    world.create(job(name))
    await asyncio.sleep(STEP_SECONDS)
    (worker,) = world.mirrors(name)
    world.controller(worker).start(name)
    await asyncio.sleep(STEP_SECONDS)
    world.controller(worker).complete(name)
    await asyncio.sleep(STEP_SECONDS)
    world.delete(name)
    await asyncio.sleep(STEP_SECONDS)
    assert world.mirrors(name) == []


async def cost_of_a_job(workers: int) -> int:
    """In bytecodes, where nothing else is done."""
    async with managed(workers) as (world, manager):
        await live(world, "first")
        count = Count()
        count.start()
        await live(world, "second")
        count.stop()
        check_known(manager.registry)
        return count.bytecodes.total()


async def test_a_job_costs_the_same() -> None:
    """It is created, mirrored, runs, ends and is deleted; only what sorts workers costs a little more."""
    few, many = await cost_of_a_job(FEW), await cost_of_a_job(MANY)
    assert many < 1.02 * few


async def cost_of_a_heartbeat(workers: int) -> float:
    """In bytecodes, with all else that is done of each worker while nothing happens."""
    async with managed(workers):
        count = Count()
        count.start()
        await asyncio.sleep(HEARTBEAT_SECONDS)
        count.stop()
        return count.bytecodes.total() / workers


async def test_a_heartbeat_costs_the_same() -> None:
    """Whether another worker is the same cluster (D19) is known without a look at all of them."""
    few, many = await cost_of_a_heartbeat(FEW), await cost_of_a_heartbeat(MANY)
    assert many < 1.02 * few


async def test_a_takeover_begins_with_some_workers_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists and probes of all of them would hold up the event loop; and nobody of them counts before its own."""
    world, turns, check_again, unreachable = world_of(MANY), Turns(), Worker.check_again, list[int]()
    async with candidate_for(world) as standby:
        await asyncio.sleep(WARM_SECONDS)
        workers = standby.registry.workers
        assert not workers.unreachable

        def noted(worker: Worker) -> None:
            unreachable.append(len(workers.unreachable))
            check_again(worker)

        monkeypatch.setattr(Worker, "check_again", noted)
        turns.count(Worker, "check_again")
        await standby.registry.lead()
        assert unreachable[0] == MANY, "those too whose turn is still to come"
        assert len(unreachable) == MANY
        assert turns.most["check_again"] <= SLICE // CHECK_WEIGHT
        await asyncio.sleep(WARM_SECONDS)
        assert not workers.unreachable
        check_known(standby.registry)


async def test_who_goes_leaves_nothing() -> None:
    """Of a worker that is registered no more nothing is found, whatever is on its cluster."""
    world = world_of(3)
    async with manager_of(world) as manager:
        world.create(job("train"))
        await manager.settle(2)
        (worker,) = world.mirrors("train")
        assert [one.name for one in held(manager)] == [worker]
        world.controller(worker).start("train")
        world.controller(worker).complete("train")
        await manager.settle(2)
        world.management.server.remove("secrets", worker, "jobmirror-system")
        await manager.settle(200)
        assert worker not in manager.registry.workers
        assert held(manager) == []
        check_known(manager.registry)


def held(manager: RunningManager) -> list[Worker]:
    """The workers that have something of the Job."""
    registry = manager.registry
    kind = manager.mirroring.sources.kinds["Job"]
    names = registry.workers.holders[kind.name].of(("default", "train"))
    return [registry.workers[name] for name in names]
