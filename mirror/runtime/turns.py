"""How much is begun and taken in one turn of the event loop, by all who do so at once (D12, D29).

A hundred informers that each take a slice of their list make a turn of a second, and a hundred probes one of a tenth.
So they share what a turn may take: whoever finds nothing left of it waits for a later turn, first come, first served.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary

OBJECTS_A_TURN = 100
"""Some 5 to 10 ms with what each of them causes, or where each is unpacked."""
PROBED_A_TURN = 1
"""Workers: each takes a request, 0.7 ms; to connect, a kubeconfig is read and certificates are loaded, 3 ms in all."""
LISTS_A_SECOND = 400
"""So many are begun: answers that come all at once are read in one turn, up to a millisecond for the first of each."""
_EACH = 10
"""So many of a turn's objects are of one who has waited, on average: to wait costs as much as to take one."""


class Turns:
    """What one event loop's turns have left; not for several threads.

    Invariant: while something was taken, or somebody waits, ``_renew`` is due in the next turn.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        """``most``: of what is counted, in one turn."""
        self._loop = loop
        self._most = most
        self._left = most
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_due = False

    def take(self, weight: int = 1) -> bool:
        """Count something that was done in this turn; whether there may be more of it, else ``wait`` before that."""
        self._left -= weight
        self._renew_soon()
        return self._left > 0

    async def wait(self) -> None:
        """Until a turn has something left."""
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        self._renew_soon()
        await waiter

    def _renew_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._renew)

    def _renew(self) -> None:
        self._is_due = False
        self._left = self._most
        wanted = max(1, self._most // _EACH)
        while self._waiters and wanted:
            waiter = self._waiters.popleft()
            if not waiter.done():  # else it was cancelled
                waiter.set_result(None)
                wanted -= 1
        if self._waiters:
            self._renew_soon()


class Pace:
    """What is begun one after the other, no more of it than so many times a second."""

    def __init__(self, loop: asyncio.AbstractEventLoop, a_second: float) -> None:
        self._loop = loop
        self._seconds = 1 / a_second
        self._next_at = 0.0

    async def keep(self) -> None:
        """Until it is one's turn; at once where nobody has begun just now."""
        now = self._loop.time()
        at = max(now, self._next_at)
        self._next_at = at + self._seconds
        if at > now:
            await asyncio.sleep(at - now)


T = TypeVar("T")
_Known: TypeAlias = WeakKeyDictionary[asyncio.AbstractEventLoop, T]
_listing: _Known[Turns] = WeakKeyDictionary()
_watching: _Known[Turns] = WeakKeyDictionary()
_slicing: _Known[Turns] = WeakKeyDictionary()
_probing: _Known[Turns] = WeakKeyDictionary()
_beginning: _Known[Pace] = WeakKeyDictionary()


def listing_turns() -> Turns:
    """Of objects that lists show, in the running loop."""
    return _of_running_loop(_listing, Turns, OBJECTS_A_TURN)


def watching_turns() -> Turns:
    """Of changes that watches show, which wait for no list."""
    return _of_running_loop(_watching, Turns, OBJECTS_A_TURN)


def slicing_turns() -> Turns:
    """Of known objects that are gone over (``slices``)."""
    return _of_running_loop(_slicing, Turns, OBJECTS_A_TURN)


def probing_turns() -> Turns:
    """Of workers that are connected, probed, or read in rounds."""
    return _of_running_loop(_probing, Turns, PROBED_A_TURN)


def listing_pace() -> Pace:
    """Of lists that are begun."""
    return _of_running_loop(_beginning, Pace, LISTS_A_SECOND)


def _of_running_loop(known: _Known[T], make: Callable[[asyncio.AbstractEventLoop, int], T], most: int) -> T:
    loop = asyncio.get_running_loop()
    if loop not in known:
        known[loop] = make(loop, most)
    return known[loop]
