"""Moves, sweeps and copies that come back while something else is wrong, too (D14)."""

from __future__ import annotations

from typing import Any

import pytest
from controllers.test_flows_fence import FENCE, expire, fenced_on_east, mark, start
from controllers.test_flows_moves import MINUTE, RESCHEDULE, moved_message, moved_to_west, running_on_east, said
from doubles import drills
from doubles.jobs import condition, job
from doubles.refusals import Refused, forbidden
from doubles.world import RunningManager, World, manager_of, two_workers

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


@pytest.mark.parametrize("verb", ["delete", "patch"])
async def test_a_loser_that_may_not_be_deleted_is_told(verb: str) -> None:
    """It runs on beside the other one: said on the Job, and where its worker is declared; it goes once that is let."""
    async with two_workers(policy=RESCHEDULE, suspends_losers=verb == "patch") as (world, manager):
        await moved_to_west(world, manager)
        east = world.workers["east"]
        east.restore()
        east.arrange(verb, "jobs", forbidden(), times=ALWAYS)
        await manager.settle(10 * MINUTE)
        done = "suspended" if verb == "patch" else "deleted"
        ((told, count),) = said(world, "LeftBehindNotDeleted")
        assert told.startswith(f"the copy that was left on east may still run: it is not {done}, since the worker re")
        assert count <= 2
        (text,) = world.texts("MirrorNotDeleted")
        assert text.startswith("copies of Jobs that were moved stay on this worker, which refuses to ")
        assert world.mirror("east") is not None
        east.restore()
        await manager.settle(10 * MINUTE)
        found = world.mirror("east")
        assert found is None or found["spec"]["suspend"]


async def test_a_loser_that_finalizers_keep_is_not_gone() -> None:
    """What keeps it is said, and that it was deleted once it is."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_to_west(world, manager)
        server = world.workers["east"].server
        server.edit("jobs", "train", lambda body: body["metadata"].update(finalizers=["example.com/keep"]))
        world.workers["east"].restore()
        await manager.settle(10 * MINUTE)
        assert world.mirror("east")["metadata"].get("deletionTimestamp")
        text = "the copy that was left on east is being deleted, and its pods may run until it is gone"
        text = f"{text}; finalizers keep it: example.com/keep"
        assert (said(world, "LeftBehindKept"), said(world, "LeftBehindDeleted")) == ([(text, 1)], [])
        server.edit("jobs", "train", lambda body: body["metadata"].update(finalizers=None))
        await manager.settle(10)
        assert world.mirrors() == ["west"]
        assert said(world, "LeftBehindDeleted") == [("the copy that was left on east was deleted", 1)]


MANY = 25
"""More than a sweep may delete."""


async def drained_to_west(world: World, manager: RunningManager) -> list[Any]:
    """Many Jobs that ran on east and run on west; their mirrors on east as they were."""
    listed = [f"job-{number}" for number in range(MANY)]
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    for name in listed:
        world.create(job(name))
    await manager.settle(5)
    for name in listed:
        world.controller("east").start(name)
    await manager.settle(2)
    backup = [world.mirror("east", name) for name in listed]
    world.annotate_worker("west", cordoned=None)
    world.annotate_worker("east", drain="move-started")
    await manager.settle(20)
    for name in listed:
        world.controller("east").suspend(name)
    await manager.settle(MINUTE)
    assert all(world.mirrors(name) == ["west"] for name in listed)
    for name in listed:
        world.controller("west").start(name)
    world.annotate_worker("east", drain=None)
    await manager.settle(5)
    return backup


def restore_backup(world: World, backup: list[Any]) -> None:
    """As the etcd of east did before the drain."""
    for body in backup:
        labels = {key: text for key, text in body["metadata"]["labels"].items() if "controller-uid" not in key}
        kept = {key: text for key, text in body["metadata"].items() if key not in ("resourceVersion", "uid")}
        template = {key: part for key, part in body["spec"]["template"].items() if key != "metadata"}
        spec = {key: part for key, part in body["spec"].items() if key != "selector"} | {"template": template}
        world.workers["east"].server.put("jobs", body | {"metadata": kept | {"labels": labels}, "spec": spec})


@pytest.mark.parametrize("ended", [False, True], ids=["it runs elsewhere", "it has ended elsewhere"])
async def test_a_drained_worker_that_is_restored_from_a_backup(*, ended: bool) -> None:
    """Its copies run beside those on west, however many they are: they go, and it is said of each (D2)."""
    async with two_workers() as (world, manager):
        backup = await drained_to_west(world, manager)
        if ended:
            for number in range(MANY):
                world.controller("west").complete(f"job-{number}")
            await manager.settle(10)
        restore_backup(world, backup)
        await manager.settle(30 * MINUTE)
        assert [world.mirrors(f"job-{number}") for number in range(MANY)] == [["west"]] * MANY
        assert "SweepHalted" not in world.events()
        text = "a copy on east, which the Job has left for west, may have run beside it: it was deleted"
        assert world.texts("SecondCopyDeleted") == [text] * MANY
        deleted = manager.metrics.registry.get_sample_value("jobmirror_left_behind_deleted_total", {"worker": "east"})
        assert deleted == MANY


async def test_copies_of_jobs_whose_worker_is_away_are_not_deleted_by_the_dozen() -> None:
    """They may be the only ones: of those the sweep says that they may run twice, and halts."""
    async with two_workers() as (world, manager):
        backup = await drained_to_west(world, manager)
        world.workers["west"].go_down()
        await manager.settle(2)
        restore_backup(world, backup)
        await manager.settle(30 * MINUTE)
        assert all(world.mirrors(f"job-{number}") == ["east", "west"] for number in range(MANY))
        assert "SecondCopyDeleted" not in world.events()
        why = f"{MANY} of {MANY} mirrors on this worker have no source here: none, or one that is recorded on another "
        assert world.texts("SweepHalted")[0].startswith(f"{why}worker ({MANY} of them, which may run twice)")
        world.workers["west"].restore()
        await manager.settle(30 * MINUTE)
        assert [world.mirrors(f"job-{number}") for number in range(MANY)] == [["west"]] * MANY


async def test_a_complete_copy_does_not_count_once_the_job_fails() -> None:
    """It is stored, and users act by that: the copy that is back goes, and that is said (D7)."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_to_west(world, manager)
        world.controller("west").start("train")
        await manager.settle(2)
        target = condition("FailureTarget", world.management.clock.text(), reason="BackoffLimitExceeded")
        pods = {"active": 0, "ready": 0, "failed": 7, "terminating": 1}
        status = world.mirror("west")["status"]
        world.controller("west").set("train", status | pods | {"conditions": [target]})
        await manager.settle(2)
        world.controller("east").complete("train")
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert "Failed" not in world.conditions()
        assert world.texts("EarlierCopyCompleted") == []
        why = "that the Job fails was decided before"
        text = f"a copy on east that said that it was complete does not count, and was deleted: {why}"
        assert world.texts("EarlierCopyNotCounted") == [text]
        ended = [target, condition("Failed", world.management.clock.text(), reason="BackoffLimitExceeded")]
        world.controller("west").set("train", status | pods | {"terminating": 0, "conditions": ended})
        await manager.settle(MINUTE)
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"


