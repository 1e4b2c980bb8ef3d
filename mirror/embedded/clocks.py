"""Clocks beside the machine's: one that moves with the event loop's time, and one that is wrong on purpose."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mirror.runtime.clock import Clock

BEGIN = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LoopClock:
    """``runtime.clock.Clock`` in virtual time: it is ``begin`` when the loop's time is 0."""

    begin: datetime = BEGIN

    def now(self) -> datetime:
        return self.begin + timedelta(seconds=asyncio.get_running_loop().time())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def boottime(self) -> float:
        return asyncio.get_running_loop().time()


@dataclass(slots=True)
class SkewedClock:
    """Another clock whose wall time somebody has set wrongly; what it measures stays right."""

    of: Clock
    ahead_seconds: float = 0.0

    def now(self) -> datetime:
        return self.of.now() + timedelta(seconds=self.ahead_seconds)

    def monotonic(self) -> float:
        return self.of.monotonic()

    def boottime(self) -> float:
        return self.of.boottime()
