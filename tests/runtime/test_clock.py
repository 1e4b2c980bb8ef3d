"""The machine's clocks: which of them goes on when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import uvloop

from mirror.runtime import clock
from mirror.runtime.clock import SystemClock


@pytest.mark.looptime
async def test_virtual_time_moves_every_clock_of_waiting() -> None:
    """Tests wait for a lease's end without waiting."""
    of_system = SystemClock()
    before = of_system.boottime(), of_system.monotonic()
    await asyncio.sleep(1000)
    assert of_system.boottime() - before[0] == of_system.monotonic() - before[1] == pytest.approx(1000)


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_callback_that_was_stopped_sees_the_time_that_passed(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """uvloop's own time stands still meanwhile; asked in the same callback, the lease must have gone on."""

    async def stopped() -> float:
        before = SystemClock().boottime()
        time.sleep(0.05)  # noqa: ASYNC251 - stands for SIGSTOP
        return SystemClock().boottime() - before

    loop = make_loop()
    try:
        assert loop.run_until_complete(stopped()) >= 0.05
    finally:
        loop.close()


def test_time_asleep_counts_where_the_system_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux: CLOCK_BOOTTIME; elsewhere the monotonic clock of the system."""
    asked: list[int] = []

    def gettime(which: int) -> float:
        asked.append(which)
        return 7.0

    async def ask() -> float:
        return SystemClock().boottime()

    loop = asyncio.new_event_loop()
    try:
        monkeypatch.setattr(clock, "time", SimpleNamespace(clock_gettime=gettime))
        assert loop.run_until_complete(ask()) == 7.0
    finally:
        loop.close()
    assert asked == [getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)]
