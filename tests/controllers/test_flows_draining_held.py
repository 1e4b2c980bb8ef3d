"""What a drain may not stop, or not yet: work would be lost, or run twice (D2, D14, D15)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.drained import SEEDING, is_suspended_on_east, on_east
from doubles.world import two_workers

pytestmark = pytest.mark.looptime

MINUTE = 60.0


@pytest.mark.parametrize("counted", [{"succeeded": 1}, {"uncountedTerminatedPods": {"succeeded": ["a-pod"]}}])
async def test_a_work_queue_of_which_a_pod_has_succeeded_ends_where_it_is(counted: dict[str, Any]) -> None:
    """Suspended it would be complete, with its work undone: it is not stopped, with consent or without."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager, completions=None, completionMode=None, parallelism=3)
        status = {name: world.mirror("east")["status"][name] for name in ("startTime", "ready")}
        world.controller("east").set("train", status | {"active": 2} | counted)
        await manager.settle(2)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(5 * MINUTE)
        assert not is_suspended_on_east(world)
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_work_queue_of_which_no_pod_has_succeeded_leaves() -> None:
    """Nothing makes it complete but its own pods."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager, runs=False, completions=None, completionMode=None, parallelism=3)
        world.controller("east").start("train", active=3)
        await manager.settle(2)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(10)
        assert is_suspended_on_east(world)
        world.controller("east").suspend("train")
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
