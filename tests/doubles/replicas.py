"""Whole replicas in virtual time: Leases, slots, and an instance of mirroring for each that is held, as in ``app``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from doubles.clock import LoopClock
from doubles.managers import HOME, settings_of
from doubles.transport import Wire, client_of
from doubles.world import World
from mirror.controllers.mirroring import Mirroring
from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.kube.client import Client
from mirror.kube.limits import Limiter
from mirror.kube.permits import WritePermit
from mirror.model import names
from mirror.model.terms import Terms
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import Leadership, LeadershipLost, LeaseSettings
from mirror.sharding.board import slots_said
from mirror.sharding.coordinator import Coordinator, Holding, ShardingSettings
from mirror.sharding.membership import MemberSettings
from mirror.sharding.replica import Instances
from mirror.sharding.share import Share
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.wiring import build_mirroring
from mirror.workers.registry_parts import Connector

SLOTS = 4
LEASE_SECONDS = 30.0
"""As ``ShardingSettings`` has them."""
WORKERS = ("east", "north", "south", "west", "up", "down")


@dataclass
class Instance:
    """As ``app`` has it."""

    mirroring: Mirroring

    @property
    def background(self) -> tuple[tuple[str, Callable[[], Awaitable[None]]], ...]:
        return ("watch sources", self.mirroring.watch), ("keep workers", self.mirroring.registry.run)

    async def lead(self) -> None:
        await self.mirroring.lead()


class SharingProcess:
    """One process that takes slots, and has an instance of mirroring for each; run its ``coordinator``.

    How it reaches clusters, and as who, subclasses say.
    """

    def __init__(self, name: str, slots: int, environment: Environment, limiter: Limiter | None = None) -> None:
        """``limiter``: of the management cluster, to be divided; None: no limit."""
        self.name = name
        self.environment = environment
        self.limiter = limiter or Limiter(0, 1, environment.clock.monotonic)
        self.is_ready = True
        self.address = ""
        """Where it is asked for what only it knows, as its Lease says."""
        self.coordinator = Coordinator(
            self.management(None),
            ShardingSettings(MemberSettings(HOME, name, slots)),
            self._work,
            is_ready=lambda: self.is_ready,
            address=lambda: self.address,
            limiter=self.limiter,
            environment=environment,
        )
        self.instances = Instances(self._build, slots=slots, terms=self.coordinator.terms, environment=environment)

    async def run(self) -> None:
        """Until cancelled."""
        await self.coordinator.run()

    def management(self, holding: Holding | None) -> Client:
        """A client of the management cluster, which looks at the holding's permit; without one, for Leases."""
        raise NotImplementedError

    async def worker(self, holding: Holding, name: str, kubeconfig: bytes) -> Client:
        """``workers.registry.Connector``, for a holding."""
        raise NotImplementedError

    def settings(self) -> MirroringSettings:
        """Without shares and terms."""
        raise NotImplementedError

    def mirroring(self, client: Client, settings: MirroringSettings, connector: Connector) -> Mirroring:
        """An instance for one holding."""
        return build_mirroring(client, settings, connector=connector, environment=self.environment)

    async def _work(self, holding: Holding) -> None:
        await self.instances.work(holding)

    @asynccontextmanager
    async def _build(self, share: Share, terms: Terms, holding: Holding) -> AsyncIterator[Instance]:
        client, settings = self.management(holding), replace(self.settings(), share=share, terms=terms)
        try:
            yield Instance(self.mirroring(client, settings, partial(self.worker, holding)))
        finally:
            await client.close()

    @property
    def shares(self) -> list[str]:
        return sorted("assigning" if share.slot is None else str(share.slot) for share, _ in self.instances)


