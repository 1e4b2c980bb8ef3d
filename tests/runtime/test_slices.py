"""Many objects in slices, between which the event loop is others'."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from doubles.loglines import Lines

from mirror.runtime.slices import SLICE, Passes, in_slices
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def running() -> AsyncIterator[Passes]:
    passes = Passes(log=get_log("test"))
    task = asyncio.create_task(passes.run())
    try:
        yield passes
    finally:
        task.cancel()


async def by_turn(passes: Passes, done: list[str]) -> list[int]:
    """How many were done in each turn of the loop, until all passes have ended."""
    found, before = [], len(done)
    while len(passes):
        await asyncio.sleep(0)
        found.append(len(done) - before)
        before = len(done)
    return found


async def test_a_coroutine_that_goes_over_many_gives_the_loop_back() -> None:
    """After each slice, and none is left out."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    assert [one async for one in in_slices(range(10 * SLICE))] == list(range(10 * SLICE))
    counting.cancel()
    assert turns >= 10


async def test_a_pass_goes_over_all_and_no_turn_over_more_than_a_slice() -> None:
    """Whatever their number."""
    done: list[str] = []
    async with running() as passes:
        passes.request("all", lambda: map(str, range(10 * SLICE + 3)), done.append)
        assert max(await by_turn(passes, done)) == SLICE
    assert done == list(map(str, range(10 * SLICE + 3)))


async def test_passes_take_turns() -> None:
    """Many objects of one worker do not keep those of another waiting."""
    done: list[str] = []
    async with running() as passes:
        passes.request("many", lambda: 50 * SLICE * ["many"], done.append)
        passes.request("few", lambda: ["few"], done.append)
        assert max(await by_turn(passes, done)) == SLICE
    assert done.index("few") == SLICE


async def test_a_request_while_a_pass_is_under_way_adds_one_more() -> None:
    """However often it comes: the pass that follows begins anew with what is there by then."""
    begun: list[int] = []
    done: list[int] = []

    def items() -> Iterator[int]:
        begun.append(len(done))
        yield from range(3 * SLICE)

    async with running() as passes:
        for _ in range(5):
            passes.request("east", items, done.append)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert begun == [0]
        for _ in range(5):
            passes.request("east", items, done.append)
        await by_turn(passes, [])
    assert begun == [0, 3 * SLICE]
    assert done == 2 * list(range(3 * SLICE))


async def test_an_object_that_makes_trouble_ends_nothing(log_lines: Lines) -> None:
    """The rest of its pass, and other passes, go on."""
    done: list[int] = []

    def do(item: int) -> None:
        if item == 1:
            raise ValueError(item)
        done.append(item)

    def fail() -> Iterator[int]:
        yield 10
        raise ValueError("no more")

    async with running() as passes:
        passes.request("east", lambda: range(3), do)
        passes.request("west", fail, do)
        passes.request("north", lambda: [20], do)
        await by_turn(passes, [])
    assert done == [0, 2, 10, 20]
    assert len([line for line in log_lines if line["event"] == "unexpected error"]) == 2


async def test_passes_are_forgotten_with_who_wanted_them() -> None:
    """Nothing of them is done when somebody runs them again."""
    done: list[int] = []
    passes = Passes(log=get_log("test"))
    task = asyncio.create_task(passes.run())
    passes.request("east", lambda: range(10 * SLICE), done.append)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    passes.clear()
    assert 0 < len(done) < 10 * SLICE
    before = len(done)
    task = asyncio.create_task(passes.run())
    await asyncio.sleep(1)
    assert (len(done), len(passes)) == (before, 0)
    passes.request("west", lambda: [1], done.append)
    await asyncio.sleep(1)
    assert len(done) == before + 1
    task.cancel()


async def test_many_who_go_over_many_share_a_turn() -> None:
    """As a hundred workers' rounds do, which are all due at once."""
    loop, by_turn = asyncio.get_running_loop(), [0]

    async def go_over() -> None:
        async for _ in in_slices(range(3 * SLICE)):
            if not by_turn[-1]:
                loop.call_soon(by_turn.append, 0)  # the next turn begins
            by_turn[-1] += 1

    await asyncio.gather(*(go_over() for _ in range(20)))
    assert sum(by_turn) == 20 * 3 * SLICE
    assert max(by_turn) <= 2 * SLICE
