"""Everything at once: random users, workers, faults and restarts; what must hold at every moment, and in the end.

Jobs and the tests' own kind, of the same names in the same namespace; what the chaos needs of a kind is a line of
``KINDS``.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pytest
from doubles import drills
from doubles.drills import DRILLS, definition, drill
from doubles.jobs import Body, job
from doubles.managers import conditions, placed
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault, Gone
from doubles.world import RunningManager, World, manager_of

from mirror.controllers.sources import Sources
from mirror.kube.resources import JOBS
from mirror.model import names
from mirror.workers.watching import MirrorWatches

pytestmark = pytest.mark.looptime

NAMES = ("a", "b", "c")
FAULTS = (
    Fault.LOSE_ANSWER,
    Fault.HANG,
    Fault.BREAK,
    Refused(500, "InternalError"),
    Refused(409, "Conflict"),
    forbidden(),
)
MOST_STEPS = 50
"""Of controllers, until all that may run has ended."""


def _run_job(world: World, worker: str, name: str) -> None:
    """The next that a Job controller does."""
    mirror, controller = world.workers[worker].server.get(JOBS.plural, name), world.controller(worker)
    if mirror["spec"]["suspend"]:
        controller.suspend(name)
    elif "Suspended" in conditions(mirror):
        controller.resume(name)
    elif mirror["status"].get("startTime"):
        controller.complete(name)
    else:
        controller.start(name)


def _run_drill(world: World, worker: str, name: str) -> None:
    server = world.workers[worker].server
    status = drills.after_a_round(server.get(DRILLS.plural, name))
    if status is not None:
        server.edit(DRILLS.plural, name, lambda body: body.update(status=status))


@dataclass(frozen=True)
class ChaosKind:
    """What the chaos needs of a kind."""

    plural: str
    made: Callable[..., Body]
    """One of a name; ``suspend`` says whether it is suspended."""
    policy: Callable[[Body], Body]
    """Where ``suspend`` is."""
    suspend: str
    ends: frozenset[str]
    """The conditions that end it."""
    run: Callable[[World, str, str], None]
    """What its controller on a worker does next to one that has not ended, of this name."""

    def is_suspended(self, body: Body) -> bool:
        return bool(self.policy(body).get(self.suspend))

    def end(self, body: Body) -> str:
        """The condition that ended it; nothing: it goes on."""
        return next(iter(self.ends & conditions(body).keys()), "")


KINDS = (
    ChaosKind(JOBS.plural, job, lambda body: body["spec"], "suspend", frozenset(("Complete", "Failed")), _run_job),
    ChaosKind(
        DRILLS.plural,
        lambda name, *, suspend: drill(name, paused=suspend),
        lambda body: body["spec"]["run"],
        "paused",
        frozenset(("Succeeded", "Broken")),
        _run_drill,
    ),
)


class Chaos:
    """One random history."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self._ended: dict[str, str] = {}
        """How sources have ended, by uid."""
        self._seen: defaultdict[str, set[str]] = defaultdict(set)
        """How mirrors have ended, by the uid of their source."""

    def step(self) -> None:
        """One thing that may happen to such a system."""
        do = self.random.choice((self._user, self._user, self._controller, self._controller, self._fault))
        do()

    def _user(self) -> None:
        server, kind, name = self.world.management.server, self.random.choice(KINDS), self.random.choice(NAMES)
        if server.find(kind.plural, name) is None:
            server.put(kind.plural, kind.made(name, suspend=self.random.random() < 0.3))
        elif self.random.random() < 0.4:
            server.remove(kind.plural, name)
        else:
            self._suspend(kind, name, self.random.random() < 0.5)

    def _suspend(self, kind: ChaosKind, name: str, value: bool) -> None:
        change = {kind.suspend: value}
        self.world.management.server.edit(kind.plural, name, lambda body: kind.policy(body).update(change))

    def _controller(self) -> None:
        kind, worker = self.random.choice(KINDS), self.random.choice(list(self.world.workers))
        self._run(kind, worker, self.random.choice(NAMES))

    def _run(self, kind: ChaosKind, worker: str, name: str) -> None:
        mirror = self.world.workers[worker].server.find(kind.plural, name)
        if mirror is not None and not kind.end(mirror):
            kind.run(self.world, worker, name)

    def _fault(self) -> None:
        wire = self.random.choice([self.world.management, *self.world.workers.values()])
        match self.random.randrange(5):
            case 0 if wire is not self.world.management:
                wire.go_down()
            case 1:
                wire.expire(self.random.choice(list(Gone)))
            case 2:
                wire.break_watches()
            case 3:
                wire.restore()
            case _:
                verb, kind = self.random.choice(("create", "patch", "delete", "get")), self.random.choice(KINDS)
                wire.arrange(verb, kind.plural, self.random.choice(FAULTS))

    def finish(self) -> None:
        """All that may run goes on, and whoever is suspended may run."""
        for kind in KINDS:
            for source in self._sources(kind):
                if kind.is_suspended(source):
                    self._suspend(kind, source["metadata"]["name"], False)
            for worker in self.world.workers:
                for name in NAMES:
                    self._run(kind, worker, name)

    def delete_all(self) -> None:
        """Every source goes."""
        for kind in KINDS:
            for source in self._sources(kind):
                self.world.management.server.remove(kind.plural, source["metadata"]["name"])

    # -- what must hold ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """D2, D7, D24: what must hold at each moment, of each kind."""
        for kind in KINDS:
            self._check_one_to_one(kind)
            self._check_ends(kind)

    def _check_one_to_one(self, kind: ChaosKind) -> None:
        """At most one mirror that may run, over all workers."""
        live = Counter[str]()
        for _, mirror in self._mirrors(kind):
            if not mirror["metadata"].get("deletionTimestamp") and not kind.end(mirror):
                live[_source_uid(mirror)] += 1
        assert not [uid for uid, count in live.items() if count > 1], kind.plural

    def _check_ends(self, kind: ChaosKind) -> None:
        """A source ends as a mirror of it has ended, and what it said then it does not take back."""
        for _, mirror in self._mirrors(kind):
            self._seen[_source_uid(mirror)].add(kind.end(mirror))
        for source in self._sources(kind):
            uid, end = source["metadata"]["uid"], kind.end(source)
            assert self._ended.get(uid, end) == end, f"{kind.plural}: {self._ended[uid]} was taken back"
            if end:
                self._ended[uid] = end
                assert end in self._seen[uid], f"{kind.plural}: {end}, as none of its mirrors"

    def going_on(self) -> list[Body]:
        """The sources that have not ended."""
        return [source for kind in KINDS for source in self._sources(kind) if not kind.end(source)]

    def check_settled(self) -> None:
        """Every source has what it should have, and nothing else is left."""
        for kind in KINDS:
            sources = {source["metadata"]["uid"]: source for source in self._sources(kind)}
            found: defaultdict[str, list[str]] = defaultdict(list)
            for worker, mirror in self._mirrors(kind):
                found[_source_uid(mirror)].append(worker)
            assert found.keys() <= sources.keys(), f"{kind.plural}: no mirror without a source"
            for uid, source in sources.items():
                if not kind.end(source) and not kind.is_suspended(source):
                    assert found[uid] == [placed(source)], kind.plural

    def _sources(self, kind: ChaosKind) -> list[Body]:
        return self.world.management.server.all(kind.plural)

    def _mirrors(self, kind: ChaosKind) -> Iterator[tuple[str, Body]]:
        for worker, wire in self.world.workers.items():
            for mirror in wire.server.all(kind.plural):
                yield worker, mirror


