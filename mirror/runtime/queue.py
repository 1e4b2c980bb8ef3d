"""A work queue of keys with client-go's guarantees, lanes, and two classes of keys.

A key that is added many times before it is taken is taken once; it is never worked on twice at the same time; one that
is added while it is worked on is taken again afterwards. Each key belongs to a lane (a worker, say), named anew each
time it becomes ready: lanes take turns, and a lane has a bounded number of keys in work, so that a lane that hangs
costs the others nothing (D12).

What has changed is *fresh* (``add``) and goes first. What is to be looked at because of a list, a start, a round or a
reconnect is a *look* (``look``): thousands of them at once keep nobody waiting who has just changed something. They do
not starve: while looks wait whose lanes have room, one of nine keys is a look, up to ``LOOKS_A_TURN`` in each turn of
the event loop. Not here: what is done with a key (``loop``), and the order within a lane (``lanes``).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.runtime.failures import OUTAGE_LOOK_SECONDS, Failures
from mirror.runtime.lanes import HasRoom, Lanes

K = TypeVar("K", bound=Hashable)

QUIET_KEYS = 4
QUIET_WAIT_SECONDS = 15.0
RETRY = Backoff(first=0.005, most=60.0)
FRESH_BEFORE_A_LOOK = 8
LOOKS_A_TURN = 16
"""Of the event loop: a look may take a fifth of a millisecond, and what has just changed is read between two turns."""
KEYS_A_TURN = 100
"""So many of those whose delay is over become ready at once, or whose server is back: each is asked for its lane."""
_IDLE = ("", 0.0, False)
FEWEST_STALE = 64
"""So many stale entries are not worth a look at the heap."""


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

    Invariants: a key is in ``_fresh`` or in ``_look_lanes``, and once, exactly if it is in ``_since`` and not in
    ``_working``; in ``_look_lanes`` exactly if it is in ``_looks``, too, by that lane. A key in ``_working`` and in
    ``_since`` was added while being worked on; ``_in_work[lane]`` counts ``_working``.
    """

    def __init__(
        self, lane_of: Callable[[K], str], *, clock: Clock, lane_limit: int = 64, backoff: Backoff = RETRY
    ) -> None:
        self._lane_of = lane_of
        self._clock = clock
        # Looks leave room in a lane to what changes, unless it is their turn.
        self._lane_limit, self._looks_limit = lane_limit, lane_limit - lane_limit // 4
        self._fresh: Lanes[K] = Lanes()
        self._look_lanes: Lanes[K] = Lanes()
        self._since: dict[K, float] = {}  # wanted, and since when
        self._looks: dict[K, str] = {}  # those of them that are looks
        self._looks_left = LOOKS_A_TURN
        self._fresh_in_a_row = 0  # taken while looks waited
        self._working: dict[K, tuple[str, float, bool]] = {}  # lane, since when, whether it was taken as a look
        self._in_work: dict[str, int] = {}
        self._failures: Failures[K] = Failures(backoff)
        self._recovered: deque[tuple[K, bool]] = deque()  # whose server is back, and whether as looks: to be woken
        self._later: OrderedDict[K, None] = OrderedDict()  # wanted when it is quiet, oldest first; all are in ``_due``
        self._quiet = asyncio.Event()
        self._delayed: list[tuple[float, int, K, bool]] = []  # the last: whether it is a look
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
        """Want this key to be worked on, now: something has changed. One that waits as a look moves forward."""
        if self._closed:
            return
        if key in self._since:
            if key in self._looks:
                self._move_forward(key)
            return
        self._due.pop(key, None)
        self._later.pop(key, None)
        self._quiet.clear()
        self._since[key] = self._clock.monotonic()
        if key not in self._working:
            self._fresh.add(self._lane_of(key), key)
            self._wake()

    def look(self, key: K) -> None:
        """Want this key to be worked on although nothing is known to have changed: whatever has goes first.

        One that is being worked on for a change keeps its class. A delay that ends before this look is taken holds.
        """
        if self._closed or key in self._since:
            return
        self._later.pop(key, None)
        self._quiet.clear()
        self._since[key] = self._clock.monotonic()
        work = self._working.get(key)
        if work is None:
            self._make_look_ready(key)
            self._wake()
        elif work[2]:
            self._looks[key] = work[0]  # its lane is named anew when that work ends

    def add_after(self, key: K, seconds: float) -> None:
        """Want this key after a delay, and in the class in which it is worked on; of several the earliest counts."""
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
        is_look = key in self._later or self._working.get(key, _IDLE)[2]
        heapq.heappush(self._delayed, (due, next(self._order), key, is_look))
        self._set_timer()

    def add_when_quiet(self, key: K) -> None:
        """Want this key once little else is to be done, at the latest after a while as a look: nobody waits for it."""
        if self._is_quiet():
            self.look(key)
        elif key not in self._since and key not in self._later:
            self._later[key] = None
            self.add_after(key, QUIET_WAIT_SECONDS)

    def _add_as(self, key: K, *, is_look: bool) -> None:
        if is_look:
            self.look(key)
        else:
            self.add(key)

    async def wait_until_quiet(self) -> None:
        """For work that has no key and that nobody waits for: until little else is to be done, or for a while."""
        if self._is_quiet():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_WAIT_SECONDS):
                await self._quiet.wait()

    def _is_quiet(self) -> bool:
        return self._closed or len(self._since) + len(self._working) < QUIET_KEYS

    def retry(self, key: K, *, at_least_seconds: float = 0.0, is_outage: bool = False) -> float:
        """Want this key again after its own growing delay; return the delay in seconds.

        With ``is_outage`` a server was away: it does not wait for its delay once another key that has failed so goes
        well, one of which is tried every second.
        """
        if is_outage:
            is_look, now = self._working.get(key, _IDLE)[2], self._clock.monotonic()
            delay = self._failures.note_away(key, is_look=is_look, at_least_seconds=at_least_seconds, now=now)
        else:
            delay, other = self._failures.note_refused(key)
            delay = max(delay, at_least_seconds)
            if other is not None:
                self.add_after(other, OUTAGE_LOOK_SECONDS)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """This key went well: its next failure starts with the shortest delay."""
        if woken := self._failures.forget(key):
            self._recovered.extend(woken.items())
            self._wake_recovered()

    def _wake_recovered(self) -> None:
        """Some at a time; one that has failed again meanwhile waits as the others do."""
        for _ in range(min(KEYS_A_TURN, len(self._recovered))):
            key, is_look = self._recovered.popleft()
            if key in self._due and key not in self._failures.in_outage:
                self._add_as(key, is_look=is_look)
        if self._recovered:
            asyncio.get_running_loop().call_soon(self._wake_recovered)

    def failures(self, key: K) -> int:
        return self._failures.of(key)

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
        if (self._fresh.turns and self._fresh.has_one(self._has_room)) or (self._looks and self._may_look()):
            self._wake()
        return taken

    def _may_look(self) -> bool:
        """Whether there is a look that may be taken in this turn."""
        return self._looks_left > 0 and self._look_lanes.has_one(self._has_room_for_look)

    def _end(self, key: K) -> None:
        lane = self._working.pop(key)[0]
        if left := self._in_work.pop(lane) - 1:
            self._in_work[lane] = left
        if key in self._since:
            if key in self._looks:
                self._make_look_ready(key)
            else:
                self._fresh.add(self._lane_of(key), key)
        if len(self._since) + len(self._working) < QUIET_KEYS:
            self._quiet.set()
            if self._later:
                self.look(next(iter(self._later)))

    def close(self) -> None:
        """Stop handing out keys: who waits until little is to be done waits no more."""
        self._closed = True
        self._quiet.set()
        self._recovered.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wake()

    @property
    def ready(self) -> int:
        """Keys that could be worked on at once, were there nobody before them."""
        return len(self._fresh) + len(self._look_lanes)

    def describe(self) -> Described:
        now = self._clock.monotonic()
        return Described(
            ready=dict(self._fresh.counts() + self._look_lanes.counts()),
            in_work=dict(self._in_work),
            delayed=len(self._due),
            oldest_seconds=now - min(self._since.values(), default=now),
            longest_running_seconds=now - min((since for _, since, _ in self._working.values()), default=now),
        )

    def _make_look_ready(self, key: K) -> None:
        lane = self._looks[key] = self._lane_of(key)
        self._look_lanes.add(lane, key)

    def _move_forward(self, key: K) -> None:
        """Something has changed that concerns a key which waits as a look."""
        lane = self._looks.pop(key)
        self._due.pop(key, None)
        if key not in self._working:
            self._look_lanes.discard(lane, key)
            self._fresh.add(self._lane_of(key), key)
            self._wake()

    def _take_nowait(self) -> Taken[K] | None:
        if self._looks:
            found, is_look = self._next_of_both()
        elif self._fresh.turns:
            found, is_look = self._fresh.take(self._has_room), False
        else:
            return None
        if found is None:
            return None
        lane, key = found
        now = self._clock.monotonic()
        self._working[key] = (lane, now, is_look)
        self._in_work[lane] = self._in_work.get(lane, 0) + 1
        return Taken(key, lane, now - self._since.pop(key))

    def _next_of_both(self) -> tuple[tuple[str, K] | None, bool]:
        """What is fresh, but for the share of the looks; and whether it is a look."""
        is_looks_turn = self._fresh_in_a_row >= FRESH_BEFORE_A_LOOK
        if is_looks_turn and (look := self._next_look(self._has_room)) is not None:
            return look, True
        if (found := self._fresh.take(self._has_room)) is not None:
            self._fresh_in_a_row += 1
            return found, False
        return (None if is_looks_turn else self._next_look(self._has_room_for_look)), True

    def _next_look(self, has_room: HasRoom) -> tuple[str, K] | None:
        if not self._looks_left or (found := self._look_lanes.take(has_room)) is None:
            return None
        if self._looks_left == LOOKS_A_TURN:
            asyncio.get_running_loop().call_soon(self._begin_turn)
        self._looks_left -= 1
        self._fresh_in_a_row = 0
        del self._looks[found[1]]
        self._due.pop(found[1], None)
        return found

    def _begin_turn(self) -> None:
        self._looks_left = LOOKS_A_TURN
        if self._may_look():
            self._wake()

    def _has_room(self, lane: str) -> bool:
        return self._in_work.get(lane, 0) < self._lane_limit

    def _has_room_for_look(self, lane: str) -> bool:
        return self._in_work.get(lane, 0) < self._looks_limit

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
        valid = {entry[2]: entry for entry in self._delayed if self._due.get(entry[2]) == entry[0]}
        self._delayed = list(valid.values())
        heapq.heapify(self._delayed)

    def _release_due(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        left = KEYS_A_TURN
        while left and self._delayed and self._delayed[0][0] <= now + 0.001:
            due, _, key, is_look = heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                left -= 1
                del self._due[key]
                self._add_as(key, is_look=is_look)
        self._set_timer()
