"""Leases while no manager is there, and over restarts of managers (D14); numbers are of its scenarios."""

from __future__ import annotations

import asyncio

import pytest
from controllers.test_flows_fence import FENCE, MARGIN, MINUTE, TTL, covered, fenced_on_east, left
from doubles.jobs import Body
from doubles.moving_jobs import a_job, watched
from doubles.world import World, manager_of

from mirror.model.losses import OnLoss

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

INDEXED = {"completionMode": "Indexed", "completions": 10, "parallelism": 2}


def world_of_two() -> World:
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    return world


def count(world: World, worker: str, **counted: object) -> None:
    """What its Job controller has counted there."""
    world.controller(worker).set("train", status_on(world, worker) | counted)


def status_on(world: World, worker: str) -> Body:
    mirror = world.mirror(worker)
    assert mirror is not None
    return dict(mirror["status"])


async def test_a_manager_that_was_away_for_longer_than_the_lease() -> None:
    """14: for 40 minutes; workers have ended the mirrors by then, which are placed anew at once, and count on."""
    world = world_of_two()
    async with watched(world) as laws:
        async with manager_of(world, policy=FENCE) as manager:
            world.create(a_job("train", OnLoss.FENCE, **INDEXED))
            await manager.settle(10)
            (worker,) = world.mirrors()
            count(world, worker, succeeded=2, completedIndexes="0,1")
            await manager.settle(5)
            assert world.source()["status"]["completedIndexes"] == "0,1"
        count(world, worker, succeeded=4, completedIndexes="0-3")
        ends_in = left(world, worker)
        await asyncio.sleep(ends_in - 10)
        assert "conditions" not in status_on(world, worker)
        await asyncio.sleep(40 * MINUTE - ends_in + 10)
        assert [one["reason"] for one in status_on(world, worker)["conditions"]] == ["DeadlineExceeded"] * 2
        async with manager_of(world, policy=FENCE) as manager:
            await manager.settle(15)
            status, placed = world.source()["status"], world.placed()
            assert placed is not None
            assert world.mirrors() == [placed]
            assert {"FailureTarget", "Failed", "Suspended"}.isdisjoint(world.conditions())
            assert (status["completedIndexes"], status["succeeded"], status.get("failed", 0)) == ("0-3", 4, 0)
            assert status["active"] == 1
            assert laws.moves["train"] == 1
            world.controller(placed).complete("train")
            await manager.settle(5)
            assert "Complete" in world.conditions()


async def test_a_manager_restarts() -> None:
    """15: in a moment: no renewal missed, none doubled; while east is lost: what is stored bounds its lease."""
    world = world_of_two()
    async with manager_of(world, policy=FENCE) as manager:
        await fenced_on_east(world, manager)
        await manager.settle(4 * MINUTE)
    async with manager_of(world, policy=FENCE) as manager:
        sent = len(world.workers["east"].writes())
        await manager.settle(5 * MINUTE)
        assert len(world.workers["east"].writes()) == sent
        await manager.settle(2 * MINUTE)
        assert len(world.workers["east"].writes()) == sent + 1
        assert left(world) > TTL - 2 * MINUTE
        world.workers["east"].go_down()
        await manager.settle(MINUTE)
    ends_in = left(world)
    async with manager_of(world, policy=FENCE) as manager:
        bound = covered(world)
        assert bound > ends_in
        await manager.settle(bound + MARGIN - 10)
        assert world.placed() == "east"
        await manager.settle(MINUTE)
        assert world.placed() == "west"
