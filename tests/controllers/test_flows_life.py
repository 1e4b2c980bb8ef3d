"""The life of a mirrored Job, from its creation to its deletion."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import job
from doubles.refusals import Refused
from doubles.transport import Fault
from doubles.world import ASSIGNED, WAITING, World, manager_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names

pytestmark = pytest.mark.looptime


def suspend(is_suspended: bool) -> Any:
    return lambda body: body["spec"].update(suspend=is_suspended)


async def test_a_job_is_mirrored_followed_ended_and_removed() -> None:
    """Created → on one worker → its status comes back → final → the mirror goes with its source."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        assert world.mirrors() == ["east"]
        assert world.placed() == "east"
        assert world.annotation(ASSIGNED) == "east"

        world.controller("east").start("train")
        await manager.settle()
        assert world.source()["status"]["active"] == 1

        world.controller("east").complete("train")
        await manager.settle()
        assert {"Complete", names.PLACED} <= world.conditions().keys()
        assert world.mirrors() == ["east"]  # kept as long as its source, for its logs

        world.delete()
        await manager.settle()
        assert world.mirrors() == []
        assert world.events() == ["Mirrored"]


async def test_a_mirrored_job_costs_few_writes() -> None:
    """§4: a record, one status a state and one event here; one create and one delete on the worker."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.controller("east").complete("train")
        await manager.settle()
        world.delete()
        await manager.settle()

        about_jobs = [sent for sent in world.management.writes() if "/configmaps" not in sent.path]
        assert [sent.verb for sent in about_jobs] == ["patch", "create", "patch", "patch"]
        assert [sent.verb for sent in world.workers["east"].writes()] == ["create", "delete"]


async def test_status_reaches_the_source_as_soon_as_it_is_seen() -> None:
    """D6: nothing is polled; a status is stored within a few round trips."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle(0.01)
        assert world.source()["status"]["active"] == 1


async def test_changes_behind_a_write_are_merged() -> None:
    """D6: while one status is written, later ones pile up, and the newest wins."""
    async with two_workers() as (world, manager):
        world.create(job(parallelism=9, completions=9))
        await manager.settle()
        before = len(world.management.writes())
        for active in range(1, 10):
            world.controller("east").start("train", active=active)
        await manager.settle()
        assert world.source()["status"]["active"] == 9
        assert len(world.management.writes()) - before <= 2


async def test_jobs_of_others_are_left_alone() -> None:
    """D1: no managedBy, the built-in one and a similar one are not ours."""
    async with two_workers() as (world, manager):
        for number, value in enumerate((None, names.BUILT_IN_MANAGED_BY, names.DEFAULT_MANAGED_BY + "2")):
            world.create(job(f"other-{number}", managed_by=value))
        await manager.settle(100)
        assert world.workers["east"].server.all("jobs") == []
        assert [source["status"] for source in world.management.server.all("jobs")] == [{}] * 3


async def test_a_suspended_job_is_shown_so_and_has_no_mirror() -> None:
    """D3: never placed, Suspended=True by us, with the event that kubectl users know."""
    async with two_workers() as (world, manager):
        world.create(job(suspend=True))
        await manager.settle()
        assert world.conditions() == {"Suspended": "JobSuspended"}
        assert world.mirrors() == []
        assert world.events() == ["Suspended"]

        world.edit(suspend(False))
        await manager.settle()
        assert world.mirrors() == ["east"]


