"""Who waits for a worker, in fair order: round robin over namespaces, oldest first within one (D21)."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import msgspec

from mirror.model.keys import SourceKey
from mirror.placement.candidates import Wish


class Waiter(msgspec.Struct, frozen=True):
    """One source that waits; ``since`` is its creation, as text that sorts by time."""

    since: str
    key: SourceKey
    uid: str
    wish: Wish


class WaitingRoom:
    """The waiting sources, grouped so that a pass costs by wishes and by those it places, not by all who wait.

    Invariant: a waiter counts only while ``_waiters[key]`` is it; other heap entries are stale and skipped.
    """

    def __init__(self) -> None:
        self._waiters: dict[SourceKey, Waiter] = {}
        self._heaps: dict[Wish, list[tuple[str, str, SourceKey, str]]] = {}
        self._last_served = ""

    def __len__(self) -> int:
        return len(self._waiters)

    def __contains__(self, key: SourceKey) -> bool:
        return key in self._waiters

    def sources(self) -> list[SourceKey]:
        return list(self._waiters)

    def add(self, waiter: Waiter) -> None:
        """Let it wait; a changed wish replaces the earlier one."""
        if self._waiters.get(waiter.key) == waiter:
            return
        self._waiters[waiter.key] = waiter
        entry = (waiter.since, waiter.key.name, waiter.key, waiter.uid)
        heapq.heappush(self._heaps.setdefault(waiter.wish, []), entry)

    def leave(self, key: SourceKey) -> None:
        self._waiters.pop(key, None)

    def serve(self, choose: Callable[[Wish], str | None], *, most: int = 1_000_000) -> list[tuple[Waiter, str]]:
        """Give out places until ``choose`` finds none, or ``most``; it must count what it has given out already.

        Returns who was placed and where, in the order of service.
        """
        served: list[tuple[Waiter, str]] = []
        while len(served) < most:
            placed = self._serve_one(choose)
            if placed is None:
                return served
            self._last_served = placed[0].key.namespace
            served.append(placed)
        return served

    def _serve_one(self, choose: Callable[[Wish], str | None]) -> tuple[Waiter, str] | None:
        heads: dict[str, list[Waiter]] = {}
        for wish in list(self._heaps):
            head = self._head(wish)
            if head is not None:
                heads.setdefault(wish.namespace, []).append(head)
        names = sorted(heads)
        later = [name for name in names if name > self._last_served]
        for namespace in (*later, *(name for name in names if name <= self._last_served)):
            for waiter in sorted(heads[namespace], key=lambda w: (w.since, w.key.name)):
                worker = choose(waiter.wish)
                if worker is not None:
                    heapq.heappop(self._heaps[waiter.wish])
                    del self._waiters[waiter.key]
                    return waiter, worker
        return None

    def _head(self, wish: Wish) -> Waiter | None:
        heap = self._heaps[wish]
        while heap:
            _, _, key, uid = heap[0]
            waiter = self._waiters.get(key)
            if waiter is not None and waiter.wish == wish and waiter.uid == uid:
                return waiter
            heapq.heappop(heap)
        del self._heaps[wish]
        return None
