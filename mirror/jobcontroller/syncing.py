"""One sync of one Job (Y1–Y18): look, assess, perform, track, store, strip, settle, store, tell.

Every decision is ``decide``'s; every request is made by one of the writers. What a sync changed in the world is seen by
the next one through the caches, which is why it remembers what it has asked for (``memory``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.claiming import Claimer
from mirror.jobcontroller.consistency import CacheWaiters
from mirror.jobcontroller.creating import Creator
from mirror.jobcontroller.decide import gang
from mirror.jobcontroller.decide.assess import assess
from mirror.jobcontroller.decide.track import settle, track
from mirror.jobcontroller.decide.values import Action, Assessment, Constants, Done, Settled, Snapshot, Tracking
from mirror.jobcontroller.gangs import Gangs
from mirror.jobcontroller.jobview import INDEXED, NON_INDEXED, CachedJob, Jobs
from mirror.jobcontroller.live_check import LiveCheck
from mirror.jobcontroller.memory import JobMemory, Memories
from mirror.jobcontroller.pods import PodIndex
from mirror.jobcontroller.ports import Events, Metrics
from mirror.jobcontroller.removing import Remover
from mirror.jobcontroller.statuses import StatusWrites
from mirror.kube.errors import Invalid, KubeError
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS
from mirror.runtime.clock import Clock
from mirror.runtime.events import Regarding
from mirror.runtime.loop import CacheBehind
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log

MOST_TOLD = 10_000
EXPIRED_SECONDS = 0.1
"""After their time expectations are surely no obstacle any more."""


class Behaviour(msgspec.Struct, frozen=True):
    """Settings of a sync."""

    constants: Constants = Constants()
    gates: FeatureGates = FeatureGates()


@dataclass(frozen=True, slots=True)
class Tools:
    """What a syncer works with."""

    jobs: Jobs
    pods: Store
    index: PodIndex
    memories: Memories
    cache_waiters: CacheWaiters
    live_check: LiveCheck
    gangs: Gangs | None
    """None while the gate is off."""
    claimer: Claimer
    creator: Creator
    remover: Remover
    statuses: StatusWrites
    events: Events
    metrics: Metrics
    clock: Clock
    log: Log
    add_after: Callable[[str, float], None]
    turn: Callable[[Constants], Constants]
    """The constants for one turn: smaller ones while the rate limit is what everybody waits for."""
    may_put_off: Callable[[], bool]
    """Whether a status that the next sync will store anyway may wait for it."""


@dataclass(slots=True)
class _Sync:
    """One sync under way."""

    job: CachedJob
    memory: JobMemory
    spec: dict[str, Any]
    action: Action = Action.RECONCILING
    group: str = ""
    """The PodGroup of new pods."""


class Syncer:
    """Syncs Jobs, each by one task at a time."""

    def __init__(self, tools: Tools, behaviour: Behaviour) -> None:
        self._tools = tools
        self._behaviour = behaviour
        self._told_external: set[str] = set()
        self._turned_back = 0
        self.server_knows_rule_names = False
        """Learned before the first sync (D17)."""
        self._server_wants_interim = False
        """Learned when it refuses an end; until then it is taken for one as old as the gates say."""

    async def sync(self, key: str) -> None:
        """Bring one Job forward.

        Raises:
            KubeError: something failed; what was done is done, and the key wants another try.
        """
        tools = self._tools
        job = tools.jobs.get(key)
        if job is None:
            return  # Y2: its memory went with it (H3)
        if job.brief.is_broken:
            tools.log.debug("a spec that cannot be read", key=key, uid=job.metadata.uid)
            return
        if self._is_external(job):
            return
        uid = job.metadata.uid
        if job.brief.is_finished:
            tools.memories.forget(uid)
            return
        memory = tools.memories.of(uid)
        if memory.is_in_doubt:
            await tools.live_check.resolve(job, memory)
            await self.sync(key)  # from its beginning: the Job may have changed meanwhile
            return
        self._check_caches(job, memory)
        if memory.is_finished:
            tools.log.debug("finished, and not seen to be", key=key, uid=uid)
            return
        if job.brief.completion_mode not in (INDEXED, NON_INDEXED):
            text = "Skipped Job sync because completion mode is unknown"
            tools.events.event(Regarding.of(JOBS, job), "Warning", "UnknownCompletionMode", text)
            return
        await self._measured(_Sync(job, memory, job.spec_dict()))

    def _is_external(self, job: CachedJob) -> bool:
        """Y3; asked here, since a queued key may name another Job by now (Q6)."""
        manager = self._tools.jobs.manager_of(job)
        if manager is None:
            self._told_external.discard(job.metadata.uid)
            return False
        is_told = job.metadata.uid in self._told_external
        if len(self._told_external) >= MOST_TOLD:
            self._told_external.clear()
        self._told_external.add(job.metadata.uid)
        write = self._tools.log.debug if is_told else self._tools.log.info
        text = "Skip syncing the job as it is managed by an external controller"
        write(text, key=job.key, uid=job.metadata.uid, controllerName=manager)
        return True

    def _check_caches(self, job: CachedJob, memory: JobMemory) -> None:
        """Y1: what we see must not be older than what we wrote.

        Raises:
            CacheBehind: it is.
        """
        tools = self._tools
        turned_back = tools.jobs.store.turned_back + tools.pods.turned_back
        if turned_back != self._turned_back:
            self._turned_back = turned_back
            tools.memories.forget_writes()
        behind = memory.written.behind(job.metadata.namespace, tools.jobs.store, tools.pods)
        if behind is not None:
            written = memory.written.job if behind is JOBS else memory.written.pods
            tools.cache_waiters.wait(job.key, behind, written)
            tools.metrics.on_stale_skip(behind.group, behind.plural)
            raise CacheBehind(f"the watch of {behind.plural} has not shown our last write yet")

    async def _measured(self, sync: _Sync) -> None:
        began = self._tools.clock.monotonic()
        result = "error"
        try:
            await self._sync(sync)
            result = "success"
        finally:
            seconds = self._tools.clock.monotonic() - began
            self._tools.metrics.on_synced(sync.job.brief.completion_mode, result, sync.action, seconds)

    async def _sync(self, sync: _Sync) -> None:
        snapshot = await self._look(sync)
        ungrouped = await self._find_group(sync, snapshot)
        assessment = assess(snapshot)
        sync.memory.enacted, sync.memory.generation = assessment.enacted, sync.job.metadata.generation
        self._again(sync, assessment.again_after_seconds)
        done, error = await self._perform(sync, assessment, ungrouped)
        sync.action = assessment.action
        tracking = track(snapshot, assessment, done)
        self._again(sync, tracking.again_after_seconds)
        with _saying("tracking status"):
            stored = await self._store_first(sync, snapshot, tracking)
            await self._strip_and_settle(sync, tracking, stored)
        if error is not None:
            raise error  # only now: the status is true whatever happened to the pods (Y18)
        self._look_when_expectations_end(sync)

    def _look_when_expectations_end(self, sync: _Sync) -> None:
        """Nothing else may ever bring this key again, if what was asked for never comes (K4)."""
        left = sync.memory.expected.seconds_left(self._tools.clock.monotonic())
        if left is not None and not sync.memory.is_finished:
            self._again(sync, left + EXPIRED_SECONDS)

    async def _look(self, sync: _Sync) -> Snapshot:
        tools, job, memory = self._tools, sync.job, sync.memory
        # Before the pods are listed, not after: what comes in between must not be met by an older list (Q2).
        is_met = memory.expected.are_met(tools.clock.monotonic())
        pods = await tools.claimer.claim(job, memory)
        has_policy = sync.spec.get("podFailurePolicy") is not None
        return Snapshot(
            key=job.key,
            uid=job.metadata.uid,
            spec=sync.spec,
            status=job.status_dict(),
            annotations=job.annotations,
            is_deleting=job.metadata.deletion_timestamp is not None,
            pods=pods,
            settled_failed=[pod.pod for pod in tools.index.failed_of(job)] if has_policy else (),
            expectations_met=is_met,
            backoff=memory.backoff,
            enacted=memory.enacted_for(job.metadata.generation),
            now=tools.clock.now(),
            constants=tools.turn(self._behaviour.constants),
            gates=self._behaviour.gates,
            server_knows_rule_names=self.server_knows_rule_names,
            server_wants_interim=self._server_wants_interim,
        )

    async def _find_group(self, sync: _Sync, snapshot: Snapshot) -> KubeError | None:
        """Give the sync the PodGroup of new pods; what prevents it is raised while a Job is new, and returned later.

        A Job that has not started must not store anything before its Workload exists, or it would count as one that
        started without. Of one that has, only new pods wait: those that end are counted all the same.
        """
        gangs = self._tools.gangs
        if gangs is None or not gang.wants_group(snapshot):
            return None
        try:
            with _saying("ensuring Workload and PodGroup"):
                sync.group = await gangs.group_of(sync.job, sync.memory, snapshot)
        except KubeError as error:
            if gang.is_new(snapshot):
                raise
            return error
        return None

    async def _perform(
        self, sync: _Sync, assessment: Assessment, ungrouped: KubeError | None
    ) -> tuple[Done, KubeError | None]:
        """Delete or create, never both (Q20); nothing is created while there is no PodGroup that there should be."""
        tools, job, memory = self._tools, sync.job, sync.memory
        if assessment.deletes:
            if assessment.strips_first:
                deleted = await tools.remover.strip_and_delete(job, memory, assessment.deletes)
            else:
                deleted = await tools.remover.delete(job, assessment.deletes)
            done = Done(deleted=deleted.count, deleted_ready=deleted.ready, complete=deleted.error is None)
            return done, deleted.error or ungrouped
        if assessment.births and ungrouped is None:
            spec = gang.in_group(sync.spec, sync.group)
            created = await tools.creator.create(
                job, memory, spec, assessment.births, reason=assessment.creation_reason
            )
            return Done(created=created.count, complete=created.error is None), created.error
        return Done(complete=not assessment.births), ungrouped

    async def _store_first(self, sync: _Sync, snapshot: Snapshot, tracking: Tracking) -> Object:
        """T9: what is about to lose its finalizer is on record first."""
        tools = self._tools
        for event in tracking.events:
            tools.events.event(Regarding.of(JOBS, sync.job), event.type, event.reason, event.message)
        stored: Object = sync.job
        if tracking.flush:
            with _saying("adding uncounted pods to status"):
                stored = await tools.statuses.put(sync.job, sync.memory, tracking.status)
            tools.statuses.count(sync.spec, snapshot.status, tracking.status)
        sync.memory.backoff = tracking.backoff
        for action in tracking.policy_actions:
            tools.metrics.on_policy_action(action, 1)
        return stored

    async def _strip_and_settle(self, sync: _Sync, tracking: Tracking, stored: Object) -> None:
        """T10–T13."""
        tools, job, memory = self._tools, sync.job, sync.memory
        gone: frozenset[str] = frozenset()
        error: KubeError | None = None
        if tracking.removals:
            stripped = await tools.remover.strip(job, memory, tracking.removals)
            gone, error = stripped.uids, stripped.error
        settled = settle(tracking, gone, tools.clock.now())
        if settled.flush:
            if not settled.is_finished and error is None and tools.may_put_off():
                # Everybody waits: the uncounted uids on record let the next sync's first write do.
                tools.add_after(job.key, self._behaviour.constants.batch_period_seconds)
                return
            with _saying("removing uncounted pods from status"):
                await self._put_settled(stored, memory, settled)
            tools.statuses.count(sync.spec, tracking.status, settled.status)
            if settled.is_finished:
                self._finish(job, memory, settled)
        if error is not None:
            raise error

    async def _put_settled(self, stored: Object, memory: JobMemory, settled: Settled) -> None:
        try:
            await self._tools.statuses.put(stored, memory, settled.status)
        except Invalid:
            self._server_wants_interim |= settled.is_finished
            raise

    def _finish(self, job: CachedJob, memory: JobMemory, settled: Settled) -> None:
        """The end is stored: it is told, and not redone before the watch shows it."""
        tools = self._tools
        memory.is_finished = True
        for event in settled.events:
            tools.events.event(Regarding.of(JOBS, job), event.type, event.reason, event.message)
        result = "succeeded" if settled.verdict == "Complete" else "failed"
        tools.metrics.on_finished(job.brief.completion_mode, result, settled.reason)
        tools.log.info("job finished", key=job.key, uid=job.metadata.uid, result=result, reason=settled.reason)

    def _again(self, sync: _Sync, seconds: float | None) -> None:
        """At once, not when the sync has gone well: a deadline must not wait for a retry."""
        if seconds is not None:
            self._tools.add_after(sync.job.key, seconds)


@contextmanager
def _saying(what: str) -> Iterator[None]:
    """An error in here says what was being done, in upstream's words."""
    try:
        yield
    except KubeError as error:
        error.add_note(what)
        raise
