"""The Job controller, put together: caches → handlers → queue → sync, with its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mirror.jobcontroller.claiming import Claimer
from mirror.jobcontroller.consistency import CacheWaiters
from mirror.jobcontroller.creating import Creator
from mirror.jobcontroller.gangs import Gangs
from mirror.jobcontroller.handlers import Handlers, Intake
from mirror.jobcontroller.jobview import Jobs, keep_job
from mirror.jobcontroller.live_check import LiveCheck
from mirror.jobcontroller.memory import Memories
from mirror.jobcontroller.orphans import OrphanKey, Orphans
from mirror.jobcontroller.pace import Pace
from mirror.jobcontroller.parallel_requests import ParallelRequests
from mirror.jobcontroller.pods import PodIndex
from mirror.jobcontroller.podview import CachedPod, keep_pod, may_matter
from mirror.jobcontroller.podwrites import PodWrites
from mirror.jobcontroller.ports import Events, Metrics
from mirror.jobcontroller.removing import Remover
from mirror.jobcontroller.statuses import StatusWrites
from mirror.jobcontroller.syncing import Behaviour, Syncer, Tools
from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS, PODS
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change, Filter, Informer, InformerHooks, Listener, Scope
from mirror.runtime.informers import Informers
from mirror.runtime.loop import consume, is_unreachable
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log

RELIST = Backoff(first=0.8, most=4.0, jitter=0.3)
BREATH_EVERY = 500


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What the settings say that the controller needs."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    namespaces: tuple[str, ...] = ()
    """None: all of the cluster."""
    concurrent_syncs: int = 5
    """Upstream's ``--concurrent-job-syncs`` (K1)."""


def _nobody(old: Object | None, new: Object | None, change: Change) -> None:
    """Nobody else is interested."""


async def _unknown() -> bool:
    """Nobody asks the server, so it is taken for one that does not know them."""
    return False


