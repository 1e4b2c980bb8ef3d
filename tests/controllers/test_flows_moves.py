"""Jobs moved from a lost worker, and what becomes of the copies there (D14); numbers are of its scenarios."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import condition, job
from doubles.refusals import Refused, forbidden
from doubles.world import WAITING, RunningManager, World, manager_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.model.moves import parse_moves

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

RESCHEDULE = Policy(on_loss=OnLoss.RESCHEDULE)
MINUTE = 60.0


def moved_message(world: World, name: str = "train") -> str:
    listed = world.source(name)["status"].get("conditions", [])
    return next((one["message"] for one in listed if one["type"] == names.MOVED), "")


def said(world: World, reason: str) -> list[tuple[str, int]]:
    """The events about Jobs with this reason, and how often each came."""
    events = [one for one in world.management.server.all("events") if one["reason"] == reason]
    return [(one["message"], one["count"]) for one in events if one["involvedObject"]["kind"] == "Job"]


async def running_on_east(world: World, manager: RunningManager, **spec: Any) -> str:
    """A Job that runs on east, where alone it may be at first; the uid of its mirror."""
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(**spec))
    await manager.settle()
    world.controller("east").start("train")
    await manager.settle()
    world.annotate_worker("west", cordoned=None)
    await manager.settle()
    return str(world.mirror("east")["metadata"]["uid"])


async def moved_to_west(world: World, manager: RunningManager) -> str:
    """It was moved, and west does not run it yet; the uid of the mirror on east."""
    uid = await running_on_east(world, manager)
    world.workers["east"].go_down()
    await manager.settle(16 * MINUTE)
    assert world.placed() == "west"
    return uid


async def test_nothing_is_moved_before_its_time() -> None:
    """1: away for 14 minutes; nothing moves, and statuses flow again."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(14 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        assert "the Job is moved to another one at" in (world.annotation(WAITING) or "")
        world.workers["east"].restore()
        await manager.settle(20)
        assert world.mirror("east")["metadata"]["uid"] == uid
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()
        assert world.annotation(WAITING) is None


