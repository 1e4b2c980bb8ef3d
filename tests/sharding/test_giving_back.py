"""Who gives a slot back, or leaves, ends in order: what it has sent is answered before another one begins."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from doubles.jobs import job
from doubles.replicas import SLOTS, Replica, running, world_of
from doubles.transport import Wire
from doubles.world import World

from mirror.model import names

pytestmark = pytest.mark.looptime

LATENCY_SECONDS = 0.03
"""One way: so that there is always something under way."""
JOBS = 60


def wires(world: World) -> list[Wire]:
    return [world.management, *world.workers.values()]


def writes_of(world: World, name: str) -> int:
    return sum(sent.peer == name for wire in wires(world) for sent in wire.writes())


def writes_given_up(world: World) -> list[str]:
    """By whom, and what, though it may still be carried out."""
    found = [one for wire in wires(world) for one in wire.given_up]
    return [f"{peer}: {request.verb} {request.path}" for peer, request in found if request.method != "GET"]


def slots_of(*replicas: Replica) -> Counter[str]:
    return Counter(share for one in replicas for share in one.shares)


@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", [20, 80, 140])
async def test_who_leaves_in_the_middle_of_a_wave_leaves_nothing_under_way(milliseconds: int) -> None:
    """And others have all that it had at once."""
    world = world_of()
    replicas = [Replica(world, name) for name in ("one", "two", "three")]
    async with running(*replicas) as tasks:
        await asyncio.sleep(150)
        for wire in wires(world):
            wire.faults.latency_seconds = LATENCY_SECONDS
        before = writes_given_up(world)
        leaver = next(one for one in replicas if "assigning" in one.shares)
        rest = [one for one in replicas if one is not leaver]
        for number in range(JOBS):
            world.create(job(f"train-{number}"))
        await asyncio.sleep(milliseconds / 1000)
        sent = writes_of(world, leaver.name)
        tasks[leaver.name].cancel()
        all_of_it = Counter({"assigning": 1} | {f"{index} of {SLOTS}": 1 for index in range(SLOTS)})
        loop = asyncio.get_running_loop()
        left_at, held_at = loop.time(), 0.0
        for _ in range(500):
            await asyncio.sleep(0.01)
            if slots_of(*rest) == all_of_it:
                held_at = held_at or loop.time()
        assert 0 < held_at - left_at < 1.0
        assert tasks[leaver.name].done()
        assert writes_given_up(world) == before
        assert writes_of(world, leaver.name) > sent, "something was under way"
        await asyncio.sleep(30)
        assert all(world.mirrors(f"train-{number}") == [world.placed(f"train-{number}")] for number in range(JOBS))


@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", [80, 140])
async def test_slots_that_are_given_back_in_the_middle_of_a_wave_have_nothing_under_way(milliseconds: int) -> None:
    """As when another one joins; here nobody does, and they are taken again."""
    world = world_of()
    only = Replica(world, "one")
    async with running(only):
        await asyncio.sleep(60)
        for wire in wires(world):
            wire.faults.latency_seconds = LATENCY_SECONDS
        for number in range(JOBS):
            world.create(job(f"train-{number}"))
        await asyncio.sleep(milliseconds / 1000)
        sent = writes_of(world, "one")
        for index in range(SLOTS):
            only.coordinator._give_back(index)
        await asyncio.sleep(LATENCY_SECONDS)
        assert writes_of(world, "one") > sent, "something was under way"
        await asyncio.sleep(30)
        assert writes_given_up(world) == []
        assert all(world.mirrors(f"train-{number}") == [world.placed(f"train-{number}")] for number in range(JOBS))


@pytest.mark.slow
async def test_whose_worker_does_not_answer_leaves_within_two_seconds_all_the_same() -> None:
    world = world_of()
    only = Replica(world, "one")
    async with running(only) as tasks:
        await asyncio.sleep(60)
        for wire in world.workers.values():
            wire.is_hung = True
        for number in range(JOBS):
            world.create(job(f"train-{number}"))
        await asyncio.sleep(1)
        tasks["one"].cancel()
        began = asyncio.get_running_loop().time()
        await asyncio.wait({tasks["one"]})
        assert asyncio.get_running_loop().time() - began < 2.5
    leases = {
        one["metadata"]["name"]: one["spec"].get("holderIdentity") for one in world.management.server.all("leases")
    }
    assert set(leases.values()) == {""}
    assert names.LEASE in leases
