"""The loop that never waits, and the clocks that go by it."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest

from mirror.embedded import virtual
from mirror.embedded.clocks import BEGIN, LoopClock, SkewedClock


def test_sleeping_takes_no_time() -> None:
    """An hour of timers passes in the order of their times."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        seen: list[float] = []

        async def tick(every: float) -> None:
            while True:
                await asyncio.sleep(every)
                seen.append(loop.time())

        async with asyncio.TaskGroup() as scope:
            tasks = [scope.create_task(tick(every), name="tick") for every in (7.0, 11.0, 0.25)]
            await asyncio.sleep(3600)
            for task in tasks:
                task.cancel()
        return seen

    began = time.monotonic()
    seen = virtual.run(main())
    assert seen == sorted(seen)
    assert len(seen) == 3600 // 7 + 3600 // 11 + 4 * 3600 - 1
    assert time.monotonic() - began < 120


def test_timeouts_come_before_what_is_later() -> None:
    """A timeout of 2 s ends a sleep of 3 s at second 2."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.sleep(3)
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) == pytest.approx(2)


def test_a_thread_is_waited_for() -> None:
    """Time does not run away while a thread works and nothing else is scheduled."""
    assert virtual.run(_in_thread()) == "done"


async def _in_thread() -> str:
    return await asyncio.to_thread(lambda: "done")


def test_a_deadlock_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything waits for ever, that is an error and no hang."""
    monkeypatch.setattr(virtual, "IDLE_SECONDS", 0.01)

    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(virtual.Stuck):
        virtual.run(main())


def test_clocks_go_by_the_loop() -> None:
    """It is noon at second 0; a skewed clock is ahead, and measures the same."""

    async def main() -> None:
        clock = LoopClock()
        wrong = SkewedClock(clock, ahead_seconds=-90)
        await asyncio.sleep(30)
        assert clock.now() == BEGIN + timedelta(seconds=30)
        assert wrong.now() == BEGIN - timedelta(seconds=60)
        assert wrong.monotonic() == clock.monotonic() == pytest.approx(30)

    virtual.run(main())


@pytest.mark.parametrize("late", [0.0, 3600.0, 16692.502007320305, 1e9])
def test_a_timer_that_is_due_now_goes_off(late: float) -> None:
    """However late it is: the loop does not turn without end because no time is left until then."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(late)
        done = loop.create_future()
        now = loop.time()
        loop.call_at(now, done.set_result, None)
        turns = 0
        select = loop._selector.select

        def count(timeout: float | None = None) -> object:
            nonlocal turns
            turns += 1
            assert turns < 1000, "the loop turns without end"
            return select(timeout)

        loop._selector.select = count
        await done
        return loop.time() - now

    assert virtual.run(main()) == 0
