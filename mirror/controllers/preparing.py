"""Puts right what is known of a source before it is observed: all that observing itself must not change."""

from __future__ import annotations

from mirror.controllers.state import MirroringState
from mirror.decide.identity import Identity
from mirror.kinds.base import Kind
from mirror.kube.objects import Object, Partial
from mirror.model.keys import SourceKey
from mirror.model.terms import NO_TERMS, request_in, term_of
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker


class Preparer:
    """Called by ``mirroring`` for each key that is worked on, before ``observing``."""

    def __init__(self, state: MirroringState, registry: Registry) -> None:
        self._state = state
        self._registry = registry

    async def prepare(self, key: SourceKey) -> None:
        """Read what is missing, then bring what is remembered up to date; nothing is awaited after that.

        Raises:
            KubeError: a mirror cannot be read.
        """
        state, kind = self._state, self._state.sources.kinds[key.kind]
        source = state.sources.get(key)
        if source is None:
            return
        recorded = state.sources.worker_of(key)
        worker = state.workers.get(recorded) if recorded else None
        if worker is not None and (partial := self._partial_mirror(kind, source, worker)) is not None:
            await worker.read_whole(kind, partial.metadata.namespace, partial.metadata.name)
            source = state.sources.get(key)
            if source is None:
                return
            recorded = state.sources.worker_of(key)
        uid = source.metadata.uid
        state.memories.forget_old_foreign_writes(uid, state.environment.clock.monotonic())
        state.assigner.release_unusable(key, uid)
        if not recorded and state.stopped.is_stopped(kind):
            state.assigner.finish(key)
        if recorded and uid not in state.memories.others and state.share.has(recorded):
            self._registry.ensure_registered(recorded)
            if state.terms is not NO_TERMS:
                self._note_term(kind, source)

    def _note_term(self, kind: Kind, source: Object) -> None:
        """What is first seen with a record of our own term was recorded in it, and not created by anybody yet (S6).

        What was seen with another one in this term may have been: its record becomes ours by a touch, whose answer may
        be lost. So may what has a mirror, or was to leave its worker: we may have forgotten that we saw it before.
        """
        state, uid = self._state, source.metadata.uid
        own = state.terms.of("")
        if own and state.memories.of(uid).seen_in_term != own:
            stored = kind.stored(source)
            is_first = term_of(stored.status) == own and not stored.mirror_uid and request_in(stored.status) is None
            state.memories.set(uid, first_create=is_first and not self._has_mirror(kind, source), seen_in_term=own)

    def _has_mirror(self, kind: Kind, source: Object) -> bool:
        worker, namespace = self._state.workers.get(kind.summary(source).placed or ""), source.metadata.namespace
        return worker is not None and worker.mirrors_of(kind).has_one_of(source, worker.namespace_of(namespace))

    def _partial_mirror(self, kind: Kind, source: Object, worker: Worker) -> Partial | None:
        """A source's mirror of which only the metadata is cached: nothing is concluded from the rest (D11, D29)."""
        metadata = source.metadata
        mirror = worker.mirrors_of(kind).get(worker.namespace_of(metadata.namespace), metadata.name)
        if not isinstance(mirror, Partial):
            return None
        identity = self._state.comparison.identity_of(kind, source, mirror)
        return None if identity in (Identity.NAMESAKE, Identity.FOREIGN) else mirror
