"""Places of Jobs that are tried elsewhere, with several active managers: who has one, and how long (D31, S2)."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from doubles.jobs import job
from doubles.retried import AFTER, MINUTE, RUNNING, is_suspended, put_pod, record, set_pod, settings_of_retries, start
from doubles.retried import remove_pod as remove_pod_of_train
from doubles.retried import stop as stop_train
from doubles.slots import SLOTS, assigner_of, holder_of, reason_of, replicas, world_of
from doubles.world import RunningManager, World

from mirror.workers import pod_proofs

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

PLACED, FOUND, WANTED = "Placed:t1", "Placed,PlaceFoundRetried:t1", "Placed,PlaceWantedRetried:t1"


def world_with_room(places: int) -> World:
    """Of this many Jobs on north."""
    world = world_of()
    world.annotate_worker("north", capacity=str(places))
    return world


async def waiting_on_east(world: World, manager: RunningManager, *names: str) -> None:
    """They are on east, each with one pod that no node has; north is free."""
    world.annotate_worker("north", cordoned="true")
    await manager.settle(2)
    for name in names:
        world.create(job(name))
    await manager.settle(3)
    for name in names:
        assert world.placed(name) == "east"
        start(world, "east", of=name)
        put_pod(world, f"{name}-x", of=name)
    world.annotate_worker("north", cordoned=None)
    await manager.settle(2)


def stopped(world: World, *names: str) -> list[str]:
    return [name for name in names if is_suspended(world, of=name)]


def status_writes(world: World, name: str = "train") -> int:
    """How often its status was written."""
    path = f"/jobs/{name}/status"
    return sum(sent.verb == "patch" and sent.path.endswith(path) for sent in world.management.sent)


async def test_who_has_no_room_for_a_proof_reserves_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its turn may be far away, and what it reserves is kept from others."""
    monkeypatch.setattr(pod_proofs, "MOST_AT_ONCE", 1)
    world, names = world_with_room(2), ("one", "two", "three")
    async with replicas(world, **settings_of_retries(world)) as manager:
        await waiting_on_east(world, manager, *names)
        await manager.settle(AFTER + MINUTE)
        (goes,) = stopped(world, *names)
        assert sorted(reason_of(world, name) for name in names) == [FOUND, PLACED, PLACED]
        assert reason_of(world, goes) == FOUND
        world.annotate_worker("east", cordoned="true")
        world.create(job("other"))
        await manager.settle(5)
        assert world.placed("other") == "north"


async def test_a_place_that_comes_when_there_is_no_room_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: it was wanted when there was room, and that is somebody else's by now; later it is wanted again."""
    monkeypatch.setattr(pod_proofs, "MOST_AT_ONCE", 1)
    world, names = world_with_room(2), ("one", "two")
    async with replicas(world, **settings_of_retries(world)) as manager:
        await waiting_on_east(world, manager, *names)
        world.annotate_worker("north", cordoned="true")
        await manager.settle(AFTER + 3 * MINUTE)
        assert [reason_of(world, name) for name in names] == [WANTED, WANTED]
        world.annotate_worker("north", cordoned=None)
        await manager.settle(2 * MINUTE)
        (goes,) = stopped(world, *names)
        (stays,) = set(names) - {goes}
        assert (reason_of(world, goes), reason_of(world, stays)) == (FOUND, PLACED)
        world.annotate_worker("east", cordoned="true")
        world.create(job("other"))
        await manager.settle(5)
        assert world.placed("other") == "north"


async def test_pods_that_prove_nothing_cost_no_write() -> None:
    """A place is wanted once it is known that none of them has started."""
    world = world_with_room(1)
    async with replicas(world, **settings_of_retries(world)) as manager:
        await waiting_on_east(world, manager, "train")
        set_pod(world, RUNNING)
        await manager.settle(AFTER - MINUTE)
        before = status_writes(world)
        await manager.settle(3 * AFTER)
        assert (reason_of(world), record(world)) == (PLACED, None)
        assert status_writes(world) == before


async def test_a_pod_that_starts_while_a_place_is_wanted_ends_that() -> None:
    """Nothing else would look at it."""
    world = world_with_room(1)
    async with replicas(world, **settings_of_retries(world)) as manager:
        await waiting_on_east(world, manager, "train")
        world.annotate_worker("north", cordoned="true")
        await manager.settle(AFTER + 5)
        assert reason_of(world) == WANTED
        set_pod(world, RUNNING)
        await manager.settle(2)
        assert reason_of(world) == PLACED


async def test_what_is_given_up_gives_its_place_back_in_the_same_write() -> None:
    world = world_with_room(1)
    async with replicas(world, **settings_of_retries(world)) as manager:
        await waiting_on_east(world, manager, "train")
        await manager.settle(AFTER + 20)
        assert (reason_of(world), is_suspended(world)) == (FOUND, True)
        before = status_writes(world)
        set_pod(world, RUNNING)
        await manager.settle(5)
        assert (reason_of(world), is_suspended(world)) == (PLACED, False)
        assert (record(world) or ("",))[0] == "False"
        assert status_writes(world) == before + 1


async def test_a_worker_that_is_lost_while_one_stops_keeps_no_place() -> None:
    """D13: it stays where it is, for whatever time."""
    world = world_with_room(1)
    async with replicas(world, **settings_of_retries(world)) as manager:
        await waiting_on_east(world, manager, "train")
        await manager.settle(AFTER + 20)
        assert reason_of(world) == FOUND
        world.workers["east"].go_down()
        await manager.settle(MINUTE)
        world.create(job("other"))
        await manager.settle(MINUTE)
        assert (reason_of(world), world.placed("other")) == (PLACED, "north")
        world.workers["east"].is_down = False
        await manager.settle(MINUTE)
        assert (record(world) or ("",))[0] == "False"
        assert not is_suspended(world)


async def test_who_assigns_next_keeps_places_that_were_found_before_it_gives_any() -> None:
    """Whoever waits longer for a worker than it was proved does not get the place that is kept for that."""
    world = world_with_room(1)
    settings = settings_of_retries(world)
    async with AsyncExitStack() as stack:
        for index in range(SLOTS):
            await stack.enter_async_context(holder_of(world, index, **settings))
        async with assigner_of(world, **settings) as manager:
            await waiting_on_east(world, manager, "train")
            await manager.settle(AFTER + 20)
            assert (reason_of(world), is_suspended(world)) == (FOUND, True)
        world.annotate_worker("east", cordoned="true")
        world.create(job("other"))
        await manager.settle(MINUTE)
        async with assigner_of(world, **settings) as manager:
            await manager.settle(MINUTE)
            assert world.placed("other") is None
            remove_pod_of_train(world)
            stop_train(world)
            await manager.settle(MINUTE)
            assert (world.placed(), world.mirrors(), world.placed("other")) == ("north", ["north"], None)
