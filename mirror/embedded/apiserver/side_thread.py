"""Large requests: their pure steps run on one thread beside the event loop, so that everybody else is still served.

A step is a function of what it is given; storage, and whatever else belongs to the loop, is for those who await it.
Without a thread (memory, virtual time, which waits for no thread) every step runs where it stands, and nothing is
awaited; so do the steps of small requests always.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mirror.embedded.apiserver.messages import Request

T = TypeVar("T")

LARGE_BYTES = 8 * 2**10
"""From here on a request, or an object that it changes, is large: so many bytes may be some thousand empty items, each
of which gets its defaults and is checked."""
MOST_WAITING = 64
"""Steps; while there are more, new large requests are refused with 429."""


class SideThread:
    """One thread, which takes one step at a time in the order in which they come."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="large requests")
        self._waiting = 0
        self._is_closed = False

    @property
    def is_full(self) -> bool:
        """Whether so many wait that nobody should come in addition."""
        return self._waiting >= MOST_WAITING

    async def run(self, step: Callable[[], T]) -> T:
        """What the step gives, or raises."""
        if self._is_closed:
            return step()
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, step)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish what has been asked for and end; later steps run where they stand."""
        self._is_closed = True
        self._executor.shutdown(wait=False)


async def pure(thread: SideThread | None, size: int, step: Callable[[], T]) -> T:
    """What the step gives: on the thread, if there is one and ``size`` bytes are large."""
    if thread is None or size < LARGE_BYTES:
        return step()
    return await thread.run(step)


def size_of(request: Request) -> int:
    """How many bytes a request has, beside its headers; one that is small and can grow counts as large."""
    body, size = request.body, len(request.body) + len(request.query)
    if 0 < size < LARGE_BYTES and (_has_aliases(body) or b"copy" in body or b"\\u" in body):
        return LARGE_BYTES
    return size


def _has_aliases(body: bytes) -> bool:
    """Whether it may be YAML that says a thing once and means it often."""
    return b"*" in body and b"&" in body and body.lstrip()[:1] not in (b"{", b"[")
