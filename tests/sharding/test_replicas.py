"""Whole replicas in virtual time: Leases, slots, and instances of mirroring on real (in-memory) API servers (S1–S8)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict

import pytest
from doubles.jobs import Body, job
from doubles.managers import HOME
from doubles.refusals import Refused
from doubles.replicas import SLOTS, WORKERS, Fleet, Replica, running, world_of
from doubles.transport import Fault
from doubles.world import World

from mirror.controllers.preparing import Preparer
from mirror.decide import rules
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model import names
from mirror.sharding.slots import slot_of_worker

pytestmark = pytest.mark.looptime

DENIED = Refused(403, "Forbidden", 'admission webhook "policy.example.com" denied the request: not here')


class Laws:
    """What must hold at every write: at most one live mirror of a Job, and no Job begun twice."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.mirrors: defaultdict[str, set[str]] = defaultdict(set)
        """Of each source, by its uid: the uids of all that was ever seen of it on workers."""

    def check(self) -> None:
        for wire in self.world.workers.values():
            for found in wire.server.all("jobs"):
                metadata = found["metadata"]
                self.mirrors[metadata["labels"]["jobmirror.io/source-uid"]].add(metadata["uid"])
        twice = {uid: seen for uid, seen in self.mirrors.items() if len(seen) > 1}
        assert not twice, f"several mirrors of one source: {twice}"


async def finish(world: World, name: str) -> None:
    """As the Job's controller on its worker."""
    controller = world.controller(str(world.placed(name)))
    controller.start(name)
    await asyncio.sleep(0.2)
    controller.complete(name)


@pytest.mark.slow
async def test_three_replicas_share_the_workers_and_run_each_job_once() -> None:
    world = world_of()
    replicas = [Replica(world, name) for name in ("one", "two", "three")]
    async with running(*replicas):
        await asyncio.sleep(150)
        held = Counter(share for one in replicas for share in one.shares)
        assert held == Counter({"assigning": 1} | {f"{index} of {SLOTS}": 1 for index in range(SLOTS)})
        assert [sum(_says_it_holds(one, index) for one in replicas) for index in range(SLOTS)] == [1] * SLOTS
        jobs = [f"train-{number}" for number in range(24)]
        for name in jobs:
            world.create(job(name))
        await asyncio.sleep(5)
        assert Counter(world.placed(name) for name in jobs) == Counter(dict.fromkeys(WORKERS, 4))
        Laws(world).check()
        for name in jobs:
            await finish(world, name)
        await asyncio.sleep(10)
        assert all("Complete" in world.conditions(name) for name in jobs)


@pytest.mark.slow
async def test_what_leases_cost_while_nothing_happens() -> None:
    """As docs/scaling.md has it: a GET and a PUT of each slot, a PATCH of each manager; one assigns, others look."""
    world = world_of()
    async with running(*(Replica(world, name, slots=16) for name in ("one", "two", "three"))):
        await asyncio.sleep(150)
        world.management.sent.clear()
        await asyncio.sleep(100)
        sent = Counter(one.verb for one in world.management.sent if "/leases" in one.path and one.verb != "watch")
    rates = {verb: count / 100 for verb, count in sent.items()}
    assert rates == pytest.approx({"get": (16 + 2) / 5, "update": (16 + 1) / 5, "patch": 3 / 5}, rel=0.05)
    assert sum(rates.values()) == pytest.approx(7.6, rel=0.05)


def _says_it_holds(replica: Replica, index: int) -> float:
    """As a scraper sees it."""
    metrics = replica.environment.metrics
    metrics.refresh()
    return metrics.registry.get_sample_value("jobmirror_slot_holders", {"slot": str(index)}) or 0.0


@pytest.mark.slow
async def test_a_replica_that_is_killed_costs_the_time_of_its_leases_and_nothing_else() -> None:
    world = world_of()
    replicas = [Replica(world, name) for name in ("one", "two", "three")]
    async with running(*replicas):
        await asyncio.sleep(150)
        jobs = [f"train-{number}" for number in range(24)]
        for name in jobs:
            world.create(job(name))
        await asyncio.sleep(5)
        uids = {name: _uid(world, name) for name in jobs}
        world.management.faults.cut_off("two")
        for wire in world.workers.values():
            wire.faults.cut_off("two")
        for name in jobs:
            await finish(world, name)
        more = [f"more-{number}" for number in range(12)]
        for name in more:
            world.create(job(name))
        await asyncio.sleep(90)
        assert {name: _uid(world, name) for name in jobs} == uids
        assert all("Complete" in world.conditions(name) for name in jobs)
        assert all(world.mirrors(name) == [world.placed(name)] for name in more)
        Laws(world).check()


def _uid(world: World, name: str) -> str:
    found: Body | None = world.mirror(str(world.placed(name)), name)
    return str((found or {}).get("metadata", {}).get("uid"))


@pytest.mark.slow
async def test_a_rolling_restart_under_way_runs_each_job_once() -> None:
    """Each is stopped and started anew while Jobs come all the time."""
    world = world_of()
    laws = Laws(world)
    jobs: list[str] = []

    async def users() -> None:
        for number in range(120):
            jobs.append(f"train-{number}")
            world.create(job(jobs[-1]))
            await asyncio.sleep(1)
            laws.check()

    async with running(Replica(world, "one-a"), Replica(world, "two-a")) as first:
        await asyncio.sleep(60)
        coming = asyncio.ensure_future(users())
        await asyncio.sleep(20)
        async with running(Replica(world, "one-b")):
            first["one-a"].cancel()
            await asyncio.sleep(40)
            async with running(Replica(world, "two-b")):
                first["two-a"].cancel()
                await coming
                await asyncio.sleep(60)
                assert all(world.mirrors(name) == [world.placed(name)] for name in jobs)
                laws.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_whatever_becomes_of_replicas_each_job_runs_once(seed: int) -> None:
    """Kills, partitions on either side, lost answers, Leases deleted by hand: at most one mirror at every look (D2).

    A worker may refuse what is created there. What one replica writes is carried out up to a minute later for a while,
    as from a process that froze between looking at its Lease and sending, and whether or not it is alive by then.
    """
    await _history(seed)


