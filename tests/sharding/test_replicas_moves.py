"""Whole replicas whose workers are lost, drained and return: Jobs move, and run on one worker at a time (D14, S2)."""

from __future__ import annotations

import asyncio
import random

import pytest
from doubles.managers import HOME
from doubles.moving_jobs import a_job, is_over, watched
from doubles.refusals import Refused
from doubles.replicas import SLOTS, WORKERS, Fleet, Replica, running, world_of
from doubles.transport import Fault
from doubles.world import World

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.sharding.slots import slot_of_worker

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

DENIED = Refused(403, "Forbidden", 'admission webhook "policy.example.com" denied the request: not here')
LOST_AFTER, TTL = 90.0, 300
POLICY = Policy(lost_after_seconds=LOST_AFTER, fence_ttl_seconds=TTL)


def replica(world: World, name: str) -> Replica:
    return Replica(world, name, policy=POLICY, move_rate=0.0)


async def test_jobs_of_a_lost_worker_go_to_the_others() -> None:
    """D14: those whose policy says so; the copies go when it is back, and the others go on there."""
    world = world_of()
    async with watched(world) as laws, running(*(replica(world, name) for name in ("one", "two", "three"))):
        await asyncio.sleep(150)
        jobs = {f"{policy.value.lower()}-{number}": policy for policy in OnLoss for number in range(12)}
        for name, policy in jobs.items():
            world.create(a_job(name, policy))
        await asyncio.sleep(20)
        lost = {name: policy for name, policy in jobs.items() if world.placed(name) == "east"}
        assert set(lost.values()) == set(OnLoss)
        world.workers["east"].go_down()
        await asyncio.sleep(LOST_AFTER + TTL + 300)
        for name, policy in lost.items():
            assert (world.placed(name) == "east") is (policy is OnLoss.WAIT), name
            assert laws.moves[name] == (policy is not OnLoss.WAIT)
        world.workers["east"].is_down = False
        await asyncio.sleep(120)
        assert [name for name in jobs if world.mirrors(name) != [world.placed(name)]] == []
        assert "FenceBreached" not in world.events()


async def test_a_replica_that_is_cut_off_from_its_workers_moves_nothing() -> None:
    """D14: most of its workers are lost, and it may be that one which is cut off; nobody else can know of them."""
    world = world_of()
    replicas = [replica(world, name) for name in ("one", "two", "three")]
    async with watched(world) as laws, running(*replicas):
        await asyncio.sleep(150)
        cut = next(one for one in replicas if len(workers_of(one)) >= 2 and "assigning" not in one.shares)
        for number in range(24):
            world.create(a_job(f"train-{number}", OnLoss.RESCHEDULE))
        await asyncio.sleep(20)
        for worker in workers_of(cut):
            world.workers[worker].faults.cut_off(cut.name)
        await asyncio.sleep(900)
        assert sum(laws.moves.values()) == 0
        for worker in workers_of(cut):
            world.workers[worker].faults.heal(cut.name)
        await asyncio.sleep(60)
        assert all(world.mirrors(f"train-{number}") == [world.placed(f"train-{number}")] for number in range(24))


def workers_of(one: Replica) -> list[str]:
    """Those in the slots that a replica holds."""
    return [worker for worker in WORKERS if f"{slot_of_worker(worker, SLOTS).index} of {SLOTS}" in one.shares]


@pytest.mark.parametrize("victim", ["who requests", "who assigns"])
async def test_a_replica_that_is_killed_while_jobs_are_to_move(victim: str) -> None:
    """S2, S8: the next one does what it would have done; each Job is moved once."""
    world = world_of()
    replicas = [replica(world, name) for name in ("one", "two", "three")]
    async with watched(world) as laws, running(*replicas) as tasks:
        await asyncio.sleep(150)
        jobs = [f"train-{number}" for number in range(24)]
        for name in jobs:
            world.create(a_job(name, OnLoss.RESCHEDULE))
        await asyncio.sleep(20)
        assigns = next(one for one in replicas if "assigning" in one.shares)
        worker = next(one for one in WORKERS if one not in workers_of(assigns))
        moved = [name for name in jobs if world.placed(name) == worker]
        for other in WORKERS:
            if other != worker:
                world.annotate_worker(other, cordoned="true")
        world.workers[worker].go_down()
        await asyncio.sleep(LOST_AFTER + 60)
        assert [name for name in jobs if "MoveWanted" in world.conditions(name)[names.PLACED]] == moved
        dies = assigns if victim == "who assigns" else next(one for one in replicas if worker in workers_of(one))
        for wire in (world.management, *world.workers.values()):
            wire.faults.cut_off(dies.name)
        tasks[dies.name].cancel()
        for other in WORKERS:
            world.annotate_worker(other, cordoned=None)
        await asyncio.sleep(240)
        assert [name for name in jobs if laws.moves[name]] == moved
        assert max(laws.moves.values()) == 1
        assert all(world.placed(name) != worker for name in moved)
        world.workers[worker].is_down = False
        await asyncio.sleep(60)
        assert [name for name in jobs if world.mirrors(name) != [world.placed(name)]] == []


