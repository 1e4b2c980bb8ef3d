"""What a process remembers of a Job is of the mirror that it had: a move that it did not see ends that (D14)."""

from __future__ import annotations

import pytest
from controllers.test_flows_fence import (
    FENCE,
    MARGIN,
    MINUTE,
    TTL,
    expire,
    fenced_on_east,
    left,
    start,
)
from doubles.clock import LoopClock
from doubles.transport import Fault
from doubles.world import World, manager_of, standby_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = pytest.mark.looptime

RESCHEDULE = Policy(on_loss=OnLoss.RESCHEDULE)


async def test_a_standby_moves_no_job_for_a_lease_that_ended_before_it_led() -> None:
    """It saw the mirror on east end by its lease; who led then has placed the Job on west, where it runs."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with standby_of(world, LoopClock(), policy=FENCE) as standby:
        async with manager_of(world, policy=FENCE) as leader:
            await fenced_on_east(world, leader)
            world.annotate_worker("east", cordoned="true")
            await leader.settle(5)
            expire(world)
            await leader.settle(20)
            assert world.placed() == "west"
            start(world, "west")
            await leader.settle(20)
            assert world.mirrors() == ["west"]
            world.annotate_worker("east", cordoned=None)
            await leader.settle(5)
        standby.start(standby.mirroring.lead(), "lead")
        await standby.settle(3 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert len(world.texts("Moved")) == 1


async def test_a_lease_there_is_not_counted_by_the_one_before() -> None:
    """The answer to the move was lost; west is lost, too, before it was renewed: its lease lasts as it was sent."""
    async with two_workers(policy=FENCE) as (world, manager):
        world.add_worker("north", annotations={"cordoned": "true"})
        await manager.settle(5)
        await fenced_on_east(world, manager)
        await manager.settle(13 * MINUTE)
        world.workers["east"].go_down()
        await manager.settle(28 * MINUTE)
        assert world.placed() == "east"
        world.management.arrange("patch", "jobs", Fault.LOSE_ANSWER, times=1)
        await manager.settle(3 * MINUTE)
        assert world.placed() == "west"
        start(world, "west")
        await manager.settle(5)
        world.workers["east"].restore()
        world.annotate_worker("east", cordoned="true")
        world.annotate_worker("north", cordoned=None)
        await manager.settle(MINUTE)
        world.workers["west"].go_down()
        ends_in = left(world, "west")
        assert ends_in > TTL - 5 * MINUTE
        await manager.settle(ends_in + MARGIN - 5)
        assert world.placed() == "west"
        await manager.settle(20 * MINUTE)
        assert world.placed() == "north"


async def test_pods_of_another_mirror_are_counted_anew() -> None:
    """The answer to the first start over was lost; the next mirror vanishes and leaves a pod that runs on."""
    async with two_workers() as (world, manager):
        await fenced_on_east(world, manager, annotations={names.ON_MIRROR_LOSS: "Recreate"})
        east = world.workers["east"].server
        east.remove("jobs", "train")
        await manager.settle(4)
        world.management.arrange("patch", "jobs", Fault.LOSE_ANSWER, times=1)
        await manager.settle(30)
        assert world.mirrors() == ["east"]
        start(world)
        await manager.settle(5)
        spec = {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never", "nodeName": "node"}
        east.put("pods", {"metadata": {"name": "train-x", "labels": {"job-name": "train"}}, "spec": spec})
        east.remove("jobs", "train")
        await manager.settle(5 * MINUTE)
        assert world.mirrors() == []
        east.edit("pods", "train-x", lambda body: body.setdefault("status", {}).update(phase="Failed"))
        await manager.settle(MINUTE)
        assert world.mirrors() == ["east"]
