"""Moves, sweeps and copies that come back while something else is wrong, too (D14)."""

from __future__ import annotations

import pytest
from controllers.test_flows_fence import FENCE, expire, fenced_on_east, mark, start
from controllers.test_flows_moves import MINUTE, RESCHEDULE, running_on_east
from doubles import drills
from doubles.refusals import Refused, forbidden
from doubles.world import World, manager_of

from mirror.model import names
from mirror.model.fences import FENCED

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


@pytest.mark.parametrize("moves", [0, 1], ids=["its first move", "its second move"])
async def test_a_fenced_job_that_the_next_worker_refuses_goes_to_another_one(moves: int) -> None:
    """Back on its lost worker it has the lease that it had: it is moved again, and does not wait there for good."""
    world = World()
    for name in ("east", "west", "north", "south", "other"):
        world.add_worker(name)
    async with manager_of(world, policy=FENCE) as manager:
        for name in ("north", "south", "other"):
            world.annotate_worker(name, cordoned="true")
        await fenced_on_east(world, manager, annotations={names.WORKER_ORDER: "west,north,south"})
        there, refuses, takes = "east", "west", "north"
        if moves:
            world.workers["east"].go_down()
            await manager.settle(60 * MINUTE)
            start(world, worker="west")
            expire(world)
            world.workers["east"].restore()
            await manager.settle(MINUTE)
            world.annotate_worker("east", cordoned="true")
            there, refuses, takes = "west", "north", "south"
        world.annotate_worker(refuses, cordoned=None)
        world.annotate_worker(takes, cordoned=None)
        world.workers[refuses].arrange("create", "jobs", forbidden(), times=ALWAYS)
        await manager.settle()
        assert world.placed() == there
        world.workers[there].go_down()
        await manager.settle(60 * MINUTE)
        assert (world.placed(), mark(world)) == (takes, FENCED)
        assert f"the copy on {there} has ended by its lease" in world.texts("Moved")[-1]


@pytest.mark.parametrize("moves", [0, 1], ids=["its first move", "its second move"])
@pytest.mark.parametrize("restarts", [False, True], ids=["one manager", "a restart"])
async def test_what_ran_and_vanishes_after_a_move_that_was_undone_is_lost(moves: int, *, restarts: bool) -> None:
    """Pods of it may run on (``--cascade=orphan``), so it is not made again where nobody wants that (D11, D2)."""
    world = World()
    for name in ("east", "west", "north", "south", "other"):
        world.add_worker(name)
    async with manager_of(world, policy=RESCHEDULE) as manager:
        for name in ("north", "south", "other"):
            world.annotate_worker(name, cordoned="true")
        await running_on_east(world, manager)
        there = "west" if moves else "east"
        if moves:
            world.workers["east"].go_down()
            await manager.settle(16 * MINUTE)
            world.controller("west").start("train")
            await manager.settle(2)
            world.workers["east"].restore()
            await manager.settle(MINUTE)
        for name, value in (("east", "true"), ("west", "true"), ("north", None)):
            world.annotate_worker(name, cordoned=value)
        world.workers["north"].arrange("create", "jobs", forbidden(), times=ALWAYS)
        await manager.settle(2)
        world.workers[there].go_down()
        await manager.settle(16 * MINUTE)
        assert world.placed() == there
        if not restarts:
            world.workers[there].server.remove("jobs", "train")
            world.workers[there].restore()
            await manager.settle(2 * MINUTE)
    if restarts:
        async with manager_of(world, policy=RESCHEDULE) as manager:
            await manager.settle(15)
            world.workers[there].server.remove("jobs", "train")
            world.workers[there].restore()
            await manager.settle(2 * MINUTE)
    assert (world.conditions().get("Failed"), world.mirrors()) == ("MirrorLost", [])
