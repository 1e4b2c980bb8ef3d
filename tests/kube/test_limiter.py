"""How fast a cluster may be asked."""

from __future__ import annotations

import asyncio

import pytest

from mirror.kube.limits import Limiter, LimiterState

pytestmark = pytest.mark.looptime


def limiter(qps: float, burst: int, *, kept: int = 0) -> Limiter:
    return Limiter(qps, burst, asyncio.get_running_loop().time, kept=kept)


async def served_at(limits: Limiter, count: int) -> list[float]:
    """When each of so many waiters that come at once is served, in the order they came."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    times: list[float] = [0.0] * count

    async def one(index: int) -> None:
        await limits.acquire()
        times[index] = round(loop.time() - began, 6)

    async with asyncio.TaskGroup() as group:
        for index in range(count):
            group.create_task(one(index))
    return times


async def test_a_burst_goes_at_once_and_the_rest_at_the_rate_in_order() -> None:
    """Three tokens are saved up; after them comes one each 100 ms, for whoever waits longest."""
    assert await served_at(limiter(10, 3), 6) == [0.0, 0.0, 0.0, 0.1, 0.2, 0.3]


async def test_tokens_are_saved_up_to_the_burst_and_no_further() -> None:
    """A quiet hour earns no more than a quiet moment."""
    limits = limiter(10, 2)
    await served_at(limits, 2)
    await asyncio.sleep(3600)
    assert await served_at(limits, 3) == [0.0, 0.0, 0.1]


async def test_the_wait_is_told() -> None:
    """``acquire`` returns how long it took, which is what a metric wants."""
    limits = limiter(2, 1)
    assert await limits.acquire() == 0.0
    assert pytest.approx(0.5) == await limits.acquire()


async def test_no_limit_means_no_waiting() -> None:
    """``qps: 0`` turns the limit off."""
    assert await served_at(limiter(0, 1), 1000) == [0.0] * 1000


async def test_urgent_requests_do_not_wait() -> None:
    """Leases get through an empty bucket and through a pause."""
    limits = limiter(1, 1)
    limits.pause(30)
    for _ in range(5):
        assert limits.acquire_nowait(urgent=True)
        assert await limits.acquire(urgent=True) == 0.0


async def test_urgent_requests_count() -> None:
    """Who comes after them waits as long as after others: the limit holds for all that is sent."""
    limits = limiter(10, 2)
    for _ in range(4):
        assert limits.acquire_nowait(urgent=True)
    assert await limits.acquire() == pytest.approx(0.3)


async def test_a_lease_under_full_load_stays_within_the_limit() -> None:
    """One token is kept for it: at no time have more been sent than the limit and the burst allow."""
    limits = limiter(10, 10, kept=1)
    loop = asyncio.get_running_loop()
    sent: list[float] = []

    async def load() -> None:
        for _ in range(300):
            await limits.acquire()
            sent.append(loop.time())

    async def leases() -> None:
        for _ in range(10):
            await asyncio.sleep(2)
            assert limits.acquire_nowait(urgent=True)
            sent.append(loop.time())

    async with asyncio.TaskGroup() as group:
        group.create_task(load())
        group.create_task(leases())

    sent.sort()
    for first, began in enumerate(sent):
        for last, ended in enumerate(sent[first:], start=first):
            assert last - first + 1 <= (ended - began) * 10 + 10 + 1e-6


async def test_what_is_urgent_leaves_others_something_of_a_tiny_limit() -> None:
    """A lease is renewed every two seconds; a limit below that must not stop all work."""
    limits = limiter(0.1, 1)
    await limits.acquire()
    for _ in range(100):
        limits.acquire_nowait(urgent=True)
        await asyncio.sleep(2)
    assert limits.acquire_nowait()


async def test_nobody_overtakes_who_waits() -> None:
    """A token that came back is for the first in the queue, not for whoever asks next."""
    limits = limiter(1, 1)
    await limits.acquire()
    waiting = asyncio.create_task(limits.acquire(), name="waiter")
    await asyncio.sleep(0)
    assert not limits.acquire_nowait()
    await waiting


@pytest.mark.parametrize("qps", [0, 10], ids=["without a limit", "with a limit"])
async def test_a_pause_holds_everybody(qps: float) -> None:
    """A cluster that asks for rest gets it from all its callers, whatever the limit."""
    limits = limiter(qps, 5)
    limits.pause(7)
    assert min(await served_at(limits, 2)) >= 7.0


async def test_a_pause_does_not_end_in_a_burst() -> None:
    """What was saved up is forfeited, and a pause earns nothing."""
    limits = limiter(10, 100)
    limits.pause(5)
    assert await served_at(limits, 3) == [5.0, 5.1, 5.2]


async def test_a_pause_reaches_those_who_wait_already() -> None:
    """The alarm that was set before is moved."""
    limits = limiter(10, 1)
    await limits.acquire()
    waiting = asyncio.create_task(served_at(limits, 1), name="waiter")
    await asyncio.sleep(0)
    limits.pause(9)
    assert await waiting == [9.1]


@pytest.mark.parametrize(
    ("wish", "pause"),
    [(86400.0 * 30, 60.0), (float("inf"), 60.0), (-5.0, 0.0), (2.0, 2.0)],
    ids=["a month", "for ever", "the past", "two seconds"],
)
async def test_a_pause_is_bounded(wish: float, pause: float) -> None:
    """A hostile Retry-After must not freeze us."""
    limits = limiter(10, 1)
    limits.pause(wish)
    assert pytest.approx(pause) == limits.describe().paused_seconds


async def test_a_shorter_pause_does_not_shorten_a_longer_one() -> None:
    """Answers of several requests arrive in any order."""
    limits = limiter(10, 1)
    limits.pause(20)
    limits.pause(1)
    assert pytest.approx(20) == limits.describe().paused_seconds


async def test_who_gives_up_blocks_nobody_and_takes_nothing() -> None:
    """A cancelled waiter leaves the queue; the next one is served at the time it would have been."""
    limits = limiter(1, 1)
    await limits.acquire()
    impatient = asyncio.create_task(limits.acquire(), name="impatient")
    await asyncio.sleep(0)
    patient = asyncio.create_task(served_at(limits, 1), name="patient")
    await asyncio.sleep(0.5)
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    assert await patient == [1.0]
    assert limits.describe().waiting == 0


async def test_a_token_that_reaches_a_cancelled_waiter_goes_to_the_next() -> None:
    """Being served and being cancelled in the same turn of the loop loses no token."""
    limits = limiter(1, 1)
    await limits.acquire()
    first = asyncio.create_task(limits.acquire(), name="first")
    second = asyncio.create_task(served_at(limits, 1), name="second")
    await asyncio.sleep(0)
    # Timers of the same moment run in the order they were set: this one right after the limiter's.
    asyncio.get_running_loop().call_later(1.0, first.cancel)
    await asyncio.gather(first, return_exceptions=True)
    assert first.cancelled()
    assert await second == [1.0]


async def test_a_waiter_that_was_cancelled_a_moment_ago_is_passed_over() -> None:
    """Its task has not run yet when the token comes; the token is the next one's."""
    now = [0.0]
    limits = Limiter(1, 1, lambda: now[0])
    await limits.acquire()
    first = asyncio.create_task(limits.acquire(), name="first")
    second = asyncio.create_task(limits.acquire(), name="second")
    await asyncio.sleep(0)
    now[0] = 1.0
    first.cancel()
    limits._serve()
    assert await second == 1.0
    assert first.cancelled()


