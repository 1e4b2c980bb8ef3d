"""Builds and wires everything, opens the one TaskGroup, orders the shutdown. Called by ``cli``, and by tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from mirror.batch import rule_names
from mirror.connecting import Connections
from mirror.controllers.gauges import Gauges
from mirror.controllers.mirroring import Mirroring
from mirror.controllers.mirroring_settings import mirroring_settings
from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.kube.fields import stores_field
from mirror.kube.permits import WritePermit
from mirror.model import names
from mirror.model.endings import CannotStart
from mirror.runtime import cyclic_gc, large_blocks
from mirror.runtime.clock import SystemClock
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import Leadership, LeaseSettings
from mirror.runtime.supervise import supervise
from mirror.serving.health import serve
from mirror.settings.schema import Settings
from mirror.sharded import Sharded
from mirror.sharding.board import slots_said
from mirror.sharding.share import Share
from mirror.starting import check_namespace, find_multikueue, management_uid
from mirror.telemetry.logs import Log, get_log
from mirror.telemetry.looplag import measure_loop_lag
from mirror.telemetry.metrics import Metrics
from mirror.wiring import build_mirroring
from mirror.workers.registry import Registry
from mirror.workers.renewing import Renewer

if TYPE_CHECKING:
    from mirror.controllers.tracing import Traces  # only where traces are wanted
    from mirror.jobcontroller.process import JobControllerComponent  # 38 files, only where it is enabled


async def run(
    settings: Settings,
    *,
    metrics: Metrics,
    stop: asyncio.Event,
    on_listening: Callable[[int], None] = lambda _: None,
    on_page: Callable[[int], None] = lambda _: None,
) -> None:
    """Run the manager until ``stop`` is set; ``on_listening`` and ``on_page`` get the ports.

    Raises:
        CannotStart: the settings lead nowhere (no cluster, no rights, a port that is taken).
        LeadershipLost: another manager may be working now; nothing of ours is any more.
    """
    log = get_log("mirror")
    clock = SystemClock()
    # Without a Lease nothing is held back; of several, each share has a permit of its own.
    is_held_back = settings.leader_election.enabled and settings.sharding.slots == 1
    permit = WritePermit(clock.boottime) if is_held_back else None
    connections = Connections(settings, metrics)
    management = await connections.management(permit)
    leases = await connections.leases() if settings.sharding.slots > 1 else management
    try:
        async with _tracing(settings) as traces, _job_controller(settings, metrics=metrics) as jobs:
            environment = Environment(clock, log, metrics)
            manager = await _build(
                connections, management, environment, leases=leases, permit=permit, jobs=jobs, traces=traces
            )
            health, readiness = manager.checks()
            async with (
                serve(settings.listen_address, metrics=metrics, health=health, readiness=readiness) as port,
                _http_services(settings, management, manager, on_page),
            ):
                cyclic_gc.tune()
                large_blocks.give_back()
                on_listening(port)
                log.info("started", listen=f"{settings.listen_address[0]}:{port}", origin=manager.origin)
                await manager.run(stop)
    finally:
        for client in {leases, management}:
            await client.close()
        log.info("stopped")


@dataclass
class Manager:
    """One manager with all its parts."""

    settings: Settings
    origin: str
    registry: Registry
    mirroring: Mirroring
    leadership: Leadership | None
    """None: this process works in any case, or with others (``sharded``)."""
    sharded: Sharded | None
    jobs: JobControllerComponent | None
    """Our Job controller, where the settings want it."""
    metrics: Metrics
    log: Log
    is_working: bool = False
    has_settled: bool = False
    """Whether every worker has had its first chance since the start."""
    kept: list[tuple[str, Callable[[], Awaitable[None]]]] = field(default_factory=list)
    """What else runs as long as we do, leading or not, by name."""

    @property
    def leads(self) -> bool:
        """Whether this is the one manager that leads or, of several that work at once, assigns workers."""
        return self.is_working or (self.sharded is not None and self.sharded.assigns)

    async def run(self, stop: asyncio.Event) -> None:
        """Watch at once, work when leading, end with ``stop``."""
        async with asyncio.TaskGroup() as scope:
            lag = measure_loop_lag(self.metrics.loop_lag)
            tasks = [
                scope.create_task(self._keep("watch sources", self.mirroring.watch), name="watch sources"),
                scope.create_task(self._keep("keep workers", self.registry.run), name="keep workers"),
                scope.create_task(self._freeze_when_ready(), name="freeze"),
                scope.create_task(lag, name="measure loop lag"),
                *(scope.create_task(self._keep(name, work), name=name) for name, work in self.kept),
            ]
            leading = scope.create_task(self._lead(), name="lead")
            if self.jobs is not None:
                scope.create_task(self._run_jobs(self.jobs, stop), name="run job controller")
            stopping = scope.create_task(stop.wait(), name="wait for stop")
            await asyncio.wait({leading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            # In this order: first nothing new is begun, then recorded events are sent, then the watches end.
            leading.cancel()
            await asyncio.wait({leading})
            for task in (*tasks, stopping):
                task.cancel()

    async def _keep(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        await supervise(name, work, log=self.log, on_restart=self.metrics.on_task_restart)

    async def _run_jobs(self, jobs: JobControllerComponent, stop: asyncio.Event) -> None:
        """A Job controller that would have to fight ends alone (D20): mirroring has nothing to do with that."""
        from mirror.jobcontroller.controller_conflict import ControllerConflict

        try:
            await jobs.run(stop)
        except* ControllerConflict as group:
            jobs.ended_because = str(_first(group))
            self.log.error("the job controller has ended", because=jobs.ended_because)

    async def _lead(self) -> None:
        if self.sharded is not None:
            await self.sharded.run()
        elif self.leadership is None:
            await self._work()
        else:
            await self.leadership.run(self._work)

    async def _work(self) -> None:
        self.is_working = True
        self.metrics.leader.set(1)
        try:
            await self.mirroring.lead()
        finally:
            self.is_working = False
            self.metrics.leader.set(0)

    async def _freeze_when_ready(self) -> None:
        await self.mirroring.wait_until_ready()
        cyclic_gc.freeze()

    def look_again(self, kind: Kind) -> None:
        """Look at all sources of a kind, in all instances that work here: none of them shows what has changed."""
        for one in (self.mirroring,) if self.sharded is None else self.sharded.mirrorings():
            one.look_again(kind)

    def checks(self) -> tuple[dict[str, Callable[[], tuple[bool, str]]], dict[str, Callable[[], tuple[bool, str]]]]:
        """What health and readiness mean."""

        def sources() -> tuple[bool, str]:
            informers, why = self.mirroring.informers, self.mirroring.informers.refused_because
            return informers.is_synced and not why, why or f"{len(self.mirroring.sources)} sources"

        def workers() -> tuple[bool, str]:
            if why := self.registry.refused_because:
                return False, why
            up = sum(worker.is_reachable for worker in self.registry.workers.values())
            # Who takes over looks at workers anew, and goes on serving meanwhile.
            self.has_settled = self.has_settled or self.registry.have_settled()
            others = self.registry.others_refused_because
            not_listed = f"; not listed: {others}" if others else ""
            return self.has_settled, f"{up}/{len(self.registry.workers)} workers ready{not_listed}"

        def leader() -> tuple[bool, str]:
            if self.sharded is not None:
                return True, self.sharded.describe()
            if self.leadership is not None and not self.is_working and self.leadership.obstacle:
                return False, self.leadership.obstacle
            return True, "leading" if self.is_working else "standby"

        readiness = {"sources": sources, "workers": workers, "leader": leader}
        return {"loop": lambda: (True, "alive")}, readiness | (self.jobs.checks() if self.jobs else {})


@asynccontextmanager
async def _job_controller(settings: Settings, *, metrics: Metrics) -> AsyncIterator[JobControllerComponent | None]:
    """Our Job controller, if it is wanted, with a client and limits of its own."""
    if not settings.job_controller.enabled:
        yield None
        return

    from mirror.jobcontroller.metrics import JobMetrics
    from mirror.jobcontroller.process import JobControllerComponent, connect, permit_of, settings_of

    wanted, clock = settings_of(settings, os.environ), SystemClock()
    permit = permit_of(wanted, clock)
    client = await connect(wanted, metrics=metrics, permit=permit)
    try:
        # The mirror counts Jobs of external controllers already.
        counted = JobMetrics(metrics, counts_external=False)
        yield JobControllerComponent(
            client,
            wanted,
            environment=Environment(clock, get_log("jobs"), metrics),
            metrics=counted,
            permit=permit,
        )
    finally:
        await client.close()


@asynccontextmanager
async def _http_services(
    settings: Settings, management: Client, manager: Manager, on_page: Callable[[int], None]
) -> AsyncIterator[None]:
    """The webhook, access and the page, where they are wanted; a manager that stands by has them, too."""
    if not (settings.webhook.enabled or settings.access.enabled or settings.page.enabled):
        yield
        return

    from mirror.http_services import http_services  # not at the top: it says why

    async with http_services(settings, management, manager, on_page=on_page):
        yield


@asynccontextmanager
async def _tracing(settings: Settings) -> AsyncIterator[Traces | None]:
    """Traces, where they are wanted; what is left of them is sent when all else has ended.

    Raises:
        CannotStart: what sends them is not installed.
    """
    if not settings.tracing.enabled:
        yield None
        return
    async with AsyncExitStack() as sending:
        try:
            # An extra, and megabytes that most managers need not hold.
            from mirror.controllers.tracing import Traces
            from mirror.telemetry.otlp import collector

            to = await sending.enter_async_context(collector(settings.tracing.endpoint, log=get_log("traces")))
        except ImportError as error:
            lacks = f"tracing.enabled: {error.name or error} is not installed"
            raise CannotStart(f"{lacks}; the extra otel brings it: pip install 'jobmirror[otel]'") from error
        yield Traces(to.send, SystemClock())


async def _build(  # noqa: PLR0913 - options, each with a default
    connections: Connections,
    management: Client,
    environment: Environment,
    *,
    leases: Client | None = None,
    permit: WritePermit | None = None,
    jobs: JobControllerComponent | None = None,
    traces: Traces | None = None,
) -> Manager:
    """``leases``: what writes Leases; None: ``management`` does."""
    settings, leases = connections.settings, leases or management
    clock, log, metrics = environment.clock, environment.log, environment.metrics
    uid = await management_uid(management, log)
    await check_namespace(management, settings.namespace)
    knows_names = await stores_field(management, *rule_names.FIELD, log=log)

    async def connect(name: str, kubeconfig: bytes) -> Client:
        return await connections.worker(name, kubeconfig, permit)

    wanted = mirroring_settings(settings, management_uid=uid, server_knows_rule_names=knows_names)
    wanted = replace(wanted, multikueue=await find_multikueue(management, wanted.kinds, log))
    slots = settings.sharding.slots
    mirroring = build_mirroring(
        management, replace(wanted, share=Share(slots=slots)), connector=connect, environment=environment, traces=traces
    )
    registry, origin = mirroring.registry, wanted.transform.origin
    lease = LeaseSettings.of_process(settings.leader_election, settings.namespace, names.LEASE)
    leadership = sharded = None
    if slots > 1:
        sharded = Sharded(
            leases,
            wanted,
            lease,
            connect=connections,
            environment=environment,
            is_ready=lambda: mirroring.informers.is_synced,
            traces=traces,
        )
        sharded.report_to(mirroring)
    elif settings.leader_election.enabled:
        # Those who held slots before see by it that they are in force no more, also when it is given back (S9).
        lease = replace(lease, annotations={names.SLOTS: slots_said(1, lease.identity)})
        leadership = Leadership(leases, lease, clock=clock, log=log, permit=permit)
    manager = Manager(settings, origin, registry, mirroring, leadership, sharded, jobs, metrics, log)
    _keep_beside(manager, management, environment)
    if settings.kinds:
        _check_kinds(manager, management, wanted.kinds, environment)
    if (multikueue := wanted.multikueue) is not None:
        manager.kept.append(("look for MultiKueue", partial(multikueue.run, management, manager.look_again)))
    beside = sharded.mirrorings if sharded is not None else tuple
    gauges = Gauges(mirroring, beside=beside, cluster=management.name, metrics=metrics, clock=clock)
    metrics.before_scrape(gauges.refresh)
    return manager


def _keep_beside(manager: Manager, management: Client, environment: Environment) -> None:
    """Renew tokens of workers, and look for workers that nobody works on."""
    mirroring, registry = manager.mirroring, manager.registry
    renewer = Renewer(
        management,
        registry,
        is_enabled=manager.settings.workers.renew_tokens,
        is_leading=lambda: manager.is_working and registry.is_leading,
        warn=mirroring.warn_about_secret,
        environment=environment,
    )
    manager.kept.append(("renew tokens", renewer.run))
    if manager.sharded is not None:
        manager.kept += manager.sharded.beside(management, registry)


def _check_kinds(manager: Manager, management: Client, kinds: Kinds, environment: Environment) -> None:
    """Have the entries of kinds compared with what clusters publish of them."""
    # Only where there are some.
    from mirror.controllers.kind_schemas import KindSchemas, kinds_by_path
    from mirror.controllers.worker_schemas import schemas_of_workers

    mirroring = manager.mirroring
    by_path = kinds_by_path(kinds, manager.settings.kinds)
    unknown = environment.metrics.kind_unknown_fields
    here = KindSchemas(
        management,
        by_path,
        manager.look_again,
        count=lambda kind, count: unknown.labels(management.name, kind).set(count),
        log=environment.log,
    )
    manager.kept.append(("check kinds", here.run))
    if manager.sharded is None:  # else each instance asks its own workers
        there = schemas_of_workers(mirroring, by_path, is_working=lambda: manager.is_working, environment=environment)
        manager.kept.append(("check kinds of workers", there.run))


def _first(failure: BaseException) -> BaseException:
    """What a group of failures began with."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
