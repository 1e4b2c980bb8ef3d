"""When sources that a worker has refused are tried there again, however many they are."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.refusals import Refused
from doubles.world import World, manager_of

from mirror.controllers.memory import Memories
from mirror.controllers.refusals import GROUPS_A_SECOND, MOST_GROUPS, Refusals
from mirror.model.keys import SourceKey

pytestmark = pytest.mark.looptime

MANY, SOME = 300, 60
QUOTA = "quota exceeded: ResourceQuota team, requested count/jobs.batch=1"


class Tried:
    """What ``Refusals`` has tried again, by seconds; each is refused again at once, but for those that are let in."""

    def __init__(self) -> None:
        self.at: list[tuple[float, str]] = []
        self.room = 0
        self.memories = Memories()
        self.clock = LoopClock()
        self.refusals = Refusals(self.memories, self.clock, self._wake)

    def refuse(self, number: int, because: str = QUOTA) -> None:
        self.refusals.note_refused(SourceKey("Job", "ml", f"j{number}"), f"u{number}", "east", because)

    def _wake(self, key: SourceKey) -> None:
        self.at.append((round(self.clock.monotonic()), key.name))
        asyncio.get_running_loop().call_soon(self._answer, key)

    def _answer(self, key: SourceKey) -> None:
        number = int(key.name.removeprefix("j"))
        if self.room:
            self.room -= 1
            self.refusals.note_taken(key, f"u{number}", "east")
        else:
            self.refuse(number)


async def test_many_cost_as_much_as_one_and_go_at_once_when_the_cause_has_gone() -> None:
    """D21: one of a group is tried, in the end each minute; those who are taken have the others tried."""
    seen = Tried()
    task = asyncio.create_task(seen.refusals.run())
    for number in range(MANY):
        seen.refuse(number)
    await asyncio.sleep(3600)
    assert 50 <= len(seen.at) <= 90
    gaps = [after - before for (before, _), (after, _) in zip(seen.at, seen.at[1:], strict=False)]
    assert gaps[0] <= 15
    assert all(45 <= gap <= 75 for gap in gaps[6:])
    assert len({name for _, name in seen.at[:40]}) == 40  # each in turn
    seen.room, before = 10_000, len(seen.at)
    await asyncio.sleep(80)
    assert len(seen.at) - before == MANY
    assert len(seen.refusals) == 0
    task.cancel()


async def test_room_for_a_few_has_few_tried() -> None:
    """A quota that leaves room for some: each that is taken has two tried, and no more."""
    seen = Tried()
    task = asyncio.create_task(seen.refusals.run())
    for number in range(MANY):
        seen.refuse(number)
    seen.room = 5
    await asyncio.sleep(20)
    assert len(seen.refusals) == MANY - 5
    assert len(seen.at) <= 1 + 2 * 5 + 3
    task.cancel()


async def test_other_words_each_time_are_no_reason_to_hurry() -> None:
    """A worker that says something else each time is asked as rarely, and costs as little memory."""
    seen = Tried()
    task = asyncio.create_task(seen.refusals.run())
    words = iter(f"denied: {chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(10_000))
    seen._answer = lambda key: seen.refuse(int(key.name[1:]), next(words))
    for number in range(MANY):
        seen.refuse(number, next(words))
    await asyncio.sleep(3600)
    assert len(seen.at) <= 90 * MOST_GROUPS
    for number in range(MANY):
        seen.refusals.forget(f"u{number}")
    assert len(seen.refusals) == 0
    assert not seen.refusals._groups
    task.cancel()


@pytest.mark.slow
async def test_all_jobs_run_soon_after_the_quota_is_raised() -> None:
    """Whole: however long they have waited, and with few requests meanwhile."""
    world = World()
    east = world.add_worker("east")
    quota = Refused(403, "Forbidden", "exceeded quota: team, requested: count/jobs.batch=1, used: 1, limited: 1")
    east.arrange("create", "jobs", quota, times=9999)
    async with manager_of(world) as manager:
        for number in range(SOME):
            world.create(job(f"train-{number}"))
        await manager.settle(600)
        before = len(list(east.writes())) + world.writes()
        await manager.settle(600)
        assert len(list(east.writes())) + world.writes() - before <= 60
        east.restore()
        await manager.settle(90)
        assert len(east.server.all("jobs")) == SOME


async def test_a_job_that_is_mended_is_tried_at_once() -> None:
    """Its labels are what a policy wanted: nobody waits for its turn."""
    world = World()
    east = world.add_worker("east")
    east.arrange("create", "jobs", Refused(422, "Invalid"), times=9999)
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(3000)
        east.restore()
        world.edit(lambda body: body["metadata"].setdefault("labels", {}).update(team="a"))
        await manager.settle(2)
        assert world.mirrors() == ["east"]


async def test_a_worker_that_is_back_is_asked_for_one_of_each_reason() -> None:
    """D21: whether its cause is gone one shows; where it is, all are taken within seconds."""
    seen = Tried()
    task = asyncio.create_task(seen.refusals.run())
    for number in range(MANY):
        seen.refuse(number)
    await asyncio.sleep(3600)
    before = len(seen.at)
    for _ in range(10):
        seen.refusals.try_soon("east")
        await asyncio.sleep(0.1)
    await asyncio.sleep(4)
    assert len(seen.at) - before <= 2
    seen.room = 10_000
    await asyncio.sleep(4)
    seen.refusals.try_soon("east")
    await asyncio.sleep(2)
    assert len(seen.refusals) == 0
    task.cancel()


@pytest.mark.slow
async def test_many_reasons_are_tried_a_few_at_a_time() -> None:
    """A namespace of its own for each: so many a second, and no more."""
    seen = Tried()
    task = asyncio.create_task(seen.refusals.run())
    seen._answer = lambda key: seen.refusals.note_refused(key, f"u-{key.namespace}", "east", QUOTA)
    for number in range(MANY):
        seen.refusals.note_refused(SourceKey("Job", f"ns{number}", "j1"), f"u-ns{number}", "east", QUOTA)
    await asyncio.sleep(3600)
    seen.at.clear()
    now = seen.clock.monotonic()
    seen.refusals.try_soon("east")
    await asyncio.sleep(30)
    by_second = Counter(at for at, _ in seen.at if at - now <= MANY / GROUPS_A_SECOND)
    assert len(seen.at) >= MANY
    assert max(by_second.values()) <= 3 * GROUPS_A_SECOND
    task.cancel()


@pytest.mark.slow
async def test_a_worker_that_is_back_does_not_get_all_it_refused() -> None:
    """Whole: refused Jobs cost a handful of creates at each reconnect; once it takes one, all of them go."""
    world = World()
    east = world.add_worker("east")
    quota = Refused(403, "Forbidden", "exceeded quota: team, requested: count/jobs.batch=1, used: 1, limited: 1")
    east.arrange("create", "jobs", quota, times=9999)
    async with manager_of(world) as manager:
        for number in range(SOME):
            world.create(job(f"train-{number}"))
        await manager.settle(600)
        before = len(list(east.writes()))
        east.go_down()
        await manager.settle(20)
        east.is_down = False
        await manager.settle(10)
        assert len(list(east.writes())) - before <= 4
        east.go_down()
        await manager.settle(20)
        east.restore()
        east.is_down = False
        await manager.settle(10)
        assert len(east.server.all("jobs")) == SOME
