"""Progress goes along when a Job is moved: held, seeded, then run (D14); numbers are of the scenarios of moving."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import Body, condition, job
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault
from doubles.world import RunningManager, World, manager_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.embedded.faults.injector import Which
from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

SEEDING = Policy(on_loss=OnLoss.RESCHEDULE, seed_progress=True)
MINUTE = 60.0
INDEXED = {"completionMode": "Indexed", "completions": 10, "parallelism": 2}
COUNTED = {"succeeded": 5, "completedIndexes": "0-4", "failed": 2}


async def half_done_on_east(world: World, manager: RunningManager, counted: Body = COUNTED, **spec: Any) -> None:
    """A Job that has counted something on east, which is down; it moves in the next minute."""
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(**(spec or INDEXED)))
    await manager.settle()
    world.controller("east").start("train", active=2)
    await manager.settle()
    world.controller("east").set("train", world.mirror("east")["status"] | counted)
    world.annotate_worker("west", cordoned=None)
    await manager.settle()
    world.workers["east"].go_down()
    await manager.settle(15 * MINUTE - 10)


def on_west(world: World) -> Body:
    mirror = world.mirror("west")
    assert mirror is not None
    return mirror


async def test_only_what_is_left_runs() -> None:
    """44: the new mirror runs only once its status has what was counted."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await half_done_on_east(world, manager)
        await manager.settle(MINUTE)
        mirror = on_west(world)
        assert mirror["spec"]["suspend"] is False
        assert {name: mirror["status"][name] for name in COUNTED} == COUNTED
        assert mirror["metadata"]["annotations"][names.SEED] == "done"
        assert world.texts("ProgressKept") == ["the copy on west goes on from what was counted: 5 succeeded, 2 failed"]
        assert world.texts("Moved") == ["moved from east to west (move 1); the copy on east may still run"]
        status = mirror["status"] | {"startTime": world.management.clock.text(), "active": 2}
        world.controller("west").set("train", status | {"succeeded": 6, "completedIndexes": "0-5"})
        await manager.settle(2)
        stored = world.source()["status"]
        assert (stored["completedIndexes"], stored["succeeded"], stored["failed"]) == ("0-5", 6, 2)
        assert "Suspended" not in world.conditions()


async def test_nothing_of_a_held_mirror_reaches_its_source() -> None:
    """Its controller says Suspended before it is seeded: that is neither a user's nor a queue's doing."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await half_done_on_east(world, manager)
        world.workers["west"].arrange("patch", "jobs", Refused(500, "InternalError"), times=100_000)
        await manager.settle(MINUTE)
        assert on_west(world)["spec"]["suspend"] is True
        world.controller("west").suspend("train")
        await manager.settle(3 * MINUTE)
        assert world.conditions()["Suspended"] == "WorkerLost"
        assert "SuspendedOnWorker" not in world.events()
        world.workers["west"].server.remove("jobs", "train")
        world.workers["west"].restore()
        await manager.settle(3 * MINUTE)
        assert "Failed" not in world.conditions()
        assert on_west(world)["status"]["completedIndexes"] == "0-4"
        assert on_west(world)["spec"]["suspend"] is False


@pytest.mark.parametrize("answer", [forbidden(), Refused(422, "Invalid")], ids=["48: 403", "422"])
async def test_refused_it_runs_unseeded_and_says_so(answer: Refused) -> None:
    """48: an event, no loop."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await half_done_on_east(world, manager)
        world.workers["west"].arrange("patch", "jobs", answer, times=1)
        await manager.settle(MINUTE)
        mirror = on_west(world)
        assert mirror["spec"]["suspend"] is False
        assert "completedIndexes" not in mirror.get("status", {})
        assert mirror["metadata"]["annotations"][names.SEED] == "refused"
        assert len(world.texts("ProgressNotKept")) == 1
        before = len(world.workers["west"].writes())
        world.controller("west").start("train", active=2)
        await manager.settle(10 * MINUTE)
        assert len(world.workers["west"].writes()) == before
        assert world.source()["status"]["completedIndexes"] == "0-4"


async def test_without_the_setting_it_begins_anew_and_says_so() -> None:
    """43: three requests less."""
    async with two_workers(policy=Policy(on_loss=OnLoss.RESCHEDULE)) as (world, manager):
        await half_done_on_east(world, manager)
        await manager.settle(MINUTE)
        assert names.SEED not in on_west(world)["metadata"]["annotations"]
        assert world.texts("Moved")[0].endswith("; what ran so far runs again")


