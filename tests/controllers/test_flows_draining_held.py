"""What a drain may not stop, or not yet: work would be lost, or run twice (D2, D14, D15)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.drained import SEEDING, is_suspended_on_east, on_east, stop
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


async def test_what_is_resumed_stops_only_once_its_controller_has_answered() -> None:
    """Its status says Suspended of before: of a suspension that it has not seen, too, while it makes pods (D2)."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        stop(world)
        await manager.settle(2)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(2)
        assert not is_suspended_on_east(world)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(5 * MINUTE)
        assert (is_suspended_on_east(world), world.mirrors()) == (False, ["east"])
        world.controller("east").resume("train")
        await manager.settle(5)
        assert is_suspended_on_east(world)
        assert world.mirrors() == ["east"]
        stop(world)
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])


async def test_what_is_resumed_for_want_of_a_place_stops_only_once_its_controller_has_answered() -> None:
    """The place that it was stopped for is none any more, and there is another one a moment later."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        assert is_suspended_on_east(world)
        world.annotate_worker("west", cordoned="true")
        await manager.settle(1)
        stop(world)
        await manager.settle(2)
        assert not is_suspended_on_east(world)
        world.annotate_worker("west", cordoned=None)
        await manager.settle(2 * MINUTE)
        assert (is_suspended_on_east(world), world.mirrors()) == (False, ["east"])
        world.controller("east").resume("train")
        await manager.settle(5)
        assert is_suspended_on_east(world)


async def test_a_worker_that_never_answers_a_resume_keeps_the_job_and_is_followed() -> None:
    """As one that never answers a suspension does; what its mirror says is stored all the same."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        stop(world)
        await manager.settle(2)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(2)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(2)
        stop(world, completed="0-4")
        await manager.settle(2)
        assert world.source()["status"]["completedIndexes"] == "0-4"
        assert not is_suspended_on_east(world)
