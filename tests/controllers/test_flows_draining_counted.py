"""Moves from drained workers are an operator's: a Job may be moved after losses as often as without (D11, D14)."""

from __future__ import annotations

import pytest
from doubles.jobs import job
from doubles.moving_jobs import moves_of
from doubles.world import WAITING, RunningManager, World, manager_of

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = pytest.mark.looptime

POLICY = Policy(on_loss=OnLoss.RESCHEDULE, move_limit=2)
MINUTE = 60.0


async def drained_three_times(world: World, manager: RunningManager) -> str:
    """The worker on which it runs then."""
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(annotations={names.ON_MIRROR_LOSS: "Recreate"}))
    await manager.settle()
    world.annotate_worker("west", cordoned=None)
    await manager.settle()
    here, there = "east", "west"
    for _ in range(3):
        world.controller(here).start("train")
        await manager.settle(2)
        world.annotate_worker(here, drain="move-started")
        await manager.settle(3)
        world.controller(here).suspend("train")
        await manager.settle(10)
        world.annotate_worker(here, drain=None)
        await manager.settle(1)
        assert world.placed() == there
        here, there = there, here
    world.controller(here).start("train")
    await manager.settle(2)
    assert (moves_of(world.source()).count, moves_of(world.source()).left_behind) == (3, ())
    return here


def two_workers_of_it() -> World:
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    return world


async def test_a_job_that_was_drained_often_starts_over_where_its_mirror_vanishes() -> None:
    """Also by who leads next: how often it was drained is in its status."""
    world = two_workers_of_it()
    async with manager_of(world, policy=POLICY) as manager:
        here = await drained_three_times(world, manager)
        uid = world.mirror(here)["metadata"]["uid"]
    async with manager_of(world, policy=POLICY) as manager:
        await manager.settle(2)
        world.workers[here].server.remove("jobs", "train")
        await manager.settle(2 * MINUTE)
        mirror = world.mirror(here)
        assert mirror is not None
        assert mirror["metadata"]["uid"] != uid
        assert "Failed" not in world.conditions()


async def test_a_job_that_was_drained_often_is_moved_from_lost_workers_as_often_as_any() -> None:
    """27: and not more often, a loss counts as ever."""
    world = two_workers_of_it()
    async with manager_of(world, policy=POLICY) as manager:
        here, there = await drained_three_times(world, manager), "east"
        for _ in range(2):
            world.workers[here].go_down()
            await manager.settle(16 * MINUTE)
            assert world.placed() == there
            world.controller(there).start("train")
            world.workers[here].restore()
            await manager.settle(2 * MINUTE)
            assert world.mirrors() == [there]
            here, there = there, here
        world.workers[here].go_down()
        await manager.settle(16 * MINUTE)
        assert world.placed() == here
        assert "it was moved as often as workers.moveLimit allows" in (world.annotation(WAITING) or "")
        assert moves_of(world.source()).count == 5
