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
from mirror.runtime.queue import FRESH_BEFORE_A_LOOK, KEYS_A_TURN, LOOKS_A_TURN, QUIET_WAIT_SECONDS, Closed, WorkQueue

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


# -- looks ----------------------------------------------------------------------------------------------------------


async def worked_off(queue: WorkQueue[str]) -> list[str]:
    """What comes one after the other, each in a turn of its own, until nothing is ready."""
    found = []
    while in_a_moment(queue):
        found += await taken(queue, 1)
        queue.done(found[-1])
        await asyncio.sleep(0)
    return found


async def test_what_has_changed_goes_before_what_is_only_looked_at() -> None:
    """However many looks there are, in its lane and in others."""
    queue = queue_of(lanes=True)
    for number in range(20_000):
        queue.look(f"{'abc'[number % 3]}{number}")
    queue.add("c!")
    queue.add("d!")
    assert await taken(queue, 3) == ["c!", "d!", "a0"]


async def test_a_key_that_waits_as_a_look_moves_forward_when_it_has_changed() -> None:
    """It comes once."""
    queue = queue_of()
    for number in range(1000):
        queue.look(str(number))
    queue.add("999")
    assert await taken(queue, 2) == ["999", "0"]
    assert queue.describe().ready == {"": 998}
    queue.look("999")  # of what is in work for a change: it keeps its class
    queue.done("999")
    assert await taken(queue, 2) == ["999", "1"]


@pytest.mark.parametrize(
    ("first", "then", "is_fresh"),
    [
        ("look", ("look",), False),
        ("look", ("add",), True),
        ("look", ("look", "add"), True),
        ("look", ("add", "look"), True),
        ("add", ("look",), True),
        ("add", ("add",), True),
    ],
)
async def test_a_key_that_is_touched_in_work_keeps_the_better_class(
    first: str, then: tuple[str, ...], is_fresh: bool
) -> None:
    """Of that in which it is worked on, and those in which it is wanted again."""
    queue = queue_of()
    getattr(queue, first)("key")
    assert await taken(queue, 1) == ["key"]
    queue.look("before")
    for name in then:
        getattr(queue, name)("key")
    assert queue.describe().ready == {"": 1}
    queue.done("key")
    assert await worked_off(queue) == (["key", "before"] if is_fresh else ["before", "key"])


async def test_looks_do_not_starve() -> None:
    """Of nine keys one is a look, however much changes."""
    queue = queue_of(*map(str, range(20 * FRESH_BEFORE_A_LOOK)))
    for number in range(20):
        queue.look(f"look {number}")
    found = await worked_off(queue)
    every = FRESH_BEFORE_A_LOOK + 1
    assert found[FRESH_BEFORE_A_LOOK::every] == [f"look {number}" for number in range(20)]


async def test_a_full_lane_does_not_take_the_looks_share() -> None:
    """A look whose lane has no room is passed over, and so is none of the changes for it (D12)."""
    queue = queue_of(limit=1, lanes=True)
    queue.add("a!")
    assert await taken(queue, 1) == ["a!"]
    queue.look("a")
    for number in range(30):
        queue.add(f"b{number}")
    found = []
    for _ in range(30):
        found += await taken(queue, 1)
        queue.done(found[-1])
    assert found == [f"b{number}" for number in range(30)]
    queue.add("b!")
    queue.done("a!")
    assert await taken(queue, 2) == ["a", "b!"]


async def test_looks_leave_room_in_their_lane() -> None:
    """All of it may hang on requests that looks have made: what has changed goes on meanwhile."""
    queue = queue_of(limit=4)
    for number in range(10):
        queue.look(f"look {number}")
    await taken(queue, 3)
    more = asyncio.create_task(queue.take())
    await asyncio.sleep(1)
    assert not more.done()
    queue.add("fresh")
    await asyncio.sleep(0)
    assert more.done()
    assert (await more).key == "fresh"


