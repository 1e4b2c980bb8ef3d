"""The number of slots changes, over processes of both numbers: what is recorded of workers neither goes nor comes back.

Nor do two processes of different numbers work at a time (S9–S11, decision 0031).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import pytest
from doubles.jobs import Body
from doubles.managers import HOME
from doubles.moving_jobs import Laws, a_job, is_over, watched
from doubles.refusals import Refused
from doubles.replicas import WORKERS, Fleet, Replica, process, running, world_of
from doubles.transport import Fault
from doubles.world import World

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.sharding.coordinator import Coordinator
from mirror.workers import inventory_record

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

DENIED = Refused(403, "Forbidden", 'admission webhook "policy.example.com" denied the request: not here')
LOST_AFTER, TTL = 90.0, 300
PATIENT = 900.0
"""``lostAfter`` where it matters since when a worker is lost."""
CHANGE = 120.0
"""A Lease of the old number, and the minute after it (S10), and some time to begin."""


@asynccontextmanager
async def fleet_of(world: World, *, lost_after: float = LOST_AFTER) -> AsyncIterator[tuple[Fleet, Laws]]:
    policy = Policy(lost_after_seconds=lost_after, fence_ttl_seconds=TTL)
    async with watched(world) as laws, asyncio.TaskGroup() as scope:
        fleet = Fleet(world, scope, policy=policy, move_rate=0.0)
        try:
            yield fleet, laws
        finally:
            for name in list(fleet.alive):
                await fleet.end(name, kills=False)


async def change_to(fleet: Fleet, slots: int) -> None:
    """All that are there end, and one with another number begins."""
    for name in list(fleet.alive):
        await fleet.end(name, kills=False)
    fleet.begin(slots)


def uid_of(world: World, worker: str, name: str = "train") -> str:
    return str((world.mirror(worker, name) or {}).get("metadata", {}).get("uid"))


@pytest.mark.parametrize("numbers", [(1, 4), (4, 1), (4, 8)], ids=str)
async def test_the_prefix_in_use_outlives_a_change(numbers: tuple[int, int]) -> None:
    """D19: what the Secret says meanwhile waits until nothing is left under the old one; each copy is made once."""
    before, after = numbers
    world = world_of(("east",))
    world.workers["east"].server.put("namespaces", {"metadata": {"name": "x-default"}})
    async with fleet_of(world) as (fleet, _):
        fleet.begin(before)
        await asyncio.sleep(60)
        world.create(a_job("train", OnLoss.WAIT))
        await asyncio.sleep(10)
        uid = uid_of(world, "east")
        world.annotate_worker("east", **{"namespace-prefix": "x-"})
        await change_to(fleet, after)
        await asyncio.sleep(CHANGE + 120)
        assert uid_of(world, "east") == uid
        assert world.mirror("east", "train", "x-default") is None
        world.controller("east").complete("train")
        await asyncio.sleep(10)
        assert "Complete" in world.conditions("train")


def lead_to(world: World, cluster: str) -> None:
    """As somebody does who registers worker east anew."""
    world.management.server.remove("secrets", "east", HOME)
    world.register("east", leads_to=cluster)


async def test_which_cluster_a_worker_is_outlives_a_change() -> None:
    """D19: a kubeconfig that leads elsewhere by then is refused."""
    world = world_of(("east",))
    world.add_cluster("other")
    async with fleet_of(world) as (fleet, _):
        fleet.begin(1)
        await asyncio.sleep(60)
        world.create(a_job("train", OnLoss.WAIT))
        await asyncio.sleep(10)
        lead_to(world, "other")
        await change_to(fleet, 4)
        await asyncio.sleep(CHANGE + 120)
        assert world.mirrors("train") == ["east"]
        lead_to(world, "east")
        await asyncio.sleep(60)
        world.controller("east").complete("train")
        await asyncio.sleep(10)
        assert "Complete" in world.conditions("train")


@pytest.mark.parametrize("numbers", [(1, 4, 1), (4, 8, 4), (4, 1, 4)], ids=str)
async def test_a_lease_that_was_renewed_with_another_number_is_waited_for(numbers: tuple[int, int, int]) -> None:
    """D14: what was written of leases when this number was in force before is long over, and they are not."""
    first, second, third = numbers
    world = world_of(("east", "west"))
    async with fleet_of(world) as (fleet, laws):
        fleet.begin(first)
        await asyncio.sleep(60)
        world.create(a_job("train", OnLoss.FENCE))
        await asyncio.sleep(30)
        worker = str(world.placed("train"))
        await change_to(fleet, second)
        await asyncio.sleep(CHANGE + 3 * TTL)
        assert world.mirrors("train") == [worker], "the lease was renewed all the time"
        world.workers[worker].go_down()
        await change_to(fleet, third)
        await asyncio.sleep(CHANGE + LOST_AFTER + TTL + 300)
        assert world.placed("train") != worker
        assert laws.moves["train"] == 1
        world.workers[worker].is_down = False
        await asyncio.sleep(120)
        assert world.mirrors("train") == [world.placed("train")]
        assert "FenceBreached" not in world.events()


async def test_a_worker_that_is_lost_is_so_since_it_was_whatever_the_number() -> None:
    """D13: a change does not begin ``lostAfter`` anew, nor forget until when leases last there."""
    world = world_of(("east", "west"))
    async with fleet_of(world, lost_after=PATIENT) as (fleet, laws):
        fleet.begin(4)
        await asyncio.sleep(60)
        for name, policy in (("moves", OnLoss.RESCHEDULE), ("fenced", OnLoss.FENCE)):
            body = a_job(name, policy)
            body["metadata"]["annotations"][names.WORKER_ORDER] = "east,west"
            world.create(body)
        await asyncio.sleep(30)
        world.workers["east"].go_down()
        await asyncio.sleep(PATIENT / 2)
        await change_to(fleet, 8)
        await asyncio.sleep(PATIENT / 2 + 200)
        assert [world.placed(name) for name in ("moves", "fenced")] == ["west", "west"]
        assert laws.moves == {"moves": 1, "fenced": 1}


async def test_what_was_lost_long_ago_with_this_number_counts_no_more() -> None:
    """D13: it has been back since, with another number."""
    world = world_of(("east", "west"))
    async with fleet_of(world, lost_after=PATIENT) as (fleet, laws):
        fleet.begin(4)
        await asyncio.sleep(60)
        world.create(a_job("train", OnLoss.RESCHEDULE))
        await asyncio.sleep(30)
        worker = str(world.placed("train"))
        world.workers[worker].go_down()
        await asyncio.sleep(PATIENT / 3)
        await change_to(fleet, 8)
        await asyncio.sleep(PATIENT / 3)
        world.workers[worker].is_down = False
        await asyncio.sleep(PATIENT / 2)
        assert world.mirrors("train") == [worker]
        world.workers[worker].go_down()
        await change_to(fleet, 4)
        await asyncio.sleep(PATIENT - 60)
        assert laws.moves["train"] == 0
        await asyncio.sleep(PATIENT / 2)
        assert laws.moves["train"] == 1


# -- processes of both numbers at a time -------------------------------------------------------------------------------


def written_by(world: World, peers: Iterable[str]) -> list[float]:
    """When these have written anything to workers."""
    them = {*peers, *(f"late {one}" for one in peers)}
    return sorted(one.at for wire in world.workers.values() for one in wire.writes() if one.peer in them)


@asynccontextmanager
async def kept_busy(world: World, jobs: list[str]) -> AsyncIterator[None]:
    """Each is suspended or goes on, all the time, so that each manager that works writes to workers."""

    def toggle(body: Body) -> None:
        body["spec"]["suspend"] = not body["spec"].get("suspend")

    async def toggle_all() -> None:
        while True:
            for name in jobs:
                world.edit(toggle, name)
                await asyncio.sleep(0.5)

    task = asyncio.ensure_future(toggle_all())
    try:
        yield
    finally:
        task.cancel()


SILENT, LATE = "sees no Lease any more", "its writes arrive late"


@pytest.mark.parametrize(
    ("slots", "trouble", "is_killed"),
    [
        pytest.param(1, "", False, id="none"),
        pytest.param(1, SILENT, False, id="none, no Lease is seen any more"),
        pytest.param(1, LATE, True, id="none, writes are late, and one that waits is killed"),
        pytest.param(8, SILENT, True, id="eight, no Lease is seen any more, and one that waits is killed"),
        pytest.param(8, LATE, False, id="eight, writes are late"),
    ],
)
async def test_who_has_slots_of_before_has_ended_before_another_number_begins(
    slots: int, trouble: str, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    """S9, S10: whatever it sees of the change; and the next one waits as well if who was waiting dies."""
    world = world_of()
    await _change_over(world, slots, trouble, monkeypatch, is_killed=is_killed)
    assert others_of(world), "in the end they work"
    assert not overlap_of(world)


@pytest.mark.parametrize("trouble", [SILENT, LATE])
async def test_who_does_not_look_or_does_not_wait_is_found(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted faults: a slot that hangs on no other Lease (S9), and a number that changes at once (S10)."""

    async def is_in_force(_: Coordinator) -> bool:
        return True

    if trouble == SILENT:
        monkeypatch.setattr(Coordinator, "_is_in_force", is_in_force)
    else:
        monkeypatch.setattr(inventory_record, "seconds_to_wait", lambda found, mine: 0.0)
    world = world_of()
    with suppress(AssertionError, ExceptionGroup):  # the laws may be broken, too
        await _change_over(world, 1, trouble, monkeypatch)
    assert overlap_of(world)


