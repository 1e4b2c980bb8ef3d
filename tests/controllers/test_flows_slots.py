"""Two slots, an instance of mirroring for each: whole flows over the shares of two replicas (S1, S2, S7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from doubles.jobs import Body, job
from doubles.managers import HOME
from doubles.world import RunningManager, World, manager_of

from mirror.model import names
from mirror.sharding.share import Share
from mirror.sharding.slots import Slot, slot_of_worker
from mirror.workers.inventory import FORMER

pytestmark = pytest.mark.looptime

EAST, NORTH = slot_of_worker("east", 2), slot_of_worker("north", 2)


@asynccontextmanager
async def slot_of(world: World, slot: Slot) -> AsyncIterator[RunningManager]:
    """What whoever holds a slot runs."""
    async with manager_of(world, share=Share(slot)) as manager:
        yield manager


def world_of_two() -> World:
    world = World()
    for name in ("east", "north"):
        world.add_worker(name)
    return world


def record(world: World, name: str, worker: str | None) -> None:
    """As whoever assigns workers does."""
    status, message = ("True", worker) if worker else ("False", "")
    condition = {"type": names.PLACED, "status": status, "reason": "Placed", "message": message}

    def change(body: Body) -> None:
        body["status"] = {"conditions": [condition]}

    world.edit(change, name)


def test_the_workers_of_these_tests_are_in_two_slots() -> None:
    assert EAST != NORTH


async def test_each_has_the_workers_of_its_slot_and_what_is_placed_on_them() -> None:
    """S1, S2: and no other; what is not placed is nobody's here."""
    world = world_of_two()
    async with slot_of(world, EAST) as east, slot_of(world, NORTH) as north:
        await asyncio.sleep(5)
        assert set(east.registry.workers) == {"east"}
        assert set(north.registry.workers) == {"north"}
        assert set(world.record()) == {"east", "north"}
        for name in ("one", "two", "three"):
            world.create(job(name))
        await asyncio.sleep(30)
        assert [len(manager.mirroring.sources) for manager in (east, north)] == [0, 0]
        assert [world.mirrors(name) for name in ("one", "two", "three")] == [[], [], []]
        record(world, "one", "east")
        record(world, "two", "north")
        await asyncio.sleep(2)
        assert [world.mirrors(name) for name in ("one", "two", "three")] == [["east"], ["north"], []]
        assert [len(manager.mirroring.sources) for manager in (east, north)] == [1, 1]
        assert {wire.server.name: wire.writes() != [] for wire in world.workers.values()} == {
            "east": True,
            "north": True,
        }


async def test_a_job_is_run_to_its_end_and_deleted_by_whoever_holds_its_slot() -> None:
    world = world_of_two()
    async with slot_of(world, EAST), slot_of(world, NORTH):
        world.create(job("train"))
        await asyncio.sleep(2)
        record(world, "train", "north")
        await asyncio.sleep(2)
        controller = world.controller("north")
        controller.start("train")
        await asyncio.sleep(2)
        assert world.source("train")["status"]["active"] == 1
        controller.complete("train")
        await asyncio.sleep(2)
        assert "Complete" in world.conditions("train")
        world.delete("train")
        await asyncio.sleep(30)
        assert world.mirrors("train") == []


async def test_who_takes_a_slot_over_goes_on() -> None:
    """S7: nothing is made twice, nothing is deleted; what was placed meanwhile is made."""
    world = world_of_two()
    async with slot_of(world, NORTH):
        async with slot_of(world, EAST):
            world.create(job("train"))
            record(world, "train", "east")
            await asyncio.sleep(5)
            uid = (world.mirror("east", "train") or {})["metadata"]["uid"]
        world.create(job("meanwhile"))
        record(world, "meanwhile", "east")
        await asyncio.sleep(60)
        assert world.mirrors("meanwhile") == []
        async with slot_of(world, EAST):
            await asyncio.sleep(120)
            assert (world.mirror("east", "train") or {})["metadata"]["uid"] == uid
            assert world.mirrors("train") == world.mirrors("meanwhile") == ["east"]


async def test_a_source_that_is_placed_in_another_slot_loses_its_mirror_here() -> None:
    """Somebody has written it so; its holder asks the API server before it deletes what may be the only one."""
    world = world_of_two()
    async with slot_of(world, EAST), slot_of(world, NORTH):
        world.create(job("train"))
        record(world, "train", "east")
        await asyncio.sleep(5)
        assert world.mirrors("train") == ["east"]
        record(world, "train", "north")
        await asyncio.sleep(300)
        assert world.mirrors("train") == ["north"]


async def test_a_cluster_is_a_worker_of_one_slot_alone() -> None:
    """D19: else each would delete what the other has made there, as its source is placed elsewhere."""
    world = World()
    world.add_cluster("east")
    world.register("east")
    async with slot_of(world, EAST) as east:
        world.create(job("train"))
        await asyncio.sleep(2)
        record(world, "train", "east")
        await asyncio.sleep(5)
        world.register("north", leads_to="east")
        async with slot_of(world, NORTH) as north:
            await asyncio.sleep(120)
            assert east.registry.workers["east"].is_reachable
            assert not north.registry.workers["north"].is_reachable
            assert "registered already, as worker east" in north.registry.workers["north"].connection.because
            assert world.mirrors("train") == ["east"]
        async with slot_of(world, NORTH) as north:
            await asyncio.sleep(60)
            assert not north.registry.workers["north"].is_reachable


async def test_of_two_slots_that_meet_a_cluster_at_once_none_deletes_what_the_other_has() -> None:
    """D19: at most one of them has it."""
    world = World()
    world.add_cluster("both")
    for name in ("east", "north"):
        world.register(name, leads_to="both")
    async with slot_of(world, EAST) as east, slot_of(world, NORTH) as north:
        for _ in range(100):
            await asyncio.sleep(1)
            reached = [one for one in (east, north) if any(w.is_reachable for w in one.registry.workers.values())]
            assert len(reached) <= 1
        assert len(reached) == 1


async def test_a_cluster_whose_worker_went_while_nobody_led_is_one_of_another_slot() -> None:
    """D15, D19: what the record has of its old name is dropped by who holds the slot of that."""
    world = world_of_two()
    name = next(one for one in ("west", "south", "up", "down") if slot_of_worker(one, 2) == NORTH)
    async with slot_of(world, EAST), slot_of(world, NORTH):
        await asyncio.sleep(5)
        assert set(world.record()) == {"east", "north"}
    world.management.server.remove("secrets", "east", HOME)
    world.register(name, leads_to="east")
    async with slot_of(world, EAST), slot_of(world, NORTH) as north:
        await asyncio.sleep(1500)
        assert north.registry.workers[name].is_reachable
        assert {one for one in world.record() if not one.startswith(FORMER)} == {"north", name}
