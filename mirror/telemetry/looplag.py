"""How late the event loop is: whatever blocks it delays every worker alike, so it is measured all the time."""

from __future__ import annotations

import asyncio
from collections import deque

from prometheus_client import Gauge

INTERVAL_SECONDS = 0.25
REMEMBERED = 60
"""Ticks over which the worst is shown, so that a scrape each fifteen seconds misses none."""


class Lateness:
    """The latest delays, in seconds."""

    def __init__(self) -> None:
        self._delays: deque[float] = deque(maxlen=REMEMBERED)

    def worst_with(self, delay: float) -> float:
        """Note a delay and return the worst that is remembered; early is not late."""
        self._delays.append(max(0.0, delay))
        return max(self._delays)


async def measure_loop_lag(gauge: Gauge) -> None:
    """Set the gauge to the worst delay of the last fifteen seconds; runs until cancelled."""
    loop = asyncio.get_running_loop()
    lateness = Lateness()
    while True:
        due = loop.time() + INTERVAL_SECONDS
        await asyncio.sleep(INTERVAL_SECONDS)
        gauge.set(lateness.worst_with(loop.time() - due))