def others_of(world: World) -> list[float]:
    return written_by(world, ("three", "four"))


def overlap_of(world: World) -> bool:
    return written_by(world, ("one", "two"))[-1] >= others_of(world)[0]


async def _change_over(
    world: World, slots: int, trouble: str, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool = False
) -> None:
    """Two replicas of four slots: who assigns ends, and who holds some has a trouble; two with another number begin."""
    policy = Policy(lost_after_seconds=LOST_AFTER)
    assigner, holder = (Replica(world, name, policy=policy) for name in ("one", "two"))
    monkeypatch.setattr(holder.coordinator, "_assign", asyncio.Event().wait)  # it only follows: else it may be first
    async with watched(world), running(assigner, holder) as tasks:
        await asyncio.sleep(150)
        jobs = [f"train-{number}" for number in range(6)]
        for name in jobs:
            world.create(a_job(name, OnLoss.WAIT))
        await asyncio.sleep(20)
        assert len(holder.shares) == 2
        if trouble == SILENT:
            world.management.mute_watches("leases")
        elif trouble == LATE:
            for wire in world.workers.values():
                wire.late[holder.name] = 40.0
        tasks[assigner.name].cancel()
        async with running(*(process(world, name, slots, policy=policy) for name in ("three", "four"))) as then:
            async with kept_busy(world, jobs):
                await asyncio.sleep(60)
                if is_killed:
                    for wire in (world.management, *world.workers.values()):
                        wire.faults.cut_off("three")
                    then["three"].cancel()
                await asyncio.sleep(300)
            await asyncio.sleep(30)
            assert [name for name in jobs if world.mirrors(name) != [world.placed(name)]] == []


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_becomes_of_processes_of_all_numbers_each_job_runs_on_one_worker(seed: int) -> None:
    """Kills, partitions, lost answers, late writes; workers that are lost, return, are drained; numbers all the time.

    Under ``Wait`` and ``Fence`` never on two at a time; in the end every Job has one mirror, and completes.
    """
    await _history(seed)


