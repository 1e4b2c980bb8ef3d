"""Under a rate limit: turns that end in time, and requests of many syncs side by side."""

from __future__ import annotations

import asyncio

import pytest
from doubles.transport import MemoryTransport, wire_to

from mirror.jobcontroller.decide.values import Constants
from mirror.jobcontroller.pace import Pace
from mirror.jobcontroller.parallel_requests import AT_ONCE, CROWD, FEWEST, ParallelRequests
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.limits import Limiter

pytestmark = pytest.mark.looptime


def pace(qps: float, burst: int) -> tuple[Pace, Limiter]:
    wire = wire_to("c")
    limiter = Limiter(qps, burst, wire.clock.monotonic)
    credentials = Credentials(Endpoint("https://c", None), Identity())
    client = Client("c", credentials, limiter, transport=MemoryTransport(wire), wall=wire.clock.wall)
    return Pace(client, ParallelRequests(), behind=lambda: False), limiter


@pytest.mark.parametrize(
    ("qps", "burst", "most"),
    [
        pytest.param(0, 1, 500, id="no limit: upstream's caps"),
        pytest.param(1000, 2000, 500, id="a limit that is far away"),
        pytest.param(50, 100, 100, id="two seconds' worth"),
        pytest.param(1, 1, 20, id="never fewer than pay for a status write"),
    ],
)
async def test_a_turn_is_as_long_as_the_limit_allows(qps: float, burst: int, most: int) -> None:
    """K3 caps both at 500; behind a limit such a sync would take minutes."""
    found, limiter = pace(qps, burst)
    limiter.pause(1)
    async with asyncio.TaskGroup() as scope:
        waiting = scope.create_task(limiter.acquire(), name="wait")
        await asyncio.sleep(0)
        constants = found.turn(Constants())
        assert (constants.max_pod_create_delete_per_sync, constants.max_uncounted_pods) == (most, most)
        waiting.cancel()


async def test_smaller_settings_stay() -> None:
    """They are a user's wish."""
    found, limiter = pace(50, 100)
    limiter.pause(1)
    async with asyncio.TaskGroup() as scope:
        waiting = scope.create_task(limiter.acquire(), name="wait")
        await asyncio.sleep(0)
        constants = found.turn(Constants(max_uncounted_pods=7))
        assert (constants.max_pod_create_delete_per_sync, constants.max_uncounted_pods) == (100, 7)
        waiting.cancel()


async def test_while_nobody_waits_turns_are_upstreams() -> None:
    """Default limits, 500 pods: there is nobody to let pass, and what an operator has set is what is done."""
    found, _ = pace(20, 30)
    assert found.turn(Constants()) == Constants()
    assert found.turn(Constants(max_uncounted_pods=900)) == Constants(max_uncounted_pods=900)


async def test_a_status_may_be_put_off_only_while_requests_wait() -> None:
    """T13 otherwise."""
    found, limiter = pace(10, 1)
    assert limiter.acquire_nowait()
    assert not found.may_put_off()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(limiter.acquire(), name="wait")
        await asyncio.sleep(0)
        assert found.may_put_off()


async def test_a_status_may_be_put_off_while_the_server_is_what_is_waited_for() -> None:
    """Without a limit, too: what counts is how much is under way, and how many Jobs wait for their turn."""
    wire = wire_to("c")
    credentials = Credentials(Endpoint("https://c", None), Identity())
    limiter = Limiter(0, 1, wire.clock.monotonic)
    client = Client("c", credentials, limiter, transport=MemoryTransport(wire), wall=wire.clock.wall)
    together, answered = ParallelRequests(), asyncio.Event()
    waiting: list[str] = []
    found = Pace(client, together, behind=lambda: len(waiting) > 5)

    async def wait_for_answer(_: int) -> None:
        await answered.wait()

    async with asyncio.TaskGroup() as scope:
        scope.create_task(together.each(range(CROWD - 1), wait_for_answer, name="many"), name="many")
        await asyncio.sleep(0.1)
        assert not found.may_put_off()
        scope.create_task(together.each(range(1), wait_for_answer, name="one"), name="one")
        await asyncio.sleep(0.1)
        assert found.may_put_off()
        answered.set()
    assert not found.may_put_off()
    waiting.extend("abcdef")
    assert found.may_put_off()


class Measured:
    """Work that takes a second, and how much of it went on at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self, item: int) -> int:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(1)
        self.now -= 1
        return item * 2


async def test_results_are_in_the_items_order() -> None:
    """Whatever ends first."""
    assert await ParallelRequests().each(range(120), Measured(), name="x") == [item * 2 for item in range(120)]
    assert await ParallelRequests().each([], Measured(), name="x") == []
    assert await ParallelRequests().each([4], Measured(), name="x") == [8]


async def test_who_is_alone_has_many_at_once() -> None:
    """But bounded."""
    work = Measured()
    await ParallelRequests().each(range(120), work, name="x")
    assert work.most == AT_ONCE


async def test_shares_shrink_as_others_come() -> None:
    """After one round the first has given up half of what it had, and all of them get through."""
    together, first, second = ParallelRequests(), Measured(), Measured()
    async with asyncio.TaskGroup() as scope:
        scope.create_task(together.each(range(300), first, name="a"), name="a")
        await asyncio.sleep(0.5)
        scope.create_task(together.each(range(300), second, name="b"), name="b")
        await asyncio.sleep(1)
        assert (first.now, second.now) == (AT_ONCE // 2, AT_ONCE // 2)
    assert first.most == AT_ONCE


async def test_all_together_never_have_more_than_one_alone() -> None:
    """Shares shrink only as requests end; the connections are as many as they are."""
    together, work = ParallelRequests(), Measured()
    async with asyncio.TaskGroup() as scope:
        for number in range(5):
            scope.create_task(together.each(range(100), work, name=str(number)), name=str(number))
        for number in range(20):
            scope.create_task(together.each([number], work, name="one"), name="one")
    assert work.most == AT_ONCE


async def test_nobody_gets_nothing() -> None:
    """However many come."""
    together, works = ParallelRequests(), [Measured() for _ in range(20)]
    async with asyncio.TaskGroup() as scope:
        for number, work in enumerate(works):
            scope.create_task(together.each(range(10), work, name=str(number)), name=str(number))
    assert works[-1].most == FEWEST
