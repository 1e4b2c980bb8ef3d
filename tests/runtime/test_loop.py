"""The consumer loop and the supervisor: errors end nobody else's work."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from doubles.clock import LoopClock
from doubles.loglines import Lines

from mirror.kube.errors import (
    BadAnswer,
    BadRequest,
    Conflict,
    Forbidden,
    KubeError,
    OutcomeUnknown,
    ServerFailure,
    TooManyRequests,
    Unreachable,
)
from mirror.runtime.backoff import Backoff
from mirror.runtime.loop import CacheBehind, IsOutage, consume, is_unreachable, is_unwell
from mirror.runtime.queue import WorkQueue
from mirror.runtime.supervise import supervise
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime


class Counted:
    """``runtime.loop.Observer``."""

    def __init__(self) -> None:
        self.taken = self.retries = 0
        self.worked: list[float] = []

    def on_taken(self, waited_seconds: float) -> None:
        self.taken += 1

    def on_worked(self, seconds: float) -> None:
        self.worked.append(seconds)

    def on_retry(self) -> None:
        self.retries += 1


class Script:
    """Work that does what is written for each key, one step a time; then it goes well."""

    def __init__(self, **steps: list[Exception | float]) -> None:
        self._steps = steps
        self.done: list[tuple[str, float]] = []

    async def __call__(self, key: str) -> float | None:
        self.done.append((key, asyncio.get_running_loop().time()))
        steps = self._steps.get(key) or [0.0]
        step = steps.pop(0) if steps else 0.0
        if isinstance(step, Exception):
            raise step
        return step or None

    def times(self, key: str) -> list[float]:
        return [at for done, at in self.done if done == key]


@asynccontextmanager
async def consuming(
    work: Callable[[str], Awaitable[float | None]], *, is_outage: IsOutage = is_unwell
) -> AsyncIterator[tuple[WorkQueue[str], Counted]]:
    queue, counted = WorkQueue[str](lambda _: "", clock=LoopClock()), Counted()
    consuming = consume(queue, work, log=get_log("test"), observer=counted, is_outage=is_outage)
    async with asyncio.TaskGroup() as scope:
        scope.create_task(consuming, name="consume")
        yield queue, counted
        queue.close()


async def test_a_failure_is_tried_again_with_growing_delays_until_it_goes_well() -> None:
    """Then its failures are forgotten."""
    work = Script(a=[Conflict(409), BadRequest(400), Conflict(409)])
    async with consuming(work) as (queue, counted):
        queue.add("a")
        await asyncio.sleep(10)
        assert work.times("a") == pytest.approx([0, 0.005, 0.015, 0.035])
        assert (queue.failures("a"), counted.retries, counted.taken) == (0, 3, 4)


async def test_retry_after_is_honoured_within_a_minute() -> None:
    """A server that names a day is asked again after a minute."""
    refusals: list[Exception | float] = [
        TooManyRequests(429, retry_after_seconds=7.0),
        TooManyRequests(429, retry_after_seconds=86_400.0),
    ]
    work = Script(a=refusals)
    async with consuming(work) as (queue, _):
        queue.add("a")
        await asyncio.sleep(100)
        assert work.times("a") == pytest.approx([0, 7, 67])


async def test_work_may_ask_to_look_again() -> None:
    """After the seconds that it returns, and not as a failure."""
    work = Script(a=[30.0])
    async with consuming(work) as (queue, counted):
        queue.add("a")
        await asyncio.sleep(100)
        assert work.times("a") == pytest.approx([0, 30])
        assert counted.retries == 0


async def test_a_cache_that_is_behind_is_waited_for_quietly(log_lines: Lines) -> None:
    """As after a conflict: the watch brings what it lacks, and nobody need be told."""
    work = Script(a=[CacheBehind("x"), CacheBehind("x")])
    async with consuming(work) as (queue, counted):
        queue.add("a")
        await asyncio.sleep(1)
        assert counted.retries == 2
    assert log_lines == []


async def test_a_bug_in_one_keys_work_ends_nobody_elses(log_lines: Lines) -> None:
    """It is logged with its traceback and tried again, slowly."""
    work = Script(a=[ZeroDivisionError("bug"), ZeroDivisionError("bug")])
    async with consuming(work) as (queue, _):
        for key in ("a", "b"):
            queue.add(key)
        await asyncio.sleep(10)
        assert work.times("a") == pytest.approx([0, 1, 2])
        assert work.times("b") == [0]
    errors = [line for line in log_lines if line["level"] == "error"]
    assert len(errors) == 2
    assert all(line["exc_info"] for line in errors)


async def test_work_that_hangs_keeps_no_other_key_waiting() -> None:
    """Keys are worked on side by side."""
    done: list[str] = []

    async def work(key: str) -> None:
        await asyncio.sleep(1000 if key == "slow" else 0)
        done.append(key)

    async with consuming(work) as (queue, _):
        for key in ("slow", "quick"):
            queue.add(key)
        await asyncio.sleep(1)
        assert done == ["quick"]
    assert done == ["quick", "slow"], "closing waits for what is in work"


async def test_a_supervised_task_is_started_again_with_growing_delays(log_lines: Lines) -> None:
    """A return counts as a failure, too: it must never end."""
    starts: list[float] = []
    told: list[str] = []

    async def work() -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) % 2:
            raise KubeError("broken")

    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(supervise("it", work, log=get_log("test"), on_restart=told.append), name="it")
        await asyncio.sleep(200)
        task.cancel()
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert 0.4 <= gaps[0] <= 0.6
    assert all(gap <= 36 for gap in gaps)
    assert gaps[5] > gaps[0] * 4
    assert set(told) == {"it"}
    assert log_lines[0]["event"] == "task failed"


async def test_a_quiet_time_makes_a_supervisor_forget() -> None:
    """After two minutes without failure the next one is the first again."""
    starts: list[float] = []

    async def work() -> None:
        starts.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0 if len(starts) < 6 else 200)
        raise KubeError("broken")

    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(supervise("it", work, log=get_log("test")), name="it")
        await asyncio.sleep(300)
        task.cancel()
    assert starts[6] - starts[5] < 201


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(0, 1.0), (1, 1.0), (2, 2.0), (4, 8.0), (9, 60.0), (10**9, 60.0)], ids=str
)
async def test_delays_double_up_to_the_most(attempt: int, seconds: float) -> None:
    """And never overflow."""
    assert Backoff(first=1.0, most=60.0).delay(attempt) == seconds


async def test_jitter_stays_within_its_share() -> None:
    """Both ways."""
    chance = random.Random(1)
    delays = [Backoff(first=10.0, most=60.0, jitter=0.3).delay(1, chance) for _ in range(200)]
    assert 7.0 <= min(delays) < 8.0
    assert 12.0 < max(delays) <= 13.0


async def test_what_failed_in_an_outage_is_tried_as_soon_as_one_key_goes_well() -> None:
    """One is tried every second; the others need not wait for delays that have grown to a minute."""
    ends_at = 100.0

    async def work(key: str) -> None:
        done.append((key, asyncio.get_running_loop().time()))
        if asyncio.get_running_loop().time() < ends_at:
            raise Unreachable("connection refused")

    done: list[tuple[str, float]] = []
    keys = [f"k{number}" for number in range(50)]
    async with consuming(work) as (queue, _):
        for key in keys:
            queue.add(key)
        await asyncio.sleep(ends_at - 0.5)
        tried = [at for _, at in done if at > 60]
        assert max(later - earlier for earlier, later in pairwise(tried)) <= 1.1
        assert len(tried) < 150
        done.clear()
        await asyncio.sleep(2.5)
        assert {key for key, _ in done} == set(keys)


@pytest.mark.parametrize("keys", [1, 3, 100])
@pytest.mark.parametrize("seconds", [12.0, 600.0], ids="{:.0f} s away".format)
async def test_who_is_refused_when_an_outage_ends_waits_as_for_a_refusal(keys: int, seconds: float) -> None:
    """A kube-apiserver answers 403 in its first second, until it knows its roles; what failed before is no reason."""
    knows_roles_at = seconds + 1.5

    async def work(key: str) -> None:
        now = asyncio.get_running_loop().time()
        tried.append((key, now))
        if now < seconds:
            raise Unreachable("connection refused")
        if now < knows_roles_at:
            raise Forbidden(403, "Forbidden", "cannot patch")
        done.append(now)

    tried: list[tuple[str, float]] = []
    done: list[float] = []
    async with consuming(work) as (queue, _):
        for number in range(keys):
            queue.add(str(number))
        await asyncio.sleep(seconds + 60)
    assert len(done) == keys
    assert max(done) < knows_roles_at + 3
    assert len([key for key, at in tried if seconds <= at < knows_roles_at]) <= 20


async def test_who_is_woken_by_one_that_needed_no_answer_waits_as_for_a_refusal_too() -> None:
    """Its Job was deleted meanwhile, say: nobody has asked the server that refuses the others for a second more."""
    ends_at = 600.0

    async def work(key: str) -> None:
        now = asyncio.get_running_loop().time()
        if now < ends_at:
            raise Unreachable("connection refused")
        if key and now < ends_at + 3:
            raise Forbidden(403, "Forbidden", "cannot patch")
        done.append(now)

    done: list[float] = []
    async with consuming(work) as (queue, _):
        for key in ("", "a", "b", "c"):
            queue.add(key)
        await asyncio.sleep(ends_at + 60)
    assert len(done) == 4
    assert max(done) < ends_at + 8


async def test_a_refusal_that_lasts_is_tried_ever_less_often_whatever_fails_in_between() -> None:
    """Of three servers one is away: that must not bring back the shortest delays each time."""
    work = Script(a=[Unreachable("x") if number % 2 else Forbidden(403) for number in range(60)])
    async with consuming(work) as (queue, _):
        queue.add("a")
        await asyncio.sleep(600)
    last = work.times("a")[-6:]
    assert min(later - earlier for earlier, later in pairwise(last)) >= 1


async def test_another_keys_success_is_no_news_for_one_that_is_refused() -> None:
    """Its delay is about itself."""
    work = Script(a=[TooManyRequests(429)] * 12, b=[Unreachable("x")])
    async with consuming(work) as (queue, _):
        queue.add("a")
        await asyncio.sleep(5)
        before = len(work.times("a"))
        queue.add("b")
        await asyncio.sleep(1)
        assert len(work.times("b")) == 2
        assert len(work.times("a")) - before <= 1


async def test_an_outage_is_told_once_a_second_however_many_keys_meet_it(log_lines: Lines) -> None:
    """A line a key and try would bury everything else."""

    async def work(key: str) -> None:
        raise Unreachable("connection refused")

    async with consuming(work) as (queue, _):
        for number in range(200):
            queue.add(f"k{number}")
        await asyncio.sleep(10)
    told = [line for line in log_lines if line["level"] == "warning"]
    assert 8 <= len(told) <= 11


NO_WEBHOOK = ServerFailure(500, "InternalError", 'Internal error occurred: failed calling webhook "x": no endpoints')


@pytest.mark.parametrize(
    ("error", "is_servers", "is_everybodys"),
    [
        pytest.param(Unreachable("connection refused"), True, True, id="no connection"),
        pytest.param(ServerFailure(503), True, True, id="503 of a proxy before it"),
        pytest.param(ServerFailure(504), True, True, id="504 of a proxy before it"),
        pytest.param(OutcomeUnknown("no answer"), True, False, id="no answer: maybe this request takes long"),
        pytest.param(BadAnswer("html"), True, False, id="a page"),
        pytest.param(ServerFailure(503, "ServiceUnavailable", "shutting down"), True, False, id="503"),
        pytest.param(ServerFailure(500), True, False, id="500 without explanation"),
        pytest.param(ServerFailure(500, "ServerTimeout", "try again"), True, False, id="its storage does not answer"),
        pytest.param(ServerFailure(500, "InternalError", "etcdserver: leader changed"), True, False, id="its storage"),
        pytest.param(
            ServerFailure(500, "InternalError", "rpc error: code = Unavailable"),
            True,
            False,
            id="no way to its storage",
        ),
        pytest.param(NO_WEBHOOK, False, False, id="a webhook that fails says something about the key"),
        pytest.param(ServerFailure(500, "InternalError", "no"), False, False, id="an internal error"),
        pytest.param(Forbidden(403, "Forbidden", "quota"), False, False, id="a refusal"),
    ],
)
async def test_which_errors_speak_of_a_server_that_is_away(
    error: KubeError, is_servers: bool, is_everybodys: bool
) -> None:
    """Of any server, for a queue whose lanes are servers; and for one with a backoff that must be upstream's (K2)."""
    assert (is_unwell(error), is_unreachable(error)) == (is_servers, is_everybodys)


