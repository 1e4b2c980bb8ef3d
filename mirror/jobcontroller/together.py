"""Several requests of one sync at once, in bounded number; how each ended is an answer, not an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 50


async def each(items: Sequence[T], work: Callable[[T], Awaitable[R]], *, name: str, at_once: int = AT_ONCE) -> list[R]:
    """Work on all items, at most so many at a time; the results are in the items' order."""
    if len(items) == 1:
        return [await work(items[0])]
    results: dict[int, R] = {}
    numbered = iter(enumerate(items))

    async def take(waiting: Iterator[tuple[int, T]]) -> None:
        for number, item in waiting:
            results[number] = await work(item)

    async with asyncio.TaskGroup() as scope:
        for number in range(min(len(items), at_once)):
            scope.create_task(take(numbered), name=f"{name} {number}")
    return [results[number] for number in range(len(items))]
