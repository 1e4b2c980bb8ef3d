"""Stale caches and lost answers: one live read, and the next write goes well."""

from __future__ import annotations

import pytest
from doubles.jobs import job
from doubles.refusals import Refused
from doubles.transport import Fault, Wire
from doubles.world import two_workers

pytestmark = pytest.mark.looptime


def status_writes(wire: Wire, since: int) -> int:
    return sum(one.verb == "patch" and one.path.endswith("/status") for one in wire.sent[since:])


async def test_a_status_is_stored_although_the_watch_of_sources_shows_nothing() -> None:
    """A stale version is a conflict (M10); a look at the source follows, not the same write again and again."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.management.mute_watches("jobs")
        world.edit(lambda body: body["metadata"].setdefault("labels", {}).update(a="b"))
        before = len(world.management.sent)
        world.controller("east").start("train")
        await manager.settle(0.2)
        assert world.source()["status"]["active"] == 1
        assert status_writes(world.management, before) == 2
        assert world.mirror("east")["metadata"]["labels"]["a"] == "b"


async def test_a_deletion_that_only_a_live_read_shows_is_followed() -> None:
    """D10: what it shows is reported as by a watch."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.edit(lambda body: body["metadata"].update(finalizers=["example.com/slow"]))
        await manager.settle()
        world.management.mute_watches("jobs")
        world.delete()
        world.controller("east").start("train")
        await manager.settle(0.5)
        assert world.mirrors() == []


async def test_a_lost_answer_is_looked_up_and_not_sent_again() -> None:
    """The write was carried out: nothing is left to do."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.management.mute_watches("jobs")
        before = len(world.management.sent)
        world.management.arrange("patch", "jobs/status", Fault.LOSE_ANSWER)
        world.controller("east").start("train")
        await manager.settle(30)
        assert world.source()["status"]["active"] == 1
        assert status_writes(world.management, before) == 1
        world.controller("east").complete("train")
        await manager.settle(0.5)
        assert "Complete" in world.conditions()


async def test_a_record_whose_write_met_a_conflict_is_no_first_create() -> None:
    """D1, D5: another one may have recorded it: what this plan wanted to remember does not count."""
    async with two_workers() as (world, manager):
        world.management.arrange("patch", "jobs/status", Refused(409, "Conflict"), times=1)
        world.workers["east"].arrange("create", "jobs", Refused(403, "Forbidden"), times=99)
        world.create(job())
        await manager.settle(30)
        assert world.placed() == "west"


async def test_a_change_of_a_mirror_that_the_watch_has_not_shown_costs_one_look() -> None:
    """D9: the patch is guarded by a version that is too old."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        east = world.workers["east"]
        east.mute_watches("jobs")
        world.controller("east").start("train")
        before = len(east.sent)
        world.edit(lambda body: body["spec"].update(parallelism=5))
        await manager.settle(0.5)
        assert world.mirror("east")["spec"]["parallelism"] == 5
        assert [one.verb for one in east.sent[before:] if "/jobs/" in one.path] == ["patch", "get", "patch"]
        assert world.source()["status"]["active"] == 1


@pytest.mark.parametrize("code", [409, 500])
async def test_a_server_that_rejects_everything_is_not_hammered(code: int) -> None:
    """A look that shows nothing new does not make it try again at once."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        reason = "Conflict" if code == 409 else "InternalError"
        world.management.arrange("patch", "jobs/status", Refused(code, reason), times=999)
        before = len(world.management.sent)
        world.controller("east").start("train")
        await manager.settle(60)
        assert status_writes(world.management, before) <= 20
        world.management.restore()
        await manager.settle(40)
        assert world.source()["status"]["active"] == 1


@pytest.mark.parametrize("code", [409, 500])
async def test_a_mirror_whose_deletion_met_a_conflict_goes_all_the_same(code: int) -> None:
    """D10: a conflict proves nothing; a mirror that was taken for gone would stay, since no watch shows it again."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        reason = "Conflict" if code == 409 else "InternalError"
        world.workers["east"].arrange("delete", "jobs", Refused(code, reason), times=2)
        world.delete()
        await manager.settle(60)
        assert world.mirrors() == []


async def test_a_namesake_of_a_mirror_that_was_to_be_deleted_is_seen() -> None:
    """D10: the conflict is about another object, which a watch that is cut does not show."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        east = world.workers["east"]
        east.mute_watches("jobs")
        east.server.remove("jobs", "train")
        east.server.put("jobs", job())
        world.delete()
        await manager.settle(5)
        assert world.mirror("east") is not None
        assert [one.verb for one in east.sent if one.path.endswith("/train")] == ["delete", "get"]
