"""A manager that is stopped in order, not killed as those of other flows are at their end."""

from __future__ import annotations

import asyncio

from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.world import World, standby_of


async def test_events_that_are_waiting_are_sent_before_a_manager_ends() -> None:
    """What was said is not lost by a clean stop."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with standby_of(world, LoopClock()) as manager:
        leading = asyncio.create_task(manager.mirroring.lead())
        await asyncio.sleep(0.5)
        world.create(job("held", suspend=True))
        await manager.settle(0.0015)
        leading.cancel()
        await asyncio.wait({leading})
    assert world.events() == ["Suspended"]
