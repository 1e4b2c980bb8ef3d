"""Time for the shell; pure code gets ``now`` as an argument instead."""

from __future__ import annotations

import asyncio
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


class SystemClock:
    """The machine's clocks; the monotonic one is the event loop's, so that virtual loop time moves it."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()
