"""What a process remembers of a Job is of the mirror that it had: a move that it did not see ends that (D14)."""

from __future__ import annotations

import pytest
from controllers.test_flows_fence import (
    FENCE,
    MARGIN,
    MINUTE,
    TTL,
    covered,
    deadline,
    expire,
    fenced_on_east,
    left,
    mark,
    start,
)
from doubles.clock import LoopClock
from doubles.jobs import condition
from doubles.transport import Fault
from doubles.world import WAITING, World, manager_of, standby_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.fences import FENCED
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


async def test_a_lease_that_begins_late_is_counted_from_its_start() -> None:
    """Its user resumed it, and its worker's controller started it ten minutes later (F4)."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(25 * MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        world.controller("east").suspend("train")
        await manager.settle(5)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(10 * MINUTE)
        start(world)
        await manager.settle(MINUTE)
        world.workers["east"].go_down()
        ends_in = left(world)
        assert ends_in > TTL - 2 * MINUTE
        await manager.settle(ends_in + MARGIN - 5)
        assert world.placed() == "east"
        await manager.settle(15 * MINUTE)
        assert world.placed() == "west"


async def test_a_start_that_is_about_to_begin_anew_is_not_renewed() -> None:
    """Suspended it keeps its startTime, and its controller takes a moment to resume it: it stays fenced."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(15 * MINUTE)
        started = world.mirror("east")["status"]["startTime"]  # type: ignore[index]
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        suspended = condition("Suspended", world.management.clock.text(), reason="JobSuspended")
        world.controller("east").set("train", {"startTime": started, "conditions": [suspended]})
        await manager.settle(5)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(2)
        assert deadline(world) == TTL
        world.controller("east").resume("train")
        await manager.settle(15 * MINUTE)
        assert mark(world) == FENCED
        assert abs((deadline(world) or 0) - TTL - TTL // 3) < 5
        assert covered(world) >= left(world)


async def test_a_job_that_was_suspended_and_resumed_while_its_worker_was_lost() -> None:
    """Nobody there heard of it: its lease ends as it would have, and the Job moves."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(15 * MINUTE)
        world.workers["east"].go_down()
        await manager.settle(2 * MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2 * MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(2 * MINUTE)
        ends_in = left(world)
        await manager.settle(ends_in + MARGIN - 5)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        await manager.settle(MINUTE)
        assert world.placed() == "west"


async def test_a_lease_that_ended_a_job_before_its_pods() -> None:
    """Workers before 1.31 do so, and count them no more: it starts again once they had as long as on a lost worker."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        expire(world, terminating=1)
        await manager.settle(MARGIN - 10)
        assert (world.placed(), world.mirrors(), world.events().count("Moved")) == ("east", ["east"], 0)
        assert "once its pods there have ended" in (world.annotation(WAITING) or "")
        await manager.settle(40)
        assert world.events().count("Moved") == 1


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