async def test_many_waiters_that_all_give_up_leave_nothing_behind() -> None:
    """Neither a queue nor a timer remains."""
    limits = limiter(1, 1)
    await limits.acquire()
    tasks = [asyncio.create_task(limits.acquire(), name=f"waiter {n}") for n in range(50)]
    await asyncio.sleep(0)
    assert limits.describe().waiting == 50
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert LimiterState(1, 1, 0.0, 0, 0.0) == limits.describe()


@pytest.mark.parametrize(("qps", "burst"), [(-1, 1), (1, 0)], ids=["a negative rate", "no burst"])
async def test_nonsense_is_refused(qps: float, burst: int) -> None:
    """Settings are checked elsewhere; this is for programmers."""
    with pytest.raises(ValueError, match="must"):
        limiter(qps, burst)


async def test_a_part_of_a_limit_has_its_part_of_the_burst() -> None:
    """S12: and gets the whole back when it is divided no more, without what it would have saved up meanwhile."""
    limits = limiter(20, 6)
    limits.divide(2)
    assert await served_at(limits, 5) == [0.0, 0.0, 0.0, 0.1, 0.2]
    await asyncio.sleep(10)
    limits.divide(1)
    assert limits.describe().tokens == pytest.approx(3.0)
    await asyncio.sleep(10)
    assert await served_at(limits, 8) == [0.0] * 6 + [0.05, 0.1]


async def test_who_waits_is_served_at_the_rate_that_a_limit_has_by_then() -> None:
    limits = limiter(10, 1)
    serving = asyncio.ensure_future(served_at(limits, 4))
    await asyncio.sleep(0.15)
    limits.divide(2)
    assert await serving == [0.0, 0.1, 0.25, 0.45]


async def test_a_limit_in_many_parts_grants_single_requests() -> None:
    limits = limiter(1000, 10, kept=1)
    limits.divide(100)
    assert await served_at(limits, 3) == [0.0, 0.1, 0.2]


async def test_a_limit_that_is_none_has_no_parts() -> None:
    limits = limiter(0, 1)
    limits.divide(3)
    assert await served_at(limits, 100) == [0.0] * 100