async def test_suspending_again_keeps_the_mirror() -> None:
    """D3: its counters survive there; resuming is one write."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.edit(suspend(True))
        await manager.settle()
        assert world.mirror("east")["spec"]["suspend"] is True
        world.controller("east").suspend("train")
        await manager.settle()
        assert world.conditions()["Suspended"] == "JobSuspended"

        def resume_elsewhere(body: Any) -> None:
            body["spec"]["suspend"] = False
            body["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}

        before = len(world.workers["east"].writes())
        world.edit(resume_elsewhere)
        await manager.settle()
        mirror = world.mirror("east")
        assert mirror["spec"]["suspend"] is False
        assert mirror["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
        assert len(world.workers["east"].writes()) - before == 1

        await manager.settle(5)
        world.controller("east").resume("train")
        await manager.settle()
        assert "Suspended" not in world.conditions()


async def test_what_a_user_changes_follows_in_one_patch() -> None:
    """D9."""
    async with two_workers() as (world, manager):
        world.create(job(labels={"old": "1"}))
        await manager.settle()

        def change(body: Any) -> None:
            body["spec"]["parallelism"] = 7
            body["metadata"]["labels"] = {"new": "1"}

        before = len(world.workers["east"].writes())
        world.edit(change)
        await manager.settle()
        mirror = world.mirror("east")
        assert mirror["spec"]["parallelism"] == 7
        assert mirror["metadata"]["labels"]["new"] == "1"
        assert "old" not in mirror["metadata"]["labels"]
        assert len(world.workers["east"].writes()) - before == 1


async def test_what_is_reverted_twice_is_reported_not_fought() -> None:
    """D9: after two tries the worker is left alone, and the source says why."""
    async with two_workers() as (world, manager):
        world.create(job(parallelism=3))
        await manager.settle()
        east = world.workers["east"]
        before = len(east.writes())
        for _ in range(5):
            east.server.edit("jobs", "train", lambda body: body["spec"].update(parallelism=1))
            await manager.settle(11)
        assert len(east.writes()) - before == 2
        assert world.annotation(WAITING) == "worker east reverts changes to the mirror: spec.parallelism"


async def test_a_refused_change_is_reported_and_tried_again_later() -> None:
    """D9: the worker says 422; the source says so, nothing is hammered, and statuses flow on."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        east = world.workers["east"]
        east.arrange("patch", "jobs", Refused(422, "Invalid"), times=99)
        world.edit(lambda body: body["spec"].update(parallelism=4))
        await manager.settle(30)
        world.controller("east").start("train")
        await manager.settle()
        assert len([sent for sent in east.writes() if sent.verb == "patch"]) == 1
        assert "worker east rejected the change" in (world.annotation(WAITING) or "")
        assert world.events().count("ChangeRefused") == 1
        assert world.source()["status"]["active"] == 1
        east.restore()
        await manager.settle(70)
        assert world.mirror("east")["spec"]["parallelism"] == 4
        assert world.annotation(WAITING) is None


async def test_a_mirror_that_the_workers_own_queue_suspends_is_left_to_it() -> None:
    """D9: shown as Suspended, not fought over."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        before = len(world.workers["east"].writes())
        world.workers["east"].server.edit("jobs", "train", suspend(True))
        await manager.settle(30)
        assert world.conditions()["Suspended"] == "JobSuspended"
        assert len(world.workers["east"].writes()) == before


async def test_retention_removes_a_finished_mirror() -> None:
    """D8: with a retention, the mirror goes once its final status is stored and the time is over."""
    async with two_workers(policy=Policy(retention_seconds=60)) as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").complete("train")
        await manager.settle(50)
        assert world.mirrors() == ["east"]
        await manager.settle(15)
        assert world.mirrors() == []
        assert "Complete" in world.conditions()


async def test_the_final_status_is_stored_before_the_mirror_goes() -> None:
    """D8: as long as the management cluster takes no status, the mirror stays, even with no retention."""
    async with two_workers(policy=Policy(retention_seconds=0)) as (world, manager):
        world.create(job())
        await manager.settle()
        world.management.arrange("patch", "jobs", Refused(503, "ServiceUnavailable"), times=4)
        world.controller("east").complete("train")
        await manager.settle(0.02)
        assert world.mirrors() == ["east"]
        await manager.settle(5)
        assert "Complete" in world.conditions()
        assert world.mirrors() == []


async def test_a_restart_causes_no_writes() -> None:
    """A new manager finds everything as it should be."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(5):
            world.create(job(f"train-{number}"))
        world.create(job("held", suspend=True))
        await manager.settle()
        for number in range(4):
            world.controller("east").start(f"train-{number}")
        await manager.settle()
        world.controller("east").complete("train-0")
        await manager.settle()
    before = world.writes()
    async with manager_of(world) as manager:
        await manager.settle(100)
    assert world.writes() - before == 0


async def test_a_restart_in_the_middle_finishes_what_was_begun() -> None:
    """D5: recorded and not created: the next manager creates it there, and nowhere else."""
    world = World()
    world.add_worker("east")
    world.add_worker("west")
    world.workers["east"].arrange("create", "jobs", Fault.HANG, times=9)
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
    assert world.placed() == "east"
    world.workers["east"].restore()
    async with manager_of(world) as manager:
        await manager.settle()
        assert world.mirrors() == ["east"]
