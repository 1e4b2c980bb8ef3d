"""The mirror of Jobs, put together: caches → observe → decide → apply, with its queue and its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mirror.controllers.applying import Applier
from mirror.controllers.assigning import Assigner
from mirror.controllers.events import event_recorder
from mirror.controllers.history import History
from mirror.controllers.known import Knowledge
from mirror.controllers.memory import Memories
from mirror.controllers.observing import Caches, Observer, candidate_of, placement_request_of
from mirror.controllers.rereading import LookAgain
from mirror.controllers.routes import Routes
from mirror.controllers.sources import Sources, source_key
from mirror.controllers.sweeping import Sweeper
from mirror.controllers.tools import Tools
from mirror.decide.plan import Plan
from mirror.decide.rules import decide
from mirror.decide.snapshot import Policy, Snapshot
from mirror.kinds.base import BadAnnotation, Kind, MirrorTransform
from mirror.kinds.registry import BUILT_IN, Kinds
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object
from mirror.kube.resources import SECRETS
from mirror.model.keys import Key, MirrorKey, SourceKey
from mirror.placement.candidates import Candidate
from mirror.placement.waiting import Waiter
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.runtime.events import WARNING, Regarding
from mirror.runtime.informer import Change, Informer, Scope
from mirror.runtime.informers import Informers
from mirror.runtime.keyrate import KeyRate
from mirror.runtime.loop import consume
from mirror.runtime.queue import WorkQueue
from mirror.runtime.supervise import supervise
from mirror.telemetry.logs import Log
from mirror.telemetry.metrics import Metrics
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker

if TYPE_CHECKING:
    from mirror.controllers.tracing import Traces  # only where traces are wanted

FLUSH_SECONDS = 2.0
"""Less than what lies between the renew deadline and the end of a lease: who leads next must not meet us."""
COMPARE_WORKERS_SECONDS = 60.0
# Workers are probed and their watches nudged; nobody does that for the management cluster, so its watch asks often.
RELIST_SOURCES = Backoff(first=0.8, most=4.0, jitter=0.3)


@dataclass(frozen=True, slots=True)
class MirroringSettings:
    """What the settings say that mirroring needs."""

    managed_by: str
    transform: MirrorTransform
    policy: Policy
    closed_namespaces: tuple[str, ...]
    kinds: Kinds = BUILT_IN
    namespaces: tuple[str, ...] = ()
    create_namespaces: bool = False
    sweep_interval_seconds: float = 60.0
    keep_history: bool = False
    """Whether anybody can ask what happened to a Job."""


class Mirroring:
    """Everything about mirrored Jobs. Watches from the start; works from ``lead`` on."""

    def __init__(
        self,
        management: Client,
        registry: Registry,
        settings: MirroringSettings,
        *,
        clock: Clock,
        log: Log,
        metrics: Metrics,
        traces: Traces | None = None,
    ) -> None:
        self._traces = traces
        self._settings = settings
        self._clock = clock
        self._log = log
        self._metrics = metrics
        self._registry = registry
        registry.listener = self
        self._is_leading = False
        self._has_settled = False
        self.sources = Sources(settings.kinds, on_load=self._on_load)
        self.queue: WorkQueue[Key] = WorkQueue(self._lane_of, clock=clock)
        self.recorder = event_recorder(management, clock=clock, log=log, turn=self.queue.wait_until_quiet)
        self._memories = Memories()
        self._rate: KeyRate[Key] = KeyRate(clock)
        self.assigner = Assigner(self._candidates, wake=self._add, clock=clock)
        self.history = History(clock, is_kept=settings.keep_history, why_there=self._why_there)
        self._caches = Caches(
            sources=self.sources,
            registry=registry,
            assigner=self.assigner,
            memories=self._memories,
            clock=clock,
            policy=settings.policy,
            transform=settings.transform,
            closed_namespaces=settings.closed_namespaces,
        )
        self._observer = Observer(self._caches)
        self._applier = Applier(
            Tools(
                management=management,
                sources=self.sources,
                registry=registry,
                assigner=self.assigner,
                memories=self._memories,
                recorder=self.recorder,
                history=self.history,
                clock=clock,
                log=log,
                metrics=metrics,
                transform=settings.transform,
                create_namespaces=settings.create_namespaces,
                add=self._add,
                add_when_quiet=self.queue.add_when_quiet,
                take_source=self._take_source,
                waiter_of=self._waiter,
                agree=self._observer.agree,
                traces=traces,
            )
        )
        self._sweeper = Sweeper(
            management,
            self.sources,
            registry,
            memories=self._memories,
            mirrors=self._applier.mirrors,
            log=log,
            metrics=metrics,
            on_halt=lambda worker, text: self._tell_on_secret_of(worker, "SweepHalted", text),
        )
        self._routes = Routes(
            self.sources,
            registry,
            add=self._add,
            assigner=self.assigner,
            memories=self._memories,
            observer=self._observer,
            applier=self._applier,
            sweep_soon=self._sweeper.sweep_soon,
            clock=clock,
            metrics=metrics,
            managed_by=settings.managed_by,
        )
        self.informers = Informers(
            {
                f"{kind.resource.plural} {number}": Informer(
                    Scope(kind.resource, namespace),
                    self.sources.of(kind),
                    client=lambda: management,
                    on_change=partial(self._on_source, kind),
                    accept=partial(self._routes.is_ours, kind),
                    on_event=partial(self._routes.on_event, kind),
                    relist=RELIST_SOURCES,
                )
                for kind in settings.kinds
                for number, namespace in enumerate(settings.namespaces or (None,))
            },
            log=log,
            on_restart=metrics.on_task_restart,
        )

    # -- life -----------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Keep the cache of sources, until cancelled."""
        await self.informers.run()

    async def wait_until_ready(self) -> None:
        """Until all sources are known and every worker had its first chance."""
        await self.informers.wait_until_synced()
        await self._registry.wait_until_secrets_synced()
        await self._registry.wait_until_settled()

    async def lead(self) -> None:
        """Do the work, until cancelled.

        Who takes over may have stood by for any time: sources, Secrets and the record are read anew, and then each
        worker. Work begins with the first of them; one that hangs delays its own Jobs only (D12), and those that have
        no place yet.
        """
        self.informers.list_anew()
        self._registry.list_secrets_anew()
        await self.informers.wait_until_synced()
        await self._registry.wait_until_secrets_synced()
        await self._registry.lead()
        self._begin()
        async with asyncio.TaskGroup() as around:
            settling = around.create_task(self._settle(), name="settle")
            sending = around.create_task(self.recorder.run(), name="send events")
            try:
                await self._work_for_ever()
            finally:
                self.queue.close()
                settling.cancel()
                await self.recorder.flush(FLUSH_SECONDS)
                sending.cancel()

    def _begin(self) -> None:
        """From now on changes name keys; everything that is there is looked at once."""
        self._is_leading = self._routes.is_leading = True
        self._has_settled = False
        self._memories.forget_foreign_writes()
        # What we saw until now was for others to deal with.
        self._applier.arrived_at.update(dict.fromkeys(self._applier.arrived_at, self._clock.monotonic()))
        self.assigner.read_anew()
        for kind, source in self.sources:
            self.queue.add(source_key(kind, source))
        for worker in list(self._registry.workers.values()):
            self._routes.look_at_mirrors_of(worker)
            self._sweeper.sweep_soon(worker.name)

    async def _settle(self) -> None:
        """Look at what had to wait until every worker had its first chance."""
        await self._registry.wait_until_settled()
        self._has_settled = True
        for kind, source in self.sources:
            placed = kind.summary(source).placed
            if placed is None or not self._registry.worker(placed).has_settled:
                self.queue.add(source_key(kind, source))

    def _is_too_early(self, seen: Snapshot) -> bool:
        """Whether its worker, or without one any worker, is not known to be reachable or lost since we lead.

        It is looked at again when that is known (``routes``, ``_settle``).
        """
        if self._has_settled or seen.source.is_finished:
            return False  # an end needs no worker, and a worker's first verdict names unfinished sources only
        placed = seen.source.placed
        return placed is None or not self._registry.worker(placed).has_settled

    def _add(self, key: Key) -> None:
        """A standby names no keys: nobody would take them."""
        if self._is_leading:
            self.queue.add(key)

    async def wait_until_sources_known(self) -> None:
        for informer in self.informers:
            await informer.wait_until_synced()

    async def _work_for_ever(self) -> None:
        async with asyncio.TaskGroup() as scope:
            sweep = supervise("sweep", self._sweep, log=self._log, on_restart=self._metrics.on_task_restart)
            scope.create_task(sweep, name="sweep")
            work = consume(self.queue, self._work_on, log=self._log, observer=self._metrics)
            scope.create_task(work, name="work")
            compare = supervise("compare workers", self._compare_workers, log=self._log)
            scope.create_task(compare, name="compare workers")

    async def _compare_workers(self) -> None:
        """Whatever happens to a worker is reported; a report that was missed must not keep Jobs waiting for ever."""
        while True:
            await asyncio.sleep(COMPARE_WORKERS_SECONDS)
            self.assigner.read_anew()

    async def _sweep(self) -> None:
        await self._sweeper.run(self._settings.sweep_interval_seconds)

    # -- one key --------------------------------------------------------------------------------------------------

    async def _work_on(self, key: Key) -> float | None:
        if isinstance(key, MirrorKey):
            return self._wait_for_rate(key, 1) or await self._sweeper.work_on(key)
        while True:
            await self._observer.complete(key)
            seen = self._observer.look(key)
            if seen is None:
                self.assigner.settle(key)
                return None
            if self._is_too_early(seen):
                return None
            plan = decide(seen)
            if not plan.wants_place:
                self.assigner.settle(key)
            self._log.debug("decided", source=key, because=plan.because, actions=len(plan.actions))
            if wait := self._wait_for_rate(key, plan.requests):
                return wait
            try:
                got_place = await self._perform(seen, plan)
            except LookAgain:
                continue
            finally:
                self._forget_if_gone(seen)
            if not got_place:
                return plan.again_after_seconds

    def _wait_for_rate(self, key: Key, requests: int) -> float:
        wait = self._rate.wait_seconds(key, requests) if requests else 0.0
        if wait:
            self._metrics.throttled_keys.inc()
        return wait

    async def _perform(self, seen: Snapshot, plan: Plan) -> bool:
        """Return whether a place was asked for and given at once."""
        if self._traces is not None and seen.source.is_finished:
            self._traces.on_finished(seen.source)
        try:
            got_place = await self._applier.apply(seen, plan.actions)
        except KubeError as error:
            self.history.on_error(seen, error)
            raise
        if seen.mirror is not None and not plan.actions:
            self._applier.arrived_at.pop(seen.key, None)  # the change was none for the source
        if plan.remember:
            self._memories.set(seen.source.uid, **dict(plan.remember))
        return got_place

    def _forget_if_gone(self, seen: Snapshot) -> None:
        """A source may have gone while it was worked on: what was learned of it since then is of no use any more."""
        key, uid = seen.key, seen.source.uid
        found = self.sources.get(key)
        if found is None or found.metadata.uid != uid:
            self._routes.forget_source(uid)

    def _lane_of(self, key: Key) -> str:
        """The worker that the work on a key may have to wait for; none while it has no place."""
        if isinstance(key, MirrorKey):
            return key.worker
        return self.sources.worker_of(key)

    def _candidates(self) -> Iterator[Candidate]:
        for worker in self._registry.workers.values():
            if (candidate := self._candidate_of(worker)) is not None:
                yield candidate

    def _candidate_of(self, worker: Worker) -> Candidate | None:
        return candidate_of(worker, self.sources.load_of(worker.name), self._settings.closed_namespaces)

    def _on_load(self, worker: str) -> None:
        """More sources or fewer count for a worker."""
        self.assigner.set_load(worker, self.sources.load_of(worker))

    def _waiter(self, kind: Kind, found: Object) -> Waiter | None:
        memory = self._memories.of(found.metadata.uid)
        try:
            request = placement_request_of(kind, found, memory, self._clock.monotonic())
        except BadAnnotation:
            return None
        return Waiter(found.metadata.creation_timestamp or "", source_key(kind, found), found.metadata.uid, request)

    @property
    def transform(self) -> MirrorTransform:
        """How sources are changed on their way."""
        return self._settings.transform

    # -- what people are told -------------------------------------------------------------------------------------

    def known(self) -> Knowledge:
        """What this manager knows, for people."""
        memories, applier = self._memories, self._applier
        return Knowledge(self.sources, self._registry, self.assigner, memories, applier, self.history, self._clock)

    def _why_there(self, seen: Snapshot, worker: str) -> str:
        if seen.assignment.found_on == worker:
            return "its mirror was found there"
        try:
            request = placement_request_of(seen.source.kind, seen.source.found, seen.memory, seen.monotonic)
        except BadAnnotation:  # it was none when the place was given
            return ""
        return self.assigner.why_there(request, worker)

    def _take_source(self, kind: Kind, found: Object) -> None:
        """A source as a live read has shown it, reported as by the watch; another of its name is left to that."""
        old, store = self.sources.get(source_key(kind, found)), self.sources.of(kind)
        if old is not None and old.metadata.uid == found.metadata.uid and store.read_own_write(found):
            self._on_source(kind, old, found, Change.SEEN)

    def _on_source(self, kind: Kind, old: Object | None, new: Object | None, change: Change) -> None:
        self.history.on_source(kind, old, new, is_leading=self._is_leading)
        self._routes.on_source(kind, old, new, change)

    # -- ``workers.registry.RegistryListener`` ------------------------------------------------------------------------

    def source_size(self, worker: Worker, kind: Kind, found: Object) -> int | None:
        return self._routes.source_size(worker, kind, found)

    def on_mirror_change(
        self, worker: Worker, kind: Kind, old: Object | None, new: Object | None, change: Change
    ) -> None:
        self._routes.on_mirror_change(worker, kind, old, new, change)
        if (found := new or old) is not None and (namespace := worker.source_namespace_of(found.metadata.namespace)):
            self.history.touch(SourceKey(kind.name, namespace, found.metadata.name))

    def on_worker_transition(self, worker: Worker) -> None:
        self.history.on_worker(worker.name, worker.connection.state, worker.connection.because)
        if (candidate := self._candidate_of(worker)) is not None:
            self.assigner.update(candidate)
        else:
            self.assigner.remove(worker.name)
        self._routes.on_worker_transition(worker)

    def on_worker_forgotten(self, worker: str) -> None:
        self._routes.forget_worker(worker)
        self._sweeper.forget_worker(worker)

    def has_sources_on(self, worker: str) -> bool:
        return self._routes.has_sources_on(worker)

    def on_secret_problem(self, secret: Object, reason: str, message: str) -> None:
        self.recorder.event(Regarding.of(SECRETS, secret), WARNING, reason, message)

    def _tell_on_secret_of(self, worker: Worker, reason: str, message: str) -> None:
        secret = self._registry.secret_of(worker.name)
        if secret is not None:
            self.on_secret_problem(secret, reason, message)