async def test_a_key_that_a_webhook_refuses_is_tried_less_and_less_often() -> None:
    """Each second for ever would hammer a server that only says what it thinks of this key."""
    work = Script(a=[NO_WEBHOOK] * 30)
    async with consuming(work) as (queue, _):
        queue.add("a")
        await asyncio.sleep(300)
        gaps = [round(later - earlier, 3) for earlier, later in pairwise(work.times("a"))]
        assert gaps == sorted(gaps)
        assert gaps[-1] == 60


@pytest.mark.parametrize("error", [ServerFailure(503, "ServiceUnavailable"), OutcomeUnknown("no answer"), NO_WEBHOOK])
async def test_where_backoffs_must_be_plain_only_a_server_out_of_reach_is_looked_after(error: KubeError) -> None:
    """K2: the Job controller's keys wait for 1, 2, 4 … 60 s, whatever the server says."""
    work = Script(a=[error] * 30)
    async with consuming(work, is_outage=is_unreachable) as (queue, _):
        queue.add("a")
        await asyncio.sleep(300)
        assert work.times("a")[-1] - work.times("a")[-2] == pytest.approx(60)


async def test_what_was_being_done_is_told_with_the_error(log_lines: Lines) -> None:
    """As upstream chains its errors: the outermost first."""
    error = Forbidden(403, "Forbidden", "no")
    error.add_note("adding uncounted pods to status")
    error.add_note("tracking status")
    async with consuming(Script(a=[error])) as (queue, _):
        queue.add("a")
        await asyncio.sleep(1)
    told = log_lines[0]["error"]
    assert told == "tracking status: adding uncounted pods to status: 403 Forbidden: no"
