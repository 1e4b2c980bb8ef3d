"""How much of a core the page may take from mirroring, however much is asked for (D29).

``streams`` lets gaps grow; whole pages are made one at a time here, and are waited for when they were too many.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from mirror.page.visiting import Refused

PAGES_SHARE = 0.25
"""Of one core, for all whole pages together."""
PAGES_BURST_SECONDS = 2.0
"""Of time on a core: what may be spent at once after it was quiet."""
LONGEST_WAIT_SECONDS = 10.0
MOST_WAITING = 64
MOST_WAITING_OF_ONE = 8
"""With a login: of one user."""
_BUSY = "Too many pages are requested; try again in a few seconds."

V = TypeVar("V")


class Pace:
    """A share of one core, and what of it is spent."""

    def __init__(self, share: float, burst_seconds: float) -> None:
        self._share = share
        self._burst_seconds = burst_seconds
        self._paid_at = float("-inf")
        """When what was spent is paid for."""

    def paid(self, cost: float, now: float) -> float:
        """After how many seconds the share has paid for this too; not positive while there is something left."""
        self._paid_at = max(self._paid_at, now - self._burst_seconds / self._share) + cost / self._share
        return self._paid_at - now

    def owed(self, now: float) -> float:
        """For how many seconds nothing more is to be spent."""
        return max(0.0, self._paid_at - now)


class Turns:
    """Makes whole pages, one after the other."""

    def __init__(self) -> None:
        self._pace = Pace(PAGES_SHARE, PAGES_BURST_SECONDS)
        self._lock = asyncio.Lock()
        self._waiting: Counter[str] = Counter()

    async def make(self, page: Callable[[], V], whose: str) -> V:
        """Make a page when it is its turn.

        Args:
            page: makes it.
            whose: the user; empty: nobody known.

        Raises:
            Refused: 429, too many pages are waited for.
        """
        is_one_too_many = bool(whose) and self._waiting[whose] >= MOST_WAITING_OF_ONE
        if is_one_too_many or self._waiting.total() >= MOST_WAITING:
            raise Refused(429, _BUSY)
        self._waiting[whose] += 1
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                await self._lock.acquire()
        except TimeoutError:
            raise Refused(429, _BUSY) from None
        finally:
            self._waiting[whose] -= 1
            if not self._waiting[whose]:
                del self._waiting[whose]
        try:
            loop = asyncio.get_running_loop()
            if owed := self._pace.owed(loop.time()):
                await asyncio.sleep(owed)
            began = time.thread_time()
            try:
                return page()
            finally:
                self._pace.paid(time.thread_time() - began, loop.time())
        finally:
            self._lock.release()