class Replica(SharingProcess):
    """One in a ``World``, by its name."""

    def __init__(
        self, world: World, name: str, *, slots: int = SLOTS, limits: tuple[float, int] = (0, 1), **changes: Any
    ) -> None:
        """``limits``: ``qps`` and ``burst``; ``changes``: of the settings, as in ``doubles.managers.settings_of``."""
        self.world = world
        self._changes = changes
        clock = LoopClock()
        limiter = Limiter(*limits, clock.monotonic)
        super().__init__(name, slots, Environment(clock, get_log("mirror"), Metrics()), limiter)

    def management(self, holding: Holding | None) -> Client:
        if holding is None:
            return client_of(self.world.management, peer=self.name)
        return client_of(self.world.management, limiter=self.limiter, peer=self.name, permit=holding.permit)

    async def worker(self, holding: Holding, name: str, kubeconfig: bytes) -> Client:
        return await self.world.connect(name, kubeconfig, peer=self.name, permit=holding.permit)

    def settings(self) -> MirroringSettings:
        return settings_of(self.world.origin, **{"lease_seconds": LEASE_SECONDS, **self._changes})


class Alone:
    """A process without slots, as in ``app``: it watches, and works as long as it holds the Lease; ``run`` it."""

    def __init__(self, world: World, name: str, **changes: Any) -> None:
        """``changes``: as of ``Replica``."""
        self.world = world
        self.name = name
        self._changes = changes
        self.environment = Environment(LoopClock(), get_log("mirror"), Metrics())

    async def run(self) -> None:
        """Until cancelled, or until another one has the Lease."""
        world, clock, name = self.world, self.environment.clock, self.name
        permit = WritePermit(clock.boottime)
        client = client_of(world.management, peer=name, permit=permit)
        connector = partial(world.connect, peer=name, permit=permit)
        settings = settings_of(world.origin, **self._changes)
        mirroring = build_mirroring(client, settings, connector=connector, environment=self.environment)
        lease = LeaseSettings(HOME, names.LEASE, name, annotations={names.SLOTS: slots_said(1, name)})
        leadership = Leadership(client, lease, clock=clock, log=self.environment.log, permit=permit)
        async with asyncio.TaskGroup() as scope:
            watches = [scope.create_task(work()) for work in (mirroring.watch, mirroring.registry.run)]
            try:
                with suppress(LeadershipLost):
                    await leadership.run(mirroring.lead)
            finally:
                for task in watches:
                    task.cancel()
        await client.close()


def process(world: World, name: str, slots: int, **changes: Any) -> Replica | Alone:
    """One with so many slots."""
    return Alone(world, name, **changes) if slots == 1 else Replica(world, name, slots=slots, **changes)


@asynccontextmanager
async def running(*replicas: Replica | Alone) -> AsyncIterator[dict[str, asyncio.Task[None]]]:
    async with asyncio.TaskGroup() as scope:
        tasks = {one.name: scope.create_task(one.run(), name=one.name) for one in replicas}
        try:
            yield tasks
        finally:
            for task in tasks.values():
                task.cancel()


class Fleet:
    """Replicas that come, go and are cut off during a history; those that are there, by name, in ``alive``."""

    def __init__(self, world: World, scope: asyncio.TaskGroup, **changes: Any) -> None:
        self.alive: dict[str, asyncio.Task[None]] = {}
        self.wires = [world.management, *world.workers.values()]
        self._world = world
        self._scope = scope
        self._changes = changes
        self._numbers = count(1)

    def begin(self, slots: int = SLOTS) -> None:
        """One more."""
        name = f"replica-{next(self._numbers)}"
        work = process(self._world, name, slots, **self._changes).run()
        self.alive[name] = self._scope.create_task(work, name=name)

    async def end(self, name: str, *, kills: bool) -> None:
        """One less; nothing that it says in the end arrives if it is killed."""
        task = self.alive.pop(name)
        if kills:
            self.cut(name, self.wires)
        task.cancel()
        await asyncio.wait((task,))

    def cut(self, name: str, wires: Iterable[Wire]) -> None:
        """It reaches these clusters no more."""
        for wire in wires:
            wire.faults.cut_off(name)

    def heal(self) -> None:
        """All that are there reach all clusters, at once."""
        for wire in self.wires:
            wire.late.clear()
            for name in self.alive:
                wire.faults.heal(name)


def world_of(workers: tuple[str, ...] = WORKERS) -> World:
    world = World()
    for name in workers:
        world.add_worker(name)
    return world
