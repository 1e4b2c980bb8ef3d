"""How much is begun and taken in one turn of the event loop, by all who do so at once (D12, D29).

A hundred informers that each take a slice of their list make a turn of a second, and a hundred probes one of a tenth.
So they share what a turn may take: whoever finds nothing left of it waits for a later turn, first come, first served.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias
from weakref import WeakKeyDictionary

OBJECTS_A_TURN = 100
"""Some 5 to 10 ms with what each of them causes, or where each is unpacked."""
EACH = 10
"""So much of a turn is of one who has waited: to wait costs as much as to take one object."""
PROBED_A_TURN = READ_A_TURN = BEGUN_A_TURN = 1
"""Of workers: each takes a request, 0.7 ms; to connect, a kubeconfig is read and certificates are loaded, 3 ms in all.
Answers that come all at once are read in one turn, up to a millisecond for the first of each."""


class Turns:
    """What one event loop's turns have left; not for several threads.

    Invariant: while something was taken, or somebody waits, ``_renew`` is due in the next turn.
    """

    def __init__(self, most: int) -> None:
        """``most``: of what is counted, in one turn. The loop is not kept: else nobody could let go of it."""
        self._most = most
        self._left = most
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_due = False
        self.is_shared = False
        """Whether more than one were given this turn, or wait for another."""

    def take(self, weight: int = 1) -> bool:
        """Count something that was done in this turn; whether there may be more of it, else ``wait`` before that."""
        self._left -= weight
        self._renew_soon()
        return self._left > 0

    async def wait(self) -> None:
        """Until a turn has something left."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._renew_soon()
        await waiter

    def _renew_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._renew)

    def _renew(self) -> None:
        self._is_due = False
        self._left = self._most
        woken, most = 0, max(1, self._most // EACH)
        while self._waiters and woken < most:
            waiter = self._waiters.popleft()
            if not waiter.done():  # else it was cancelled
                waiter.set_result(None)
                woken += 1
        self.is_shared = woken > 1 or bool(self._waiters)
        if self._waiters:
            self._renew_soon()


class Taker:
    """One of those who share turns: where others do it takes ``EACH``, and then it is their turn."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._left = EACH

    def take(self, weight: int = 1) -> bool:
        """As ``Turns.take``."""
        self._left -= weight
        is_left = self._turns.take(weight)
        return is_left and (self._left > 0 or not self._turns.is_shared)

    async def wait(self) -> None:
        """As ``Turns.wait``."""
        await self._turns.wait()
        self._left = EACH


_Known: TypeAlias = WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Turns]]
_known: _Known = WeakKeyDictionary()


def listing(*, of_workers: bool) -> Taker:
    """Of objects that lists show, in the running loop; those of workers wait for each other only."""
    return Taker(_turns("list", OBJECTS_A_TURN, of_workers=of_workers))


def watching(*, of_workers: bool) -> Taker:
    """Of changes that watches show, which wait for no list."""
    return Taker(_turns("watch", OBJECTS_A_TURN, of_workers=of_workers))


def slicing() -> Taker:
    """Of known objects that are gone over (``slices``)."""
    return Taker(_turns("slice", OBJECTS_A_TURN))


def beginning() -> Turns:
    """Of workers' lists that are begun."""
    return _turns("begin", BEGUN_A_TURN)


def probing() -> Turns:
    """Of workers that are connected or probed."""
    return _turns("probe", PROBED_A_TURN)


def reading() -> Turns:
    """Of workers of which something is read in rounds."""
    return _turns("read", READ_A_TURN)


def _turns(what: str, most: int, *, of_workers: bool = False) -> Turns:
    loop, name = asyncio.get_running_loop(), f"{what} of workers" if of_workers else what
    known = _known.setdefault(loop, {})
    if name not in known:
        known[name] = Turns(most)
    return known[name]
