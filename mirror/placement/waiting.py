"""Who waits for a worker: round robin over namespaces; within one by priority, then the oldest first (D21)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from mirror.model.keys import SourceKey
from mirror.placement.candidates import PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.obstacles import Workers

LOOKS_A_TURN = 10_000
"""So many groups of those who wait are looked at before others get the loop: a few milliseconds."""
MATCHES_A_TURN = 200
"""So many selectors are matched in a turn; a long one counts for several."""
CHARACTERS_A_MATCH = 64

Position = tuple[int, str, str, str]
"""By what the sources of one namespace are ordered: its priority negated, since when one exists, its name, its kind."""


class Waiter(msgspec.Struct, frozen=True):
    """One source that waits; ``since`` is its creation, as text that sorts by time."""

    since: str
    key: SourceKey
    uid: str
    request: PlacementRequest
    priority: int = 0


@dataclass(slots=True)
class _Request:
    """What one or many ask for, matched once for all of them: against the index as it was at ``version``."""

    fitting: Workers
    version: int
    positions: list[Position] = field(default_factory=list)  # sorted


@dataclass(slots=True)
class _Namespace:
    """Those of one namespace. ``fitting`` holds at least what one of ``groups`` fits."""

    fitting: Workers = 0
    groups: dict[Workers, list[tuple[Position, PlacementRequest]]] = field(default_factory=dict)
    """By which workers suit: the first of each request, sorted."""


class WaitingSources:
    """The waiting sources, grouped so that serving costs by those it places, not by all that wait.

    Invariants: ``_requests`` holds exactly what somebody asks for, its ``positions`` exactly those of who asks it; a
    group holds the first position of each of its requests; none who waits fits an open worker in ``_in_vain``.
    """

    def __init__(self, index: WorkerIndex) -> None:
        self._index = index
        self._waiters: dict[SourceKey, Waiter] = {}
        self._requests: dict[PlacementRequest, _Request] = {}
        self._namespaces: dict[str, _Namespace] = {}
        self._names: list[str] = []  # sorted
        self._in_vain: Workers = -1
        # Requests still to be matched anew since the index changed, and with which version of it that began.
        self._outdated: deque[PlacementRequest] = deque()
        self._matching_version = self._matched_version = index.version
        self._last_served = ""

    def __len__(self) -> int:
        return len(self._waiters)

    def __contains__(self, key: SourceKey) -> bool:
        return key in self._waiters

    def sources(self) -> list[SourceKey]:
        return list(self._waiters)

    def get(self, key: SourceKey) -> Waiter | None:
        return self._waiters.get(key)

    @property
    def may_serve(self) -> bool:
        """Whether a turn of ``serve`` might find somebody."""
        if not self._waiters:
            return False
        is_outdated = bool(self._outdated) or self._matched_version != self._index.version
        return is_outdated or bool(self._index.open & ~self._in_vain)

    def add(self, waiter: Waiter) -> None:
        """Let it wait; a changed request replaces the earlier one."""
        if self._waiters.get(waiter.key) == waiter:
            return
        self.leave(waiter.key)
        self._waiters[waiter.key] = waiter
        request = self._requests.get(waiter.request)
        if request is None:
            request = self._requests[waiter.request] = _Request(
                self._index.fitting(waiter.request), self._index.version
            )
        else:
            self._take_out(waiter.request, request)
        insort(request.positions, _position_of(waiter))
        self._put_in(waiter.request, request)

    def leave(self, key: SourceKey) -> None:
        waiter = self._waiters.pop(key, None)
        if waiter is None:
            return
        request = self._requests[waiter.request]
        self._take_out(waiter.request, request)
        del request.positions[bisect_left(request.positions, _position_of(waiter))]
        if request.positions:
            self._put_in(waiter.request, request)
        else:
            del self._requests[waiter.request]

    def note_served(self, namespace: str) -> None:
        """A source of this namespace was assigned without waiting: in turn, the others come before it now."""
        self._last_served = namespace

    def serve(self, *, most: int) -> Iterator[tuple[Waiter, str]]:
        """Yield who is placed where, in the order of service, for one turn; ``may_serve`` tells if another is due.

        Whoever is yielded waits no longer, and its worker must count it before the next is asked for.
        """
        if not self._match_outdated():
            return
        looks = LOOKS_A_TURN
        while most > 0 and looks > 0 and self._index.open & ~self._in_vain:
            found, cost = self._next()
            looks -= cost
            if found is None:
                self._in_vain = self._index.open
            elif not self._match(found.request):  # else it may stand elsewhere now
                worker = self._index.best(self._requests[found.request].fitting, found.request)
                assert worker is not None
                self.leave(found.key)
                self._last_served = found.key.namespace
                most -= 1
                yield found, worker

    def _next(self) -> tuple[Waiter | None, int]:
        """Whose turn it is of those that fit an open worker, and how many groups were looked at."""
        after, count = bisect_right(self._names, self._last_served), len(self._names)
        is_open, cost = self._index.open, 0
        for number in range(after, after + count):
            name = self._names[number % count]
            namespace = self._namespaces[name]
            cost += 1
            if not namespace.fitting & is_open:
                continue
            cost += len(namespace.groups)
            firsts = (group[0][0] for fitting, group in namespace.groups.items() if fitting & is_open)
            first = min(firsts, default=None)
            if first is not None:
                _, _, job, kind = first
                return self._waiters[SourceKey(kind, name, job)], cost
            namespace.fitting = 0
            for fitting in namespace.groups:
                namespace.fitting |= fitting
        return None, cost

    def _match_outdated(self) -> bool:
        """Match some requests with the workers as they are by now; return whether all have been."""
        if not self._outdated and self._matched_version != self._index.version:
            self._matching_version = self._index.version
            requests = self._requests.items()
            self._outdated.extend(wanted for wanted, request in requests if request.version != self._matching_version)
        left = MATCHES_A_TURN
        while self._outdated and left > 0:
            wanted = self._outdated.popleft()
            left -= 1 + len(wanted.selector.text) // CHARACTERS_A_MATCH
            self._match(wanted)
        if self._outdated:
            return False
        self._matched_version = self._matching_version
        return True

    def _match(self, wanted: PlacementRequest) -> bool:
        """Match a request with the workers as they are by now; return whether others suit it than before."""
        request = self._requests.get(wanted)
        if request is None or request.version == self._index.version:
            return False
        fitting, request.version = self._index.fitting(wanted), self._index.version
        if fitting == request.fitting:
            return False
        self._take_out(wanted, request)
        request.fitting = fitting
        self._put_in(wanted, request)
        return True

    def _put_in(self, wanted: PlacementRequest, request: _Request) -> None:
        """Let a request take part, by its first."""
        namespace = self._namespaces.get(wanted.namespace)
        if namespace is None:
            namespace = self._namespaces[wanted.namespace] = _Namespace()
            insort(self._names, wanted.namespace)
        insort(namespace.groups.setdefault(request.fitting, []), (request.positions[0], wanted), key=_by_position)
        namespace.fitting |= request.fitting
        self._in_vain &= ~request.fitting

    def _take_out(self, wanted: PlacementRequest, request: _Request) -> None:
        namespace = self._namespaces[wanted.namespace]
        group = namespace.groups[request.fitting]
        del group[bisect_left(group, request.positions[0], key=_by_position)]
        if not group:
            del namespace.groups[request.fitting]
        if not namespace.groups:
            del self._namespaces[wanted.namespace]
            del self._names[bisect_left(self._names, wanted.namespace)]


def _position_of(waiter: Waiter) -> Position:
    return -waiter.priority, waiter.since, waiter.key.name, waiter.key.kind


def _by_position(entry: tuple[Position, PlacementRequest]) -> Position:
    return entry[0]