async def test_a_running_job_is_moved_and_its_old_copy_is_deleted() -> None:
    """2: moved after lostAfter in one write; the old copy goes when its worker is back; counted once."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await running_on_east(world, manager)
        started = world.source()["status"]["startTime"]
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        status = world.source()["status"]
        assert (world.placed(), sorted(world.mirrors())) == ("west", ["east", "west"])
        assert world.conditions()["Suspended"] == "WorkerLost"
        assert (status["startTime"], status.get("active", 0)) == (started, 0)
        assert parse_moves(moved_message(world)).left_behind[0].uid == uid
        assert world.texts("Moved") == ["moved from east to west (move 1); the copy on east may still run"]
        assert (
            manager.metrics.registry.get_sample_value("jobmirror_secondary_mirrors_total", {"why": "WorkerLost"}) == 1
        )
        world.controller("west").start("train")
        await manager.settle()
        assert "Suspended" not in world.conditions()
        assert world.source()["status"]["startTime"] != started
        world.workers["east"].restore()
        await manager.settle(20)
        assert world.mirrors() == ["west"]
        assert world.texts("LeftBehindDeleted") == ["the copy that was left on east was deleted"]
        world.controller("west").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_with_wait_it_stays() -> None:
    """3: the default: it stays, which is said once, and nothing of it is made elsewhere."""
    async with two_workers() as (world, manager):
        uid = await running_on_east(world, manager)
        world.workers["east"].go_down()
        for _ in range(80):
            await manager.settle(MINUTE / 2)
            assert (world.placed(), world.mirrors()) == ("east", ["east"])
        text = "worker east is lost (connection refused); the Job stays assigned to it"
        assert world.annotation(WAITING) == text
        assert said(world, "WorkerLost") == [(text, 1)]
        assert [count for _, count in said(world, "WorkerUnreachable")] == [1]
        assert [one for one in world.workers["west"].writes() if "/jobs" in one.path] == []
        world.workers["east"].restore()
        await manager.settle(20)
        assert (world.annotation(WAITING), world.mirror("east")["metadata"]["uid"]) == (None, uid)


async def test_the_annotation_decides_before_the_setting() -> None:
    """A Job says Reschedule where the setting says Wait, and the other way round."""
    async with two_workers() as (world, manager):
        await running_on_east(world, manager, annotations={names.ON_WORKER_LOSS: "Reschedule"})
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        assert world.placed() == "west"
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager, annotations={names.ON_WORKER_LOSS: "Wait"})
        world.workers["east"].go_down()
        await manager.settle(30 * MINUTE)
        assert world.placed() == "east"


@pytest.mark.parametrize(
    ("text", "told", "event"),
    [
        pytest.param(
            "Reschedule",
            "the policy Reschedule is not allowed here",
            "the policy Reschedule is not allowed here; Wait holds",
            id="60: not allowed",
        ),
        pytest.param(
            "Fence",
            "the policy Fence is not allowed here",
            "the policy Fence is not allowed here; Wait holds",
            id="60: nor this",
        ),
        pytest.param(
            "reschedule",
            "the policy 'reschedule' is unknown",
            "'reschedule' is unknown (did you mean Reschedule?); Wait holds",
            id="malformed",
        ),
    ],
)
async def test_what_is_not_allowed_or_understood_is_wait(text: str, told: str, event: str) -> None:
    """60: the safest is done, and it is said, once by an event."""
    allowed = Policy(on_loss_allowed=frozenset((OnLoss.WAIT,)))
    async with two_workers(policy=allowed) as (world, manager):
        await running_on_east(world, manager, annotations={names.ON_WORKER_LOSS: text})
        world.workers["east"].go_down()
        await manager.settle(30 * MINUTE)
        assert world.placed() == "east"
        assert f" ({told}: treated as Wait)" in (world.annotation(WAITING) or "")
        assert said(world, "WorkerLost") == [(world.annotation(WAITING), 1)]
        assert said(world, "UnknownAnnotation") == [(f"annotation {names.ON_WORKER_LOSS}: {event}", 1)]


@pytest.mark.parametrize("others", [("north",), ("north", "west")], ids=["22: two of three", "21: all of them"])
async def test_nothing_moves_while_most_workers_are_lost(others: tuple[str, ...]) -> None:
    """21, 22: held, which is reported of each of them, until only one of three is lost."""
    world = World()
    for name in ("east", "west", "north"):
        world.add_worker(name)
    async with manager_of(world, policy=RESCHEDULE) as manager:
        world.annotate_worker("north", cordoned="true")
        await running_on_east(world, manager)
        for name in ("east", *others):
            world.workers[name].go_down()
        await manager.settle(30 * MINUTE)
        held = manager.metrics.registry.get_sample_value
        for name in others:
            assert (world.placed(), world.mirrors(), held("jobmirror_moves_held")) == ("east", ["east"], 1)
            assert "nothing is moved while most workers are unreachable" in (world.annotation(WAITING) or "")
            assert len(world.texts("MovesHeld")) == 1 + len(others)
            world.workers[name].restore()
            await manager.settle(MINUTE)
        assert (world.placed(), held("jobmirror_moves_held")) == ("west", 0)


async def test_nothing_moves_in_the_first_minute_of_a_leader() -> None:
    """A manager that was away for long: it may be us who are cut off."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world, policy=RESCHEDULE) as manager:
        await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(10 * MINUTE)
    async with manager_of(world, policy=RESCHEDULE) as manager:
        await manager.settle(4 * MINUTE)
    async with manager_of(world, policy=RESCHEDULE) as manager:
        await manager.settle(58)
        assert world.placed() == "east"
        await manager.settle(2 * MINUTE)
        assert world.placed() == "west"


async def test_after_so_many_moves_it_stays() -> None:
    """27: moveLimit."""
    policy = Policy(lost_after_seconds=90, on_loss=OnLoss.RESCHEDULE, move_limit=2)
    async with two_workers(policy=policy) as (world, manager):
        await running_on_east(world, manager)
        for there, other in (("east", "west"), ("west", "east")):
            world.workers[there].go_down()
            await manager.settle(3 * MINUTE)
            assert world.placed() == other
            world.workers[there].restore()
            await manager.settle(20)
            assert world.mirrors() == [other]
            world.controller(other).start("train")
            await manager.settle(2)
        world.workers["east"].go_down()
        await manager.settle(10 * MINUTE)
        assert world.placed() == "east"
        assert "it was moved as often as workers.moveLimit allows" in (world.annotation(WAITING) or "")
        assert moved_message(world).startswith("move 2, from west to east")


