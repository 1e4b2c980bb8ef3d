"""The mirror of Jobs at work: caches → prepare → observe → decide → apply, with its queue and its tasks.

Built and wired by ``mirror.wiring``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from mirror.controllers.applying import Applier
from mirror.controllers.assigning import Assigner
from mirror.controllers.events import warn_about_secret
from mirror.controllers.known import Knowledge
from mirror.controllers.leases import Leases
from mirror.controllers.move_turns import MoveTurns
from mirror.controllers.observing import Observer
from mirror.controllers.preparing import Preparer
from mirror.controllers.priority_classes import PriorityClassRounds
from mirror.controllers.rereading import LookAgain
from mirror.controllers.routes import Routes
from mirror.controllers.sources import Sources
from mirror.controllers.state import MirroringState
from mirror.controllers.sweeping import Sweeper
from mirror.controllers.unclaimed import Unclaimed
from mirror.controllers.vanishing import Vanishing
from mirror.controllers.worker_rounds import WorkerRounds
from mirror.controllers.write_context import WriteContext
from mirror.decide.plan import Plan
from mirror.decide.rules import decide
from mirror.decide.snapshot import Snapshot
from mirror.kinds.base import Kind, MirrorTransform
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object
from mirror.model.keys import Key, MirrorKey, SourceKey
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.informers import Informers
from mirror.runtime.keyrate import KeyRate
from mirror.runtime.loop import consume
from mirror.runtime.queue import LOOKS_A_TURN, WorkQueue
from mirror.runtime.slices import in_slices
from mirror.runtime.supervise import supervise
from mirror.sharding.share import Part
from mirror.workers.registry import Registry

if TYPE_CHECKING:
    from mirror.controllers.dependency_rounds import DependencyRounds  # only where something goes along
    from mirror.controllers.namespace_policies import NamespacePolicies  # only where they are read

ENDING_SECONDS = 2.0
"""So long what is being worked on, and then events, are waited for at the end: less than what lies between the renew
deadline and the end of a lease, since who leads next must not meet us."""
COMPARE_WORKERS_SECONDS = 60.0
HOLD_SECONDS = 10.0
"""For no longer, once each worker had its first chance, is nobody placed since who else waits is being found out."""
UNRECORDED_SECONDS = 30.0
"""So often at most all sources are listed for the sake of some that have lost their record."""


@dataclass(frozen=True, slots=True)
class MirroringParts:
    """What mirroring consists of."""

    state: MirroringState
    registry: Registry
    informers: Informers
    """Of sources."""
    routes: Routes
    preparer: Preparer
    observer: Observer
    writes: WriteContext
    applier: Applier
    moves: MoveTurns
    leases: Leases
    unclaimed: Unclaimed
    sweeper: Sweeper
    sweep_interval_seconds: float
    priority_classes: PriorityClassRounds | None = None
    """Where those who wait are ordered by them."""
    worker_rounds: tuple[WorkerRounds[Any], ...] = ()
    """Where workers are compared by what has to be read of them."""
    vanishing: Vanishing | None = None
    """Where kinds may come and go (D23)."""
    dependency_rounds: DependencyRounds | None = None
    """Where something goes along (D27)."""
    namespace_policies: NamespacePolicies | None = None
    """Where Namespaces are read for their policy (D14)."""


class Mirroring:
    """Everything about mirrored Jobs. Watches from the start; works from ``lead`` on."""

    def __init__(self, parts: MirroringParts) -> None:
        self._parts = parts
        self._state = parts.state
        self._log = parts.state.environment.log
        self._metrics = parts.state.environment.metrics
        self._has_settled = False
        # Who had no worker when that had settled and has not been looked at since.
        self._unseen: set[Key] = set()
        self._seen = asyncio.Event()
        self._rate: KeyRate[Key] = KeyRate(parts.state.environment.clock)

    # -- what others need of it -----------------------------------------------------------------------------------

    @property
    def registry(self) -> Registry:
        return self._parts.registry

    @property
    def follows(self) -> bool:
        """Whether it is connected to its workers."""
        return self._state.share.follows

    @property
    def sources(self) -> Sources:
        return self._state.sources

    @property
    def informers(self) -> Informers:
        """Of sources."""
        return self._parts.informers

    @property
    def queue(self) -> WorkQueue[Key]:
        return self._state.queue

    @property
    def assigner(self) -> Assigner:
        return self._state.assigner

    @property
    def jobs_of_other_managers(self) -> int:
        """How many unfinished sources another manager of this cluster has placed."""
        return len(self._state.memories.others)

    @property
    def recorder(self) -> EventRecorder:
        return self._parts.writes.recorder

    def warn_about_secret(self, secret: Object, reason: str, message: str) -> None:
        """Record a warning about a worker on the Secret that registers it."""
        warn_about_secret(self.recorder, secret, reason, message)

    @property
    def transform(self) -> MirrorTransform:
        """How sources are changed on their way."""
        return self._state.transform

    def known(self) -> Knowledge:
        """What this manager knows, for people."""
        return Knowledge(self._state)

    @property
    def state(self) -> MirroringState:
        """What is known; to be read."""
        return self._state

    def report_to(self, other: Mirroring) -> None:
        """Whoever follows the changes that another instance of this process sees, hears of those seen here, too."""
        self._state.history.share_readers(other.state.history)

    def look_again(self, kind: Kind) -> None:
        """Look at all sources of a kind: something that none of them shows has changed."""
        intake = self._state.intake
        intake.go_over(f"all of {kind.name}", partial(self.sources.all_keys, kind.name), intake.look)

    # -- life -----------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Keep the cache of sources, until cancelled."""
        await self.informers.run()

    async def wait_until_ready(self) -> None:
        """Until all sources are known and every worker had its first chance."""
        await self.informers.wait_until_synced()
        await self.registry.wait_until_secrets_synced()
        await self.registry.wait_until_settled()

    async def lead(self) -> None:
        """Do the work, until cancelled.

        Who takes over may have stood by for any time: sources, Secrets and the record are read anew, and then each
        worker. Work begins with the first of them; one that hangs delays its own Jobs only (D12), and those that have
        no worker yet. Before all that, those who have worked with another number of slots have ended (S10).
        """
        self._list_anew()
        if await self.registry.take_over():
            self._list_anew()
        await self.informers.wait_until_synced()
        await self.registry.wait_until_secrets_synced()
        await self.registry.lead()
        self._has_settled = False
        self._unseen.clear()
        self._parts.moves.begin_leading()
        self._parts.routes.begin_leading()
        async with asyncio.TaskGroup() as around:
            settling = around.create_task(self._settle(), name="settle")
            sending = around.create_task(self.recorder.run(), name="send events")
            work = consume(self.queue, self._work_on, log=self._log, observer=self._metrics)
            working = around.create_task(work, name="work")
            beside = around.create_task(self._work_beside(), name="work beside")
            try:
                await asyncio.wait({working, beside}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ends_at = asyncio.get_running_loop().time() + ENDING_SECONDS
                settling.cancel()
                await self._finish(working, beside)
                await self.recorder.flush(max(0.0, ends_at - asyncio.get_running_loop().time()))
                sending.cancel()

    async def _finish(self, working: asyncio.Task[None], beside: asyncio.Task[None]) -> None:
        """Begin nothing more, and wait for what is under way: nobody who leads next knows what becomes of it."""
        self.queue.close()
        self._state.intake.end_leading()
        try:
            await asyncio.wait({working}, timeout=ENDING_SECONDS)
        finally:
            self._parts.moves.end_leading()
            working.cancel()
            beside.cancel()

    def _list_anew(self) -> None:
        self.informers.list_anew()
        self.registry.list_secrets_anew()

    async def _settle(self) -> None:
        """Look at what had to wait until every worker had its first chance."""
        await self.registry.wait_until_settled()
        if (policies := self._parts.namespace_policies) is not None:
            await policies.wait_until_read()
        self._has_settled = True
        self.assigner.hold()
        await self._name_those_who_had_to_wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(HOLD_SECONDS):
                await self._bring_forward_those_without_worker()
        self._unseen.clear()
        self.assigner.release()

    async def _name_those_who_had_to_wait(self) -> None:
        async for key in in_slices(self.sources.all_keys()):
            placed = self.sources.worker_of(key)
            if not placed or self._is_requested(key):
                self._unseen.add(key)  # a place that is kept for one is kept before others get any
            if key in self._unseen or not self._has_verdict(placed):
                self._state.intake.look(key)

    async def _bring_forward_those_without_worker(self) -> None:
        """Until all of them have been looked at: a Job that has just come is not placed before them.

        Workers take turns, and it is seldom the turn of those that have none. A few at a time are named as what has
        changed is, so that what has changed does not wait for tens of thousands.
        """
        left, forward = iter(list(self._unseen)), set[Key]()
        while self._unseen:
            forward &= self._unseen
            for key in islice(left, LOOKS_A_TURN - len(forward)):
                if key in self._unseen:
                    self._state.intake.add(key)
                    forward.add(key)
            self._seen.clear()
            await self._seen.wait()

    def _is_too_early(self, seen: Snapshot) -> bool:
        """Whether its worker, or without one any worker, is not known to be reachable or lost since we lead.

        It is looked at again when that is known (``routes``, ``_settle``).
        """
        if self._has_settled or seen.source.is_finished:
            return False  # an end needs no worker, and a worker's first verdict names unfinished sources only
        placed = seen.source.placed
        return placed is None or not self._has_verdict(placed)

    def _has_verdict(self, worker: str) -> bool:
        """Whether a worker is known to be reachable or lost; one that nobody knows is lost (D13)."""
        found = self._state.workers.get(worker)
        return found is None or found.has_settled

    async def _work_beside(self) -> None:
        """What gives the queue its keys, and what has none."""
        async with asyncio.TaskGroup() as scope:
            sweep = supervise("sweep", self._sweep, log=self._log, on_restart=self._metrics.on_task_restart)
            scope.create_task(sweep, name="sweep")
            share = self._state.share
            if (classes := self._parts.priority_classes) is not None and share.assigns:
                read = supervise("PriorityClasses", classes.run, log=self._log)
                scope.create_task(read, name="PriorityClasses")
            for one in self._parts.worker_rounds if share.follows else ():
                scope.create_task(supervise(one.what, one.run, log=self._log), name=one.what)
            if (vanishing := self._parts.vanishing) is not None:
                confirm = partial(vanishing.run, self._parts.routes.on_source_certainly_gone)
                scope.create_task(supervise("deletions", confirm, log=self._log), name="deletions")
            if (rounds := self._parts.dependency_rounds) is not None and share.follows:
                keep = supervise("copies", rounds.run, log=self._log, on_restart=self._metrics.on_task_restart)
                scope.create_task(keep, name="copies")
            if (policies := self._parts.namespace_policies) is not None:
                scope.create_task(supervise("Namespaces", policies.run, log=self._log), name="Namespaces")
            if share.follows:
                clocks = supervise("leases", self._parts.leases.run, log=self._log)
                scope.create_task(clocks, name="leases")
            if not share.assigns:
                unrecorded = supervise("unrecorded", self._read_unrecorded, log=self._log)
                scope.create_task(unrecorded, name="unrecorded")
            by_key = (("refusals", self._state.refusals.run), ("unclaimed", self._parts.unclaimed.run))
            over_all = (("passes", self._state.intake.passes.run), ("compare workers", self._compare_workers))
            for name, work in (*by_key, *over_all):
                scope.create_task(supervise(name, work, log=self._log), name=name)

    async def _read_unrecorded(self) -> None:
        """Sources that were listed before their mirrors, and have no record, are listed again: they are ours."""
        while True:
            await self._parts.sweeper.wait_for_unrecorded()
            self.informers.list_anew()
            await asyncio.sleep(UNRECORDED_SECONDS)

    async def _compare_workers(self) -> None:
        while True:
            await asyncio.sleep(COMPARE_WORKERS_SECONDS)
            self._parts.routes.compare_workers()
            self._parts.moves.report_end()

    async def _sweep(self) -> None:
        await self._parts.sweeper.run(self._parts.sweep_interval_seconds)

    # -- one key --------------------------------------------------------------------------------------------------

    async def _work_on(self, key: Key) -> float | None:
        if isinstance(key, MirrorKey):
            return self._wait_for_rate(key, 1) or await self._parts.sweeper.work_on(key)
        if self._unseen:
            self._unseen.discard(key)
            self._seen.set()
        while True:
            if not self.follows and self.sources.worker_of(key) and not self._is_requested(key):
                self.assigner.finish(key)
                return None  # whoever holds its worker's slot follows it
            await self._parts.preparer.prepare(key)
            seen = self._parts.observer.look(key)
            if seen is None or seen.part is Part.NONE:
                self.assigner.finish(key)
                return None
            if seen.part is Part.FORMER:
                self._state.pending.drop_arrival(key)  # its changes are dealt with elsewhere
            if self._is_too_early(seen):
                return None
            plan = decide(seen)
            if not plan.needs_assignment:
                self.assigner.finish(key)
            if seen.moves_held:
                self._parts.moves.report()
            self._log.debug("decided", source=key, because=plan.because, actions=len(plan.actions))
            if wait := self._wait_for_rate(key, plan.requests):
                return wait
            try:
                await self._perform(seen, plan)
            except LookAgain:
                continue
            finally:
                self._forget_if_gone(seen)
            return plan.again_after_seconds

    def _is_requested(self, key: SourceKey) -> bool:
        """Whether the holder of its worker's slot may request another one, which is ours to give."""
        return not self.follows and self.sources.may_be_requested(key)

    def _wait_for_rate(self, key: Key, requests: int) -> float:
        wait = self._rate.wait_seconds(key, requests) if requests else 0.0
        if wait:
            self._metrics.throttled_keys.inc()
        return wait

    async def _perform(self, seen: Snapshot, plan: Plan) -> None:
        traces = self._parts.writes.traces
        if traces is not None and seen.source.is_finished and seen.part is not Part.FORMER:
            traces.on_finished(seen.source)
        try:
            await self._parts.applier.apply(seen, plan.actions)
        except KubeError as error:
            self._state.history.on_error(seen, error)
            raise
        if seen.mirror is not None and not plan.actions:
            self._state.pending.drop_arrival(seen.key)  # the change was none for the source
        if plan.remember:
            self._state.memories.set(seen.source.uid, **plan.remember)

    def _forget_if_gone(self, seen: Snapshot) -> None:
        """A source may have gone while it was worked on: what was learned of it since then is of no use any more."""
        key, uid = seen.key, seen.source.uid
        found = self.sources.get(key)
        if found is None or found.metadata.uid != uid:
            self._parts.routes.forget_source(uid)
