"""Copies that were left on a lost worker and do not count are kept, suspended, where settings want that (D14)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import job
from doubles.world import RunningManager, World, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = pytest.mark.looptime

RESCHEDULE = Policy(on_loss=OnLoss.RESCHEDULE)
MINUTE = 60.0


async def left_on_east(world: World, manager: RunningManager, **more: Any) -> None:
    """A Job that ran on east, and was moved to west while that was lost."""
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(**more))
    await manager.settle()
    world.controller("east").start("train")
    await manager.settle()
    world.annotate_worker("west", cordoned=None)
    await manager.settle()
    world.workers["east"].go_down()
    await manager.settle(16 * MINUTE)
    assert world.placed() == "west"
    world.controller("west").start("train")
    await manager.settle()


@pytest.mark.parametrize("succeeded", [0, 1])
async def test_one_that_would_be_complete_once_it_is_suspended_is_deleted(succeeded: int) -> None:
    """A work queue: its controller calls it Complete as soon as one pod has succeeded and none runs, and it would win.

    A pod that ends well because it is stopped is enough for that, so it does not matter whether one has succeeded.
    """
    async with two_workers(policy=RESCHEDULE, suspends_losers=True) as (world, manager):
        await left_on_east(world, manager, parallelism=3)
        status = world.mirror("east")["status"]
        assert "completions" not in world.mirror("east")["spec"]
        world.controller("east").set("train", status | {"active": 2, "succeeded": succeeded})
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert world.mirrors() == ["west"]
        assert world.texts("LeftBehindDeleted") == ["the copy that was left on east was deleted"]
        assert "LeftBehindSuspended" not in world.events()
        assert "Complete" not in world.conditions()


@pytest.mark.parametrize("is_held", [False, True], ids=["runs", "held by its queue"])
async def test_one_that_a_queue_there_runs_is_deleted(is_held: bool) -> None:
    """D26: the queue resumes what it has admitted, or will, so that suspending it again and again has no end."""
    async with two_workers(policy=RESCHEDULE, suspends_losers=True) as (world, manager):
        await left_on_east(world, manager, labels={names.QUEUE_NAME: "q"})
        if is_held:
            world.workers["east"].server.edit("jobs", "train", lambda body: body["spec"].update(suspend=True))
        world.workers["east"].restore()
        before = len(world.workers["east"].writes())
        await manager.settle(MINUTE)
        assert world.mirrors() == ["west"]
        assert len(world.workers["east"].writes()) == before + 1
        assert "LeftBehindSuspended" not in world.events()
