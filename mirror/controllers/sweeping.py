"""Mirrors without a source: deleted at once where that is certain, asked for one by one where it is not (D10)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

from mirror.controllers.due_sweeps import DueSweeps
from mirror.controllers.events import warn_about_source
from mirror.controllers.handed_over import HandedOver
from mirror.controllers.record_claims import is_unconfirmed
from mirror.controllers.refusing import is_refusal, refusal_text
from mirror.controllers.returning import Returning, is_left_behind_on
from mirror.controllers.state import MirroringState
from mirror.controllers.sweep_reports import SweepReports, WhyGone
from mirror.decide.identity import has_labels, is_of_another_cluster, own_labels
from mirror.decide.mirror_verdict import MirrorState, MirrorVerdict, classify_mirror, is_too_many
from mirror.kinds.asking import manager_of
from mirror.kinds.base import Kind
from mirror.kinds.metadata import is_made_of
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.discovery import is_creatable
from mirror.kube.errors import ApiError, KubeError, NotFound
from mirror.kube.objects import Meta, Object
from mirror.model import names
from mirror.model.keys import MirrorKey
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.slices import in_slices
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker

ASKED_AT_ONCE = 8
CREATING_LOOK_SECONDS = 1.0


@dataclass(slots=True)
class _Judged:
    """What a sweep has found on a worker."""

    count: int = 0
    others: list[Object] = field(default_factory=list)
    """Of another management cluster."""
    certain: list[tuple[Kind, Object]] = field(default_factory=list)
    doubtful: list[tuple[Kind, Object]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Going:
    """A mirror that has no source here, and why."""

    kind: Kind
    mirror: Object
    why: WhyGone


class Sweeper:
    """Judges mirrors by key, and all mirrors of a worker from time to time."""

    def __init__(
        self,
        state: MirroringState,
        management: Client,
        registry: Registry,
        *,
        due: DueSweeps,
        returning: Returning,
        recorder: EventRecorder,
    ) -> None:
        self._manager = state.manager
        self._handed_over = HandedOver(state, partial(warn_about_source, recorder))
        self._management = management
        self._sources = state.sources
        self._memories = state.memories
        self._transform = state.transform
        self._log = state.environment.log
        self._metrics = state.environment.metrics
        self._registry = registry
        self._reports = SweepReports(registry, recorder, state.environment, origin=state.transform.origin)
        self._due = due
        self._mirrors = returning.mirrors
        self._returning = returning
        self._intake = state.intake
        self._sweeping: set[str] = set()
        # A slice of each of a thousand workers in one turn of the event loop would be all of them.
        self._judging = asyncio.Lock()
        self._unrecorded = asyncio.Event()

    async def wait_for_unrecorded(self) -> None:
        """Until a mirror's source is found that is not known here, and has no record of a worker."""
        await self._unrecorded.wait()
        self._unrecorded.clear()

    async def work_on(self, key: MirrorKey) -> float | None:
        """Judge one mirror; what is uncertain is left to the sweep."""
        worker, kind = self._registry.workers.get(key.worker), self._sources.kinds[key.kind]
        mirror = worker.mirrors_of(kind).get(key.namespace, key.name) if worker else None
        if mirror is None:
            self._returning.note_gone(key)
        if worker is None or mirror is None or not worker.is_reachable:
            return None
        if self._mirrors.is_creating(key):
            return CREATING_LOOK_SECONDS
        right = self._judge(worker, kind, mirror)
        if right is MirrorVerdict.LEFT_BEHIND:
            await self._returning.settle(worker, kind, mirror)
            return None
        if right is MirrorVerdict.CHECK_LIVE and self._has_namesake(worker, kind, mirror):
            why = await self._why_gone(worker, kind, mirror)
            right = MirrorVerdict.DELETE if why is not None else MirrorVerdict.KEEP
        if right is MirrorVerdict.DELETE and self._may_go(worker, kind, mirror):
            try:
                await self._delete(worker, kind, mirror, because="its source is gone")
            except ApiError as error:
                self._reports.refused(worker, [refusal_text(error)] if is_refusal(error) else [])
                raise
        return None

    def _may_go(self, worker: Worker, kind: Kind, mirror: Object) -> bool:
        """Whether nothing that came to be known meanwhile speaks against it: its uid may be recorded by now."""
        is_creating = self._mirrors.is_creating(_key(worker, kind, mirror))
        return not is_creating and self._judge(worker, kind, mirror) is not MirrorVerdict.KEEP

    def _has_namesake(self, worker: Worker, kind: Kind, mirror: Object) -> bool:
        """Another source of that name waits for it to go: worth a question of its own."""
        namespace = worker.source_namespace_of(mirror.metadata.namespace)
        return namespace is not None and self._sources.of(kind).get(namespace, mirror.metadata.name) is not None

    async def run(self, interval_seconds: float) -> None:
        """Sweep each worker when it is asked for and every interval, until cancelled."""
        loop = asyncio.get_running_loop()
        next_round = loop.time() + interval_seconds
        # Side by side: a worker that hangs must not keep the others from being swept.
        async with asyncio.TaskGroup() as scope:
            while True:
                is_time = False
                try:
                    async with asyncio.timeout_at(next_round):
                        await self._due.wait()
                except TimeoutError:
                    is_time = True  # not asked of the clock alone: a timer may come a hair before its time
                self._due.clear_changed()
                if is_time or loop.time() >= next_round:
                    next_round = loop.time() + interval_seconds
                    self._due.add_all(self._registry.workers)
                    self._registry.forget_unused()
                    scope.create_task(self._shrink(), name="shrink")
                    self._reports.keep_only(self._registry.workers.keys())
                    self._returning.keep_only(self._registry.workers.keys())
                for name in self._due.take(except_for=self._sweeping):
                    worker = self._registry.workers.get(name)
                    if worker is not None and worker.is_reachable:
                        self._sweeping.add(name)
                        scope.create_task(self._sweep_once(worker), name=f"sweep {name}")

    async def _shrink(self) -> None:
        """Keep little of mirrors whose source is gone."""
        for worker in list(self._registry.workers.values()):
            await worker.watches.shrink()

    async def _sweep_once(self, worker: Worker) -> None:
        try:
            await self._sweep(worker)
        finally:
            self._sweeping.discard(worker.name)
            self._due.wake_if_due(worker.name)

    async def _sweep(self, worker: Worker) -> None:
        async with self._judging:
            found = await self._judged(worker)
            await asyncio.sleep(0)  # each has a turn of its own, however few mirrors it has
        self._reports.others(worker, found.others)
        certain, mirrors = found.certain, found.count - len(found.others)
        try:
            going = await self._confirmed(worker, found.doubtful, mirrors)
            is_halted = is_too_many(len(going), mirrors)
            self._metrics.worker(worker.name).sweep_held_back.set(len(going) if is_halted else 0)
            if is_halted:
                self._reports.halted(worker, {one.mirror.metadata.uid: one.why for one in going}, mirrors)
                going = []
            else:
                self._reports.not_halted(worker)
            refused = [
                await self._sweep_away(worker, kind, mirror)
                for kind, mirror in (*certain, *((one.kind, one.mirror) for one in going))
                if self._may_go(worker, kind, mirror)
            ]
            self._reports.refused(worker, [text for text in refused if text])
        except KubeError as error:
            self._log.warning("sweep not finished", worker=worker.name, error=error)

    async def _judged(self, worker: Worker) -> _Judged:
        """All mirrors of a worker, some at a time; those that were left behind are looked at one by one."""
        judged = _Judged()
        async for key in in_slices(worker.watches.keys(worker.name)):
            kind = self._sources.kinds[key.kind]
            mirrors = worker.mirrors_of(kind)
            metadata = mirrors.metadata_of(key.namespace, key.name)
            if metadata is None:
                continue
            judged.count += 1
            if self._is_in_place(worker, kind, metadata) or (mirror := mirrors.get(key.namespace, key.name)) is None:
                continue
            if is_of_another_cluster(mirror.labels, self._transform.management_uid):
                judged.others.append(mirror)
            match self._judge(worker, kind, mirror):
                case MirrorVerdict.DELETE:
                    judged.certain.append((kind, mirror))
                case MirrorVerdict.CHECK_LIVE:
                    judged.doubtful.append((kind, mirror))
                case MirrorVerdict.LEFT_BEHIND:
                    self._intake.look(key)
                case _:
                    pass
        return judged

    async def _sweep_away(self, worker: Worker, kind: Kind, mirror: Object) -> str:
        """Delete one; a refusal, which is returned, concerns this one only."""
        try:
            await self._delete(worker, kind, mirror, because="its source is gone (sweep)")
        except ApiError as error:
            self._log.warning("mirror not deleted", worker=worker.name, name=mirror.metadata.name, error=error)
            return refusal_text(error) if is_refusal(error) else ""
        self._metrics.worker(worker.name).sweep_deleted.inc()
        return ""

    async def _confirmed(self, worker: Worker, doubtful: list[tuple[Kind, Object]], mirrors: int) -> list[_Going]:
        """Those whose source the management cluster itself says is not there; never on a refusal to answer.

        What a halted sweep has asked for counts without being asked for again, as long as it is enough to halt this
        one, too: whoever makes objects on a worker must not make requests here. What is to go was asked for just now.
        """
        known = self._reports.halted_on(worker.name)
        left = [one for one in doubtful if one[1].metadata.uid in known]
        going = await self._gone_of(worker, [one for one in doubtful if one[1].metadata.uid not in known])
        if is_too_many(len(going) + len(left), mirrors):
            return going + [_Going(kind, mirror, known[mirror.metadata.uid]) for kind, mirror in left]
        return going + await self._gone_of(worker, left)

    async def _gone_of(self, worker: Worker, doubtful: list[tuple[Kind, Object]]) -> list[_Going]:
        gate = asyncio.Semaphore(ASKED_AT_ONCE)

        async def ask(kind: Kind, mirror: Object) -> WhyGone | None:
            async with gate:
                return await self._why_gone(worker, kind, mirror)

        async with asyncio.TaskGroup() as scope:
            asked = [scope.create_task(ask(*one), name="ask for a source") async for one in in_slices(doubtful)]
        found = [(*one, task.result()) for one, task in zip(doubtful, asked, strict=True)]
        return [_Going(kind, mirror, why) for kind, mirror, why in found if why is not None]

    async def _why_gone(self, worker: Worker, kind: Kind, mirror: Object) -> WhyGone | None:
        """Why a mirror has no source here, by what the management cluster says now; None: it has one."""
        namespace = worker.source_namespace_of(mirror.metadata.namespace)
        if namespace is None:
            return None  # made under another prefix: not judged by guessing
        try:
            found = await self._management.send_object(
                requests.get(kind.resource, mirror.metadata.name, namespace=namespace)
            )
        except NotFound:
            is_gone = await self._is_kind_served(kind) and not self._has_source_elsewhere(kind, mirror)
            return WhyGone.ABSENT if is_gone else None
        except KubeError as error:
            self._log.warning("source lookup failed", source=f"{namespace}/{mirror.metadata.name}", error=error)
            return None
        summary, is_same = kind.summary(found), found.metadata.uid == mirror.labels.get(names.SOURCE_UID)
        if is_same and self._is_others(kind, found):
            return None
        if is_same and self._handed_over.take(kind, found, worker.name):
            return WhyGone.ABSENT
        if summary.mirror_uid == mirror.metadata.uid:
            return None
        if not is_same:
            return WhyGone.ABSENT
        if summary.placed is None:
            self._unrecorded.set()
        is_over = summary.is_finished and kind.summary(mirror).is_finished
        return WhyGone.ELSEWHERE if summary.placed not in (None, worker.name) and not is_over else None

    def _is_others(self, kind: Kind, found: Object) -> bool:
        """Whether others may know better: another manager has placed it (D2), or its record is in doubt (D25)."""
        is_others = found.metadata.uid in self._memories.others or manager_of(kind, found) not in (None, self._manager)
        return is_others or is_unconfirmed(kind, found, self._registry.workers)

    async def _is_kind_served(self, kind: Kind) -> bool:
        """Whether an absence proves something: with a definition that is deleted all its objects go (D23)."""
        try:
            return not kind.can_vanish or await is_creatable(self._management, kind.resource)
        except KubeError as error:
            self._log.warning("kind lookup failed", kind=kind.name, error=error)
            return False

    def _has_source_elsewhere(self, kind: Kind, mirror: Object) -> bool:
        """Whether it was made under another prefix: its source is in another namespace than expected (D19).

        That is one which has recorded it, whatever its labels say by now (D1), or one with the uid on it that has
        recorded no other.
        """
        name, uid = mirror.metadata.name, mirror.labels.get(names.SOURCE_UID)
        store = self._sources.of(kind)
        for source in (store.get(*one) for one in store.namesakes(name)):
            if source is not None:
                recorded = self._memories.recorded_uid(kind, source)
                if recorded == mirror.metadata.uid or (source.metadata.uid == uid and not recorded):
                    return True
        return False

    async def _delete(self, worker: Worker, kind: Kind, mirror: Object, *, because: str) -> None:
        await self._mirrors.delete(worker, _key(worker, kind, mirror), mirror.metadata.uid, because=because)
        self._returning.report_uncounted(worker, kind, mirror)

    def _is_in_place(self, worker: Worker, kind: Kind, mirror: Meta) -> bool:
        """Whether it is plainly the mirror of a source that counts for its worker.

        ``_judge`` would have it kept; this needs neither of both unpacked, and there may be a hundred thousand.
        """
        namespace, labels = worker.source_namespace_of(mirror.namespace), mirror.labels or {}
        if namespace is None or mirror.deletion_timestamp is not None or mirror.owner_references:
            return False
        source = self._sources.of(kind).metadata_of(namespace, mirror.name)
        return (
            source is not None
            and source.uid == labels.get(names.SOURCE_UID)
            and source.deletion_timestamp is None
            and not is_of_another_cluster(labels, self._transform.management_uid)
            and self._sources.counts_only_for(kind, (namespace, mirror.name), worker.name)
        )

    def _judge(self, worker: Worker, kind: Kind, mirror: Object) -> MirrorVerdict:
        namespace = worker.source_namespace_of(mirror.metadata.namespace)
        labels = own_labels(mirror)
        uid = labels.get(names.SOURCE_UID, "")
        found = self._sources.of(kind).get(namespace, mirror.metadata.name) if namespace is not None else None
        summary = kind.summary(found) if found is not None else None
        recorded = self._memories.recorded_uid(kind, found) if found is not None else None
        is_recorded = found is not None and mirror.metadata.uid == recorded
        exists = found is not None and (
            found.metadata.uid == uid or bool(uid and not recorded and is_made_of(kind, found, mirror, self._transform))
        )
        is_about = found is not None and (exists or is_recorded)
        if found is not None and is_about and not found.metadata.deletion_timestamp and self._is_others(kind, found):
            return MirrorVerdict.KEEP
        return classify_mirror(
            MirrorState(
                worker=worker.name,
                source_uid=uid,
                is_going=mirror.metadata.deletion_timestamp is not None,
                source_exists=exists,
                source_is_deleting=bool(is_about and found and found.metadata.deletion_timestamp),
                source_is_finished=bool(is_about and summary and summary.is_finished),
                is_finished=kind.summary(mirror).is_finished,
                placed=summary.placed if is_about and summary else None,
                is_gone=self._memories.is_gone(uid),
                has_labels=has_labels(
                    labels, origin=self._transform.origin, management_uid=self._transform.management_uid
                ),
                is_recorded=is_recorded,
                is_recorded_gone=self._memories.is_gone(mirror.metadata.uid),
                is_left_behind=found is not None and exists and self._is_left(worker, kind, found, mirror),
            )
        )

    def _is_left(self, worker: Worker, kind: Kind, source: Object, mirror: Object) -> bool:
        is_left = is_left_behind_on(worker.name, mirror, kind.summary(source))
        return is_left or self._returning.is_second(worker, kind, source, mirror)


def _key(worker: Worker, kind: Kind, mirror: Object) -> MirrorKey:
    return MirrorKey(worker.name, kind.name, mirror.metadata.namespace, mirror.metadata.name)