async def test_an_old_copy_that_completed_counts() -> None:
    """32: the old one is Complete, the new one runs: the old one wins, the new one is deleted."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await moved_to_west(world, manager)
        world.controller("west").start("train")
        await manager.settle(2)
        world.controller("east").complete("train")
        world.workers["east"].restore()
        await manager.settle(20)
        assert "Complete" in world.conditions()
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        assert world.conditions()[names.MIRRORED] == "MirrorCreated"
        assert world.mirror("east")["metadata"]["uid"] == uid
        assert len(world.texts("EarlierCopyCompleted")) == 1
        await manager.settle(3 * MINUTE)
        assert world.mirrors() == ["east"]


async def test_an_old_copy_that_completed_before_the_new_one_started_counts() -> None:
    """32: also where nothing of the new one is stored."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_to_west(world, manager)
        world.controller("east").complete("train")
        world.workers["east"].restore()
        await manager.settle(20)
        assert "Complete" in world.conditions()
        assert "Suspended" not in world.conditions()
        assert (world.placed(), world.mirrors()) == ("east", ["east"])


async def test_both_completed() -> None:
    """33: what is stored first stays; the other one is deleted."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_to_west(world, manager)
        world.controller("west").start("train")
        await manager.settle(2)
        world.controller("west").complete("train")
        await manager.settle(5)
        stored = world.source()["status"]
        world.controller("east").complete("train")
        world.workers["east"].restore()
        await manager.settle(20)
        assert world.source()["status"] == stored
        assert world.mirrors() == ["west"]


async def test_an_old_copy_that_failed_is_deleted() -> None:
    """34: its failure is none of the Job's."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_to_west(world, manager)
        at = world.management.clock.text()
        ends = [condition(one, at, reason="BackoffLimitExceeded") for one in ("FailureTarget", "Failed")]
        world.controller("east").set("train", {"startTime": at, "failed": 1, "conditions": ends})
        world.workers["east"].restore()
        await manager.settle(20)
        assert "Failed" not in world.conditions()
        assert world.mirrors() == ["west"]


async def test_a_verdict_that_is_stored_is_the_end() -> None:
    """36: FailureTarget stored, then lost: finished as in D11, not moved."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager)
        at = world.management.clock.text()
        status = world.mirror("east")["status"]
        target = condition("FailureTarget", at, reason="BackoffLimitExceeded")
        world.controller("east").set("train", status | {"conditions": [target]})
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"
        assert world.mirrors() == ["east"]


async def test_a_copy_goes_although_the_new_one_is_not_made_yet() -> None:
    """37: west is recorded and does not answer; east is back, running: its copy is deleted, west's is made."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager)
        world.workers["west"].arrange("create", "jobs", Refused(500, "InternalError"), times=100_000)
        world.workers["east"].go_down()
        await manager.settle(15 * MINUTE + 30)
        assert (world.placed(), world.mirrors()) == ("west", ["east"])
        world.workers["east"].restore()
        await manager.settle(20)
        assert world.mirrors() == []
        world.workers["west"].restore()
        await manager.settle(MINUTE)
        assert world.mirrors() == ["west"]


async def test_a_worker_that_comes_and_goes_loses_nothing() -> None:
    """40: 30 s away, 30 s there: each connect begins the grace anew."""
    async with two_workers(policy=Policy(lost_after_seconds=90, on_loss=OnLoss.RESCHEDULE)) as (world, manager):
        uid = await running_on_east(world, manager)
        for _ in range(10):
            world.workers["east"].go_down()
            await manager.settle(30)
            world.workers["east"].restore()
            await manager.settle(30)
        assert world.mirrors() == ["east"]
        assert world.mirror("east")["metadata"]["uid"] == uid


