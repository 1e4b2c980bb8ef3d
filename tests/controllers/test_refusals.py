"""When sources that a worker has refused are tried there again, however many they are."""

from __future__ import annotations

import asyncio

import pytest
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.refusals import Refused
from doubles.world import World, manager_of

from mirror.controllers.memory import Memories
from mirror.controllers.refusals import MOST_GROUPS, Refusals
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
    seen._answer = lambda key: seen.refuse(int(key.name[1:]), next(words))  # type: ignore[method-assign]
    for number in range(MANY):
        seen.refuse(number, next(words))
    await asyncio.sleep(3600)
    assert len(seen.at) <= 90 * MOST_GROUPS
    for number in range(MANY):
        seen.refusals.forget(f"u{number}")
    assert len(seen.refusals) == 0
    assert not seen.refusals._groups
    task.cancel()


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
