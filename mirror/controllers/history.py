"""What happened to each source, for people: a bounded record in memory (issue 6, part 4).

The writers note what was done, ``routes`` what was seen; ``known`` shows it. It is kept only where somebody can
ask (settings ``access`` or ``page``). Losing it costs nothing but the story: no decision looks at it, and ``known``
rebuilds its beginning from the source. Texts may quote a worker; whoever shows them cleans them (D18).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakSet

from mirror.decide.plan import WriteSource
from mirror.decide.snapshot import Snapshot
from mirror.kinds.base import Kind
from mirror.kube.errors import KubeError, describe
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.runtime.clock import Clock
from mirror.workers.connection import State

MOST_SOURCES = 2_000
MOST_MOMENTS = 32
FIRST_KEPT = 6
"""Of a long story the beginning is kept, and the newest."""
MOST_OF_WORKER = 64
MOST_WORKERS = 1_000
LONGEST_TEXT = 500


class Entry(NamedTuple):
    """One thing that happened; ``at`` is seconds since 1970."""

    at: float
    kind: str
    text: str
    worker: str


class History:
    """The record of all sources, by uid; and who follows changes.

    Invariant: a uid is in ``_going`` or ``_over``, never in both; together they hold at most ``MOST_SOURCES``. Where
    there are more, the oldest of those that are over go first.
    """

    def __init__(
        self, clock: Clock, *, is_kept: bool, why_there: Callable[[Snapshot, str], str] = lambda *_: ""
    ) -> None:
        self.is_kept = is_kept
        self._clock = clock
        self._why_there = why_there
        self._going: OrderedDict[str, list[Entry]] = OrderedDict()
        self._over: OrderedDict[str, list[Entry]] = OrderedDict()
        self._workers: dict[str, list[Entry]] = {}
        self._readers: WeakSet[Changes] = WeakSet()

    # -- what is noted ------------------------------------------------------------------------------------------------

    def on_written(self, seen: Snapshot, write: WriteSource) -> None:
        """A write to a source went well."""
        if not self.is_kept:
            return
        key, uid = seen.key, seen.source.uid
        if write.records is not None:
            self._note(key, uid, "Placed", _shared(self._why_there(seen, write.records)), write.records)
        elif write.clears:
            kind, text = ("Retried", "no pod of it ran there") if write.retry else ("Refused", "its record was cleared")
            self._note(key, uid, kind, text, seen.source.placed or "")
        annotations = dict(write.annotations)
        if names.WAITING_BECAUSE in annotations:
            waits = annotations[names.WAITING_BECAUSE]
            if waits:
                self._note(key, uid, "Waiting", waits)
            elif write.records is None:
                self._note(key, uid, "Waiting", "no longer")
        if write.status is not None and write.records is None and not write.clears:
            self._note(key, uid, *seen.source.kind.describe(write.status), seen.source.placed or "")

    def on_mirrored(self, seen: Snapshot, worker: str) -> None:
        """The mirror was created, or found again."""
        if self.is_kept:
            self._note(seen.key, seen.source.uid, "Mirrored", f"{seen.source.kind.name} created on worker", worker)

    def on_released(self, seen: Snapshot) -> None:
        """A source that our webhook had held may run."""
        if self.is_kept:
            self._note(seen.key, seen.source.uid, "Released", "its worker is recorded", seen.source.placed or "")

    def on_event(self, seen: Snapshot, reason: str, message: str, *, is_warning: bool) -> None:
        """An event was written about a source; those of what goes well are known from what was done."""
        if reason == "Moved":
            kind, text = reason, message
        else:
            kind, text = "Error", f"{reason}: {message}"
        if self.is_kept and is_warning and not self._is_end_by(seen.source.uid, reason):
            self._note(seen.key, seen.source.uid, kind, text, seen.source.placed or "")

    def on_error(self, seen: Snapshot, error: KubeError) -> None:
        """A step failed and is tried again."""
        if self.is_kept:
            self._note(seen.key, seen.source.uid, "Error", describe(error), seen.source.placed or "")

    def on_source(self, kind: Kind, old: Object | None, new: Object | None, *, is_leading: bool) -> None:
        """The watch brought a source, a change of it, or its end."""
        found = new or old
        if not self.is_kept or found is None:
            return
        key = SourceKey(kind.name, found.metadata.namespace, found.metadata.name)
        if new is None:
            self._going.pop(found.metadata.uid, None)
            self._over.pop(found.metadata.uid, None)
        elif not is_leading and old is not None and bytes(old.status) != bytes(new.status):
            # Another manager wrote it: all that a standby can know.
            placed = kind.summary(new).placed or ""
            if placed and kind.summary(old).placed != placed:
                self._note(key, new.metadata.uid, "Placed", "", placed)
            else:
                self._note(key, new.metadata.uid, *kind.describe(new.status_dict()), placed)
        self.touch(key)

    def on_worker(self, name: str, state: State, because: str) -> None:
        """A worker's connection has a new state, or another reason for it."""
        if not self.is_kept:
            return
        kind = {State.CONNECTED: "Back", State.LOST: "Lost"}.get(state)
        known = self._workers.get(name)
        # The first contact is no return.
        is_news = kind == "Lost" if known is None else (known[-1].kind, known[-1].text) != (kind, because)
        if kind is not None and is_news:
            if known is None and len(self._workers) >= MOST_WORKERS:
                del self._workers[next(iter(self._workers))]
            known = self._workers.setdefault(name, [])
            known.append(Entry(self._clock.now().timestamp(), kind, because[:LONGEST_TEXT], name))
            del known[:-MOST_OF_WORKER]
        for reader in self._readers:
            reader.note(None)

    def touch(self, key: SourceKey) -> None:
        """Something about a source is another than it was."""
        if not self.is_kept:
            return
        for reader in self._readers:
            reader.note(key)

    # -- what is asked ------------------------------------------------------------------------------------------------

    def of(self, uid: str) -> tuple[Entry, ...]:
        """What is remembered of a source, oldest first."""
        return tuple(self._going.get(uid) or self._over.get(uid) or ())

    def of_worker(self, name: str) -> tuple[Entry, ...]:
        """When it was lost and when it came back, oldest first."""
        return tuple(self._workers.get(name, ()))

    def changes(self) -> Changes:
        """From now on, which sources changed; forgotten with the last reference to it."""
        reader = Changes()
        self._readers.add(reader)
        return reader

    def share_readers(self, other: History) -> None:
        """Report changes to those who read the other's, now and later; before anybody reads these."""
        self._readers = other._readers

    def _is_end_by(self, uid: str, reason: str) -> bool:
        """Whether a source has ended for this reason: its end says so already."""
        entries = self._over.get(uid)
        return entries is not None and entries[-1].text.partition(": ")[2].partition(": ")[0] == reason

    # -- keeping it small ---------------------------------------------------------------------------------------------

    def _note(self, key: SourceKey, uid: str, kind: str, text: str, worker: str = "") -> None:
        entries = self._over.pop(uid, None) or self._going.get(uid)
        if entries is None:
            self._make_room()
            entries = []
        text = text[:LONGEST_TEXT]
        if not entries or entries[-1][1:] != (kind, text, worker):
            entries.append(Entry(self._clock.now().timestamp(), kind, text, worker))
        if len(entries) > MOST_MOMENTS:
            del entries[FIRST_KEPT]
        if kind == "Finished":
            self._going.pop(uid, None)
            self._over[uid] = entries
        else:
            self._going[uid] = entries
        self.touch(key)

    def _make_room(self) -> None:
        if len(self._going) + len(self._over) >= MOST_SOURCES:
            (self._over or self._going).popitem(last=False)


class Changes(AsyncIterator[frozenset[SourceKey]]):
    """Which sources changed, gathered while the reader is busy; an empty set: only workers did."""

    def __init__(self) -> None:
        self._keys: set[SourceKey] = set()
        self._has_news = asyncio.Event()

    def note(self, key: SourceKey | None) -> None:
        """Add a source, or with None only wake the reader."""
        if key is not None:
            self._keys.add(key)
        self._has_news.set()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> frozenset[SourceKey]:
        await self._has_news.wait()
        self._has_news.clear()
        changed, self._keys = frozenset(self._keys), set()
        return changed


@lru_cache(maxsize=1024)
def _shared(text: str) -> str:
    """The same text once, however many sources it is noted for."""
    return text
