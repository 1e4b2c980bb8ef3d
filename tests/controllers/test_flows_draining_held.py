"""What a drain may not stop, or not yet: work would be lost, or run twice (D2, D14, D15)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.drained import SEEDING, is_suspended_on_east, on_east, stop
from doubles.jobs import job
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault
from doubles.world import RunningManager, World, manager_of, two_workers

from mirror.embedded.faults.targets import Which

pytestmark = pytest.mark.looptime

MINUTE = 60.0


@pytest.mark.parametrize("counted", [{"succeeded": 1}, {"uncountedTerminatedPods": {"succeeded": ["a-pod"]}}])
async def test_a_work_queue_of_which_a_pod_has_succeeded_ends_where_it_is(counted: dict[str, Any]) -> None:
    """54: suspended it would be complete, with its work undone: it is not stopped, with consent or without."""
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
    """56: its status says Suspended of before: of a suspension that it has not seen, too, while it makes pods (D2)."""
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


async def drained_to_west(world: World, manager: RunningManager) -> None:
    """It has left east, and its mirror on west waits for that worker's controller."""
    await on_east(world, manager)
    world.annotate_worker("east", drain="move-started")
    await manager.settle(3)
    stop(world)
    await manager.settle(10)
    assert (world.placed(), world.mirrors()) == ("west", ["west"])
    assert world.conditions()["Suspended"] == "WorkerDrained"


def start_on_west(world: World, **counted: Any) -> None:
    status = world.mirror("west")["status"]
    running = {"active": 2, "ready": 2, "startTime": world.management.clock.text()}
    world.controller("west").set("train", status | running | counted)


@pytest.mark.parametrize("has_place", [False, True])
async def test_what_has_just_come_from_a_drained_worker_is_followed_on_the_next_one(has_place: bool) -> None:
    """That one is drained in turn, before the first status: what has started there stays without consent, and shows."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await drained_to_west(world, manager)
        world.annotate_worker("east", drain=None, cordoned=None if has_place else "true")
        await manager.settle(1)
        if has_place:
            world.management.arrange("patch", "jobs/status", Refused(500, "InternalError"), times=20)
            start_on_west(world)
        world.annotate_worker("west", drain="move")
        await manager.settle(1)
        assert world.mirror("west")["spec"]["suspend"] is False
        start_on_west(world)
        await manager.settle(10 * MINUTE)
        status = world.source()["status"]
        assert (status["active"], world.conditions().get("Suspended")) == (2, None)
        start_on_west(world, succeeded=8, completedIndexes="0-7")
        await manager.settle(5)
        assert world.source()["status"]["completedIndexes"] == "0-7"


async def unmade_on_east(world: World, fault: str = "") -> None:
    """Recorded on east, where nothing of it was made while this manager lived, as far as that knows."""
    async with manager_of(world) as manager:
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        if fault:
            world.workers["east"].faults.arrange(fault, Which("create", "jobs"), times=1_000_000)
        else:
            world.workers["east"].arrange("create", "jobs", Refused(503, "ServiceUnavailable"), times=1_000_000)
        world.create(job())
        await manager.settle(5)
        assert world.placed() == "east"
    world.workers["east"].restore()
    world.annotate_worker("west", cordoned=None)


async def test_what_was_never_made_leaves_after_a_restart() -> None:
    """54: who has just begun to lead does not know that: it looks, once nothing of before can be carried out."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    await unmade_on_east(world)
    world.workers["east"].arrange("create", "jobs", forbidden(), times=1_000_000)
    async with manager_of(world) as manager:
        await manager.settle(10)
        world.annotate_worker("east", drain="move")
        await manager.settle(30)
        assert world.placed() == "east"
        await manager.settle(2 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert world.texts("Moved") == ["moved from east to west (move 1); no copy is left on east"]


async def test_what_was_made_without_an_answer_is_found_before_it_leaves() -> None:
    """Nobody has recorded its uid; it stops there first, as any other."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    await unmade_on_east(world, Fault.LOSE_ANSWER.value)
    assert world.mirrors() == ["east"]
    world.annotate_worker("east", drain="move")
    async with manager_of(world) as manager:
        await manager.settle(3 * MINUTE)
        assert (world.placed(), world.mirrors(), is_suspended_on_east(world)) == ("east", ["east"], True)


async def test_a_look_from_before_a_create_that_has_no_answer_proves_nothing() -> None:
    """It was seen to be absent, the drain was cancelled, and a create was sent since, which arrives late."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    await unmade_on_east(world)
    world.annotate_worker("west", cordoned="true")
    world.annotate_worker("east", drain="move")
    east = world.workers["east"]
    async with manager_of(world) as manager:
        await manager.settle(2 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", [])
        east.faults.arrange(Fault.LOSE_REQUEST.value, Which("create", "jobs"), times=1_000_000)
        world.annotate_worker("east", drain=None)
        await manager.settle(2)
        world.annotate_worker("west", cordoned=None)
        world.annotate_worker("east", drain="move")
        east.restore()
        asked = len([one for one in east.sent if one.path.endswith("/jobs/train")])
        await manager.settle(30)
        assert world.placed() == "east"
        await manager.settle(2 * MINUTE)
        assert world.placed() == "west"
        assert len([one for one in east.sent if one.path.endswith("/jobs/train")]) > asked


@pytest.mark.parametrize("restarts", [False, True])
async def test_what_is_suspended_while_it_was_never_made_says_so(restarts: bool) -> None:
    """D3: also while its drained worker gets nothing of it, and no other worker takes it."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    if restarts:
        await unmade_on_east(world)
    world.annotate_worker("west", cordoned="true")
    world.workers["east"].arrange("create", "jobs", Refused(429, "TooManyRequests"), times=1_000_000)
    async with manager_of(world) as manager:
        if not restarts:
            world.create(job())
            await manager.settle(2)
        world.annotate_worker("east", drain="move")
        await manager.settle(2 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", [])
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2 * MINUTE)
        assert world.conditions()["Suspended"] == "JobSuspended"
        world.annotate_worker("west", cordoned=None)
        await manager.settle(2 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", [])
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(10)
        assert world.mirrors() == ["west"]
