"""The sources of the management cluster: one store for each kind (D24). Filled by informers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds
from mirror.kube.objects import Meta, Object
from mirror.model.keys import Key, MirrorKey, SourceKey
from mirror.model.move_requests import may_have_request
from mirror.model.reasons import WORKERS_PODS
from mirror.placement.preferences import spread_key_of
from mirror.runtime.rest import Rest
from mirror.runtime.store import EVERYWHERE, IndexFunction, Name, Store

# The index of sources that are recorded on a worker and not over, by worker: what counts as its load.
BY_WORKER = "worker"
# The index of sources that have left something on a worker that they were moved from (D14): this value, which is no
# name, and each worker where such a copy may run now.
LEFT_BEHIND = "left behind"
# The index of sources that a CronJob made, that may run and have not started: the value is always the same.
UNSTARTED = "unstarted"
# The index of sources that wait or make no progress, by the reason that their conditions give (D22).
BY_REASON = "reason"
# The index of sources by uid, where somebody knows no more of one: pods on workers do not.
BY_UID = "uid"
# The index of sources that are to be spread, by worker, namespace and label; the last two hold no space.
SPREAD = "spread"
# The index of sources whose record may say that another worker is requested (S2): always the same value.
REQUESTED = "requested"
# The index of sources whose pods do not become ready, by worker, where placement counts them.
STALLED = "stalled"
# The indexes of which it is counted over all kinds how many each value has.
_COUNTED = frozenset((BY_WORKER, LEFT_BEHIND, SPREAD, STALLED))
HasCopy = Callable[[Kind, Object, str], bool]
"""Whether a worker has a copy now that a source has left behind there, and that may run."""


class Counts(Protocol):
    """Who follows how many sources are on each worker (``assigning``)."""

    def set_load(self, worker: str, taken: int) -> None: ...

    def set_stalled(self, worker: str, stalled: int) -> None: ...

    def set_spread(self, worker: str, namespace: str, label: str, count: int) -> None: ...


class Sources:
    """All of them; a key says of which kind one is."""

    def __init__(
        self,
        kinds: Kinds,
        *,
        has_copy: HasCopy = lambda kind, source, worker: False,
        by_uid: bool = False,
        stalled: bool = False,
        requests: bool = False,
    ) -> None:
        """``has_copy``: asked when a source changes, and again when somebody says so (``look_at_copies``).

        The rest: whether these are asked: ``key_of_uid``, ``stalled_of``, ``may_be_requested``.
        """
        self.kinds = kinds
        self._counts: Counts | None = None
        # By index and value, over all kinds, where there is any: placing asks for each worker. Invariant: the sum of
        # ``Store.count``, since each store reports when one changes.
        self._totals: dict[tuple[str, str], int] = {}
        more: dict[str, IndexFunction] = {BY_UID: lambda found: (found.metadata.uid,)} if by_uid else {}
        more |= {REQUESTED: _requested} if requests else {}
        self._stores = {
            kind.name: Store(
                indexes_of(kind, has_copy) | more | ({STALLED: _stalled_of(kind)} if stalled else {}),
                on_count=self._on_count,
                rest=Rest(),
            )
            for kind in kinds
        }

    def __len__(self) -> int:
        return sum(map(len, self._stores.values()))

    def metadata(self, kind: str | None = None) -> Iterator[tuple[Kind, Meta]]:
        """Of all sources, or those of the kind of this name: a hundred thousand are read in no time."""
        for name in self._stores if kind is None else (kind,):
            for metadata in self._stores[name].metadata():
                yield self.kinds[name], metadata

    def all_keys(self, kind: str | None = None) -> Iterator[SourceKey]:
        """All of them, or those of the kind of this name."""
        for of in self._stores if kind is None else (kind,):
            for namespace, name in self._stores[of].names_in(EVERYWHERE):
                yield SourceKey(of, namespace, name)

    def keys_in(self, namespace: str) -> Iterator[SourceKey]:
        """Those in one namespace; empty: all of them."""
        for kind, store in self._stores.items():
            for found_in, name in store.names_in(namespace):
                yield SourceKey(kind, found_in, name)

    def report_to(self, counts: Counts) -> None:
        """From now on, tell it each number that is another than before."""
        self._counts = counts

    def of(self, kind: Kind) -> Store:
        """The sources of one kind."""
        return self._stores[kind.name]

    def get(self, key: SourceKey) -> Object | None:
        return self._stores[key.kind].get(key.namespace, key.name)

    def key_of_uid(self, uid: str) -> SourceKey | None:
        """The source that has this uid."""
        for kind, store in self._stores.items():
            for namespace, name in store.names(BY_UID, uid):
                return SourceKey(kind, namespace, name)
        return None

    def worker_of(self, key: SourceKey) -> str:
        """Where it is recorded, over or not; empty when it is not, or does not exist."""
        recorded = self._stores[key.kind].values(BY_WORKER, (key.namespace, key.name))
        if recorded:
            return recorded[0]
        found = self.get(key)
        return (self.kinds[key.kind].summary(found).placed if found is not None else None) or ""

    def lane_of(self, key: Key) -> str:
        """The worker that the work on a key may have to wait for; empty while it has none."""
        return key.worker if isinstance(key, MirrorKey) else self.worker_of(key)

    def load_of(self, worker: str) -> int:
        """How many sources count for a worker: suspended ones too, finished ones not (D21)."""
        return self._totals.get((BY_WORKER, worker), 0)

    def taken_on(self, worker: str) -> int:
        """How many places of a worker are taken: by those, and by copies that others have left there (D14)."""
        return self.load_of(worker) + self._totals.get((LEFT_BEHIND, worker), 0)

    def look_at_copies(self, kind: Kind, name: Name) -> None:
        """What a source has left behind on some worker may have come or gone."""
        store = self._stores[kind.name]
        if store.values(LEFT_BEHIND, name):
            store.index_again(LEFT_BEHIND, name)

    def look_at_copies_on(self, worker: str) -> None:
        """The same for all that have left something on a worker, which is none any more."""
        for store in self._stores.values():
            for name in store.names(LEFT_BEHIND, worker):
                store.index_again(LEFT_BEHIND, name)

    def stalled_of(self, worker: str) -> int:
        """How many of those wait for their pods to become ready; 0 if nobody counts."""
        return self._totals.get((STALLED, worker), 0)

    def counts_for_worker(self, key: SourceKey) -> bool:
        return bool(self._stores[key.kind].values(BY_WORKER, (key.namespace, key.name)))

    def counts_only_for(self, kind: Kind, name: Name, worker: str) -> bool:
        """Whether a source counts for this worker, and has left nothing behind on any (D14)."""
        store = self._stores[kind.name]
        return store.values(BY_WORKER, name) == (worker,) and not store.values(LEFT_BEHIND, name)

    def may_be_requested(self, key: SourceKey) -> bool:
        """Whether another worker may be requested for a source (``move_requests.may_have_request``)."""
        return bool(self._stores[key.kind].values(REQUESTED, (key.namespace, key.name)))

    def keys_on(self, worker: str) -> Iterator[SourceKey]:
        """Those that count for a worker."""
        for kind, store in self._stores.items():
            for namespace, name in store.names(BY_WORKER, worker):
                yield SourceKey(kind, namespace, name)

    def unstarted(self) -> list[Meta]:
        """Those that CronJobs wait for although nothing moves."""
        stores = self._stores.values()
        found = (store.metadata_of(*name) for store in stores for name in store.names(UNSTARTED, UNSTARTED))
        return [one for one in found if one is not None]

    def count_by_reason(self, kind: Kind, reason: str) -> int:
        """How many of a kind wait, or make no progress, for this reason (``model.reasons.Reason``)."""
        return self._stores[kind.name].count(BY_REASON, reason)

    def load_by_kind(self, worker: str, kind: Kind) -> int:
        """How many of one kind count for a worker."""
        return self._stores[kind.name].count(BY_WORKER, worker)

    def keys_on_with_reason(self, worker: str, reason: str) -> Iterator[SourceKey]:
        """Those that count for a worker, and wait, or make no progress, for this reason."""
        for kind, store in self._stores.items():
            for name in store.names(BY_WORKER, worker):
                if reason in store.values(BY_REASON, name):
                    yield SourceKey(kind, *name)

    def _on_count(self, index: str, value: str, by: int) -> None:
        if index not in _COUNTED or value == LEFT_BEHIND:
            return
        count = self._totals[index, value] = self._totals.get((index, value), 0) + by
        if not count:
            del self._totals[index, value]
        if (counts := self._counts) is None:
            return
        if index in (BY_WORKER, LEFT_BEHIND):
            counts.set_load(value, self.taken_on(value))
        elif index == STALLED:
            counts.set_stalled(value, count)
        else:
            worker, namespace, label = value.rsplit(" ", 2)
            counts.set_spread(worker, namespace, label, count)


def source_key(kind: Kind, found: Object) -> SourceKey:
    """The key of a source, or of a mirror's source in the same namespace."""
    return SourceKey(kind.name, found.metadata.namespace, found.metadata.name)