async def _history(seed: int) -> None:
    chance, world = random.Random(seed), world_of()
    jobs = list[str]()

    async def step(fleet: Fleet) -> None:
        alive, wire = fleet.alive, chance.choice(fleet.wires)
        worker, one = chance.choice(WORKERS), chance.choice(list(alive))
        match chance.randrange(15):
            case 0:
                fleet.cut(one, [wire])
            case 1:
                fleet.cut(one, fleet.wires)
            case 2:
                fleet.heal()
            case 3 | 4 if len(alive) > 1:
                await fleet.end(one, kills=chance.random() < 0.5)
            case 5 | 6 if len(alive) < 5:
                fleet.begin(chance.choice((1, 4, 8)))
            case 7:
                await change_to(fleet, chance.choice((1, 4, 8)))
            case 8:
                verb, plural = chance.choice((("patch", "jobs/status"), ("create", "jobs"), ("patch", "configmaps")))
                wire.arrange(verb, plural, chance.choice((Fault.LOSE_ANSWER, Fault.HANG)), times=3)
            case 9:
                world.workers[worker].arrange("create", "jobs", DENIED, times=2)
            case 10:
                wire.late[one] = chance.choice((5.0, 30.0, 60.0))
            case 11 | 12:
                world.workers[worker].go_down()
            case 13:
                world.workers[worker].is_down = False
            case 14:
                world.annotate_worker(worker, drain=chance.choice((None, "move", "move-started")))

    def complete_some() -> None:
        for name in chance.sample(jobs, min(2, len(jobs))):
            for worker in world.mirrors(name):
                found = world.mirror(worker, name)
                if found is not None and (found.get("status") or {}).get("startTime") and not is_over(found):
                    world.controller(worker).complete(name)

    async with fleet_of(world) as (fleet, _):
        for slots in (4, 4, 1):
            fleet.begin(slots)
        await asyncio.sleep(150)
        for number in range(60):
            jobs.append(f"train-{number}")
            world.create(a_job(jobs[-1], chance.choice(list(OnLoss))))
            await step(fleet)
            if chance.random() < 0.2:
                complete_some()
            await asyncio.sleep(chance.choice((0.05, 1.0, 10.0, 60.0, 150.0)))
        for worker, wire in world.workers.items():
            wire.is_down = False
            world.annotate_worker(worker, drain=None)
        fleet.heal()
        await change_to(fleet, chance.choice((1, 4, 8)))
        await asyncio.sleep(CHANGE + TTL + 600)
        for name in jobs:
            assert world.mirrors(name) == [world.placed(name)], (name, world.source(name)["status"])
            assert "Failed" not in world.conditions(name), (name, world.source(name)["status"])
        for name in jobs:
            if "Complete" not in world.conditions(name):
                world.controller(str(world.placed(name))).complete(name)
        await asyncio.sleep(60)
        assert [name for name in jobs if "Complete" not in world.conditions(name)] == []
        assert "FenceBreached" not in world.events()
        assert {one["metadata"]["name"] for one in world.management.server.all("configmaps")} == {
            names.WORKERS_CONFIGMAP
        }
