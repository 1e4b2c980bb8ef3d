"""The work queue: client-go's guarantees, and lanes."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime

import pytest
from doubles.clock import LoopClock
from doubles.examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mirror.runtime.backoff import Backoff
from mirror.runtime.queue import Closed, WorkQueue

pytestmark = pytest.mark.looptime


def one_lane(key: str) -> str:
    return ""


def by_first_letter(key: str) -> str:
    return key[0]


def queue_of(*keys: str, limit: int = 64, lanes: bool = False) -> WorkQueue[str]:
    queue = WorkQueue[str](by_first_letter if lanes else one_lane, clock=LoopClock(), lane_limit=limit)
    for key in keys:
        queue.add(key)
    return queue


def in_a_moment(queue: WorkQueue[str]) -> bool:
    """Whether there is something to take now."""
    return any(queue.describe().ready.values())


async def taken(queue: WorkQueue[str], count: int) -> list[str]:
    return [(await queue.take()).key for _ in range(count)]


async def test_a_key_that_is_added_many_times_is_taken_once() -> None:
    """Changes that pile up are one piece of work."""
    queue = queue_of("a", "b", "a", "a")
    assert await taken(queue, 2) == ["a", "b"]
    assert not in_a_moment(queue)


async def test_a_key_is_never_worked_on_twice_at_a_time() -> None:
    """Added while it is worked on, it waits until that has ended, and then it comes again."""
    queue = queue_of("a")
    await queue.take()
    queue.add("a")
    queue.add("a")
    assert not in_a_moment(queue)
    queue.done("a")
    assert await taken(queue, 1) == ["a"]
    queue.done("a")
    assert not in_a_moment(queue)


async def test_whoever_waits_gets_the_next_key() -> None:
    """``take`` returns when something is added, and says how long the key waited."""
    queue = queue_of()
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(5)
    queue.add("a")
    assert (await waiting).key == "a"
    queue.add("b")
    await asyncio.sleep(3)
    assert (await queue.take()).waited_seconds == pytest.approx(3)


async def test_a_delayed_key_comes_when_it_is_due() -> None:
    """Not earlier."""
    queue = queue_of()
    queue.add_after("a", 10)
    await asyncio.sleep(9.9)
    assert not in_a_moment(queue)
    await asyncio.sleep(0.2)
    assert in_a_moment(queue)


@pytest.mark.parametrize("delays", [(10, 2), (2, 10)], ids=["a later one first", "the earlier one first"])
async def test_of_several_delays_the_earliest_counts(delays: tuple[int, int]) -> None:
    """And the key comes once, not once for each."""
    queue = queue_of()
    for delay in delays:
        queue.add_after("a", delay)
    await asyncio.sleep(2.1)
    assert await taken(queue, 1) == ["a"]
    queue.done("a")
    await asyncio.sleep(60)
    assert not in_a_moment(queue)


async def test_wanted_now_beats_any_delay() -> None:
    """``add`` makes the delayed entry void."""
    queue = queue_of()
    queue.add_after("a", 5)
    queue.add("a")
    await queue.take()
    queue.done("a")
    await asyncio.sleep(10)
    assert not in_a_moment(queue)


async def test_no_delay_at_all_is_now() -> None:
    """Zero or less."""
    queue = queue_of()
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert await taken(queue, 2) == ["a", "b"]


async def test_failures_of_a_key_make_its_delay_grow_and_success_forgets_them() -> None:
    """Each key has its own count; a minute is the most."""
    queue = queue_of()
    delays = [queue.retry("a") for _ in range(20)]
    assert delays[:3] == [0.005, 0.01, 0.02]
    assert delays[-1] == 60.0
    assert queue.retry("b") == 0.005
    queue.forget("a")
    assert (queue.failures("a"), queue.retry("a")) == (0, 0.005)
    queue.close()


async def test_the_delays_of_failures_are_the_queues_own() -> None:
    """A Job controller waits as long as upstream's: 1 s, 2 s, … 60 s (K2)."""
    queue = WorkQueue[str](one_lane, clock=LoopClock(), backoff=Backoff(1.0, 60.0))
    assert [queue.retry("a") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    queue.close()


@pytest.mark.parametrize("keys", [1, 1000])
async def test_delays_that_count_no_more_take_no_room(keys: int) -> None:
    """Mirrors are kept for weeks and looked at again for each change of them: as many timers as keys, not as looks."""
    queue = queue_of()
    for number in range(20 * keys if keys > 1 else 5000):
        key = str(number % keys)
        queue.add_after(key, 720 * 3600 - number)
        assert len(queue._delayed) <= 3 * keys + 100
        if number % 3:
            queue.add(key)
            queue.done((await queue.take()).key)
    for number in range(keys):
        queue.add_after(str(number), 10)
    assert queue.describe().delayed == keys
    await asyncio.sleep(11)
    assert queue.ready == keys
    queue.close()


async def test_a_server_may_ask_for_a_longer_delay() -> None:
    """Retry-After is the least, the own backoff goes on counting."""
    queue = queue_of()
    assert queue.retry("a", at_least_seconds=7) == 7
    assert queue.retry("a") == 0.01
    queue.close()


async def test_lanes_take_turns() -> None:
    """A lane with many keys does not keep a lane with one waiting."""
    queue = queue_of("a1", "a2", "a3", "b1", "c1", lanes=True)
    assert await taken(queue, 5) == ["a1", "b1", "c1", "a2", "a3"]


async def test_a_full_lane_blocks_no_other() -> None:
    """D12: of a lane that hangs, so many keys are in work, and the others go on."""
    queue = queue_of("a1", "a2", "a3", "b1", "b2", limit=2, lanes=True)
    assert set(await taken(queue, 4)) == {"a1", "a2", "b1", "b2"}
    more = asyncio.create_task(queue.take())
    await asyncio.sleep(100)
    assert not more.done()
    queue.done("a1")
    assert (await more).key == "a3"


async def test_the_lane_is_asked_each_time_a_key_becomes_ready() -> None:
    """A source that was placed meanwhile waits in its worker's lane."""
    lanes = {"x": "none"}
    queue = WorkQueue[str](lambda key: lanes[key], clock=LoopClock())
    queue.add("x")
    assert (await queue.take()).lane == "none"
    lanes["x"] = "east"
    queue.add("x")
    queue.done("x")
    assert (await queue.take()).lane == "east"


async def test_closing_wakes_who_waits_and_takes_nothing_more() -> None:
    """Timers end, too."""
    queue = queue_of()
    waiting = asyncio.create_task(queue.take())
    queue.add_after("late", 10)
    await asyncio.sleep(0)
    queue.close()
    with pytest.raises(Closed):
        await waiting
    queue.add("a")
    queue.add_after("b", 1)
    await asyncio.sleep(20)
    assert not in_a_moment(queue)
    with pytest.raises(Closed):
        await queue.take()


async def test_a_description_tells_what_is_going_on() -> None:
    """For metrics: depths by lane, ages in seconds."""
    queue = queue_of("a1", "b1", "b2", lanes=True)
    await queue.take()
    queue.add_after("later", 99)
    await asyncio.sleep(4)
    found = queue.describe()
    assert (found.ready, found.in_work, found.delayed) == ({"b": 2}, {"a": 1}, 1)
    assert (found.oldest_seconds, found.longest_running_seconds) == (pytest.approx(4), pytest.approx(4))
    queue.close()


class Ticking:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time

    def now(self) -> datetime:
        raise AssertionError("the queue reads no wall clock")


KEYS = st.sampled_from([lane + str(number) for lane in "abc" for number in range(3)])
LIMIT = 2


class QueueMachine(RuleBasedStateMachine):
    """The queue against a model: which keys are wanted, and which are in work."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue[str](by_first_letter, clock=Ticking(), lane_limit=LIMIT)
        self.wanted: set[str] = set()
        self.working: set[str] = set()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.wanted.add(key)

    @rule()
    def take(self) -> None:
        busy = Counter(key[0] for key in self.working)
        possible = {key for key in self.wanted - self.working if busy[key[0]] < LIMIT}
        found = self.queue._take_nowait()
        assert (found is None) == (not possible)
        if found is not None:
            assert found.key in possible
            self.wanted.discard(found.key)
            self.working.add(found.key)

    @rule(key=KEYS)
    def done(self, key: str) -> None:
        if key in self.working:
            self.working.discard(key)
            self.queue.done(key)

    @invariant()
    def is_like_the_model(self) -> None:
        found = self.queue.describe()
        assert found.in_work == dict(Counter(key[0] for key in self.working))
        assert found.ready == dict(Counter(key[0] for key in self.wanted - self.working))
        assert sorted(self.queue._turns) == sorted(found.ready)


TestQueueInvariants = QueueMachine.TestCase
TestQueueInvariants.settings = examples(60, stateful_step_count=40)
