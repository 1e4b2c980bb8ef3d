"""Mirrors and sources that vanish, sweeps, and statuses that others write (D10, D11, D20)."""

from __future__ import annotations

import pytest
from doubles.jobs import condition, job
from doubles.refusals import Refused, forbidden
from doubles.world import WAITING, World, manager_of, two_workers

from mirror.model import names

pytestmark = pytest.mark.looptime


async def test_a_mirror_that_vanishes_before_it_started_is_made_again() -> None:
    """D11: on the same worker, and nobody need know."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        first = world.mirror("east")["metadata"]["uid"]
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle()
        assert world.mirrors() == ["east"]
        assert world.mirror("east")["metadata"]["uid"] != first


async def test_a_mirror_that_vanishes_after_it_started_fails_its_source() -> None:
    """D11: MirrorLost, in one write that the API takes; nothing is created again."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle()
        conditions = world.conditions()
        assert (conditions["FailureTarget"], conditions["Failed"]) == ("MirrorLost", "MirrorLost")
        assert "active" not in world.source()["status"]
        assert world.events().count("MirrorLost") == 1
        await manager.settle(100)
        assert world.mirrors() == []


async def test_a_mirror_that_vanishes_with_a_verdict_ends_by_it() -> None:
    """D11: SuccessCriteriaMet is stored: it is complete, although nobody saw the end."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle(2)
        at = world.management.clock.text()
        verdict = condition("SuccessCriteriaMet", at, reason="CompletionsReached")
        status = world.mirror("east")["status"] | {"conditions": [verdict]}
        world.controller("east").set("train", status)
        await manager.settle()
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle()
        assert world.conditions()["Complete"] == "CompletionsReached"


async def test_lost_labels_are_put_back() -> None:
    """D11: the watch says DELETED, a look by name says otherwise: the same object without our labels."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        uid = world.mirror("east")["metadata"]["uid"]
        world.workers["east"].server.edit("jobs", "train", lambda body: body["metadata"].update(labels={}))
        await manager.settle()
        mirror = world.mirror("east")
        assert mirror["metadata"]["uid"] == uid
        assert mirror["metadata"]["labels"][names.SOURCE_UID] == world.source()["metadata"]["uid"]
        assert "Failed" not in world.conditions()
        assert "MirrorChanged" in world.events()


async def test_a_relist_that_lacks_a_mirror_proves_nothing() -> None:
    """D11: only a look by name does; an error of that look means that nothing is known."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        east = world.workers["east"]
        east.arrange("get", "jobs", Refused(500, "InternalError"), times=3)
        east.server.remove("jobs", "train")
        await manager.settle(0.01)
        assert "Failed" not in world.conditions()
        await manager.settle(5)
        assert "Failed" in world.conditions()


async def test_deleting_the_source_deletes_the_mirror_even_with_a_finalizer() -> None:
    """D10: the deletionTimestamp is enough."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.edit(lambda body: body["metadata"].update(finalizers=["example.com/slow"]))
        world.delete()
        await manager.settle()
        assert world.mirrors() == []
        assert world.source()["metadata"]["deletionTimestamp"]


async def test_a_source_that_was_deleted_while_the_manager_was_down_is_found() -> None:
    """D10: at the start, by the origin label and a live look."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(3):
            world.create(job(f"train-{number}"))
        await manager.settle()
    world.delete("train-0")
    world.delete("train-1")
    world.create(job("train-1"))
    async with manager_of(world) as manager:
        await manager.settle(3)
        assert world.mirrors("train-0") == []
        mirror = world.mirror("east", "train-1")
        assert mirror["metadata"]["labels"][names.SOURCE_UID] == world.source("train-1")["metadata"]["uid"]
        assert world.mirrors("train-2") == ["east"]


async def test_a_source_that_was_deleted_while_its_worker_was_away_is_found() -> None:
    """D10: on reconnect."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(30)
        world.delete()
        await manager.settle(30)
        world.workers["east"].restore()
        await manager.settle(5)
        assert world.mirrors() == []