@pytest.mark.slow
async def test_a_create_that_may_have_been_sent_before_taken_for_the_first_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planted fault (S6): a worker's refusal is believed although an earlier create may still arrive."""

    def note_term(self: Preparer, kind: Kind, source: Object) -> None:
        memories, own = self._state.memories, self._state.terms.of("")
        if own and memories.of(source.metadata.uid).seen_in_term != own:
            memories.set(source.metadata.uid, first_create=True, seen_in_term=own)

    monkeypatch.setattr(Preparer, "_note_term", note_term)
    with pytest.raises(ExceptionGroup) as found:
        await _history(3)
    assert found.group_contains(AssertionError, match="mirrors")


@pytest.mark.slow
async def test_a_record_is_not_taken_away_by_who_held_its_slot_before() -> None:
    """S7: a holder dies while it takes a refused record away, and the next one's create is on its way meanwhile."""
    mirrors = await _clear_that_comes_late()
    assert len(mirrors) == 1, mirrors


@pytest.mark.slow
async def test_a_record_that_is_not_touched_by_its_next_holder_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault (S7): what the holder before has under way still takes the record away."""
    monkeypatch.setattr(rules, "touch_record", lambda _: None)
    mirrors = await _clear_that_comes_late()
    assert len(mirrors) == 2, mirrors


async def _clear_that_comes_late() -> set[str]:
    """Where mirrors of a Job ever were: refused on one worker, by a holder whose next write arrives 45 s late."""
    world = world_of()
    replicas = [Replica(world, name) for name in ("one", "two", "three")]
    async with running(*replicas) as tasks:
        await asyncio.sleep(150)
        worker, holder = next(
            (worker, one)
            for worker in WORKERS
            for one in replicas
            if f"{slot_of_worker(worker, SLOTS).index} of {SLOTS}" in one.shares and "assigning" not in one.shares
        )
        other = next(name for name in WORKERS if name != worker)
        wire = world.workers[worker]
        wire.arrange("create", "jobs", DENIED)
        world.management.late[holder.name] = 45.0
        world.create(job(annotations={names.WORKER_ORDER: f"{worker},{other}"}))
        await asyncio.sleep(1.0)
        assert world.placed("train") == worker
        assert world.mirrors("train") == []
        for one in replicas:
            if one is not holder:
                wire.late[one.name] = 50.0  # the next holder's create is carried out after that write of the one before
        for each in (world.management, *world.workers.values()):
            each.faults.cut_off(holder.name)
        tasks[holder.name].cancel()
        seen = set[str]()
        for _ in range(120):
            await asyncio.sleep(1.0)
            seen.update(world.mirrors("train"))
        return seen


async def _history(seed: int) -> None:
    chance, world = random.Random(seed), world_of()
    laws, jobs = Laws(world), list[str]()
    async with asyncio.TaskGroup() as scope:
        fleet = Fleet(world, scope)
        alive, wires = fleet.alive, fleet.wires
        for _ in range(3):
            fleet.begin()
        await asyncio.sleep(100)
        for number in range(60):
            jobs.append(f"train-{number}")
            world.create(job(jobs[-1]))
            match chance.randrange(11):
                case 0:
                    fleet.cut(chance.choice(list(alive)), [chance.choice(wires)])
                case 1:
                    fleet.cut(chance.choice(list(alive)), wires)
                case 2:
                    fleet.heal()
                case 3 if len(alive) > 1:
                    await fleet.end(chance.choice(list(alive)), kills=True)
                case 4 if len(alive) > 1:
                    await fleet.end(chance.choice(list(alive)), kills=False)
                case 5 | 6 if len(alive) < 4:
                    fleet.begin()
                case 7:
                    leases = [one["metadata"]["name"] for one in world.management.server.all("leases")]
                    world.management.server.remove("leases", chance.choice(leases), HOME)
                case 8:
                    wire = chance.choice(wires)
                    verb, plural = chance.choice((("patch", "jobs/status"), ("create", "jobs"), ("update", "leases")))
                    wire.arrange(verb, plural, chance.choice((Fault.LOSE_ANSWER, Fault.HANG)), times=3)
                case 9:
                    chance.choice(list(world.workers.values())).arrange("create", "jobs", DENIED, times=2)
                case 10:
                    wire = chance.choice(wires)
                    wire.late[chance.choice(list(alive))] = chance.choice((5.0, 30.0, 60.0))
            if (ended := chance.choice(jobs)) and world.mirrors(ended) == [world.placed(ended)]:
                await finish(world, ended)
            await asyncio.sleep(chance.choice((0.05, 1.0, 5.0, 20.0)))
            laws.check()
        fleet.heal()
        fleet.begin()
        await asyncio.sleep(300)
        laws.check()
        assert [name for name in jobs if world.mirrors(name) != [world.placed(name)]] == []
        for name in jobs:
            if "Complete" not in world.conditions(name):
                await finish(world, name)
        await asyncio.sleep(30)
        assert [name for name in jobs if "Complete" not in world.conditions(name)] == []
        for name in list(alive):
            await fleet.end(name, kills=False)