def indexes_of(kind: Kind, has_copy: HasCopy = lambda kind, source, worker: False) -> dict[str, IndexFunction]:
    """How sources of this kind are found."""

    def by_worker(found: Object) -> tuple[str, ...]:
        summary = kind.summary(found)
        return (summary.placed,) if summary.placed and not summary.is_finished else ()

    def unstarted(found: Object) -> tuple[str, ...]:
        return (UNSTARTED,) if kind.is_awaited_by_cron_job(found) else ()

    def left_behind(found: Object) -> tuple[str, ...]:
        workers = {left.worker for left in kind.summary(found).left_behind}
        return (LEFT_BEHIND, *(one for one in sorted(workers) if has_copy(kind, found, one))) if workers else ()

    def by_reason(found: Object) -> tuple[str, ...]:
        reason = kind.summary(found).reason
        return (reason,) if reason else ()

    def spread(found: Object) -> tuple[str, ...]:
        label = spread_key_of(found.annotations)
        if not label:
            return ()
        return tuple(f"{worker} {found.metadata.namespace} {label}" for worker in by_worker(found))

    return {
        BY_WORKER: by_worker,
        LEFT_BEHIND: left_behind,
        UNSTARTED: unstarted,
        BY_REASON: by_reason,
        SPREAD: spread,
    }


def _requested(found: Object) -> tuple[str, ...]:
    return (REQUESTED,) if may_have_request(bytes(found.status)) else ()


def _stalled_of(kind: Kind) -> IndexFunction:
    def stalled(found: Object) -> tuple[str, ...]:
        summary = kind.summary(found)
        return (summary.placed,) if summary.placed and summary.reason in WORKERS_PODS else ()

    return stalled
