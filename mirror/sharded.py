"""One of several active managers (S1–S8, decision 0025): what ``app`` runs where ``sharding.slots`` is over 1.

Each share that this replica holds has an instance of mirroring with clients of its own, which look at the permit of its
Lease. Beside them ``app`` keeps one that never leads, for the webhook and for metrics.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mirror.connecting import Connections
from mirror.controllers.events import event_recorder, warn_about_worker
from mirror.controllers.mirroring import Mirroring
from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.controllers.state import MirroringState
from mirror.kube.client import Client
from mirror.kube.permits import WritePermit
from mirror.model.terms import Terms
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import LeaseSettings
from mirror.sharding.coordinator import Coordinator, Holding, ShardingSettings
from mirror.sharding.membership import MemberSettings
from mirror.sharding.replica import Instances
from mirror.sharding.share import Share
from mirror.sharding.unheld import UnheldSlots
from mirror.wiring import build_mirroring
from mirror.workers.registry import Registry
from mirror.workers.renewing import Renewer

if TYPE_CHECKING:
    from mirror.controllers.tracing import Traces  # only where traces are wanted


@dataclass(frozen=True, slots=True)
class _Instance:
    """``sharding.replica.Instance``."""

    mirroring: Mirroring
    renewer: Renewer
    more: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = ()

    @property
    def background(self) -> tuple[tuple[str, Callable[[], Awaitable[None]]], ...]:
        return (
            ("watch sources", self.mirroring.watch),
            ("keep workers", self.mirroring.registry.run),
            ("renew tokens", self.renewer.run),
            *self.more,
        )

    async def lead(self) -> None:
        await self.mirroring.lead()


class Sharded:
    """This replica; ``run`` it."""

    def __init__(  # noqa: PLR0913 - what one process has, from ``app`` alone
        self,
        client: Client,
        wanted: MirroringSettings,
        lease: LeaseSettings,
        *,
        connect: Connections,
        environment: Environment,
        is_ready: Callable[[], bool],
        traces: Traces | None = None,
    ) -> None:
        """``client``: for Leases alone (``Connections.leases``); ``lease``: whose, and how long each lasts."""
        settings = self._settings = connect.settings
        self._wanted = wanted
        self._connect = connect
        self._environment = environment
        self._traces = traces
        self._mirrorings: dict[Share, Mirroring] = {}
        self._watching: Mirroring | None = None
        self._address: Callable[[], str] = lambda: ""
        slots = settings.sharding.slots
        member = MemberSettings(
            lease.namespace,
            lease.identity,
            slots,
            duration_seconds=lease.duration_seconds,
            renew_seconds=lease.retry_period_seconds,
        )
        times = lease.duration_seconds, lease.renew_deadline_seconds, lease.retry_period_seconds
        self.coordinator = Coordinator(
            client,
            ShardingSettings(member, *times),
            self._work,
            is_ready=is_ready,
            address=lambda: self._address(),
            limiter=connect.limiter,
            environment=environment,
        )
        self.instances = Instances(self._build, slots=slots, terms=self.coordinator.terms, environment=environment)

    async def run(self) -> None:
        """Take part until cancelled; all work has ended then."""
        await self.coordinator.run()

    @property
    def assigns(self) -> bool:
        """Whether this is the replica that assigns workers."""
        return any(share.slot is None for share, _ in self.instances)

    def beside(self, management: Client, registry: Registry) -> tuple[tuple[str, Callable[[], Awaitable[None]]], ...]:
        """What else runs as long as this replica does, by name. ``registry``: of all workers."""
        recorder = event_recorder(management, clock=self._environment.clock, log=self._environment.log)

        def warn(worker: str, reason: str, message: str) -> None:
            if (origin := registry.origin_of(worker)) is not None:
                warn_about_worker(recorder, origin, reason, message)

        slots = UnheldSlots(
            self.coordinator.unheld,
            lambda: tuple(registry.workers),
            is_spokesman=lambda: self.coordinator.is_spokesman,
            warn=warn,
            log=self._environment.log,
        )
        return ("look for slots that nobody holds", slots.run), ("send events about slots", recorder.run)

    def mirrorings(self) -> tuple[Mirroring, ...]:
        """Those that run here now."""
        return tuple(self._mirrorings.values())

    def held(self) -> tuple[MirroringState, ...]:
        """What those know that run here now."""
        return tuple(one.state for one in self._mirrorings.values())

    def report_to(self, watching: Mirroring) -> None:
        """Let whoever follows the changes that this one sees, which watches all beside them, hear of the instances'."""
        self._watching = watching

    def publish(self, address: Callable[[], str]) -> None:
        """Let the other replicas know where this one is asked for what only it knows, from the next renewal on."""
        self._address = address

    def describe(self) -> str:
        """What it works on, for ``/readyz``; or why it does not."""
        held = [str(share.slot.index) for share, _ in self.instances if share.slot is not None]
        text = f"slots {', '.join(held) or 'none'} of {self._settings.sharding.slots}"
        return f"leading; {text}" if self.assigns else f"{text}{_because(self.coordinator.obstacle)}"

    async def _work(self, holding: Holding) -> None:
        leader = self._environment.metrics.leader
        try:
            if holding.slot is None:
                leader.set(1)
            await self.instances.work(holding)
        finally:
            if holding.slot is None:
                leader.set(0)

    @asynccontextmanager
    async def _build(self, share: Share, terms: Terms, holding: Holding) -> AsyncIterator[_Instance]:
        permit, settings, environment = holding.permit, self._settings, self._environment
        client = await self._connect.management(permit)

        async def connect(name: str, kubeconfig: bytes) -> Client:
            return await self._connect.worker(name, kubeconfig, permit)

        try:
            wanted = replace(self._wanted, share=share, terms=terms)
            mirroring = build_mirroring(client, wanted, connector=connect, environment=environment, traces=self._traces)
            renewer = Renewer(
                client,
                mirroring.registry,
                is_enabled=settings.workers.renew_tokens and share.follows,
                is_leading=lambda: mirroring.registry.is_leading and permit.seconds_left() > 0,
                warn=mirroring.warn_about_secret,
                environment=environment,
            )
            if self._watching is not None:
                mirroring.report_to(self._watching)
            self._mirrorings[share] = mirroring
            yield _Instance(mirroring, renewer, self._checks_of(mirroring, share, permit))
        finally:
            self._mirrorings.pop(share, None)
            await client.close()

    def _checks_of(
        self, mirroring: Mirroring, share: Share, permit: WritePermit
    ) -> tuple[tuple[str, Callable[[], Awaitable[None]]], ...]:
        """What compares entries of kinds with the definitions of the share's workers, where there are some of both."""
        entries = self._settings.kinds
        if not (entries and share.follows):
            return ()
        from mirror.controllers.kind_schemas import kinds_by_path  # only where there are some
        from mirror.controllers.worker_schemas import schemas_of_workers

        schemas = schemas_of_workers(
            mirroring,
            kinds_by_path(self._wanted.kinds, entries),
            is_working=lambda: permit.seconds_left() > 0,
            environment=self._environment,
        )
        return (("check kinds of workers", schemas.run),)


def _because(obstacle: str) -> str:
    return f"; waits: {obstacle}" if obstacle else ""