@pytest.mark.parametrize("step", ["create", "seed", "resume"])
@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST], ids=["answer", "request"])
async def test_killed_between_any_two_steps(step: str, fault: Fault) -> None:
    """Held, seeded, resumed: whoever looks next goes on from what the mirror says."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    verb, subresource = ("create", "") if step == "create" else ("patch", "status" if step == "seed" else "")
    async with manager_of(world, policy=SEEDING) as manager:
        await half_done_on_east(world, manager)
        which = Which(verb, "jobs", subresource=subresource)
        world.workers["west"].faults.arrange(fault.value, which, times=1_000)
        await manager.settle(15)
        assert world.placed() == "west"
    world.workers["west"].restore()
    async with manager_of(world, policy=SEEDING) as manager:
        await manager.settle(2 * MINUTE)
        mirror = on_west(world)
        assert (mirror["spec"]["suspend"], mirror["status"]["completedIndexes"]) == (False, "0-4")
        assert (mirror["status"]["succeeded"], mirror["status"]["failed"]) == (5, 2)


async def test_a_user_who_suspends_meanwhile_keeps_it_suspended() -> None:
    """It is seeded all the same, and runs once it is resumed."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await half_done_on_east(world, manager)
        world.workers["west"].arrange("patch", "jobs", Refused(500, "InternalError"), times=100_000)
        await manager.settle(MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=True))
        world.workers["west"].restore()
        await manager.settle(2 * MINUTE)
        mirror = on_west(world)
        assert (mirror["spec"]["suspend"], mirror["status"]["completedIndexes"]) == (True, "0-4")
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(MINUTE)
        assert on_west(world)["spec"]["suspend"] is False


async def test_an_elastic_job_that_was_scaled_down_meanwhile() -> None:
    """49: from 10 to 4: what is beyond is left out, and the new size goes along."""
    elastic = {"completionMode": "Indexed", "completions": 10, "parallelism": 10}
    async with two_workers(policy=SEEDING) as (world, manager):
        await half_done_on_east(world, manager, {"succeeded": 5, "completedIndexes": "2-6"}, **elastic)
        world.edit(lambda body: body["spec"].update(completions=4, parallelism=4))
        await manager.settle(MINUTE)
        mirror = on_west(world)
        assert (mirror["spec"]["completions"], mirror["status"]["completedIndexes"]) == (4, "2,3")
        assert mirror["status"]["succeeded"] == 2


async def test_one_in_a_queue_is_not_held() -> None:
    """Its worker's Kueue resumes it when it likes: it would run before it is seeded."""
    async with two_workers(policy=SEEDING) as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.create(job(labels={names.QUEUE_NAME: "team"}, **INDEXED))
        await manager.settle()
        world.controller("east").start("train", active=2)
        await manager.settle()
        world.controller("east").set("train", world.mirror("east")["status"] | COUNTED)
        world.annotate_worker("west", cordoned=None)
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        assert names.SEED not in on_west(world)["metadata"]["annotations"]
        assert on_west(world)["spec"]["suspend"] is False


async def test_what_is_resumed_on_the_worker_before_is_followed_as_it_is() -> None:
    """Somebody there resumed it: the status is written for a suspended one only, by the version that was seen."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await half_done_on_east(world, manager)
        world.workers["west"].arrange("patch", "jobs", Refused(500, "InternalError"), times=100_000)
        await manager.settle(MINUTE)
        world.workers["west"].server.edit("jobs", "train", lambda body: body["spec"].update(suspend=False), "default")
        world.controller("west").start("train", active=2)
        world.workers["west"].restore()
        await manager.settle(2 * MINUTE)
        assert on_west(world)["spec"]["suspend"] is False
        assert "completedIndexes" not in on_west(world)["status"]
        assert world.source()["status"]["completedIndexes"] == "0-4"


async def test_an_end_on_the_new_worker_counts_once() -> None:
    """45, 46: what west's controller counts from there on is the Job's."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await half_done_on_east(world, manager, {"succeeded": 3, "failed": 2}, completions=5, backoffLimit=2)
        await manager.settle(MINUTE)
        mirror = on_west(world)
        assert (mirror["status"]["succeeded"], mirror["status"]["failed"]) == (3, 2)
        at = world.management.clock.text()
        ends = [condition(one, at, reason="BackoffLimitExceeded") for one in ("FailureTarget", "Failed")]
        world.controller("west").set("train", mirror["status"] | {"startTime": at, "failed": 3, "conditions": ends})
        await manager.settle(2)
        stored = world.source()["status"]
        assert (stored["succeeded"], stored["failed"]) == (3, 3)
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"


async def test_without_the_setting_the_new_copy_may_fail_as_often_as_a_new_job() -> None:
    """46: two of two failures were counted; two more on west end nothing, and the third one there does."""
    async with two_workers(policy=Policy(on_loss=OnLoss.RESCHEDULE)) as (world, manager):
        await half_done_on_east(world, manager, {"failed": 2}, completions=5, backoffLimit=2)
        await manager.settle(MINUTE)
        mirror = on_west(world)
        assert (mirror["spec"]["backoffLimit"], mirror.get("status", {}).get("failed", 0)) == (2, 0)
        world.controller("west").start("train", active=2)
        running = on_west(world)["status"]
        for failed in (1, 2):
            world.controller("west").set("train", running | {"failed": failed})
            await manager.settle(2)
            assert (world.source()["status"]["failed"], "Failed" in world.conditions()) == (2, False)
        at = world.management.clock.text()
        ends = [condition(one, at, reason="BackoffLimitExceeded") for one in ("FailureTarget", "Failed")]
        over = {"active": 0, "ready": 0, "terminating": 0, "failed": 3, "conditions": ends}
        world.controller("west").set("train", running | over)
        await manager.settle(2)
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"
        assert world.source()["status"]["failed"] == 3
