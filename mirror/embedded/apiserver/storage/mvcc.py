"""Objects as bytes under one version counter, with what happened to them: reads in the past, watches, compaction.

The verbs write and read here; nothing in it knows what is in an object beside its name, uid and labels. Everything is
synchronous: who reads and writes without awaiting in between has a transaction. What outlives the process is in
``storage.sqlite``.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Protocol

import msgspec

from mirror.embedded.apiserver.storage.records import Event, Gone, Record, StorageConflict, Unusable
from mirror.embedded.apiserver.storage.subscriptions import Shared, Subscription

_MOST_HISTORY_BYTES = 64 * 2**20
_ENCODED_EVENTS = 1024
"""So many of the last events keep what was encoded for one watcher, for the others."""
_AFTER_SLASH = "0"


class Journal(Protocol):
    """Where writes go before anybody sees them."""

    def load(self) -> tuple[int, Iterable[tuple[str, Record]]]:
        """The version of the last write, and every object with the name of its collection."""
        ...

    def put(self, stored_as: str, record: Record) -> None:
        """Keep it for good; when this returns, it survives the death of the process."""
        ...

    def drop(self, stored_as: str, record: Record) -> None:
        """Forget it for good; ``record.version`` is the version of the deletion."""
        ...

    def close(self) -> None: ...


class _Meta(msgspec.Struct, gc=False):
    uid: str = ""
    labels: dict[str, str] = {}


class _Body(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_body = msgspec.json.Decoder(_Body).decode


class _Collection:
    """All objects of one kind. ``keys`` are those of ``storage.records``, sorted; ``events`` are sorted by version."""

    __slots__ = (
        "bytes",
        "changed",
        "compacted",
        "dropped",
        "events",
        "keys",
        "listeners",
        "records",
        "shared",
        "waiting",
    )

    def __init__(self, compacted: int) -> None:
        self.records: dict[str, Record] = {}
        self.keys: list[str] = []
        self.events: list[Event] = []
        self.bytes = 0
        self.compacted = compacted
        """Versions before this one are gone; open watches continue."""
        self.dropped = 0
        """The version of the last event that is not here any more."""
        self.changed = 0
        self.waiting: list[asyncio.Future[None]] = []
        """Of watchers that have read everything that is there."""
        self.shared = Shared()
        self.listeners: list[Callable[[], None]] = []

    def append(self, event: Event, most: int) -> None:
        self.events.append(event)
        self.bytes += len(event.record.raw)
        self.changed = event.version
        if len(self.events) > _ENCODED_EVENTS:
            self.events[-_ENCODED_EVENTS - 1].encoded = None
        # Cutting off the front costs as much as what stays: it is done by the eighth.
        if len(self.events) > most + most // 8 + 1 or self.bytes > _MOST_HISTORY_BYTES:
            self.forget(max(len(self.events) - most, len(self.events) // 8))
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for future in waiting:
                _end(future)
        for listener in tuple(self.listeners):
            listener()

    async def wait(self, seconds: float) -> None:
        """Until something is appended, or the time is over."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self.waiting.append(future)
        # Much cheaper than a timeout around it, and there may be a hundred thousand waits a second.
        timer = loop.call_later(seconds, _end, future)
        try:
            await future
        finally:
            timer.cancel()
            if future in self.waiting:
                self.waiting.remove(future)

    def forget(self, count: int) -> None:
        """Drop the oldest events."""
        if count > 0:
            self.dropped = self.events[count - 1].version
            self.compacted = max(self.compacted, self.dropped)
            del self.events[:count]
            self.bytes = sum(len(one.record.raw) for one in self.events)

    def since(self, version: int) -> list[Event]:
        """Events after this version, oldest first. Raises: Gone if they are not all here any more."""
        if version < self.dropped:
            raise Gone
        if not self.events or self.events[-1].version <= version:
            return []
        return self.events[bisect_right(self.events, version, key=attrgetter("version")) :]


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Storage:
    """Every object there is."""

    def __init__(self, durable: Journal | None = None, history: int = 10_000) -> None:
        self._journal = durable
        self._history = history
        self._collections: dict[str, _Collection] = {}
        self._compacted = 0
        self.version = 1
        """Of the last write; every write gets the next."""
        if durable is not None:
            try:
                self._restore(durable)
            except Unusable:
                durable.close()
                raise

    def get(self, stored_as: str, namespace: str, name: str) -> Record | None:
        """The object as it is now."""
        collection = self._collections.get(stored_as)
        return collection.records.get(f"{namespace}/{name}" if namespace else name) if collection else None

    def records(
        self, stored_as: str, namespace: str | None, *, version: int | None = None, after: str = ""
    ) -> Iterator[Record]:
        """Objects sorted by key, of one namespace or of all, those after the key ``after``, now or at a version.

        Raises:
            Gone: the history does not reach back to that version.
        """
        collection = self._collections.get(stored_as)
        if collection is None:
            if version is not None and version < self._compacted:
                raise Gone
            return iter(())
        undone: dict[str, Record | None] = {}
        if version is not None and version < self.version:
            if version < collection.compacted:
                raise Gone
            for event in reversed(collection.since(version)):
                undone[event.record.key] = event.previous
        return self._sorted(collection, namespace, after, undone)

    def count(self, stored_as: str, namespace: str | None) -> int:
        """How many objects there are."""
        collection = self._collections.get(stored_as)
        if collection is None:
            return 0
        if not namespace:
            return len(collection.keys)
        first, last = _bounds(collection.keys, namespace, "")
        return last - first

    def changed(self, stored_as: str) -> int:
        """The version of the last write to this collection; 0: there was none."""
        collection = self._collections.get(stored_as)
        return collection.changed if collection else 0

    def write(  # noqa: PLR0913 - the key of an object has three parts
        self,
        stored_as: str,
        namespace: str,
        name: str,
        build: Callable[[int], bytes],
        *,
        replacing: Record | None,
        labels: Mapping[str, str],
        uid: str = "",
    ) -> Record:
        """Store what ``build`` makes for the new version, in place of ``replacing``, or where there is nothing yet.

        Raises:
            StorageConflict: something else is stored there.
        """
        collection = self._collection(stored_as)
        key = f"{namespace}/{name}" if namespace else name
        if collection.records.get(key) is not replacing:
            raise StorageConflict(key)
        version = self.version + 1
        raw = build(version)
        uid = uid or (replacing.uid if replacing else _decode_body(raw).metadata.uid)
        record = Record(namespace, name, uid, version, raw, labels)
        if self._journal is not None:
            self._journal.put(stored_as, record)
        self.version = version
        if replacing is None:
            insort(collection.keys, key)
        collection.records[key] = record
        collection.append(Event(version, record, replacing, is_deletion=False), self._history)
        return record

    def remove(self, stored_as: str, record: Record, build: Callable[[int], bytes]) -> Record:
        """Delete the record; what ``build`` makes for the deletion's version is what watchers see.

        Raises:
            StorageConflict: something else is stored there, or nothing.
        """
        collection = self._collection(stored_as)
        key = record.key
        if collection.records.get(key) is not record:
            raise StorageConflict(key)
        version = self.version + 1
        last = Record(record.namespace, record.name, record.uid, version, build(version), record.labels)
        if self._journal is not None:
            self._journal.drop(stored_as, last)
        self.version = version
        del collection.records[key]
        del collection.keys[bisect_left(collection.keys, key)]
        collection.append(Event(version, last, record, is_deletion=True), self._history)
        return last

    def watch(self, stored_as: str, since: int) -> Subscription:
        """A cursor over the collection's events after this version.

        Raises:
            Gone: the history does not reach back that far.
        """
        collection = self._collection(stored_as)
        if since < collection.compacted:
            raise Gone
        return Subscription(collection, since, self)

    def listen(self, stored_as: str, callback: Callable[[], None]) -> Callable[[], None]:
        """RequestScope this after each write to the collection, at once; it may write itself, to others.

        What comes back ends it.
        """
        listeners = self._collection(stored_as).listeners
        listeners.append(callback)

        def stop() -> None:
            if callback in listeners:
                listeners.remove(callback)

        return stop

    def oldest(self, stored_as: str) -> int:
        """The version after which the collection's history begins."""
        return self._collection(stored_as).compacted

    def compact(self, version: int) -> None:
        """Forget the history up to this version; a watch from an earlier one gets ``Gone``."""
        version = min(version, self.version)
        self._compacted = max(self._compacted, version)
        for collection in self._collections.values():
            collection.forget(bisect_right(collection.events, version, key=attrgetter("version")))
            collection.compacted = max(collection.compacted, version)

    def close(self) -> None:
        """Nothing can be written afterwards."""
        if self._journal is not None:
            self._journal.close()

    def _collection(self, stored_as: str) -> _Collection:
        found = self._collections.get(stored_as)
        if found is None:
            found = self._collections[stored_as] = _Collection(self._compacted)
        return found

    def _sorted(
        self, collection: _Collection, namespace: str | None, after: str, undone: Mapping[str, Record | None]
    ) -> Iterator[Record]:
        first, last = _bounds(collection.keys, namespace, after)
        keys: Iterable[str] = collection.keys[first:last]
        records = collection.records
        if not undone:
            return (records[key] for key in keys)
        lost = sorted(key for key, record in undone.items() if record is not None and key not in records)
        first, last = _bounds(lost, namespace, after)
        then = ((undone[key] if key in undone else records[key]) for key in heapq.merge(keys, lost[first:last]))
        return (record for record in then if record is not None)

    def _restore(self, durable: Journal) -> None:
        version, records = durable.load()
        self.version = self._compacted = max(version, 1)
        for stored_as, record in records:
            collection = self._collection(stored_as)
            try:
                meta = _decode_body(record.raw).metadata
            except msgspec.MsgspecError as error:
                raise Unusable(f"{stored_as} {record.key} cannot be read: {error}") from error
            self.version = self._compacted = max(self.version, record.version)
            complete = msgspec.structs.replace(record, uid=meta.uid, labels=meta.labels)
            collection.records[record.key] = complete
            collection.changed = max(collection.changed, record.version)
        for collection in self._collections.values():
            collection.keys = sorted(collection.records)
            collection.compacted = self._compacted


def _bounds(keys: list[str], namespace: str | None, after: str) -> tuple[int, int]:
    """Where a namespace begins and ends in sorted keys, without those up to ``after``."""
    first, last = 0, len(keys)
    if namespace:
        first, last = bisect_left(keys, f"{namespace}/"), bisect_left(keys, namespace + _AFTER_SLASH)
    if after:
        first = max(first, bisect_right(keys, after))
    return first, max(first, last)
