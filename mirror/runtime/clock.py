"""Time for the shell; pure code gets ``now`` as an argument instead."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the shell needs to know about time."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring and waiting."""
        ...

    def boottime(self) -> float:
        """Seconds that never go back and count while the machine sleeps: for what ends elsewhere meanwhile (D28)."""
        ...


class SystemClock:
    """The machine's clocks; the monotonic one is the event loop's, so that virtual loop time moves it."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def boottime(self) -> float:
        loop = asyncio.get_running_loop()
        if isinstance(loop, asyncio.BaseEventLoop) and type(loop).time is not asyncio.BaseEventLoop.time:
            return loop.time()  # one of virtual time
        # Never the loop's: uvloop's stands still while one callback runs, and that may be stopped for minutes.
        return time.clock_gettime(_BOOTTIME) if _BOOTTIME is not None else time.monotonic()


# Linux's CLOCK_MONOTONIC stands still while the machine sleeps, and so does Python's; macOS' CLOCK_MONOTONIC does not.
_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
