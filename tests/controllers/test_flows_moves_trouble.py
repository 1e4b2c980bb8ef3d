"""Moves, sweeps and copies that come back while something else is wrong, too (D14)."""

from __future__ import annotations

import pytest
from controllers.test_flows_moves import MINUTE, RESCHEDULE, running_on_east
from doubles import drills
from doubles.refusals import Refused
from doubles.world import World, manager_of

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

ALWAYS = 1_000_000


@pytest.mark.parametrize("broken", ["drills", "jobs"])
async def test_a_kind_that_cannot_be_listed_holds_no_moves_of_others(broken: str) -> None:
    """The webhook that converts it is down: the API server answers 500; without Jobs it may be us who are cut off."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    for wire in (world.management, *world.workers.values()):
        wire.server.put("customresourcedefinitions", drills.definition())
    async with manager_of(world, policy=RESCHEDULE, kinds=drills.KINDS) as manager:
        await running_on_east(world, manager)
        for verb in ("list", "watch"):
            world.management.arrange(
                verb, broken, Refused(500, "InternalError", "conversion webhook failed"), times=ALWAYS
            )
        world.management.end_watches()
        world.workers["east"].go_down()
        await manager.settle(17 * MINUTE)
        held = manager.metrics.registry.get_sample_value("jobmirror_moves_held")
        if broken == "drills":
            assert (world.placed(), held, world.texts("MovesHeld")) == ("west", 0, [])
            return
        why = "nothing is moved in the first minute after the management cluster was unreachable"
        assert (world.placed(), held) == ("east", 1)
        assert world.texts("MovesHeld") == [f"{why}; its Jobs stay with it until that is over"]
        world.management.restore()
        await manager.settle(2 * MINUTE)
        held = manager.metrics.registry.get_sample_value("jobmirror_moves_held")
        assert (world.placed(), held) == ("west", 0)
