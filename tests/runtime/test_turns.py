"""How much is taken in one turn of the event loop by many who take at once."""

from __future__ import annotations

import asyncio
import gc
import weakref

from mirror.runtime.turns import Taker, Turns, slicing


async def _take(turns: Turns, many: int, taken: list[int], who: int, weight: int = 1) -> None:
    for _ in range(many):
        taken.append(who)
        if not turns.take(weight):
            await turns.wait()


async def _counts_by_turn(turns: Turns, *tasks: asyncio.Task[None], taken: list[int]) -> list[int]:
    counts = []
    while not all(task.done() for task in tasks):
        before = len(taken)
        await asyncio.sleep(0)
        counts.append(len(taken) - before)
    return counts


async def test_all_together_take_no_more_in_a_turn_than_one() -> None:
    turns, taken = Turns(100), list[int]()
    tasks = [asyncio.create_task(_take(turns, 50, taken, who)) for who in range(100)]
    counts = await _counts_by_turn(turns, *tasks, taken=taken)
    assert len(taken) == 5_000
    # In the first turn each takes one before it learns that nothing is left; each that has waited may take one, too.
    assert max(counts) <= 200
    assert max(counts[2:]) <= 110


async def test_who_came_first_goes_on_first() -> None:
    turns, taken = Turns(1), list[int]()
    tasks = [asyncio.create_task(_take(turns, 3, taken, who)) for who in range(3)]
    await asyncio.gather(*tasks)
    assert taken == [0, 1, 2] * 3


async def test_what_costs_more_counts_for_more() -> None:
    turns, taken = Turns(100), list[int]()
    task = asyncio.create_task(_take(turns, 40, taken, 0, weight=20))
    counts = await _counts_by_turn(turns, task, taken=taken)
    assert max(counts) == 5


async def test_who_is_cancelled_while_waiting_keeps_nobody_waiting() -> None:
    turns = Turns(1)
    waiting = [asyncio.create_task(turns.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting[1:])


async def test_after_a_pause_a_turn_has_everything_again() -> None:
    turns = Turns(2)
    assert [turns.take(), turns.take()] == [True, False]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert turns.take()


async def test_one_that_always_has_more_takes_no_more_than_others() -> None:
    """A worker that sends as fast as it can delays nobody else (D12)."""
    turns = Turns(100)
    taken = [0, 0, 0]

    async def take(who: int) -> None:
        taker = Taker(turns)
        while True:
            taken[who] += 1
            if not taker.take():
                await taker.wait()

    tasks = [asyncio.create_task(take(who)) for who in range(3)]
    for _ in range(200):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    assert min(taken) > 0.8 * max(taken), taken


async def test_one_alone_takes_all_of_a_turn() -> None:
    turns, count = Turns(100), 0
    taker = Taker(turns)
    while taker.take():
        count += 1
    assert count == 99


def test_a_loop_that_is_over_is_not_kept() -> None:
    """Whoever runs many, as tests do, would keep them all."""

    async def share() -> weakref.ref[asyncio.AbstractEventLoop]:
        slicing().take()
        return weakref.ref(asyncio.get_running_loop())

    gone = asyncio.run(share())
    gc.collect()
    assert gone() is None
