"""Gathers what one decision looks at, from caches only: no request is made here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from mirror.controllers.assigning import Assigner
from mirror.controllers.memory import Memories
from mirror.controllers.sources import Sources
from mirror.decide.identity import Identity, identify
from mirror.decide.snapshot import AssignmentState, Memory, Policy, Snapshot, Source, WorkerSight
from mirror.kinds.base import BadAnnotation, Changes, Kind, MirrorTransform, is_held
from mirror.kube.objects import Object, Partial
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.placement.candidates import Candidate, NamespaceRules, PlacementRequest, reserved_namespaces
from mirror.placement.selector import EVERY, BadSelector, parse_selector
from mirror.runtime.clock import Clock
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker

FOREIGN_WRITES_FORGOTTEN_SECONDS = 60.0

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Caches:
    """Everything that is read to observe."""

    sources: Sources
    registry: Registry
    assigner: Assigner
    memories: Memories
    clock: Clock
    policy: Policy
    transform: MirrorTransform
    closed_namespaces: tuple[str, ...]


def source_of(kind: Kind, found: Object) -> Source:
    stored = kind.stored(found)
    return Source(
        kind=kind,
        found=found,
        stored=stored,
        is_suspended=stored.is_suspended,
        is_held=is_held(kind, found),
        is_finished=stored.is_finished,
        has_started=stored.has_started,
        placed=stored.placed_worker,
    )


def placement_request_of(kind: Kind, found: Object, memory: Memory, now: float) -> PlacementRequest:
    """What a source asks of placement.

    Raises:
        BadAnnotation: what it says cannot be understood.
    """
    text = found.annotations.get(names.WORKER_SELECTOR)
    try:
        selector = parse_selector(text) if text else EVERY
    except BadSelector as error:
        raise BadAnnotation(f"annotation {names.WORKER_SELECTOR}: {error}") from error
    kind.check(found)
    refused = frozenset(worker for worker, refusal in memory.refusals if refusal.until > now)
    return PlacementRequest(found.metadata.namespace, selector, refused)


def candidate_of(worker: Worker, load: int, closed_namespaces: tuple[str, ...]) -> Candidate | None:
    """A worker as placement sees it, with the load that is recorded on sources; None if no Secret registers it."""
    spec = worker.spec
    if spec is None:
        return None
    return Candidate(
        name=worker.name,
        labels=dict(spec.labels),
        reachable=worker.is_reachable,
        cordoned=spec.cordoned or spec.draining,
        misconfigured=bool(worker.problems),
        capacity=spec.capacity,
        weight=spec.weight,
        load=load,
        namespace_rules=NamespaceRules(
            globs=spec.namespaces,
            closed=closed_namespaces,
            prefix=worker.namespace_of(""),
            reserved=reserved_namespaces(closed_namespaces, worker.token.namespace),
        ),
    )


class Observer:
    """Looks at one source and all that belongs to it."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        # Sources whose mirror was found to be as they want it, with a hash of what both looked like then: comparing two
        # whole Jobs again for each status would be most of the work. Bounded by the sources that exist.
        self._agreed: dict[str, int] = {}

    def forget(self, uid: str) -> None:
        self._agreed.pop(uid, None)

    def identity_of(self, kind: Kind, source: Object, mirror: Object) -> Identity:
        """What an object that has this source's name on a worker is to it (D1)."""
        return identify(
            mirror.metadata.uid,
            mirror.labels,
            origin=self._caches.transform.origin,
            source_uid=source.metadata.uid,
            recorded_uid=self._caches.memories.recorded_uid(kind, source),
        )

    def look(self, key: SourceKey) -> Snapshot | None:
        """What there is to see about a source; None when it does not exist."""
        caches = self._caches
        found = caches.sources.get(key)
        if found is None:
            return None
        source = source_of(caches.sources.kinds[key.kind], found)
        memory = self._recent(caches.memories.of(source.uid))
        monotonic = caches.clock.monotonic()
        now = caches.clock.now()
        worker = caches.registry.worker(source.placed) if source.placed else None
        sight = _sight(worker, now) if worker is not None else None
        mirror, identity = self._mirror_of(source, worker)
        is_stale = identity is Identity.NAMESAKE
        return Snapshot(
            key=key,
            source=source,
            now=now,
            monotonic=monotonic,
            policy=caches.policy,
            memory=memory,
            worker=sight,
            mirror=mirror,
            mirror_is_stale=is_stale,
            identity=identity,
            is_watched=mirror is None or mirror.labels.get(names.ORIGIN) == caches.transform.origin,
            changes=self._changes(source, mirror) if not is_stale else None,
            refused_now=_refused_now(source, memory),
            assignment=self._about_place(key, source, memory, monotonic),
        )

    async def complete(self, key: SourceKey) -> None:
        """Read a source's mirror of which only the metadata is cached: nothing is concluded from the rest (D11, D29).

        Raises:
            KubeError: it cannot be had.
        """
        source = self._caches.sources.get(key)
        kind = self._caches.sources.kinds[key.kind]
        worker = self._caches.registry.workers.get((kind.summary(source).placed or "") if source else "")
        if source is not None and worker is not None:
            mirror = worker.mirrors_of(kind).get(worker.namespace_of(key.namespace), key.name)
            if isinstance(mirror, Partial) and self.identity_of(kind, source, mirror) not in (
                Identity.NAMESAKE,
                Identity.FOREIGN,
            ):
                await worker.read_whole(kind, mirror.metadata.namespace, mirror.metadata.name)

    def _about_place(self, key: SourceKey, source: Source, memory: Memory, now: float) -> AssignmentState:
        """Only for a source that has no place, or was refused where it is recorded."""
        refused_now = _refused_now(source, memory)
        if (source.placed is not None and not refused_now) or source.is_finished or source.is_deleting:
            return AssignmentState()
        caches = self._caches
        found_on = self._where_found(source) if not refused_now else None
        try:
            request = placement_request_of(source.kind, source.found, memory, now)
        except BadAnnotation as error:
            return AssignmentState(bad_annotation=str(error), found_on=found_on)
        given = caches.assigner.given_to(key, source.uid)
        why = ""
        if given is None and caches.registry.have_settled():
            why = caches.assigner.why(request, memory.refusal_texts)
        return AssignmentState(given=given, waiting_because=why, found_on=found_on)

    def _mirror_of(self, source: Source, worker: Worker | None) -> tuple[Object | None, Identity | None]:
        """The object that has this source's name on the worker, and what it is; None for one that is not ours (D1)."""
        if worker is None:
            return None, None
        metadata = source.found.metadata
        mirror = worker.mirrors_of(source.kind).get(worker.namespace_of(metadata.namespace), metadata.name)
        if mirror is None:
            return None, None
        identity = self.identity_of(source.kind, source.found, mirror)
        if identity is Identity.FOREIGN:
            return None, None
        if isinstance(mirror, Partial) and identity is not Identity.NAMESAKE and worker.name == source.placed:
            return None, None  # ``complete`` could not read it: its worker is unreachable
        return mirror, identity

    def _where_found(self, source: Source) -> str | None:
        for worker in self._caches.registry.workers.values():
            mirror, identity = self._mirror_of(source, worker)
            if mirror is not None and identity is not Identity.NAMESAKE:
                return worker.name
        return None

    def _changes(self, source: Source, mirror: Object | None) -> Changes | None:
        if mirror is None or source.is_finished or source.is_deleting or source.kind.summary(mirror).is_finished:
            return None
        looks = _looks(source.found, mirror)
        if self._agreed.get(source.uid) == looks:
            return None
        changes = source.kind.changes(source.found, self._labeled(source, mirror), transform=self._caches.transform)
        if changes is None or self._is_settled(source, mirror, changes):
            self._agreed[source.uid] = looks
            return None
        return changes

    def _labeled(self, source: Source, mirror: Object) -> Object:
        """With our two labels, which are put back by themselves where they are missing."""
        ours = {names.ORIGIN: self._caches.transform.origin, names.SOURCE_UID: source.uid}
        if ours.items() <= mirror.labels.items():
            return mirror
        metadata = msgspec.structs.replace(mirror.metadata, labels=mirror.labels | ours)
        return msgspec.structs.replace(mirror, metadata=metadata)

    def _is_settled(self, source: Source, mirror: Object, changes: Changes) -> bool:
        """Whether what differs was reported and stays as it is; of a suspended mirror the next status may end that."""
        if changes.operations or changes.must_wait_for_pods or source.kind.is_suspended(mirror):
            return False
        return changes.overridden == self._caches.memories.of(source.uid).overridden

    def agree(self, source: Object, mirror: Object) -> None:
        """This mirror was just made of this source."""
        if self._caches.memories.is_gone(source.metadata.uid):
            return
        self._agreed[source.metadata.uid] = _looks(source, mirror)

    def _recent(self, memory: Memory) -> Memory:
        if memory.foreign_status_writes and (
            self._caches.clock.monotonic() - memory.foreign_written_at > FOREIGN_WRITES_FORGOTTEN_SECONDS
        ):
            return self._caches.memories.set(memory.uid, foreign_status_writes=0)
        return memory


def _looks(source: Object, mirror: Object) -> int:
    """All that the comparison of a source with its mirror depends on, as a hash: 64 bits tell two looks apart."""
    here, there = source.metadata, mirror.metadata
    annotations = {key: value for key, value in source.annotations.items() if not key.startswith(names.PREFIX)}
    versions = (here.generation, there.uid, there.generation)
    return hash(_encode((versions, here.labels, annotations, there.labels, there.annotations)))


def _refused_now(source: Source, memory: Memory) -> str:
    """The worker a source is recorded on, if it definitely refused the very first create (D1)."""
    return memory.refused_on if memory.refused_on and memory.refused_on == source.placed else ""


def _sight(worker: Worker, now: datetime) -> WorkerSight:
    connection, is_reachable = worker.connection, worker.is_reachable
    return WorkerSight(
        name=worker.name,
        is_reachable=is_reachable,
        lost_for_seconds=connection.lost_for_seconds(now),
        because=connection.because or "connecting",
        clock_offset_seconds=worker.client.clock_offset_seconds if is_reachable else None,
    )