async def test_a_new_mirror_that_vanishes_before_it_started_is_made_again() -> None:
    """After a move nothing has started there: no MirrorLost for what ran on the lost worker (D11)."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_to_west(world, manager)
        world.workers["west"].server.remove("jobs", "train")
        await manager.settle(10)
        assert "Failed" not in world.conditions()
        assert sorted(world.mirrors()) == ["east", "west"]


async def test_progress_never_goes_back() -> None:
    """43: Indexed, some done: the new copy begins anew, the source keeps what it knows."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        spec = {"completionMode": "Indexed", "completions": 10, "parallelism": 2}
        await running_on_east(world, manager, **spec)
        status = world.mirror("east")["status"]
        world.controller("east").set("train", status | {"succeeded": 5, "completedIndexes": "0-4"})
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        world.controller("west").start("train")
        await manager.settle(2)
        assert world.source()["status"]["completedIndexes"] == "0-4"
        status = world.mirror("west")["status"]
        world.controller("west").set("train", status | {"succeeded": 2, "completedIndexes": "3,7"})
        await manager.settle(2)
        assert world.source()["status"]["completedIndexes"] == "0-4,7"


async def test_a_suspended_job_is_moved_once_it_is_resumed() -> None:
    """50: suspended by its user while its worker is lost."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(20 * MINUTE)
        assert world.placed() == "east"
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(MINUTE)
        assert world.placed() == "west"


@pytest.mark.parametrize("is_moved", [False, True], ids=["51: before it is moved", "51: after it"])
async def test_a_source_that_was_deleted_meanwhile(is_moved: bool) -> None:
    """51: nothing of it is made any more, and what is on the lost worker goes on its return."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle((16 if is_moved else 2) * MINUTE)
        assert ("west" in world.mirrors()) is is_moved
        world.delete()
        await manager.settle(20 * MINUTE)
        assert world.mirrors() == ["east"]
        world.workers["east"].restore()
        await manager.settle(20)
        assert world.mirrors() == []


async def test_a_forged_completion_does_not_count() -> None:
    """59: another object than the recorded one, with our labels and Complete, is deleted and counts for nothing."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await moved_to_west(world, manager)
        east = world.workers["east"].server
        forged = east.get("jobs", "train", "default")
        east.remove("jobs", "train")
        forged = job(labels=forged["metadata"]["labels"], managed_by=None)
        east.put("jobs", forged)
        assert east.get("jobs", "train", "default")["metadata"]["uid"] != uid
        world.controller("east").complete("train")
        world.workers["east"].restore()
        await manager.settle(3 * MINUTE)
        assert "Complete" not in world.conditions()
        assert world.mirrors() == ["west"]
        text = "a copy on east that said that it was complete does not count, and was deleted: "
        assert world.texts("EarlierCopyNotCounted") == [text + "it is another one than was left there"]


async def test_a_completion_without_our_labels_does_not_count() -> None:
    """59: whoever took them away may have written its status, too; it goes, and that is reported."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_to_west(world, manager)
        east = world.workers["east"].server
        world.controller("east").complete("train")
        east.edit("jobs", "train", lambda body: body["metadata"]["labels"].update({names.SOURCE_UID: "other"}))
        world.workers["east"].restore()
        await manager.settle(3 * MINUTE)
        assert "Complete" not in world.conditions()
        assert world.mirrors() == ["west"]
        assert len(world.texts("EarlierCopyNotCounted")) == 1


async def test_it_goes_back_to_the_worker_that_has_its_first_copy() -> None:
    """What was left there is deleted before the next mirror is made; it is not taken for that."""
    policy = Policy(lost_after_seconds=90, on_loss=OnLoss.RESCHEDULE)
    async with two_workers(policy=policy) as (world, manager):
        first = await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(3 * MINUTE)
        assert world.placed() == "west"
        world.workers["west"].go_down()
        world.workers["east"].arrange("delete", "jobs", forbidden(), times=1000)
        world.workers["east"].is_down = False
        await manager.settle(5 * MINUTE)
        assert world.placed() == "east"
        assert world.mirror("east")["metadata"]["uid"] == first
        assert "Complete" not in world.conditions()
        world.workers["east"].restore()
        await manager.settle(3 * MINUTE)
        assert world.mirror("east")["metadata"]["uid"] != first