def state_of(world: World, name: str) -> str:
    """Of a Job and its mirrors, for whoever reads why a flow has failed."""
    mirrors = [(worker, world.mirror(worker, name)) for worker in world.mirrors(name)]
    told = [
        (worker, one["metadata"]["uid"], one["spec"].get("suspend"), one.get("status"))
        for worker, one in mirrors
        if one
    ]
    return f"{name}: {world.source(name)['metadata']['annotations']} {world.source(name)['status']}; mirrors {told}"


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_becomes_of_replicas_and_workers_each_job_runs_on_one_worker(seed: int) -> None:
    """Kills, partitions, lost answers, late writes, Leases deleted by hand; workers that are lost, return, are drained.

    Under ``Wait`` and ``Fence`` never on two at a time; under ``Reschedule`` each copy beside the recorded one is named
    by the record. In the end every Job has one mirror, and completes.
    """
    await _history(seed)


async def _history(seed: int) -> None:
    chance, world = random.Random(seed), world_of()
    jobs = list[str]()

    async def step(fleet: Fleet) -> None:
        alive, wire = fleet.alive, chance.choice(fleet.wires)
        worker, one = chance.choice(WORKERS), chance.choice(list(alive))
        match chance.randrange(16):
            case 0:
                fleet.cut(one, [wire])
            case 1:
                fleet.cut(one, fleet.wires)
            case 2:
                fleet.heal()
            case 3 | 4 if len(alive) > 1:
                await fleet.end(one, kills=chance.random() < 0.5)
            case 5 | 6 if len(alive) < 4:
                fleet.begin()
            case 7:
                leases = [found["metadata"]["name"] for found in world.management.server.all("leases")]
                world.management.server.remove("leases", chance.choice(leases), HOME)
            case 8:
                verb, plural = chance.choice((("patch", "jobs/status"), ("create", "jobs"), ("patch", "jobs")))
                wire.arrange(verb, plural, chance.choice((Fault.LOSE_ANSWER, Fault.HANG)), times=3)
            case 9:
                world.workers[worker].arrange("create", "jobs", DENIED, times=2)
            case 10:
                wire.late[one] = chance.choice((5.0, 30.0, 60.0))
            case 11 | 12 | 13:
                world.workers[worker].go_down()
            case 14:
                world.workers[worker].is_down = False
            case 15:
                drain = chance.choice((None, "move", "move-started"))
                world.annotate_worker(worker, drain=drain)

    def complete_some() -> None:
        for name in chance.sample(jobs, min(2, len(jobs))):
            for worker in world.mirrors(name):
                found = world.mirror(worker, name)
                if found is not None and (found.get("status") or {}).get("startTime") and not is_over(found):
                    world.controller(worker).complete(name)

    async with watched(world) as laws, asyncio.TaskGroup() as scope:
        fleet = Fleet(world, scope, policy=POLICY, move_rate=0.0)
        for _ in range(3):
            fleet.begin()
        await asyncio.sleep(100)
        for number in range(60):
            jobs.append(f"train-{number}")
            world.create(a_job(jobs[-1], chance.choice(list(OnLoss))))
            await step(fleet)
            if chance.random() < 0.2:
                complete_some()
            await asyncio.sleep(chance.choice((0.05, 1.0, 10.0, 60.0, 120.0)))
        for worker, wire in world.workers.items():
            wire.is_down = False
            world.annotate_worker(worker, drain=None)
        fleet.heal()
        fleet.begin()
        await asyncio.sleep(TTL + 600)
        for name in jobs:
            assert world.mirrors(name) == [world.placed(name)], state_of(world, name)
            assert "Failed" not in world.conditions(name), state_of(world, name)
        assert sum(laws.moves.values()) > 0
        for name in jobs:
            if "Complete" not in world.conditions(name):
                world.controller(str(world.placed(name))).complete(name)
        await asyncio.sleep(60)
        for name in jobs:
            assert "Complete" in world.conditions(name), state_of(world, name)
        assert "FenceBreached" not in world.events()
        for name in list(fleet.alive):
            await fleet.end(name, kills=False)
