"""An end that was seen is stored, whatever becomes of the mirror or its worker afterwards (D7, D8)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from doubles.jobs import condition, job
from doubles.refusals import Refused
from doubles.world import World, two_workers

pytestmark = pytest.mark.looptime

OUTAGES = ("none", "answers 500", "down")


def break_management(world: World, how: str) -> None:
    if how == "answers 500":
        world.management.arrange("patch", "jobs/status", Refused(500, "InternalError"), times=12)
    if how == "down":
        world.management.go_down()


@pytest.mark.parametrize("seconds", [0, 1], ids=["at once", "a second later"])
@pytest.mark.parametrize("how", OUTAGES)
async def test_a_mirror_that_is_deleted_after_its_end_was_seen(how: str, seconds: int) -> None:
    """It is complete, not lost."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        break_management(world, how)
        await manager.settle(0.1)
        world.controller("east").complete("train")
        await manager.settle(seconds)
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(20)
        world.management.restore()
        await manager.settle(60)
        assert world.conditions()["Complete"] == "CompletionsReached"
        assert "MirrorLost" not in world.events()
        assert world.source()["status"].get("active") is None


@pytest.mark.parametrize("how", OUTAGES[1:])
async def test_a_worker_that_is_lost_after_the_end_was_seen(how: str) -> None:
    """The end that is known is told, not what was stored before it."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        break_management(world, how)
        await manager.settle(2)
        world.controller("east").complete("train")
        await manager.settle(0.5)
        world.workers["east"].go_down()
        await manager.settle(15)
        world.management.restore()
        await manager.settle(30)
        assert "Complete" in world.conditions()
        world.workers["east"].restore()
        await manager.settle(60)
        assert world.mirrors() == ["east"]
        assert "Complete" in world.conditions()


async def test_pods_that_were_still_terminating_when_the_worker_was_lost() -> None:
    """M6: the final condition comes once nothing can be expected of them any more."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        at = world.workers["east"].clock.text()
        ends = [condition(kind, at, reason="BackoffLimitExceeded") for kind in ("FailureTarget", "Failed")]
        world.controller("east").set("train", {"failed": 1, "terminating": 1, "startTime": at, "conditions": ends})
        await manager.settle(2)
        world.workers["east"].go_down()
        await manager.settle(30)
        assert "FailureTarget" in world.conditions()
        assert "Failed" not in world.conditions()
        await manager.settle(120)
        assert "Failed" in world.conditions()


async def test_a_replacement_of_a_mirror_that_had_ended_does_not_undo_its_end() -> None:
    """D1: another object with its labels is not the mirror."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        east, ended = world.workers["east"], world.mirror("east")
        world.management.go_down()
        await manager.settle(0.5)
        world.controller("east").complete("train")
        await manager.settle(1)
        east.server.remove("jobs", "train")
        labels, annotations = ended["metadata"]["labels"], ended["metadata"]["annotations"]
        east.server.put("jobs", job("train", managed_by=None, labels=labels, annotations=annotations))
        world.controller("east").start("train")
        await manager.settle(5)
        world.management.restore()
        await manager.settle(30)
        assert "Complete" in world.conditions()


@pytest.mark.parametrize("ahead", [0, 3600, -3600])
async def test_a_workers_clock_does_not_delay_an_end(ahead: int) -> None:
    """M6: a pod that an older worker never counts down holds the end up for two minutes, by our clock."""
    async with two_workers() as (world, manager):
        east = world.workers["east"]
        east.clock_ahead_seconds = ahead
        world.create(job())
        await manager.settle(15)
        world.controller("east").start("train")
        await manager.settle(15)
        at = (east.clock.now() + timedelta(seconds=ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")
        ends = [condition("Failed", at, reason="BackoffLimitExceeded")]
        world.controller("east").set("train", {"failed": 1, "terminating": 1, "startTime": at, "conditions": ends})
        await manager.settle(100)
        assert "Failed" not in world.conditions()
        await manager.settle(30)
        assert "Failed" in world.conditions()