def _source_uid(mirror: Body) -> str:
    uid: str = mirror["metadata"]["labels"][names.SOURCE_UID]
    return uid


async def play(seed: int) -> None:
    """One history: three managers, each of which is killed, and a fourth, under which everything ends and goes."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    wires = (world.management, *world.workers.values())
    for wire in wires:
        wire.server.put("customresourcedefinitions", definition())
    await asyncio.sleep(1)  # until they are served, in virtual time
    chaos, manager_of_both = Chaos(world, seed), partial(manager_of, kinds=drills.KINDS)
    for _ in range(3):
        async with manager_of_both(world) as manager:
            for _ in range(25):
                chaos.step()
                for _ in range(4):
                    await manager.settle(chaos.random.choice((0.001, 0.01, 0.5, 5.0)))
                    chaos.check()
    for wire in wires:
        wire.restore()
    async with manager_of_both(world) as manager:
        await manager.settle(200)
        chaos.check()
        chaos.check_settled()
        await _end_all(chaos, manager)


async def _end_all(chaos: Chaos, manager: RunningManager) -> None:
    for _ in range(MOST_STEPS):
        chaos.finish()
        await manager.settle(5)
        chaos.check()
        if not chaos.going_on():
            break
    assert not chaos.going_on()
    chaos.check_settled()
    chaos.delete_all()
    await manager.settle(60)
    chaos.check_settled()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
async def test_whatever_happens_each_has_one_mirror_and_all_is_well_in_the_end(seed: int) -> None:
    """D2 at each moment, of both kinds; two restarts on the way; convergence once the faults are over, and an end."""
    await play(seed)


class OneStore(dict[str, Any]):
    """Stores by kind, for which every kind is the first."""

    def __getitem__(self, kind: str) -> Any:
        return super().__getitem__(next(iter(self)))


def _of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources of all kinds are in one store."""
    made = Sources.__init__

    def with_one_store(sources: Sources, *arguments: Any, **settings: Any) -> None:
        made(sources, *arguments, **settings)
        sources._stores = OneStore(sources._stores)

    monkeypatch.setattr(Sources, "__init__", with_one_store)


def _of_mirrors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mirrors of all kinds are in one store of their worker."""
    made = MirrorWatches.__init__

    def with_one_store(watches: MirrorWatches, settings: Any, stores: Any, **more: Any) -> None:
        made(watches, settings, OneStore(stores), **more)

    monkeypatch.setattr(MirrorWatches, "__init__", with_one_store)


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "seed"), [(_of_sources, 1), (_of_mirrors, 2)])
async def test_a_manager_that_ignores_the_kind_of_a_key_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D24: where two kinds share a store, objects of one name are taken for each other, and this chaos shows it."""
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        await play(seed)
