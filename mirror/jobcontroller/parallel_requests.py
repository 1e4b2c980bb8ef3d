"""Several requests of one sync at once; all syncs share a bounded number. How a request ended is an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 50
"""Fewer than the client has connections: a sync that needs one request finds a free one beside those of big Jobs."""
FEWEST = 8
CROWD = 20
"""Requests under way for others, from which on the server, not we, is what everybody waits for."""


class ParallelRequests:
    """What all syncs have under way at once.

    Who is alone may have ``AT_ONCE``; when others come, everybody's share shrinks as their requests end.
    """

    def __init__(self) -> None:
        self._sharing = 0
        self._under_way = 0
        # Shares shrink only as requests end: until then there would be more in all than connections.
        self._places = asyncio.Semaphore(AT_ONCE)

    @property
    def is_crowded(self) -> bool:
        """Whether there is much under way."""
        return self._under_way >= CROWD

    async def each(self, items: Sequence[T], work: Callable[[T], Awaitable[R]], *, name: str) -> list[R]:
        """Work on all items; the results are in the items' order."""
        if len(items) == 1:
            return [await self._one(items[0], work)]
        results: dict[int, R] = {}
        numbered = iter(enumerate(items))
        self._sharing += 1
        at_work = min(len(items), self._share())

        async def take(waiting: Iterator[tuple[int, T]]) -> None:
            nonlocal at_work
            for number, item in waiting:
                results[number] = await self._one(item, work)
                if at_work > self._share():
                    at_work -= 1
                    return

        try:
            async with asyncio.TaskGroup() as scope:
                for number in range(at_work):
                    scope.create_task(take(numbered), name=f"{name} {number}")
        finally:
            self._sharing -= 1
        return [results[number] for number in range(len(items))]

    async def _one(self, item: T, work: Callable[[T], Awaitable[R]]) -> R:
        async with self._places:
            self._under_way += 1
            try:
                return await work(item)
            finally:
                self._under_way -= 1

    def _share(self) -> int:
        return max(FEWEST, AT_ONCE // max(1, self._sharing))
