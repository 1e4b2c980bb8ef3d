"""What is kept by uid, key or worker is of those that exist, whatever ended while something was under way."""

from __future__ import annotations

import asyncio

import pytest
from doubles.candidates import Candidate, candidate_for
from doubles.jobs import job
from doubles.transport import Fault
from doubles.world import World

pytestmark = pytest.mark.looptime


def kept_by(manager: Candidate) -> dict[str, int]:
    """How much is remembered of sources."""
    mirroring = manager.mirroring
    return {
        "memories": len(mirroring._state.memories._memories),
        "agreed": len(mirroring._state.comparison._agreed),
        **mirroring._state.pending.counts(),
        "assigned": len(mirroring.assigner._assigned),
        "failures": len(mirroring.queue._failures),
        "outage": len(mirroring.queue._failures.in_outage),
        "due": len(mirroring.queue._due),
    }


async def test_a_source_that_goes_while_its_mirror_is_made_leaves_nothing_behind() -> None:
    """Only a new list shows that it is gone, while its worker answers late."""
    world = World()
    east = world.add_worker("east")
    async with candidate_for(world) as manager:
        manager.lead()
        await asyncio.sleep(1)
        for number in range(5):
            east.is_hung = True
            world.create(job(f"j{number}"))
            await asyncio.sleep(0.1)
            world.management.mute_watches("jobs")
            world.delete(f"j{number}")
            world.management.server.compact()
            world.management.break_watches()
            await asyncio.sleep(1)
            east.is_hung = False
            await asyncio.sleep(30)
        assert world.mirrors("j0") == []
        assert kept_by(manager) == dict.fromkeys(kept_by(manager), 0)


async def test_a_source_that_goes_while_its_status_is_written_leaves_nothing_behind() -> None:
    """The answer to the write is lost; whether it was ours that the watch shows nobody asks any more."""
    world = World()
    world.add_worker("east")
    async with candidate_for(world) as manager:
        manager.lead()
        await asyncio.sleep(1)
        for number in range(5):
            name = f"j{number}"
            world.create(job(name))
            await asyncio.sleep(1)
            world.management.arrange("patch", "jobs", Fault.HANG)
            world.controller("east").start(name)
            await asyncio.sleep(0.1)
            world.delete(name)
            await asyncio.sleep(60)
        assert kept_by(manager) == dict.fromkeys(kept_by(manager), 0)
