"""From a change to the keys that it concerns: the only place that looks at what happened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mirror.controllers.due_sweeps import DueSweeps
from mirror.controllers.misspelt import Misspelt
from mirror.controllers.returning import is_left_on
from mirror.controllers.source_changes import carries_other_metadata, has_request, withdraws_request
from mirror.controllers.sources import source_key
from mirror.controllers.state import MirroringState
from mirror.controllers.unclaimed import Unclaimed
from mirror.decide.ending import has_failed
from mirror.decide.identity import Identity
from mirror.kinds.asking import asks_us_alone, is_ours, manager_of, was_moved, was_retried
from mirror.kinds.base import Kind, is_held
from mirror.kinds.queueing import is_reset
from mirror.kube.objects import Meta, Object
from mirror.kube.watch import WatchEvent
from mirror.model import names
from mirror.model.keys import MirrorKey, SourceKey
from mirror.model.reasons import Reason
from mirror.runtime.informer import Change
from mirror.runtime.store import name_of
from mirror.workers.connection import State
from mirror.workers.worker import Worker


class Routes:
    """Each change of a cache is reported here; names keys."""

    def __init__(
        self,
        state: MirroringState,
        sweeps: DueSweeps,
        *,
        managed_by: str,
        unclaimed: Unclaimed,
        misspelt: Misspelt,
        doubt: Callable[[Kind, Object], None] | None = None,
    ) -> None:
        """``doubt``: asks whether a source is gone, or its whole kind, and calls ``on_source_certainly_gone`` (D23)."""
        self._unclaimed = unclaimed
        self._misspelt = misspelt
        self._state = state
        self._sources = state.sources
        self._memories = state.memories
        self._refusals = state.refusals
        self._pending = state.pending
        self._assigner = state.assigner
        self._intake = state.intake
        self._history = state.history
        self._clock = state.environment.clock
        self._metrics = state.environment.metrics
        self._sweeps = sweeps
        self._managed_by, self._manager = managed_by, state.manager
        self._doubt = doubt
        self._share, self._follows = state.share, state.share.follows
        self._was_reachable: set[str] = set()
        # What each unreachable worker was lost by, as the sources on it were last looked at for it.
        self._lost_because: dict[str, str] = {}
        self._drained: dict[str, str] = {}
        # What of each worker concerns placement, as it was when those who wait were last woken for it.
        self._last_reported: dict[str, tuple[bool, bool, object, bool]] = {}

    # -- sources --------------------------------------------------------------------------------------------------

    def is_ours(self, kind: Kind, found: Object) -> bool:
        """D1: exactly our value."""
        return is_ours(kind, found, self._managed_by)

    def is_source(self, kind: Kind, found: Object) -> bool:
        """Whether an object on a worker is a source itself, of this management cluster or of another one."""
        return asks_us_alone(kind, found, self._managed_by)

    def on_event(self, kind: Kind, event: WatchEvent) -> None:
        """Every event of a kind on the management cluster, ours or not (KEP-4368: counted on ADDED only)."""
        if event.type == "ADDED" and self._share.assigns:
            manager = kind.managed_by(event.object)
            if manager is not None and manager != names.BUILT_IN_MANAGED_BY:
                self._metrics.on_external_job(manager)
                self._unclaimed.note(kind, event.object, manager)

    def on_source(self, kind: Kind, old: Object | None, new: Object | None, change: Change) -> None:
        """A source came, changed or went."""
        self._history.on_source(kind, old, new, is_leading=self._intake.is_leading)
        found = new or old
        if found is None:
            return
        key = source_key(kind, found)
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._on_source_gone(kind, old, is_certain=new is not None or change is Change.DELETED)
        if new is None:
            return
        if self._memories.is_gone(new.metadata.uid) or self._memories.has_left(new.metadata.uid):
            self._memories.note_back(new.metadata.uid)
        if self._intake.is_leading:
            self._misspelt.note(kind, old, new)
        if old is not None and not self._follows:
            self._note_refused_elsewhere(kind, key, old, new)
        is_suspended = kind.is_suspended(new) and not is_held(kind, new)  # one that is held waits for a worker
        is_another_spec = old is None or old.spec != new.spec
        if is_suspended:
            self._pending.drop_arrival(key)  # what is measured begins when it may run
        elif self._is_elsewhere(kind, new):
            if old is not None and not self._is_elsewhere(kind, old):
                self._add_mirrors_of(kind, new)  # what it left on a worker of ours
        elif is_another_spec and (old is None or kind.is_suspended(old)):
            self._pending.note_arrival(key)
        if old is not None and old.status != new.status:
            self._on_foreign_status(kind, old, new)
            self._memories.forget_end(kind, new, is_leading=self._intake.is_leading)
            self._forget_mirror_before(kind, old, new)
        if new.annotations.get(names.MANAGER) != self._manager or new.metadata.uid in self._memories.others:
            self._note_manager(kind, old, new)
        if new.metadata.deletion_timestamp is not None:
            self._add_mirrors_of(kind, new)
        if is_suspended or withdraws_request(old, new):
            self._assigner.finish(key)
        if old is not None and (is_another_spec or carries_other_metadata(old, new)):
            self._refusals.try_now(new.metadata.uid)
        if not self._pending.note_version(new.metadata.uid, new.version):
            (self._intake.look if change is Change.LISTED else self._intake.add)(key)

    def _is_elsewhere(self, kind: Kind, found: Object) -> bool:
        """Whether a source has a worker of another slot (S2)."""
        return self._share.slot is not None and self._share.is_elsewhere(kind.summary(found).placed)

    def _note_refused_elsewhere(self, kind: Kind, key: SourceKey, old: Object, new: Object) -> None:
        """Whoever holds its worker's slot has taken the record off it, since that worker refused it (S6)."""
        worker, after = kind.summary(old).placed, kind.summary(new)
        if worker is not None and after.placed is None and after.reason == Reason.REFUSED_BY_WORKERS:
            because = new.annotations.get(names.WAITING_BECAUSE, "").removeprefix(f"worker {worker}: ")
            self._refusals.note_refused(key, new.metadata.uid, worker, because)

    def _note_manager(self, kind: Kind, old: Object | None, found: Object) -> None:
        """Whether another manager of this cluster has placed it: that stays known where a user takes the mark away.

        Where the mark was ours while we lead, whatever is there instead is a user's, who may not free a Job from its
        manager: ``mirror take-over`` waits until nobody leads.
        """
        uid, mark = found.metadata.uid, manager_of(kind, found)
        if self._intake.is_leading and old is not None and self._was_marked_by_us(kind, old, found):
            self._memories.set(uid, is_marked_by_us=True)
        if (mark is None or self._memories.of(uid).is_marked_by_us) and uid not in self._memories.others:
            return
        was = self._memories.of(uid).other_manager
        summary = kind.summary(found)
        other = was if mark is None else mark
        if other == self._manager or summary.placed is None or summary.is_finished:
            other = ""
        if other != was:
            self._memories.note_other_manager(uid, other)

    def _was_marked_by_us(self, kind: Kind, old: Object, new: Object) -> bool:
        placed = kind.summary(old).placed
        is_same = old.metadata.uid == new.metadata.uid and placed is not None and placed == kind.summary(new).placed
        return is_same and manager_of(kind, old) == self._manager

    def _on_source_gone(self, kind: Kind, old: Object, *, is_certain: bool) -> None:
        uid, key = old.metadata.uid, source_key(kind, old)
        self.forget_source(uid)
        self._pending.drop_arrival(key)
        self._assigner.finish(key)
        if is_certain and kind.can_vanish and self._doubt is not None and self._intake.is_leading:
            self._doubt(kind, old)
            return
        if is_certain:
            self._memories.note_gone(uid, kind.summary(old).mirror_uid)
        if not is_certain:
            self._memories.note_left(uid)
        self._add_mirrors_of(kind, old)
        if not is_certain and (placed := kind.summary(old).placed):
            self._sweeps.add(placed)

    def on_source_certainly_gone(self, kind: Kind, old: Object) -> None:
        """A source was deleted, and its kind is there: so are its mirrors to go."""
        self._memories.note_gone(old.metadata.uid, kind.summary(old).mirror_uid)
        self._add_mirrors_of(kind, old)

    def forget_source(self, uid: str) -> None:
        """What is remembered by its uid; that its deletion was seen stays known."""
        self._memories.forget(uid)
        self._refusals.forget(uid)
        self._state.comparison.forget(uid)
        self._pending.forget(uid)

    def _on_foreign_status(self, kind: Kind, old: Object, new: Object) -> None:
        """The watch brought a status that is not the answer to a write of ours (D20)."""
        uid = new.metadata.uid
        if old.metadata.uid != uid or self._pending.is_writing(uid) or kind.summary(new).placed is None:
            return
        if not self._intake.is_leading or not self._follows or self._is_elsewhere(kind, new):
            return  # the leader's writes; those of whoever holds its worker's slot (S2)
        if self._share.slot is not None and has_request(old):
            return  # of whoever assigns
        if self._pending.take_unanswered(uid):
            return
        if kind.is_suspended(new) and is_reset(old, new):
            return  # by a queue that has suspended it (D26)
        self._metrics.foreign_status_writes(kind.name).inc()
        writes = self._memories.of(uid).foreign_status_writes + 1
        self._memories.set(uid, foreign_status_writes=writes, foreign_written_at=self._clock.monotonic())

    def _forget_mirror_before(self, kind: Kind, old: Object, new: Object) -> None:
        """It has left its mirror: by whoever led until now, or by a write of ours whose answer was lost (D14)."""
        if old.metadata.uid == new.metadata.uid and (was_moved(new) or was_moved(old)):
            before, now = kind.summary(old), kind.summary(new)
            if before.moves != now.moves:
                self._memories.begin_anew(new.metadata.uid)

    def _add_mirrors_of(self, kind: Kind, source: Object) -> None:
        metadata = source.metadata
        for worker in self._state.workers.holders_of(kind, source):
            namespace = worker.namespace_of(metadata.namespace)
            self._intake.add(MirrorKey(worker.name, kind.name, namespace, metadata.name))

    def take_source(self, kind: Kind, found: Object) -> None:
        """A source as a live read has shown it, reported as by the watch; another of its name is left to that."""
        old, store = self._sources.get(source_key(kind, found)), self._sources.of(kind)
        if old is not None and old.metadata.uid == found.metadata.uid and store.read_own_write(found):
            self.on_source(kind, old, found, Change.SEEN)

    # -- mirrors: ``workers.worker_hooks.WorkerListener`` ----------------------------------------------------------

    def source_of(self, worker: Worker, kind: Kind, found: Object) -> Object | None:
        """The source of the name that an object on a worker has; None: there is none."""
        namespace = worker.source_namespace_of(found.metadata.namespace)
        return self._sources.of(kind).get(namespace, found.metadata.name) if namespace is not None else None

    def has_source(self, worker: Worker, kind: Kind, found: Meta) -> bool:
        """Whether there is a source of the name that an object on a worker has."""
        namespace = worker.source_namespace_of(found.namespace)
        return namespace is not None and self._sources.of(kind).metadata_of(namespace, found.name) is not None

    def on_mirror_change(
        self, worker: Worker, kind: Kind, old: Object | None, new: Object | None, change: Change
    ) -> None:
        """An object on a worker came, changed or went."""
        found = new or old
        if found is None:
            return
        namespace = worker.source_namespace_of(found.metadata.namespace)
        source = self._sources.of(kind).get(namespace, found.metadata.name) if namespace is not None else None
        if source is not None:
            self._sources.look_at_copies(kind, name_of(source))
        self._name_keys(worker, kind, source, found, change, is_gone=new is None)
        if namespace:
            self._history.touch(SourceKey(kind.name, namespace, found.metadata.name))

    def _name_keys(
        self, worker: Worker, kind: Kind, source: Object | None, found: Object, change: Change, *, is_gone: bool
    ) -> None:
        """Of the source of an object on a worker, and of the object itself where it may be none of its mirror's."""
        metadata = found.metadata
        if source is not None:
            key = source_key(kind, source)
            is_over = not self._sources.counts_for_worker(key) and kind.summary(source).is_finished
            if not is_over:
                self._note_end(worker, kind, source, found)
            if is_gone and not is_over:
                self._note_gone(worker, kind, source, found)
            if not is_gone and not is_over:
                self._pending.note_arrival(key)
            if not is_gone or not is_over:
                (self._intake.look if change is Change.LISTED else self._intake.add)(key)
        is_others = source is None or source.metadata.uid != found.labels.get(names.SOURCE_UID)
        if is_others or is_left_on(worker.name, kind, source, found):
            name = self._intake.look if change is Change.LISTED else self._intake.add
            name(MirrorKey(worker.name, kind.name, metadata.namespace, metadata.name))

    def _note_end(self, worker: Worker, kind: Kind, source: Object, mirror: Object) -> None:
        """An end that was seen is stored in any case, so it is kept until then (D7)."""
        uid, was = source.metadata.uid, self._memories.of(source.metadata.uid).ended
        if was is mirror:
            return
        if not kind.summary(mirror).is_finished:
            # Only ends that may be withdrawn are: of others this is an older version, from a server that lags behind.
            if was is not None and was.metadata.uid == mirror.metadata.uid and kind.has_ended_for_now(was):
                self._memories.set(uid, ended=None, ended_seen_at=0.0, is_failure_untold=False)
            return
        if not self._is_own(worker, kind, source, mirror):
            return
        if was is None:
            seen_at, is_untold = self._clock.monotonic(), has_failed(kind, mirror)
            self._memories.set(uid, ended=mirror, ended_seen_at=seen_at, is_failure_untold=is_untold)
        else:
            self._memories.set(uid, ended=mirror)

    def _note_gone(self, worker: Worker, kind: Kind, source: Object, mirror: Object) -> None:
        """One that had started may leave pods behind, also where its source does not show yet that it had (D11).

        Not one of which nothing ran, whatever it says: that was proved before we deleted it (D31).
        """
        is_news = not kind.never_ends and kind.stored(mirror).has_started and not kind.stored(source).has_started
        if is_news and not was_retried(source) and self._is_own(worker, kind, source, mirror):
            self._memories.set(source.metadata.uid, ran=mirror.metadata.uid)

    def _is_own(self, worker: Worker, kind: Kind, source: Object, mirror: Object) -> bool:
        is_ours = self._state.comparison.identity_of(kind, source, mirror) in (Identity.OURS, Identity.UNLABELED)
        return is_ours and not is_left_on(worker.name, kind, source, mirror)

    def on_pods_change(self, source_uid: str) -> None:
        """The pods of a source on its worker have another trouble than before."""
        if (key := self._sources.key_of_uid(source_uid)) is not None:
            self._intake.add(key)

    # -- workers --------------------------------------------------------------------------------------------------

    def on_worker_transition(self, worker: Worker) -> None:
        """A worker became ready or unreachable, or its Secret changed."""
        if self._state.workers.get(worker.name) is not worker:
            return  # it is registered no more
        self._history.on_worker(worker.name, worker.connection.state, worker.connection.because)
        self._update_candidate(worker.name)
        self._name_keys_for(worker)

    def compare_workers(self) -> None:
        """Whatever happens to a worker is reported; a report that was missed must not keep Jobs waiting for ever."""
        self._intake.go_over("workers", lambda: {*self._state.workers, *self._assigner.workers}, self._update_candidate)

    def _update_candidate(self, worker: str) -> None:
        """What of a worker concerns placement may be another than before."""
        if (candidate := self._state.candidates.of(worker)) is not None:
            self._assigner.update(candidate)
        else:
            self._assigner.remove(worker)

    def _name_keys_for(self, worker: Worker) -> None:
        """Of the sources on a worker that changed, its mirrors, and those who wait."""
        is_reachable, was_reachable = worker.is_reachable, worker.name in self._was_reachable
        because = "" if is_reachable else worker.connection.because
        is_connecting = worker.connection.state is State.CONNECTING
        reported = self._last_reported.get(worker.name)
        has_verdict = reported is not None and reported[1] and not is_connecting
        has_another_cause = self._lost_because.pop(worker.name, because) != because
        if because:
            self._lost_because[worker.name] = because
        drain = worker.spec.drain if worker.spec is not None else ""
        is_drained_otherwise = self._drained.pop(worker.name, "") != drain
        if drain:
            self._drained[worker.name] = drain
        if is_reachable != was_reachable or has_verdict or has_another_cause or is_drained_otherwise:
            (self._was_reachable.add if is_reachable else self._was_reachable.discard)(worker.name)
            self.look_again_at(worker.name)
            if is_reachable:
                self.look_at_mirrors_of(worker)
                self._sweeps.add(worker.name)
        # A first look that ends as a loss counts too: until then waiting was not blamed on this worker.
        of_kinds = worker.unserved_kinds, worker.incomplete_kinds
        matters = (is_reachable, is_connecting, (worker.spec, of_kinds), worker.is_gone)
        if reported != matters:
            self._last_reported[worker.name] = matters
            if not is_reachable and (worker.is_gone or (reported is not None and reported[3])):
                self.look_again_at(worker.name)
            if is_reachable:
                self._refusals.try_soon(worker.name)
            self._assigner.wake_for(worker.name)

    def on_worker_forgotten(self, worker: str) -> None:
        """It is no worker any more."""
        self._was_reachable.discard(worker)
        self._lost_because.pop(worker, None)
        self._drained.pop(worker, None)
        self._last_reported.pop(worker, None)
        self._refusals.forget_worker(worker)
        self._sweeps.discard(worker)
        self._sources.look_at_copies_on(worker)

    def begin_leading(self) -> None:
        """From now on changes name keys; everything that is there is looked at once."""
        self._intake.is_leading = True
        self._memories.forget_foreign_writes()
        self._pending.restart_arrivals()
        self.compare_workers()
        self._intake.go_over("all sources", self._sources.all_keys, self._intake.look)
        for worker in list(self._state.workers.values()):
            self.look_at_mirrors_of(worker)
            self._sweeps.add(worker.name)

    def look_at_mirrors_of(self, worker: Worker) -> None:
        """Their keys are named soon, some at a time."""
        keys = partial(worker.watches.keys, worker.name)
        self._intake.go_over(f"mirrors of {worker.name}", keys, partial(self._look_at_mirror, worker))

    def _look_at_mirror(self, worker: Worker, key: MirrorKey) -> None:
        kind = self._sources.kinds[key.kind]
        mirror = worker.mirrors_of(kind).get(key.namespace, key.name)
        if mirror is not None and self._state.workers.get(worker.name) is worker:
            source = self.source_of(worker, kind, mirror)
            self._name_keys(worker, kind, source, mirror, Change.LISTED, is_gone=False)

    def look_again_at(self, worker: str) -> None:
        """The sources on it are named soon, some at a time."""
        self._intake.go_over(f"sources on {worker}", partial(self._sources.keys_on, worker), self._intake.look)

    def has_sources_on(self, worker: str) -> bool:
        return self._sources.load_of(worker) > 0
