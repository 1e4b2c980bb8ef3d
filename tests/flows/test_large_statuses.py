"""Statuses that are as large as may be beside specs that are large, too: a source stays one that we read (D29)."""

from __future__ import annotations

import asyncio

from declared_world import PATH, DeclaredWorld, in_world, runs, stored, told
from doubles.drills import drill
from flow_world import FlowWorld

from mirror.model import names

MANY = 15_500
"""Less than a status may have where nothing else is."""


@in_world(DeclaredWorld)
async def test_a_source_whose_worker_says_as_much_as_it_may_is_followed_further(world: FlowWorld) -> None:
    """Its mirror has forgotten who wrote what, so that it is read; here managed fields name each value anew."""
    large = drill()
    large["spec"] |= {"rounds": 100_000, "more": {f"k{number}": number for number in range(3_000)}}
    await world.management.api.create(PATH, large)
    await world.until(lambda: runs(world))
    worker = told(await stored(world))[names.PLACED]
    there = world.planes[worker].api
    await there.merge(f"{PATH}/train", {"metadata": {"managedFields": [{}]}})
    said = {"many": {f"k{number}": number for number in range(MANY)}, "phase": "Warm"}
    await there.merge(f"{PATH}/train/status", {"metadata": {"managedFields": [{}]}, "status": said})

    async def is_warm() -> bool:
        return ((await stored(world) or {}).get("status") or {}).get("phase") == "Warm"

    await world.until(is_warm)
    await world.management.api.merge(f"{PATH}/train", {"spec": {"run": {"paused": True}}})

    async def is_paused() -> bool:
        return bool((await stored(world, worker) or {})["spec"]["run"].get("paused"))

    await world.until(is_paused)
    rounds = (await stored(world) or {})["status"]["rounds"]
    await asyncio.sleep(3)
    assert (await stored(world) or {})["status"]["rounds"] == rounds
    await world.management.api.delete(f"{PATH}/train")
