"""From a change to the keys that it concerns: the only place that looks at what happened."""

from __future__ import annotations

from collections.abc import Callable

from mirror.controllers.applying import Applier
from mirror.controllers.assigning import Assigner
from mirror.controllers.memory import Memories
from mirror.controllers.observing import Observer
from mirror.controllers.sources import Sources, source_key
from mirror.decide.identity import Identity
from mirror.kinds.base import Kind, is_held
from mirror.kube.objects import Object, size_of
from mirror.kube.watch import WatchEvent
from mirror.model import names
from mirror.model.keys import Key, MirrorKey
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change
from mirror.telemetry.metrics import Metrics
from mirror.workers.connection import State
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker


class Routes:
    """Told of each change of a cache; names keys."""

    def __init__(
        self,
        sources: Sources,
        registry: Registry,
        *,
        add: Callable[[Key], None],
        assigner: Assigner,
        memories: Memories,
        observer: Observer,
        applier: Applier,
        sweep_soon: Callable[[str], None],
        clock: Clock,
        metrics: Metrics,
        managed_by: str,
    ) -> None:
        self._sources = sources
        self._registry = registry
        self._add = add
        self._assigner = assigner
        self._memories = memories
        self._observer = observer
        self._applier = applier
        self._sweep_soon = sweep_soon
        self._clock = clock
        self._metrics = metrics
        self._managed_by = managed_by
        self._was_reachable: set[str] = set()
        self._told_placement: dict[str, tuple[bool, bool, object]] = {}
        self.is_leading = False

    # -- sources --------------------------------------------------------------------------------------------------

    def is_ours(self, kind: Kind, found: Object) -> bool:
        """D1: exactly our value."""
        return kind.managed_by(found) == self._managed_by

    def on_event(self, kind: Kind, event: WatchEvent) -> None:
        """Every event of a kind on the management cluster, ours or not (KEP-4368: counted on ADDED only)."""
        if event.type == "ADDED":
            manager = kind.managed_by(event.object)
            if manager is not None and manager != names.BUILT_IN_MANAGED_BY:
                self._metrics.on_external_job(manager)

    def on_source(self, kind: Kind, old: Object | None, new: Object | None, change: Change) -> None:
        """A source came, changed or went."""
        found = new or old
        if found is None:
            return
        key = source_key(kind, found)
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._on_source_gone(kind, old, is_certain=new is not None or change is Change.DELETED)
        if new is None:
            return
        if self._memories.is_gone(new.metadata.uid):
            self._memories.note_back(new.metadata.uid)
        is_suspended = kind.is_suspended(new) and not is_held(kind, new)  # one that is held wants a place
        is_another_spec = old is None or bytes(old.spec) != bytes(new.spec)
        if is_suspended:
            self._applier.arrived_at.pop(key, None)  # what is measured begins when it may run
        elif is_another_spec and (old is None or kind.is_suspended(old)):
            self._applier.arrived_at.setdefault(key, self._clock.monotonic())
        if old is not None and bytes(old.status) != bytes(new.status):
            self._on_foreign_status(kind, old, new)
            self._memories.forget_end(kind, new)
        if new.metadata.deletion_timestamp is not None:
            self._add_mirrors_of(kind, new)
        if is_suspended or _wants_no_place(old, new):
            self._assigner.settle(key)
        if new.metadata.uid in self._applier.writing:
            self._applier.writing[new.metadata.uid] = new.version
        else:
            self._add(key)

    def _on_source_gone(self, kind: Kind, old: Object, *, is_certain: bool) -> None:
        uid, key = old.metadata.uid, source_key(kind, old)
        if is_certain:
            self._memories.note_gone(uid, kind.summary(old).mirror_uid)
        self.forget_source(uid)
        self._applier.arrived_at.pop(key, None)
        self._assigner.settle(key)
        self._add_mirrors_of(kind, old)
        if not is_certain and (placed := kind.summary(old).placed):
            self._sweep_soon(placed)

    def forget_source(self, uid: str) -> None:
        """What is remembered by its uid; that its deletion was seen stays known."""
        self._memories.forget(uid)
        self._observer.forget(uid)
        self._applier.unanswered.discard(uid)

    def _on_foreign_status(self, kind: Kind, old: Object, new: Object) -> None:
        """The watch brought a status that is not the answer to a write of ours (D20)."""
        uid = new.metadata.uid
        if old.metadata.uid != uid or uid in self._applier.writing or kind.summary(new).placed is None:
            return
        if not self.is_leading:
            return  # the leader's writes
        if uid in self._applier.unanswered:
            self._applier.unanswered.discard(uid)
            return  # most likely that write
        self._metrics.foreign_status_writes.inc()
        writes = self._memories.of(uid).foreign_status_writes + 1
        self._memories.set(uid, foreign_status_writes=writes, foreign_written_at=self._clock.monotonic())

    def _add_mirrors_of(self, kind: Kind, source: Object) -> None:
        metadata = source.metadata
        for worker in self._registry.workers.values():
            namespace = worker.namespace_of(metadata.namespace)
            if worker.mirrors_of(kind).get(namespace, metadata.name) is not None:
                self._add(MirrorKey(worker.name, kind.name, namespace, metadata.name))

    # -- mirrors: ``workers.registry.RegistryListener`` ---------------------------------------------------------------

    def source_size(self, worker: Worker, kind: Kind, found: Object) -> int | None:
        """About how many bytes the source of an object on a worker takes; None: it has no source here."""
        source = self._source_of(worker, kind, found)
        return size_of(source) if source is not None else None

    def on_mirror_change(
        self, worker: Worker, kind: Kind, old: Object | None, new: Object | None, change: Change
    ) -> None:
        found = new or old
        if found is None:
            return
        metadata, source = found.metadata, self._source_of(worker, kind, found)
        if source is not None:
            key = source_key(kind, source)
            is_over = not self._sources.counts_for_worker(key) and kind.summary(source).is_finished
            if not is_over:
                self._note_end(kind, source, found)
            if new is not None and not is_over:
                self._applier.arrived_at.setdefault(key, self._clock.monotonic())
            if new is not None or not is_over:
                self._add(key)
        if source is None or source.metadata.uid != found.labels.get(names.SOURCE_UID):
            self._add(MirrorKey(worker.name, kind.name, metadata.namespace, metadata.name))

    def _source_of(self, worker: Worker, kind: Kind, found: Object) -> Object | None:
        """The source of the name that an object on a worker has."""
        namespace = worker.source_namespace_of(found.metadata.namespace)
        return self._sources.of(kind).get(namespace, found.metadata.name) if namespace is not None else None

    def _note_end(self, kind: Kind, source: Object, mirror: Object) -> None:
        """An end that was seen is stored in any case, so it is kept until then (D7)."""
        uid, was = source.metadata.uid, self._memories.of(source.metadata.uid).ended
        if was is mirror or not kind.summary(mirror).is_finished:
            return
        if self._observer.identity_of(kind, source, mirror) not in (Identity.OURS, Identity.UNLABELED):
            return
        if was is None:
            self._memories.set(uid, ended=mirror, ended_seen_at=self._clock.monotonic())
        else:
            self._memories.set(uid, ended=mirror)

    # -- workers --------------------------------------------------------------------------------------------------

    def on_worker_transition(self, worker: Worker) -> None:
        """A worker became ready or unreachable, or its Secret changed."""
        is_reachable, was_reachable = worker.is_reachable, worker.name in self._was_reachable
        is_connecting = worker.connection.state is State.CONNECTING
        told = self._told_placement.get(worker.name)
        has_verdict = told is not None and told[1] and not is_connecting
        if is_reachable != was_reachable or has_verdict:
            (self._was_reachable.add if is_reachable else self._was_reachable.discard)(worker.name)
            self.look_again_at(worker.name)
            if is_reachable:
                self.look_at_mirrors_of(worker)
                self._sweep_soon(worker.name)
        # A first look that ends as a loss counts too: until then waiting was not blamed on this worker.
        matters = (is_reachable, is_connecting, worker.spec)
        if told != matters:
            self._told_placement[worker.name] = matters
            self._memories.clear_refusals(worker.name)
            self._assigner.wake_for(worker.name)

    def forget_worker(self, worker: str) -> None:
        """It is no worker any more."""
        self._was_reachable.discard(worker)
        self._told_placement.pop(worker, None)
        self._memories.clear_refusals(worker)

    def look_at_mirrors_of(self, worker: Worker) -> None:
        for kind in self._sources.kinds:
            for mirror in worker.mirrors_of(kind):
                self.on_mirror_change(worker, kind, None, mirror, Change.SEEN)

    def look_again_at(self, worker: str) -> None:
        for key in self._sources.keys_on(worker):
            self._add(key)

    def has_sources_on(self, worker: str) -> bool:
        return self._sources.load_of(worker) > 0


def _wants_no_place(old: Object | None, new: Object) -> bool:
    """A source that waits for a place, or was given one, does not want it any more, or wants another (D21)."""
    if new.metadata.deletion_timestamp is not None:
        return True
    return old is not None and old.annotations.get(names.WORKER_SELECTOR) != new.annotations.get(names.WORKER_SELECTOR)
