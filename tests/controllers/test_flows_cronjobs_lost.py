"""What a CronJob does while the worker of its run is lost, under each of its policies and each of ours (D14).

Its controller and those of the workers' Jobs are at work; the time is counted in minutes from the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.moving_jobs import is_over, watched
from doubles.transport import client_of
from doubles.world import RunningManager, World, two_workers

from mirror.decide.snapshot import Policy
from mirror.embedded.controllers.cronjobs import controller as cronjobs
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.telemetry.logs import get_log

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

POLICY = Policy(lost_after_seconds=90, fence_ttl_seconds=300)
"""A run that is lost at 12 has moved by 14 under Reschedule, by 20 under Fence."""
MOVES = (OnLoss.RESCHEDULE, OnLoss.FENCE)


@asynccontextmanager
async def cronjob_controller(world: World) -> AsyncIterator[None]:
    """The management cluster's."""
    client = client_of(world.management, peer="cronjobs")
    async with asyncio.TaskGroup() as scope:
        work = cronjobs.run(client, clock=LoopClock(), log=get_log("test"))
        running = scope.create_task(work, name="cronjobs")
        try:
            yield
        finally:
            running.cancel()
    await client.close()


def create(world: World, concurrency: str, policy: OnLoss) -> None:
    """Every ten minutes a Job that runs until somebody ends it."""
    template = {"metadata": {"annotations": {names.ON_WORKER_LOSS: policy.value}}, "spec": job()["spec"]}
    spec = {"schedule": "*/10 * * * *", "concurrencyPolicy": concurrency, "jobTemplate": template}
    world.management.server.put("cronjobs", {"metadata": {"name": "train", "namespace": "default"}, "spec": spec})


def runs(world: World) -> list[str]:
    """The names of its Jobs, oldest first."""
    return [one["metadata"]["name"] for one in world.management.server.all("jobs")]


async def until(world: World, minute: float) -> None:
    await asyncio.sleep(minute * 60 - world.management.clock.monotonic())


@asynccontextmanager
async def first_run_lost(concurrency: str, policy: OnLoss) -> AsyncIterator[tuple[World, RunningManager, str]]:
    """At minute 19.5: east, on which its first run was, is lost since 12; that run has moved if it may."""
    async with two_workers(policy=POLICY) as (world, manager), watched(world), cronjob_controller(world):
        world.annotate_worker("west", cordoned="true")
        create(world, concurrency, policy)
        await until(world, 11)
        (first,) = runs(world)
        assert world.mirrors(first) == ["east"]
        world.annotate_worker("west", cordoned=None)
        await until(world, 12)
        world.workers["east"].go_down()
        await until(world, 19.5)
        assert world.placed(first) == ("west" if policy in MOVES else "east")
        yield world, manager, first


def is_over_on_east(world: World, name: str) -> bool:
    mirror = world.mirror("east", name)
    assert mirror is not None
    return is_over(mirror)


@pytest.mark.parametrize("policy", OnLoss)
async def test_forbid_skips_runs_until_the_one_before_has_ended(policy: OnLoss) -> None:
    """53: on the lost worker, which nobody sees; or, moved, on another one, as any run that takes long."""
    async with first_run_lost("Forbid", policy) as (world, manager, first):
        await until(world, 21)
        assert runs(world) == [first]
        assert "JobAlreadyActive" in world.events()
        if policy is OnLoss.WAIT:
            await until(world, 31)
            assert runs(world) == [first]
            world.workers["east"].restore()
            await manager.settle(60)
        worker = world.placed(first)
        assert worker is not None
        world.controller(worker).complete(first)
        await until(world, 41 if policy is OnLoss.WAIT else 31)
        assert runs(world)[:-1] == [first]
        assert "Complete" in world.conditions(first)
        if policy in MOVES:
            assert world.mirrors(runs(world)[-1]) == ["west"]
            assert sorted(world.mirrors(first)) == ["east", "west"]
            world.workers["east"].restore()
            await manager.settle(60)
        assert "east" in world.mirrors(first) or policy in MOVES
        assert len(world.mirrors(first)) <= 1


@pytest.mark.parametrize("policy", OnLoss)
async def test_replace_leaves_a_mirror_on_the_lost_worker(policy: OnLoss) -> None:
    """53: it goes on there until its worker is back, under Fence no longer than its lease."""
    async with first_run_lost("Replace", policy) as (world, manager, first):
        await until(world, 21)
        (second,) = runs(world)
        assert (second != first, world.mirrors(second)) == (True, ["west"])
        assert world.mirrors(first) == ["east"]
        assert is_over_on_east(world, first) is (policy is OnLoss.FENCE)
        world.workers["east"].restore()
        await manager.settle(60)
        assert (world.mirrors(first), world.mirrors(second)) == ([], ["west"])
        assert runs(world) == [second]


@pytest.mark.parametrize("policy", OnLoss)
async def test_allow_starts_the_next_run_beside_it(policy: OnLoss) -> None:
    """53: each is a Job of its own, which its own policy moves or keeps where it is."""
    async with first_run_lost("Allow", policy) as (world, manager, first):
        await until(world, 21)
        second = runs(world)[-1]
        assert (runs(world), world.mirrors(second)) == ([first, second], ["west"])
        assert world.mirrors(first) == (["east", "west"] if policy in MOVES else ["east"])
        world.workers["east"].restore()
        await manager.settle(60)
        assert world.mirrors(first) == [world.placed(first)] == ["west" if policy in MOVES else "east"]
        for name in (first, second):
            world.controller(str(world.placed(name))).complete(name)
        await manager.settle(10)
        assert all("Complete" in world.conditions(name) for name in (first, second))
