"""Going over very many objects in slices, between which the event loop is others'.

``in_slices`` is for a coroutine that has to have gone over all of them, ``Passes`` for whoever only wants it done. What
comes, changes or goes between two slices is for the caller: items are names, and what a name stands for is looked up
when its turn comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from mirror.runtime.turns import OBJECTS_A_TURN, slicing
from mirror.telemetry.logs import Log

T = TypeVar("T")

SLICE = OBJECTS_A_TURN


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Each of them; all who do this at once share what a turn of the event loop may take, a slice."""
    taker = slicing()
    for item in items:
        yield item
        if not taker.take():
            await taker.wait()


@dataclass(slots=True)
class _Pass:
    name: str
    items: Callable[[], Iterable[Any]]
    do: Callable[[Any], None]
    left: Iterator[Any] | None = None
    """None before it has begun."""


class Passes:
    """Passes over objects, each by its name; those under way take turns, a slice each.

    Invariants: ``_latest`` has the pass of each name that was asked for last and has not ended. ``_turns`` has it, too,
    unless one of its name is under way, after which it follows.
    """

    def __init__(self, *, log: Log) -> None:
        self._log = log
        self._latest: dict[str, _Pass] = {}
        self._turns: deque[_Pass] = deque()
        self._has_some = asyncio.Event()

    def __len__(self) -> int:
        """How many names have a pass that has not ended."""
        return len(self._latest)

    def request(self, name: str, items: Callable[[], Iterable[T]], do: Callable[[T], None]) -> None:
        """Go over some objects soon.

        One that has the name of a pass under way follows it: what that has done already may have been too early. One
        that has the name of a pass that has not begun takes its place.

        Args:
            name: of the pass.
            items: gives them, when the pass begins.
            do: is called with each of them.
        """
        before = self._latest.get(name)
        if before is not None and before.left is None:
            before.items, before.do = items, do
            return
        latest = self._latest[name] = _Pass(name, items, do)
        if before is None:
            self._turns.append(latest)
            self._has_some.set()

    def clear(self) -> None:
        """Forget all passes, those under way too."""
        self._latest.clear()
        self._turns.clear()
        self._has_some.clear()

    async def run(self) -> None:
        """Perform them, a slice in each turn of the event loop, until cancelled."""
        while True:
            await self._has_some.wait()
            while self._turns:
                self._perform_slice(self._turns.popleft())
                await asyncio.sleep(0)
            self._has_some.clear()

    def _perform_slice(self, one: _Pass) -> None:
        """Of one pass, after which it is the others' turn, or that of the one that follows it."""
        if self._go_on(one):
            self._turns.append(one)
        elif (latest := self._latest[one.name]) is not one:
            self._turns.append(latest)
        else:
            del self._latest[one.name]

    def _go_on(self, one: _Pass) -> bool:
        """Return whether there is more; an error concerns one object, or what was to name the rest."""
        count = 0
        try:
            one.left = iter(one.items()) if one.left is None else one.left
            for item in islice(one.left, SLICE):
                count += 1
                self._do(one, item)
        except Exception as error:  # noqa: BLE001 - a bug in one pass must not end the others
            self._log.error("unexpected error", what=one.name, error=error, exc_info=error)
            return False
        return count == SLICE

    def _do(self, one: _Pass, item: object) -> None:
        try:
            one.do(item)
        except Exception as error:  # noqa: BLE001 - a bug that one object brings to light must not end a pass
            self._log.error("unexpected error", what=one.name, object=str(item), error=error, exc_info=error)
