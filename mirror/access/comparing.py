"""Comparing large Jobs beside the loop: one after the other in a thread, a few waiting. Used by ``service`` (D29)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mirror.access.answers import StatusError

T = TypeVar("T")

SMALL_BYTES = 32 * 1024
"""What is smaller is compared in a few ms, where it was requested."""
MOST_WAITING = 4


class Comparing:
    """Make it in the running loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compare")
        self._under_way = 0
        """Also those whose requests have been given up: a thread cannot be stopped."""

    async def run(self, compare: Callable[[], T], size: int) -> T:
        """The result of ``compare``, which may take long for what is ``size`` bytes large.

        Raises:
            StatusError: 429 while too many wait; and what ``compare`` raises.
        """
        if size <= SMALL_BYTES:
            return compare()
        if self._under_way >= MOST_WAITING:
            raise StatusError(429, "too many large Jobs are compared; try again in a second", retry_after_seconds=1)
        self._under_way += 1
        running = asyncio.get_running_loop().run_in_executor(self._thread, compare)
        running.add_done_callback(self._on_done)
        return await asyncio.shield(running)

    def _on_done(self, done: asyncio.Future[T]) -> None:
        self._under_way -= 1
        if not done.cancelled():
            done.exception()  # whoever waited has been told, or is gone
