"""Which of several workers a Job gets: what it asks for, and what is known of the workers."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import Body, job
from doubles.world import WAITING, RunningManager, World, manager_of, two_workers

from mirror.model import names
from mirror.placement.policy import PlacementPolicy, Score

pytestmark = pytest.mark.looptime

START = "2026-03-01T12:00:00Z"
READINESS = PlacementPolicy(scores=((Score.LOAD, 1.0), (Score.READINESS, 1.0)))


def pods(world: World, worker: str, name: str, *, ready: int) -> None:
    """A mirror has one pod, and so many that are ready."""
    world.controller(worker).set(name, {"startTime": START, "active": 1, "ready": ready})


async def test_the_first_choice_is_taken_until_it_is_full() -> None:
    """``worker-order`` comes before the load; who is not named comes last."""
    world = World()
    world.add_worker("east")
    world.add_worker("west", annotations={"capacity": "2"})
    async with manager_of(world) as manager:
        for number in range(4):
            world.create(job(f"train-{number}", annotations={names.WORKER_ORDER: "west,nowhere"}))
            await manager.settle(0.1)
        placed = [world.mirrors(f"train-{number}") for number in range(4)]
    assert placed == [["west"], ["west"], ["east"], ["east"]]


async def test_jobs_are_spread_by_a_label_also_by_the_next_manager() -> None:
    """What is recorded is counted again from the sources."""
    world = World()
    for name, region in (("eu-1", "eu"), ("eu-2", "eu"), ("us-1", "us")):
        world.add_cluster(name)
        world.register(name, labels={"region": region})
    for first in (0, 4):
        async with manager_of(world) as manager:
            for number in range(first, first + 4):
                world.create(job(f"train-{number}", annotations={names.SPREAD_BY: "region"}))
            await manager.settle()
    placed = [world.mirrors(f"train-{number}")[0] for number in range(8)]
    assert sorted(placed) == ["eu-1", "eu-1", "eu-2", "eu-2", "us-1", "us-1", "us-1", "us-1"]


async def test_the_highest_priority_of_a_namespace_is_next() -> None:
    """Who waits with a higher one goes before the older; a change while it waits counts."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})
    async with manager_of(world) as manager:
        world.create(job("first"))
        await manager.settle(2)
        for name in ("old", "low", "urgent"):
            priority = {"low": "-5", "urgent": "1"}.get(name)
            world.create(job(name, annotations={names.PRIORITY: priority} if priority else {}))
            await manager.settle(2)
        world.edit(lambda body: body["metadata"]["annotations"].update({names.PRIORITY: "2"}), "low")
        await manager.settle(2)
        assert await ends_in_turn(world, manager, "first", 3) == ["low", "urgent", "old"]


async def test_a_preference_that_cannot_be_read_keeps_a_job_waiting() -> None:
    """It says which, and goes on once it is corrected (D22)."""
    async with two_workers() as (world, manager):
        world.create(job(annotations={names.PRIORITY: "high"}))
        await manager.settle()
        told = world.annotation(WAITING) or ""
        assert told.startswith("annotation jobmirror.io/priority: 'high' is no priority")
        assert world.placed() is None
        world.edit(lambda body: body["metadata"]["annotations"].update({names.PRIORITY: "7"}))
        await manager.settle()
        assert world.mirrors() != []


async def test_a_worker_that_gets_no_pod_ready_ranks_behind_until_it_does() -> None:
    """Score ``readiness``: counted from our own mirrors, without a permission; it lapses with the trouble."""
    world = World()
    world.add_worker("east")
    world.add_worker("west")
    async with manager_of(world, placement=READINESS) as manager:
        for number in range(2):
            world.create(job(f"stuck-{number}", annotations={names.WORKER_SELECTOR: "name=east"}))
            world.create(job(f"fine-{number}", annotations={names.WORKER_SELECTOR: "name=west"}))
        await manager.settle()
        for number in range(2):
            pods(world, "east", f"stuck-{number}", ready=0)
            pods(world, "west", f"fine-{number}", ready=1)
        await manager.settle(90)
        world.create(job("next"))
        world.create(job("after"))
        await manager.settle()
        assert (world.mirrors("next"), world.mirrors("after")) == (["west"], ["west"])
        for number in range(2):
            pods(world, "east", f"stuck-{number}", ready=1)
        await manager.settle(20)
        world.create(job("later"))
        await manager.settle()
        assert world.mirrors("later") == ["east"]


def of_class(name: str, class_name: str, **more: Any) -> Body:
    """A Job whose pods have a PriorityClass."""
    body = job(name, **more)
    body["spec"]["template"]["spec"]["priorityClassName"] = class_name
    return body


async def test_priority_classes_order_those_who_wait_already() -> None:
    """By the value of the class of their pods, once it is known; an annotation goes before."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})
    async with manager_of(world) as manager:
        world.create(job("first"))
        await manager.settle(2)
        world.create(of_class("annotated", "high", annotations={names.PRIORITY: "50"}))
        for name, class_name in (("low", "low"), ("high", "high"), ("unknown", "nowhere")):
            world.create(of_class(name, class_name))
        world.create(job("plain"))
        await manager.settle(2)
        manager.mirroring._state.priorities.set({"high": 100, "low": -100, "": 5})
        manager.mirroring._state.look_at_waiting()
        await manager.settle(2)
        assert await ends_in_turn(world, manager, "first", 5) == ["high", "annotated", "plain", "unknown", "low"]


async def ends_in_turn(world: World, manager: RunningManager, running: str, count: int) -> list[str]:
    """So many times the Job that runs on east ends: who got its place, in turn."""
    order: list[str] = []
    for _ in range(count):
        before = {running, *order}
        world.controller("east").complete(running)
        await manager.settle(1)
        (running,) = (
            {body["metadata"]["name"] for body in world.workers["east"].server.all("jobs")} - before - {"first"}
        )
        order.append(running)
    return order