async def test_looks_take_their_share_of_a_lane_that_is_never_empty() -> None:
    """Where changes leave no more room than they must."""
    queue = queue_of(*map(str, range(100)), limit=4)
    in_work = await taken(queue, 3)
    queue.look("look")
    for _ in range(FRESH_BEFORE_A_LOOK + 1):
        in_work += await taken(queue, 1)
        queue.done(in_work.pop(0))
    assert "look" in in_work


async def test_looks_of_lanes_take_turns() -> None:
    """As all keys do."""
    queue = queue_of(lanes=True)
    for key in ("a1", "a2", "a3", "b1", "c1"):
        queue.look(key)
    assert await taken(queue, 5) == ["a1", "b1", "c1", "a2", "a3"]


async def test_a_turn_of_the_event_loop_begins_few_looks() -> None:
    """Whoever can work on more goes on in the next turn, and what has changed need not wait for that."""
    queue = queue_of(limit=1000)
    for number in range(10 * LOOKS_A_TURN):
        queue.look(str(number))
    queue.add("first")
    queue.add("second")
    turns = []
    while (taken := queue._take_nowait()) is not None:
        some = [taken.key]
        while (taken := queue._take_nowait()) is not None:
            some.append(taken.key)
        turns.append(some)
        await asyncio.sleep(0)
    assert turns[0][:2] == ["first", "second"]
    assert [len(some) for some in turns] == [LOOKS_A_TURN + 2] + 9 * [LOOKS_A_TURN]


async def test_whoever_waits_gets_a_look_in_the_next_turn() -> None:
    """Nothing else need happen."""
    queue = queue_of(limit=1000)
    for number in range(3 * LOOKS_A_TURN):
        queue.look(str(number))
    async with asyncio.timeout(1):
        assert len(await taken(queue, 3 * LOOKS_A_TURN)) == 3 * LOOKS_A_TURN


@pytest.mark.parametrize("is_look", [True, False])
async def test_a_delay_and_a_retry_keep_the_class_of_the_work(is_look: bool) -> None:
    """Thousands of looks that all fail, or all want to look again at one time, are still looks then."""
    queue = queue_of()
    for key in ("again", "retried"):
        (queue.look if is_look else queue.add)(key)
    assert await taken(queue, 2) == ["again", "retried"]
    queue.add_after("again", 10)
    queue.retry("retried")
    queue.done("again")
    queue.done("retried")
    await asyncio.sleep(10.1)
    queue.add("fresh")
    assert await worked_off(queue) == (["fresh", "retried", "again"] if is_look else ["retried", "again", "fresh"])


async def test_a_look_puts_no_delay_off() -> None:
    """What was to be done by then is not to wait for the looks; once it is looked at, the delay counts no more."""
    queue = queue_of("due", "looked at")
    await taken(queue, 2)
    for key in ("due", "looked at"):
        queue.add_after(key, 5)
        queue.done(key)
    queue.look("looked at")
    assert await worked_off(queue) == ["looked at"]
    queue.look("other")
    queue.look("due")
    await asyncio.sleep(5.1)
    assert await worked_off(queue) == ["due", "other"]


async def test_what_nobody_waits_for_is_a_look_after_its_while() -> None:
    """Many of them at once must not hold up what has changed."""
    queue = queue_of("a", "b", "c", "d", "e")
    for number in range(10):
        queue.add_when_quiet(f"quiet {number}")
    await asyncio.sleep(QUIET_WAIT_SECONDS + 0.1)
    queue.add("f")
    found = await worked_off(queue)
    assert [key for key in found if not key.startswith("quiet")] == ["a", "b", "c", "d", "e", "f"]
    assert found.index("f") == 5


async def test_what_nobody_waits_for_is_a_look_even_if_it_is_named_in_the_work_on_a_change() -> None:
    """As the delete of a mirror after its retention is, by the work that stores the end."""
    queue = queue_of("a", "b", "c", "d", "e")
    assert await taken(queue, 1) == ["a"]
    queue.add_when_quiet("a")
    queue.done("a")
    await asyncio.sleep(QUIET_WAIT_SECONDS + 0.1)
    queue.add("f")
    assert await worked_off(queue) == ["b", "c", "d", "e", "f", "a"]