class JobController:
    """Runs Jobs as kube-controller-manager does. Watches from the start; works from ``lead`` on."""

    def __init__(  # noqa: PLR0913 - clock and log, and two options
        self,
        client: Client,
        settings: ControllerSettings,
        *,
        events: Events,
        metrics: Metrics,
        clock: Clock,
        log: Log,
        also: Listener = _nobody,
        knows_rule_names: Callable[[], Awaitable[bool]] = _unknown,
    ) -> None:
        """Put everything together.

        Args:
            also: who else is told of each change of a Job, after us.
            knows_rule_names: asks the server whether it does (D17), before the first sync.
        """
        self._log = log
        self._metrics = metrics
        self._also = also
        self._knows_rule_names = knows_rule_names
        self._is_leading = False
        constants = settings.behaviour.constants
        backoff = Backoff(constants.api_backoff_seconds, constants.api_backoff_max_seconds)
        self.jobs = Jobs(heeds_managed_by=settings.behaviour.gates.job_managed_by)
        self.pods = Store()
        self.gangs = Gangs(client, events, log=log) if settings.behaviour.gates.workload_with_job else None
        self.memories = Memories()
        self._index = PodIndex()
        limit = settings.concurrent_syncs
        self.queue: WorkQueue[str] = WorkQueue(lambda _: "", clock=clock, lane_limit=limit, backoff=backoff)
        self.orphan_queue: WorkQueue[OrphanKey] = WorkQueue(
            lambda _: "", clock=clock, lane_limit=limit, backoff=backoff
        )
        cache_waiters = CacheWaiters(self.queue.add)
        self._handlers = Handlers(
            self.jobs,
            self._index,
            self.memories,
            Intake(self.queue, self.orphan_queue.add, cache_waiters, constants.batch_period_seconds),
            metrics=metrics,
            clock=clock,
        )
        self._orphans, self._syncer = self._make_consumers(client, settings.behaviour, events, cache_waiters, clock)
        self.informers = Informers(
            {
                f"{what} {number}": informer
                for number, namespace in enumerate(settings.namespaces or (None,))
                for what, informer in self._make_informers(client, namespace).items()
            },
            log=log,
        )

    def _make_consumers(
        self, client: Client, behaviour: Behaviour, events: Events, cache_waiters: CacheWaiters, clock: Clock
    ) -> tuple[Orphans, Syncer]:
        """What works on the keys of both queues; they share how many requests go on at a time."""
        writes, parallel, live_check = PodWrites(client, events), ParallelRequests(), LiveCheck(client)
        pace = Pace(client, parallel, behind=lambda: self.queue.ready > 0)
        metrics, log = self._metrics, self._log
        tools = Tools(
            jobs=self.jobs,
            pods=self.pods,
            index=self._index,
            memories=self.memories,
            cache_waiters=cache_waiters,
            live_check=live_check,
            gangs=self.gangs,
            claimer=Claimer(client, writes, self._index),
            creator=Creator(writes, parallel, metrics=metrics, clock=clock),
            remover=Remover(writes, parallel, live_check, clock=clock),
            statuses=StatusWrites(client, metrics, behaviour.gates),
            events=events,
            metrics=metrics,
            clock=clock,
            log=log,
            add_after=self.queue.add_after,
            turn=pace.turn,
            may_put_off=pace.may_put_off,
        )
        orphans = Orphans(writes, parallel, self.jobs, self.pods, self._index, log=log)
        return orphans, Syncer(tools, behaviour)

    def _make_informers(self, client: Client, namespace: str | None) -> dict[str, Informer]:
        jobs = Informer(
            Scope(JOBS, namespace),
            self.jobs.store,
            client=lambda: client,
            hooks=InformerHooks(self._on_job),
            wanted=Filter(keep=keep_job),
            relist=RELIST,
        )
        pods = Informer(
            Scope(PODS, namespace),
            self.pods,
            client=lambda: client,
            hooks=InformerHooks(self._handlers.on_pod),
            wanted=Filter(accept=may_matter, keep=keep_pod),
            relist=RELIST,
        )
        gangs = self.gangs.make_informers(namespace) if self.gangs is not None else {}
        return {"jobs": jobs, "pods": pods, **gangs}

    # -- life -----------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Keep the caches, until cancelled."""
        await self.informers.run()

    async def wait_until_ready(self) -> None:
        """Until all Jobs and pods are known."""
        await self.informers.wait_until_synced()

    async def lead(self) -> None:
        """Do the work, until cancelled."""
        self.informers.list_anew()
        await self.wait_until_ready()
        self._syncer.server_knows_rule_names = await self._knows_rule_names()
        await self._begin()
        try:
            async with asyncio.TaskGroup() as scope:
                syncs = consume(
                    self.queue,
                    self._sync,
                    log=self._log,
                    observer=self._metrics.queue_observer("job"),
                    is_outage=is_unreachable,
                )
                cleans = consume(
                    self.orphan_queue,
                    self._clean,
                    log=self._log,
                    observer=self._metrics.queue_observer("job_orphan_pod"),
                    is_outage=is_unreachable,
                )
                scope.create_task(syncs, name="sync jobs")
                scope.create_task(cleans, name="clean orphan pods")
        finally:
            self._is_leading = self._handlers.is_leading = False
            self.queue.close()
            self.orphan_queue.close()

    async def _begin(self) -> None:
        """From now on changes name keys; everything that is there is taken as just come."""
        self._is_leading = self._handlers.is_leading = True
        for job in list(self.jobs):
            self._handlers.job_came(job)
        for number, pod in enumerate(list(self.pods)):
            if isinstance(pod, CachedPod) and self.pods.get(pod.metadata.namespace, pod.metadata.name) is pod:
                self._handlers.pod_found(pod)
            if number % BREATH_EVERY == 0:
                await asyncio.sleep(0)

    def _on_job(self, old: Object | None, new: Object | None, change: Change) -> None:
        self._handlers.on_job(old, new, change)
        self._also(old, new, change)

    async def _sync(self, key: str) -> None:
        await self._syncer.sync(key)

    async def _clean(self, key: OrphanKey) -> None:
        await self._orphans.clean(key)
