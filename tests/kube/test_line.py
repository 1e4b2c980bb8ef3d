"""Whose turn it is at a rate limit."""

from __future__ import annotations

import asyncio

import pytest

from mirror.kube.limits import Limiter
from mirror.kube.lines import PATIENCE_SECONDS, Line, Waiter
from mirror.kube.requests import Rank

pytestmark = pytest.mark.looptime


def waiters(line: Line, *wanted: tuple[Rank, str, float]) -> dict[Waiter, str]:
    """Let these stand in line; by what they are called: flow and number."""
    found = {}
    for number, (rank, flow, now) in enumerate(wanted):
        waiter = asyncio.get_running_loop().create_future()
        line.join(waiter, rank, flow, now)
        found[waiter] = f"{flow}{number}"
    return found


def served(line: Line, names: dict[Waiter, str], now: float = 0.0) -> list[str]:
    order = []
    while line:
        waiter = line.whose_turn(now)
        line.leave(waiter)
        order.append(names[waiter])
    return order


async def test_within_a_flow_the_oldest_is_first_and_flows_take_turns() -> None:
    """Who asks for much does not make the others wait for all of it."""
    line, first = Line(), Rank.FIRST
    names = waiters(line, (first, "a", 0), (first, "a", 0), (first, "a", 0), (first, "b", 0), (first, "c", 0))
    assert served(line, names) == ["a0", "b3", "c4", "a1", "a2"]


async def test_a_lower_rank_waits_for_the_higher_ones() -> None:
    """As long as its patience lasts."""
    line = Line()
    names = waiters(line, (Rank.LAST, "e", 0), (Rank.SECOND, "s", 0), (Rank.FIRST, "p", 0))
    assert served(line, names) == ["p2", "s1", "e0"]


@pytest.mark.parametrize("rank", list(PATIENCE_SECONDS))
async def test_whose_patience_is_over_goes_first(rank: Rank) -> None:
    """A rank costs time and starves nobody."""
    line, now = Line(), PATIENCE_SECONDS[rank] + 0.1
    names = waiters(line, (Rank.FIRST, "p", 0), (rank, "s", 0), (rank, "s", now))
    assert served(line, names, now) == ["s1", "p0", "s2"]


async def test_who_gives_up_leaves_the_line() -> None:
    """Also twice."""
    line = Line()
    names = waiters(line, (Rank.FIRST, "a", 0), (Rank.FIRST, "b", 0))
    gone = next(iter(names))
    line.leave(gone)
    line.leave(gone)
    assert len(line) == 1
    assert served(line, names) == ["b1"]


async def test_a_limiter_serves_by_rank_and_says_when_somebody_waits() -> None:
    """``is_saturated`` is what lets a controller put off what is not urgent."""
    limits = Limiter(10, 1, asyncio.get_running_loop().time)
    order: list[str] = []

    async def ask(name: str, rank: Rank) -> None:
        await limits.acquire(rank=rank, flow=name)
        order.append(name)

    assert limits.acquire_nowait()
    assert not limits.is_saturated
    async with asyncio.TaskGroup() as scope:
        for name, rank in (("event", Rank.LAST), ("status", Rank.SECOND), ("pod", Rank.FIRST)):
            scope.create_task(ask(name, rank), name=name)
        await asyncio.sleep(0)
        assert limits.is_saturated
    assert order == ["pod", "status", "event"]
    assert not limits.is_saturated
