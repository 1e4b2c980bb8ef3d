"""Whoever takes over goes back while it is not known that nothing ran, and on once it is (D2, D31)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.refusals import Refused
from doubles.retried import (
    AFTER,
    ALWAYS,
    MINUTE,
    drain,
    empty,
    is_suspended,
    place_on_east,
    prove,
    put_pod,
    record,
    remove_pod,
    settings_of_retries,
    start,
    stop,
    world_of_two,
)
from doubles.transport import Fault
from doubles.world import RunningManager, World, manager_of

pytestmark = [pytest.mark.looptime, pytest.mark.slow]


async def drained(world: World, manager: RunningManager) -> None:
    await place_on_east(world, manager)
    await drain(world, manager)


async def proved(world: World, manager: RunningManager) -> None:
    await place_on_east(world, manager)
    await prove(world, manager)


async def test_before_it_is_suspended_nothing_has_happened() -> None:
    """The record is there, the suspension is not: the next one gives it up, and may begin anew."""
    world = world_of_two()
    settings = settings_of_retries(world)
    async with manager_of(world, **settings) as manager:
        world.workers["east"].arrange("patch", "jobs", Fault.LOSE_REQUEST, times=ALWAYS)
        await place_on_east(world, manager)
        await manager.settle(AFTER + 10)
        assert ((record(world) or ("",))[0], is_suspended(world)) == ("Unknown", False)
    world.workers["east"].restore()
    async with manager_of(world, **settings) as manager:
        await manager.settle(5)
        assert ((record(world) or ("",))[0], is_suspended(world)) == ("False", False)
        await manager.settle(AFTER)
        assert is_suspended(world)
        remove_pod(world)
        stop(world)
        await manager.settle(30)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])


@pytest.mark.parametrize("meanwhile", ["nothing", "its pods go"])
async def test_while_it_drains_the_next_one_goes_back(meanwhile: str) -> None:
    """It has not seen all of its pods: the mirror is resumed, and stays for good."""
    world = world_of_two()
    settings = settings_of_retries(world)
    async with manager_of(world, **settings) as manager:
        await drained(world, manager)
        uid = world.mirror("east")["metadata"]["uid"]
    if meanwhile == "its pods go":
        remove_pod(world)
        stop(world)
    async with manager_of(world, **settings) as manager:
        await manager.settle(10)
        assert record(world) == ("False", "given up: this process has not seen all of its pods")
        assert not is_suspended(world)
        assert world.mirror("east")["metadata"]["uid"] == uid
        start(world, "east")
        await manager.settle(60 * MINUTE)
        assert (world.placed(), is_suspended(world)) == ("east", False)


async def test_once_it_is_proved_the_next_one_goes_on() -> None:
    world = world_of_two()
    settings = settings_of_retries(world)
    async with manager_of(world, **settings) as manager:
        await proved(world, manager)
    world.workers["east"].restore()
    async with manager_of(world, **settings) as manager:
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])


async def test_once_it_is_gone_the_next_one_goes_on() -> None:
    world = world_of_two()
    settings = settings_of_retries(world)
    async with manager_of(world, **settings) as manager:
        await place_on_east(world, manager)
        await empty(world, manager)
    world.management.restore()
    async with manager_of(world, **settings) as manager:
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert "MirrorLost" not in world.conditions().values()


async def test_once_it_has_no_worker_the_next_one_places_it() -> None:
    """Of its first worker nothing is left but that it is avoided; that it has a startTime means nothing."""
    world = world_of_two()
    settings = settings_of_retries(world)
    async with manager_of(world, **settings) as manager:
        await drained(world, manager)
        remove_pod(world)
        stop(world)
        world.workers["west"].arrange("create", "jobs", Refused(503, "ServiceUnavailable"), times=ALWAYS)
        await manager.settle(30)
        assert (world.placed(), world.mirrors()) == ("west", [])
    world.workers["west"].restore()
    async with manager_of(world, **settings) as manager:
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        start(world, "west", ready=1)
        await manager.settle(2)
        world.controller("west").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_setting_that_is_taken_away_meanwhile_leaves_nothing_undone() -> None:
    """What is not proved is given up, what is goes on."""
    for reach, end in ((drained, "east"), (proved, "west")):
        world = world_of_two()
        settings = settings_of_retries(world)
        async with manager_of(world, **settings) as manager:
            await reach(world, manager)
        world.workers["east"].restore()
        del settings["policy"]
        async with manager_of(world, **settings) as manager:
            await manager.settle(10)
            assert (world.placed(), world.mirrors(), is_suspended(world, end)) == (end, [end], False)


@pytest.mark.parametrize(
    ("cluster", "verb", "plural"),
    [
        ("management", "patch", "jobs"),
        ("east", "patch", "jobs"),
        ("east", "delete", "jobs"),
        ("west", "create", "jobs"),
    ],
)
@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST, Refused(409, "Conflict")], ids=str)
async def test_lost_answers_cost_time_only(cluster: str, verb: str, plural: str, fault: Any) -> None:
    """Each write of the way, with its answer lost, lost itself, or refused once, as if it was stale."""
    world = world_of_two()
    async with manager_of(world, **settings_of_retries(world)) as manager:
        await place_on_east(world, manager)
        put_pod(world, "train-y")
        wire = world.management if cluster == "management" else world.workers[cluster]
        wire.arrange(verb, plural, fault, times=3)
        await manager.settle(AFTER + MINUTE)
        assert is_suspended(world)
        for name in ("train-x", "train-y"):
            remove_pod(world, name)
        stop(world)
        await manager.settle(3 * MINUTE)
        assert (world.placed(), world.mirrors(), is_suspended(world, "west")) == ("west", ["west"], False)


@pytest.mark.parametrize("at", range(12))
async def test_a_manager_that_dies_at_any_write_starts_it_nowhere_twice(at: int) -> None:
    """After so many more writes nothing it sends arrives; then another one takes over."""
    world = world_of_two()
    settings = settings_of_retries(world)
    async with manager_of(world, **settings) as manager:
        await place_on_east(world, manager)
        before = world.writes()
        for _ in range(1500):
            await manager.settle(0.5)
            if is_suspended(world) and world.mirror("east")["status"].get("active"):
                remove_pod(world)
                stop(world)
            if world.writes() - before > at:
                break
    async with manager_of(world, **settings) as manager:
        await manager.settle(30)
        if world.mirrors() == ["east"] and is_suspended(world):
            if world.mirror("east")["status"].get("active"):
                remove_pod(world)  # nothing was recorded before: it has begun anew
            stop(world)
        await manager.settle(2 * MINUTE)
        mirrors = world.mirrors()
        assert len(mirrors) == 1
        assert world.placed() == mirrors[0]
        assert not is_suspended(world, mirrors[0])