async def test_delays_that_end_together_do_not_hold_up_the_loop() -> None:
    """As those of thousands of Jobs do whose worker is lost."""
    queue = queue_of()
    for number in range(1000):
        queue.add_after(str(number), 10)
    await asyncio.sleep(10)
    assert 0 < await ready_by_turn(queue) <= KEYS_A_TURN
    assert queue.ready == 1000


async def test_the_end_of_an_outage_does_not_hold_up_the_loop() -> None:
    """All wait for one that goes well; each is woken once, in its class."""
    queue = queue_of(limit=2000)
    for number in range(1000):
        (queue.look if number else queue.add)(str(number))
    for key in await taken(queue, 1000):
        queue.retry(key, at_least_seconds=60, is_outage=True)
        queue.done(key)
    queue.add("500")
    assert await taken(queue, 1) == ["500"]
    queue.forget("500")
    queue.done("500")
    assert await ready_by_turn(queue) <= KEYS_A_TURN
    assert (queue.ready, len(queue._looks)) == (999, 998)
    queue.close()


async def ready_by_turn(queue: WorkQueue[str]) -> int:
    """Until nothing more becomes ready: how many keys did so in a turn of the loop, at the most."""
    most = before = queue.ready
    for _ in range(100):
        await asyncio.sleep(0)
        most, before = max(most, queue.ready - before), queue.ready
    return most


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
    """The queue against a model: which keys are wanted, and in which class, and which are in work."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.queue = WorkQueue[str](by_first_letter, clock=Ticking(), lane_limit=LIMIT)
        self.wanted: dict[str, bool] = {}
        """Whether as a look."""
        self.working: dict[str, bool] = {}
        self.in_a_row = 0

    def teardown(self) -> None:
        self.loop.close()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.wanted[key] = False

    @rule(key=KEYS)
    def look(self, key: str) -> None:
        self.queue.look(key)
        self.wanted.setdefault(key, self.working.get(key, True))

    @rule(times=st.integers(1, 12), is_done=st.booleans())
    def take(self, times: int, is_done: bool) -> None:
        async def take_some() -> None:
            for _ in range(times):
                key = self._take_one()
                if is_done and key is not None:
                    self.done(key)

        self.loop.run_until_complete(take_some())

    def _take_one(self) -> str | None:
        busy = Counter(key[0] for key in self.working)
        ready = {key for key in self.wanted if key not in self.working and busy[key[0]] < LIMIT}
        looks = {key for key in ready if self.wanted[key]}
        is_looks_turn = bool(looks) and self.in_a_row >= FRESH_BEFORE_A_LOOK
        possible = looks if is_looks_turn else ready - looks or looks
        found = self.queue._take_nowait()
        assert (found is None) == (not possible)
        if found is None:
            return None
        assert found.key in possible
        if found.key in looks:
            self.in_a_row = 0
        else:
            self.in_a_row += any(self.wanted.values())
        self.working[found.key] = self.wanted.pop(found.key)
        return found.key

    @rule(key=KEYS)
    def done(self, key: str) -> None:
        if key in self.working:
            del self.working[key]
            self.queue.done(key)

    @invariant()
    def is_like_the_model(self) -> None:
        found = self.queue.describe()
        ready = [key for key in self.wanted if key not in self.working]
        assert found.in_work == dict(Counter(key[0] for key in self.working))
        assert found.ready == dict(Counter(key[0] for key in ready))
        assert self.queue.ready == len(ready)
        assert self.queue._looks.keys() == {key for key, is_look in self.wanted.items() if is_look}
        for lanes in (self.queue._fresh, self.queue._look_lanes):
            assert sorted(lanes.turns) == sorted(lanes.counts())


TestQueueInvariants = QueueMachine.TestCase
TestQueueInvariants.settings = examples(60, stateful_step_count=40)
