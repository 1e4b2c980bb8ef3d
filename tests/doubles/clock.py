"""A wall clock that moves with the loop's (virtual) time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class LoopClock:
    """``runtime.clock.Clock`` for tests: it is noon when the loop's time is 0."""

    def __init__(self) -> None:
        self.slept_seconds = 0.0
        """For how long this machine was asleep, or this process stopped, while the loop's time stood still."""

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def boottime(self) -> float:
        return self.monotonic() + self.slept_seconds

    def wall(self) -> float:
        """Seconds since the epoch, for clients."""
        return self.now().timestamp()

    def text(self) -> str:
        """Now, as the API writes times."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")


class FixedClock:
    """One whose time stands still, for what needs no loop."""

    def __init__(self, at: str) -> None:
        self._at = datetime.fromisoformat(at)

    def now(self) -> datetime:
        return self._at

    def monotonic(self) -> float:
        return 0.0

    def boottime(self) -> float:
        return 0.0
