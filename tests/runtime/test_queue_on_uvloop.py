"""The work queue on the event loop that `mirror run` prefers: its timers differ from asyncio's in small things."""

from __future__ import annotations

import asyncio

import uvloop

from mirror.runtime.clock import SystemClock
from mirror.runtime.queue import WorkQueue


def test_delays_that_round_to_nothing_are_kept() -> None:
    """For less than half a millisecond uvloop gives a handle that does not know its time; nobody may ask it."""

    async def scenario() -> set[str]:
        queue: WorkQueue[str] = WorkQueue(lambda key: "", clock=SystemClock())
        queue.add_after("first", 0.0002)
        queue.add_after("second", 0.0001)
        queue.add_after("third", 0.0003)
        async with asyncio.timeout(60):
            return {(await queue.take()).key for _ in range(3)}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(scenario()) == {"first", "second", "third"}
