"""The event loop's lag."""

import asyncio

import pytest
from prometheus_client import Gauge

from mirror.telemetry.looplag import REMEMBERED, Lateness, measure_loop_lag


def test_the_worst_delay_is_shown_until_it_is_old() -> None:
    """One long stop stays visible for as many ticks as are remembered, then goes."""
    lateness = Lateness()

    shown = [lateness.worst_with(delay) for delay in (0.01, 2.0, *[0.1] * REMEMBERED)]

    assert shown[:3] == [0.01, 2.0, 2.0]
    assert shown[-2:] == [2.0, 0.1]


def test_waking_early_is_not_late() -> None:
    """Rounding of timers never shows as a negative lag."""
    assert Lateness().worst_with(-0.001) == 0.0


@pytest.mark.looptime
async def test_an_idle_loop_is_not_late() -> None:
    """The gauge is set from the first tick on; without work there is no lag."""
    gauge = Gauge("lag", "lag", registry=None)
    gauge.set(9)
    task = asyncio.create_task(measure_loop_lag(gauge))
    await asyncio.sleep(1)
    task.cancel()

    (sample,) = gauge.collect()[0].samples
    assert sample.value == pytest.approx(0, abs=0.001)
