"""Reading a collection's events as they come: a cursor for each watcher in the one history that all share.

``storage.mvcc`` makes them, ``watch`` reads them. A watcher holds nothing but a version, so a slow one costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from mirror.embedded.apiserver.storage.records import Event

_MOST_EVENTS, _MOST_BYTES = 256, 2**20
"""That are looked at at a stretch: of a history of thousands, each is read to see whether a watcher means it."""


def _some(events: list[Event]) -> list[Event]:
    size = 0
    for position, event in enumerate(events[:_MOST_EVENTS]):
        size += len(event.record.raw)
        if size > _MOST_BYTES:
            return events[: position + 1]
    return events[:_MOST_EVENTS]


class Shared:
    """What was made last of some events, for those who want the same of the same events.

    All watchers of a collection wake together and are mostly at the same place: one does the work for all.
    """

    __slots__ = ("_last",)
    _most_forms, _most_bytes = 64, 2**18

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[int, int, list[bytes]]] = {}

    def get(self, form: Hashable, after: int, until: int) -> list[bytes] | None:
        """What was made of the events after a version, up to another one."""
        found = self._last.get(form)
        return found[2] if found is not None and found[:2] == (after, until) else None

    def put(self, form: Hashable, after: int, until: int, made: list[bytes]) -> None:
        """Keep it for the others, unless it is much."""
        if sum(map(len, made)) > self._most_bytes:
            return
        if len(self._last) >= self._most_forms:
            self._last.clear()
        self._last[form] = after, until, made


class History(Protocol):
    """A collection, as far as its watchers know it."""

    shared: Shared
    changed: int
    """The version of the last event."""

    def since(self, version: int) -> list[Event]:
        """Events after this version, oldest first; raises ``records.Gone``."""
        ...

    async def wait(self, seconds: float) -> None:
        """Until something happens, or the time is over."""
        ...


class Counter(Protocol):
    """The storage, as far as its watchers know it."""

    version: int


class Subscription:
    """A place in the history of one collection."""

    __slots__ = ("_counter", "_history", "version")

    def __init__(self, history: History, version: int, counter: Counter) -> None:
        self._history = history
        self._counter = counter
        self.version = version
        """Everything up to this version was taken."""

    @property
    def is_behind(self) -> bool:
        """Whether there are events to take."""
        return self._history.changed > self.version

    def take(self) -> list[Event]:
        """Every event that is there, oldest first; they will not come again.

        Raises:
            records.Gone: the history was cut beyond this place.
        """
        return self._taken(self._history.since(self.version))

    def take_some(self) -> list[Event]:
        """As ``take``, but no more at once than others can wait for.

        Raises:
            records.Gone: the history was cut beyond this place.
        """
        return self._taken(_some(self._history.since(self.version)))

    def _taken(self, events: list[Event]) -> list[Event]:
        if events:
            self.version = events[-1].version
        return events

    def take_as(self, form: Hashable, make: Callable[[list[Event]], list[bytes]]) -> list[bytes]:
        """What ``make`` makes of the next events; or has made of them for another reader with the same ``form``.

        Raises:
            records.Gone: the history was cut beyond this place.
        """
        history, after = self._history, self.version
        found = history.shared.get(form, after, history.changed)
        if found is not None:
            self.version = history.changed
            return found
        events = self.take_some()
        made = history.shared.get(form, after, self.version)
        if made is not None:
            return made
        made = make(events)
        history.shared.put(form, after, self.version, made)
        return made

    def progress(self) -> int:
        """How far a reader is who took everything: nothing of this collection happened since, up to now."""
        self.version = max(self.version, self._counter.version)
        return self.version

    async def wait(self, seconds: float) -> None:
        """Until there is something to take, or the time is over."""
        await self._history.wait(seconds)