@pytest.mark.slow
async def test_a_sweep_that_would_take_too_many_halts() -> None:
    """D10: more than 20 at once is more likely our mistake than the users' wish."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(30):
            world.create(job(f"train-{number}"))
        await manager.settle()
    for number in range(25):
        world.delete(f"train-{number}")
    async with manager_of(world) as manager:
        await manager.settle(200)
        assert len(world.workers["east"].server.all("jobs")) == 30
        assert world.events().count("SweepHalted") == 1


@pytest.mark.slow
async def test_a_halted_sweep_does_not_ask_for_the_same_sources_again() -> None:
    """D29: who makes objects on a worker by the thousand makes no requests here; what goes was asked for anew."""
    world = World()
    east = world.add_worker("east")
    names_of_gone = [f"train-{number}" for number in range(25)]
    async with manager_of(world) as manager:
        for name in (*names_of_gone, "stays"):
            world.create(job(name))
        await manager.settle()
    for name in names_of_gone:
        world.delete(name)

    def asked() -> int:
        return sum(sent.verb == "get" and "/jobs/train-" in sent.path for sent in world.management.sent)

    async with manager_of(world) as manager:
        await manager.settle(600)
        assert (world.events().count("SweepHalted"), asked()) == (1, 25)
        for name in names_of_gone[:5]:
            east.server.remove("jobs", name)
        await manager.settle(200)
        assert [one["metadata"]["name"] for one in east.server.all("jobs")] == ["stays"]
        assert asked() == 25 + 20


async def test_a_mirror_that_vanished_and_may_not_be_looked_for_is_told() -> None:
    """D11, D22: nothing is known of it, so nothing is decided, and the permission that lacks is named."""
    lacks = 'User "m" cannot get resource "jobs" in API group "batch"'
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle(2)
        world.workers["east"].arrange("get", "jobs", Refused(403, "Forbidden", lacks), times=9999)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(60)
        [text] = world.texts("MirrorNotFound")
        assert text.endswith("rejects questions about it: not allowed to get jobs (403 Forbidden)")
        assert world.annotation(WAITING) == text
        assert "MirrorLost" not in world.events()
        world.workers["east"].restore()
        await manager.settle(130)
        assert "MirrorLost" in world.events()
        assert world.annotation(WAITING) is None


async def test_a_mirror_that_may_not_be_deleted_is_told_on_the_secret() -> None:
    """D10: its source is gone, so the operator is told where the worker is registered; it goes once it may."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.workers["east"].arrange("delete", "jobs", forbidden(), times=9999)
        world.delete()
        await manager.settle(70)
        assert world.texts("MirrorNotDeleted") == [
            "mirrors whose Job is gone stay on this worker, which refuses to delete them: not allowed (403 Forbidden)"
        ]
        world.workers["east"].restore()
        await manager.settle(130)
        assert world.mirrors() == []


@pytest.mark.slow
async def test_a_job_of_a_name_that_a_halted_sweep_left_runs() -> None:
    """D1, D10: the one mirror in its way is asked for by itself; the others are left as they are."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(30):
            world.create(job(f"train-{number}"))
        await manager.settle()
    for number in range(25):
        world.delete(f"train-{number}")
    async with manager_of(world) as manager:
        await manager.settle(10)
        world.create(job("train-1"))
        await manager.settle(15)
        mirror = world.mirror("east", "train-1")
        assert mirror is not None
        assert mirror["metadata"]["labels"][names.SOURCE_UID] == world.source("train-1")["metadata"]["uid"]
        assert len(world.workers["east"].server.all("jobs")) == 30
        assert world.annotation(WAITING, "train-1") is None


async def test_a_sweep_deletes_nothing_on_a_refusal() -> None:
    """D10: 403 for a source is no proof that it is gone."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
    world.delete()
    world.management.arrange("get", "jobs", forbidden(), times=2)
    async with manager_of(world) as manager:
        await manager.settle(30)
        assert world.mirrors() == ["east"]
        await manager.settle(150)
        assert world.mirrors() == []


async def test_an_unknown_object_with_our_labels_goes() -> None:
    """D2: a mirror of a source that never was here is deleted once the management cluster says so."""
    async with two_workers() as (world, manager):
        labels = {names.ORIGIN: world.origin, names.SOURCE_UID: "nobody"}
        world.workers["west"].server.put("jobs", job("stray", managed_by=None, labels=labels))
        await manager.settle(70)
        assert world.mirrors("stray") == []


async def test_a_status_that_others_keep_writing_is_left_alone() -> None:
    """D20: a cluster that ignores managedBy has a controller that runs the Job itself; no fight."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        for number in range(8):
            world.edit(lambda body, n=number: body["status"].update(active=20 + n))
            await manager.settle(0.5)
        before = len(world.management.writes())
        assert world.source()["status"]["active"] == 27
        text = "another controller writes this Job's status; its mirror on worker east may run, too: delete this Job,"
        assert (world.annotation(WAITING) or "").startswith(text)
        assert world.events().count("StatusConflict") == 1
        await manager.settle(20)
        assert len(world.management.writes()) == before


async def test_a_source_that_already_runs_here_is_left_alone() -> None:
    """D20: a status with a startTime and no record of ours is somebody else's work."""
    async with two_workers() as (world, manager):
        world.create(job(suspend=True))
        world.edit(lambda body: body.update(status={"active": 1, "startTime": world.management.clock.text()}))
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(10)
        assert world.mirrors() == []
        assert world.source()["status"]["active"] == 1


async def test_a_worker_that_lies_is_bounded_by_what_the_api_takes() -> None:
    """D7, D12: counters that fall, times that jump, unknown fields: the source never goes back."""
    async with two_workers() as (world, manager):
        world.create(job(completions=5, parallelism=5))
        await manager.settle()
        start = world.management.clock.text()
        world.controller("east").set("train", {"active": 3, "succeeded": 2, "ready": 9, "startTime": start})
        await manager.settle()
        world.controller("east").set("train", {"active": "many", "succeeded": 1, "evil": [1], "startTime": "1999"})
        await manager.settle()
        status = world.source()["status"]
        assert (status["succeeded"], status["startTime"]) == (2, start)
        assert "evil" not in status
        assert "StatusRefused" not in world.events()