async def moved_back_to_east(world: World, manager: RunningManager, **spec: Any) -> None:
    """A Job that was moved away from east, and from there back: what it had left there is gone."""
    await running_on_east(world, manager, **spec)
    for lost, other in (("east", "west"), ("west", "east")):
        world.workers[lost].go_down()
        await manager.settle(16 * MINUTE)
        world.controller(other).start("train")
        await manager.settle(2)
        world.workers[lost].restore()
        await manager.settle(MINUTE)
    assert (world.placed(), world.mirrors()) == ("east", ["east"])


def secondary(manager: RunningManager) -> dict[str, float]:
    counted = manager.metrics.registry.get_sample_value
    of = {why: counted("jobmirror_secondary_mirrors_total", {"why": why}) for why in ("WorkerLost", "Recreated")}
    return {why: count for why, count in of.items() if count}


async def test_one_that_starts_over_where_it_had_left_a_copy_long_ago() -> None:
    """It is said and counted as that, and not as a move from a lost worker."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_back_to_east(world, manager, annotations={names.ON_MIRROR_LOSS: "Recreate"})
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(MINUTE)
        assert world.mirrors() == ["east"]
        text = "started over on east (move 3): its mirror there had vanished, and no pod of it runs"
        assert (world.texts("MirrorRecreated"), len(world.texts("Moved"))) == ([text], 2)
        assert secondary(manager) == {"WorkerLost": 2, "Recreated": 1}


async def test_one_that_is_drained_from_where_it_had_left_a_copy_long_ago() -> None:
    """Nothing of it is left there, and no second copy is counted."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await moved_back_to_east(world, manager)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(5)
        world.controller("east").suspend("train")
        await manager.settle(20)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert secondary(manager) == {"WorkerLost": 2}
        assert "east (uid" not in moved_message(world)


@pytest.mark.parametrize("is_there", [False, True], ids=["its copy went in a drain", "its copy is back"])
async def test_a_management_cluster_that_is_restored_to_before_a_move(*, is_there: bool) -> None:
    """The record counts: that copy runs which it names, or none, and then nobody knows how that ended (D2, D11)."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world, policy=RESCHEDULE) as manager:
        uid = await running_on_east(world, manager)
        snapshot = world.source()["status"]
        if is_there:
            world.workers["east"].go_down()
            await manager.settle(16 * MINUTE)
        else:
            world.annotate_worker("east", drain="move-started")
            await manager.settle(5)
            world.controller("east").suspend("train")
            await manager.settle(20)
            world.annotate_worker("east", drain=None)
        world.controller("west").start("train")
        await manager.settle(5)
        assert world.placed() == "west"
    world.edit(lambda body: body.update(status=snapshot))
    world.workers["east"].restore()
    async with manager_of(world, policy=RESCHEDULE) as manager:
        await manager.settle(10 * MINUTE)
    if is_there:
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        assert world.mirror("east")["metadata"]["uid"] == uid
        assert len(world.texts("SecondCopyDeleted")) == 1
    else:
        assert (world.conditions().get("Failed"), world.mirrors()) == ("MirrorLost", [])
