"""A work queue of keys with client-go's guarantees, and lanes.

A key that is added many times before it is taken is taken once; it is never worked on twice at the same time; one that
is added while it is worked on is taken again afterwards. Each key belongs to a lane (a worker, say), named anew each
time it becomes ready: lanes take turns, and a lane has a bounded number of keys in work, so that a lane that hangs
costs the others nothing (D12). Not here: what is done with a key (``loop``).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)

QUIET_KEYS = 4
QUIET_WAIT_SECONDS = 15.0
RETRY = Backoff(first=0.005, most=60.0)
FEWEST_STALE = 64
"""So many stale entries are not worth a look at the heap."""
OUTAGE_LOOK_SECONDS = 1.0
"""During an outage one key is tried about this often, so that its end is seen."""


class Closed(Exception):
    """The queue was closed: nothing will be taken from it any more."""


class Taken(msgspec.Struct, Generic[K], frozen=True):
    """A key that is now being worked on."""

    key: K
    lane: str
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class Described:
    """A snapshot for metrics, logs and tests; ages in seconds."""

    ready: dict[str, int]
    in_work: dict[str, int]
    delayed: int
    oldest_seconds: float
    longest_running_seconds: float


class WorkQueue(Generic[K]):
    """Keys to work on.

    Invariants: a key is in at most one lane's ``_ready`` deque, exactly if it is in ``_since`` and not in ``_working``;
    a key in ``_working`` and in ``_since`` was added while being worked on; ``_in_work[lane]`` counts ``_working``.
    """

    def __init__(
        self, lane_of: Callable[[K], str], *, clock: Clock, lane_limit: int = 64, backoff: Backoff = RETRY
    ) -> None:
        self._lane_of = lane_of
        self._backoff = backoff
        self._clock = clock
        self._lane_limit = lane_limit
        self._ready: dict[str, deque[K]] = {}
        self._turns: deque[str] = deque()  # lanes with something ready, each once
        self._since: dict[K, float] = {}  # wanted, and since when
        self._working: dict[K, tuple[str, float]] = {}
        self._in_work: dict[str, int] = {}
        self._failures: dict[K, int] = {}
        # Failed because a server was away: the first of them that goes well wakes the others.
        self._in_outage: dict[K, None] = {}
        self._next_outage_look = float("-inf")
        self._later: dict[K, float] = {}  # wanted when it is quiet, oldest first; each is in ``_due``, too
        self._quiet = asyncio.Event()
        self._delayed: list[tuple[float, int, K]] = []
        # The valid entry of ``_delayed`` for each key; others are stale, and never many more than those that are valid.
        self._due: dict[K, float] = {}
        self._order = itertools.count()
        self._timer: asyncio.Handle | None = None
        # Kept here, since uvloop's handle of a very short delay does not tell it.
        self._timer_due = 0.0
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        self.delayed_adds = 0
        """How often a key was added by ``add_after`` so far, or for a retry; client-go's count of retries."""

    def add(self, key: K) -> None:
        """Want this key to be worked on, now."""
        if self._closed or key in self._since:
            return
        self._due.pop(key, None)
        self._later.pop(key, None)
        self._quiet.clear()
        self._since[key] = self._clock.monotonic()
        if key not in self._working:
            self._make_ready(key)
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Want this key after a delay; of several delays the earliest counts."""
        if self._closed:
            return
        self.delayed_adds += 1
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if key in self._since or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        if len(self._delayed) > 2 * len(self._due) + FEWEST_STALE:
            self._drop_stale()
        heapq.heappush(self._delayed, (due, next(self._order), key))
        self._set_timer()

    def add_when_quiet(self, key: K) -> None:
        """Want this key once little else is to be done, at the latest after a while: what nobody waits for."""
        if self._is_quiet() or self._closed:
            self.add(key)
        elif key not in self._since and key not in self._later:
            self._later[key] = self._clock.monotonic()
            self.add_after(key, QUIET_WAIT_SECONDS)

    async def wait_until_quiet(self) -> None:
        """For work that has no key and that nobody waits for: until little else is to be done, or for a while."""
        if self._is_quiet():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_WAIT_SECONDS):
                await self._quiet.wait()

    def _is_quiet(self) -> bool:
        return len(self._since) + len(self._working) < QUIET_KEYS

    def retry(self, key: K, *, at_least_seconds: float = 0.0, is_outage: bool = False) -> float:
        """Want this key again after its own growing delay; return the delay in seconds.

        With ``is_outage`` a server was away: it does not wait for its delay once another such key has gone well, and
        one of them is tried every second.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(self._backoff.delay(failures), at_least_seconds)
        self._in_outage.pop(key, None)
        if is_outage:
            self._in_outage[key] = None
            now = self._clock.monotonic()
            if delay > OUTAGE_LOOK_SECONDS and now >= self._next_outage_look:
                delay = max(OUTAGE_LOOK_SECONDS, at_least_seconds)
                self._next_outage_look = now + delay
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """This key went well: its next failure starts with the shortest delay."""
        self._failures.pop(key, None)
        if key in self._in_outage:
            waiting, self._in_outage, self._next_outage_look = list(self._in_outage), {}, float("-inf")
            for other in waiting:
                if other != key and other in self._due:
                    self.add(other)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    async def take(self) -> Taken[K]:
        """Wait for a key whose lane has room.

        Raises:
            Closed: the queue was closed.
        """
        while True:
            if self._closed:
                raise Closed
            taken = self._take_nowait()
            if taken is not None:
                return taken
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def done(self, key: K) -> None:
        """The work on a taken key has ended."""
        self._end(key)
        self._wake()

    def done_and_take(self, key: K) -> Taken[K] | None:
        """As ``done``, and whoever was working goes on with the key that is next, if there is one by now."""
        self._end(key)
        taken = None if self._closed else self._take_nowait()
        if self._turns and any(self._has_room(lane) for lane in self._turns):
            self._wake()
        return taken

    def _end(self, key: K) -> None:
        lane, _ = self._working.pop(key)
        left = self._in_work.pop(lane) - 1
        if left:
            self._in_work[lane] = left
        if key in self._since:
            self._make_ready(key)
        if self._is_quiet():
            self._quiet.set()
            if self._later:
                self.add(next(iter(self._later)))

    def close(self) -> None:
        """Stop handing out keys."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wake()

    @property
    def ready(self) -> int:
        """Keys that could be worked on at once, were there nobody before them."""
        return sum(map(len, self._ready.values()))

    def describe(self) -> Described:
        now = self._clock.monotonic()
        return Described(
            ready={lane: len(keys) for lane, keys in self._ready.items()},
            in_work=dict(self._in_work),
            delayed=len(self._due),
            oldest_seconds=now - min(self._since.values(), default=now),
            longest_running_seconds=now - min((since for _, since in self._working.values()), default=now),
        )

    def _make_ready(self, key: K) -> None:
        lane = self._lane_of(key)
        keys = self._ready.get(lane)
        if keys is None:
            keys = self._ready[lane] = deque()
            self._turns.append(lane)
        keys.append(key)

    def _take_nowait(self) -> Taken[K] | None:
        for _ in range(len(self._turns)):
            lane = self._turns.popleft()
            if not self._has_room(lane):
                self._turns.append(lane)
                continue
            keys = self._ready[lane]
            key = keys.popleft()
            if keys:
                self._turns.append(lane)
            else:
                del self._ready[lane]
            now = self._clock.monotonic()
            self._working[key] = (lane, now)
            self._in_work[lane] = self._in_work.get(lane, 0) + 1
            return Taken(key, lane, now - self._since.pop(key))
        return None

    def _has_room(self, lane: str) -> bool:
        return self._in_work.get(lane, 0) < self._lane_limit

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _set_timer(self) -> None:
        """One timer for the whole heap, at its earliest entry."""
        while self._delayed and self._due.get(self._delayed[0][2]) != self._delayed[0][0]:
            heapq.heappop(self._delayed)
        if self._timer is not None:
            if self._delayed and self._timer_due <= self._delayed[0][0]:
                return
            self._timer.cancel()
            self._timer = None
        if self._delayed:
            loop = asyncio.get_running_loop()
            wait = max(0.0, self._delayed[0][0] - self._clock.monotonic())
            self._timer, self._timer_due = loop.call_later(wait, self._release_due), self._delayed[0][0]

    def _drop_stale(self) -> None:
        """A key that is added before its delay is over leaves its entry behind, which may lie there for weeks."""
        valid = {key: (due, order, key) for due, order, key in self._delayed if self._due.get(key) == due}
        self._delayed = list(valid.values())
        heapq.heapify(self._delayed)

    def _release_due(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._delayed and self._delayed[0][0] <= now + 0.001:
            due, _, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                self.add(key)
        self._set_timer()
