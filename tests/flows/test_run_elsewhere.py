"""Sources that a controller on the management cluster runs, too: noticed and told, and no more are placed (D1, D20)."""

from __future__ import annotations

import asyncio

import pytest
from declared_world import PATH, DeclaredWorld, in_world, runs, stored, texts, told
from doubles.drills import drill
from flow_world import FlowWorld
from slot_world import SlotWorld

from mirror.model import names

pytestmark = pytest.mark.slow

WORKERS = ("east", "west")


async def where(world: FlowWorld, name: str = "train") -> list[str]:
    """The workers that have it."""
    return [worker for worker in WORKERS if await stored(world, worker, name) is not None]


class SharedWorld(DeclaredWorld, SlotWorld):
    """Whose managers know Drills, and share the workers."""


async def fight_over_one(world: FlowWorld) -> None:
    """A mirrored one runs, whose status a controller on the management cluster writes, too, until that is said."""
    body = drill()
    body["spec"]["rounds"] = 100_000
    await world.management.api.create(PATH, body)
    await world.until(lambda: runs(world))
    for number in range(6):
        conditions = (await stored(world) or {})["status"]["conditions"]
        written = {"status": {"rounds": 500 + number, "conditions": conditions}}
        await world.management.api.merge(f"{PATH}/train/status", written)
        await asyncio.sleep(1)
    assert "StatusConflict" in await world.events()


async def create_one_that_waits(world: FlowWorld) -> None:
    """It is placed nowhere, and says why."""
    await world.management.api.create(PATH, drill("other"))

    async def is_said() -> bool:
        found = await stored(world, name="other")
        listed = ((found or {}).get("status") or {}).get("conditions") or ()
        return any(one["reason"] == "KindRunsHere" for one in listed if one["type"] == names.PLACED)

    await world.until(is_said)
    assert await where(world, "other") == []


async def let_it_go(world: FlowWorld) -> None:
    """Nothing is fought over any more: after a while the other one is placed, and runs."""
    await world.management.api.delete(f"{PATH}/train")

    async def other_is_over() -> bool:
        return "Succeeded" in told(await stored(world, name="other"))

    await world.until(other_is_over, seconds=800)


@in_world(DeclaredWorld)
async def test_a_kind_that_a_controller_runs_here_is_placed_no_more(world: FlowWorld) -> None:
    """As Trainer before 2.3 does: the one that it writes is left alone, others wait and say what is to be done."""
    await fight_over_one(world)
    await create_one_that_waits(world)
    (text, *_) = await texts(world, "KindRunsHere")
    assert "a controller on the management cluster writes statuses of Drills" in text
    assert "spec.run.managedBy" in text
    await let_it_go(world)


@in_world(DeclaredWorld)
async def test_who_leads_next_places_no_more_of_it_either(world: FlowWorld) -> None:
    """What the one before has seen is in the record of workers: nothing need run twice for it to be seen again."""
    await fight_over_one(world)
    await world.kill_manager()
    world.start_manager()
    await create_one_that_waits(world)
    await let_it_go(world)


@in_world(SharedWorld)
async def test_who_assigns_places_no_more_of_it_either(world: FlowWorld) -> None:
    """Who follows the one that is fought over sees that, and may be another than who assigns."""
    await fight_over_one(world)
    await create_one_that_waits(world)
    await let_it_go(world)


@in_world(DeclaredWorld)
async def test_one_that_names_somebody_else_now_loses_its_mirror(world: FlowWorld) -> None:
    """As an MPIJob does whose managedBy is changed: the operator here runs it at once."""
    body = drill()
    body["spec"]["rounds"] = 100_000
    await world.management.api.create(PATH, body)
    await world.until(lambda: runs(world))
    await world.management.api.merge(f"{PATH}/train", {"spec": {"run": {"managedBy": "example.com/operator"}}})

    async def is_gone() -> bool:
        return not await where(world)

    await world.until(is_gone, seconds=20)
    (text,) = await texts(world, "ManagedByChanged")
    assert text.startswith("spec.run.managedBy is example.com/operator now")
    assert await stored(world) is not None
    await world.management.api.delete(f"{PATH}/train")


@in_world(DeclaredWorld)
async def test_a_manager_that_finds_others_sources_deletes_no_mirror(world: FlowWorld) -> None:
    """It may have been started with another value by mistake: all of them would go."""
    body = drill()
    body["spec"]["rounds"] = 100_000
    await world.management.api.create(PATH, body)
    await world.until(lambda: runs(world))
    (worker,) = await where(world)
    await world.kill_manager()
    await world.management.api.merge(f"{PATH}/train", {"spec": {"run": {"managedBy": "example.com/operator"}}})
    world.start_manager()
    await asyncio.sleep(150)
    assert await where(world) == [worker]
    (text,) = await texts(world, "ManagedByChanged")
    assert f"its mirror on worker {worker} is left as it is" in text
    await world.planes[worker].api.delete(f"{PATH}/train")
    await world.management.api.delete(f"{PATH}/train")
