"""The board and its streams in virtual time: read once, follow while somebody looks, merge, pace, let go."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from mirror.model.keys import SourceKey
from mirror.model.views import WorkerView
from mirror.page.board import GATHER_SECONDS, LINGER_SECONDS, LOOK_SECONDS, Board
from mirror.page.query import Query
from mirror.page.streams import GAP_SECONDS, HEARTBEAT_SECONDS, LONGEST_SECONDS, SEND_SECONDS, Streams
from mirror.page.table import PAGE_JOBS
from mirror.page.view import View
from mirror.telemetry.logs import get_log
from tests.doubles.clock import LoopClock
from tests.doubles.pretended import NOW, Pretended, job, many, picture

pytestmark = pytest.mark.looptime


class _Clock(LoopClock):
    """The machine's own would begin a bar of the chart during a test now and then, which is one message more."""

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.monotonic())


class House:
    """A board that runs, with its streams."""

    def __init__(self, known: Pretended) -> None:
        self.known = known
        self.leads = True
        self.board = Board(known, is_leading=lambda: self.leads, clock=_Clock())
        self.streams = Streams(self.board, log=get_log("test"))
        self.scope: asyncio.TaskGroup

    def reader(self, of: SourceKey | None = None) -> "Reader":
        """Of the list, or of one Job's page."""
        return Reader(self, lambda: self.board.list_view(Query()) if of is None else self.board.job_view(of))


class Reader:
    """A browser: what it got, and how fast it takes it."""

    def __init__(self, house: House, view: Callable[[], View]) -> None:
        self.messages: list[Any] = []
        self.times: list[float] = []
        self.heartbeats = 0
        self.takes_seconds = 0.0
        self.ended: BaseException | None = None
        self._house = house
        self._view = view
        self.task = house.scope.create_task(self._run(), name="reader")

    async def _run(self) -> None:
        try:
            await self._house.streams.send_to(self._take, self._view)
        except TimeoutError as error:
            self.ended = error

    async def _take(self, message: bytes) -> None:
        await asyncio.sleep(self.takes_seconds)
        assert message.endswith(b"\n\n")
        if message.startswith(b"data: "):
            self.messages.append(json.loads(message[6:]))
            self.times.append(asyncio.get_running_loop().time())
        self.heartbeats += message.startswith(b":")


@asynccontextmanager
async def house_of(known: Pretended) -> AsyncIterator[House]:
    house = House(known)
    async with asyncio.TaskGroup() as house.scope:
        running = house.scope.create_task(house.board.run(), name="board")
        yield house
        house.streams.end()
        await asyncio.sleep(HEARTBEAT_SECONDS + SEND_SECONDS)
        running.cancel()


async def test_a_reader_gets_everything_and_then_what_changes() -> None:
    """A change is there within a second, by itself."""
    async with house_of(picture()) as house:
        reader = house.reader()
        await asyncio.sleep(1)
        house.known.put(job("new", namespace="web", created="2026-11-21T13:00:00Z"))
        await asyncio.sleep(1)
        assert [message.get("whole", False) for message in reader.messages] == [True, False]
        assert reader.messages[1]["lists"]["rows"][0] == "j:web/new"


@pytest.mark.slow
async def test_a_storm_of_changes_is_merged() -> None:
    """Two thousand changes in ten seconds are twenty messages, and the last one is how it is."""
    async with house_of(many(2_000)) as house:
        reader = house.reader()
        await asyncio.sleep(1)
        for number in range(2_000):
            house.known.put(job(f"storm-{number:04d}", created=f"2026-11-21T13:{number // 60:02d}:{number % 60:02d}Z"))
            await asyncio.sleep(0.005)
        await asyncio.sleep(2)
        gaps = [later - earlier for earlier, later in zip(reader.times, reader.times[1:], strict=False)]
        assert min(gaps) >= GAP_SECONDS - 0.01
        assert len(reader.messages) <= 10 / GAP_SECONDS + 4
        assert reader.messages[-1]["lists"]["rows"][0] == "j:default/storm-1999"
        assert all(len(message.get("parts", ())) < PAGE_JOBS + 20 for message in reader.messages)


async def test_a_slow_reader_delays_nobody_and_skips_what_it_missed() -> None:
    """It gets the newest when it is ready for it; nothing queues up for it."""
    async with house_of(picture()) as house:
        slow, quick = house.reader(), house.reader()
        slow.takes_seconds = 5
        for number in range(60):
            house.known.put(job("busy", active=number))
            await asyncio.sleep(1)
        assert len(quick.messages) >= 55
        assert len(slow.messages) <= 12
        await asyncio.sleep(12)
        assert "59 active" in slow.messages[-1]["parts"]["j:default/busy"]


async def test_a_reader_that_takes_nothing_is_let_go() -> None:
    """After ten seconds."""
    async with house_of(picture()) as house:
        reader = house.reader()
        await asyncio.sleep(1)
        reader.takes_seconds = 3600
        house.known.put(job("new"))
        await asyncio.sleep(SEND_SECONDS + 1)
        assert isinstance(reader.ended, TimeoutError)


async def test_a_quiet_stream_shows_that_it_lives() -> None:
    """Proxies close what is silent."""
    async with house_of(picture()) as house:
        reader = house.reader()
        await asyncio.sleep(4 * HEARTBEAT_SECONDS + 2)
        assert (len(reader.messages), reader.heartbeats) == (1, 4)


@pytest.mark.slow
async def test_no_stream_lasts_for_ever() -> None:
    """Whose login has ended at the proxy does not get in again."""
    async with house_of(picture()) as house:
        reader = house.reader()
        await asyncio.sleep(LONGEST_SECONDS + HEARTBEAT_SECONDS)
        house.known.put(job("new"))
        await asyncio.sleep(1)
        assert reader.task.done()


async def test_nobody_looks_and_nothing_is_read() -> None:
    """Before the first look, and half a minute after the last, the page costs nothing."""
    async with house_of(many(50)) as house:
        house.known.put(job("a"))
        await asyncio.sleep(60)
        assert (house.known.read, house.known.readers) == (0, 0)

        reader = house.reader()
        await asyncio.sleep(1)
        reader.task.cancel()
        await asyncio.sleep(LINGER_SECONDS + LOOK_SECONDS + 1)
        read = house.known.read
        house.known.put(job("b"))
        await asyncio.sleep(60)
        assert (house.known.read - read, house.known.readers) == (0, 0)

        again = house.reader()
        await asyncio.sleep(1)
        assert "j:default/b" in again.messages[0]["lists"]["rows"]


async def test_many_readers_share_one_follower() -> None:
    """Jobs are read once, however many look."""
    async with house_of(many(500)) as house:
        readers = [house.reader() for _ in range(10)]
        await asyncio.sleep(1)
        assert all(len(reader.messages) == 1 for reader in readers)
        assert (house.known.read, house.known.readers) == (500, 1)


async def test_what_changes_while_everything_is_read_is_not_missed() -> None:
    """The changes are asked for before the first Job is read, which is done in slices."""
    async with house_of(many(5_000)) as house:
        reader = house.reader()
        while house.known.read < 1_000:  # noqa: ASYNC110 - in the middle of it
            await asyncio.sleep(0)
        first = next(iter(house.known.by_key.values()))
        house.known.put(msgspec.structs.replace(first, because="while it was read"))
        house.known.drop("team-1", "job-00001")
        await asyncio.sleep(GATHER_SECONDS + 2 * GAP_SECONDS)
        rows = reader.messages[-1]
        assert "while it was read" in rows["parts"]["j:team-0/job-00000"]
        assert "j:team-1/job-00001" not in rows["lists"]["rows"]


async def test_who_leads_is_seen_soon_though_nobody_tells() -> None:
    """Leading begins and ends without any Job's change."""
    async with house_of(picture()) as house:
        reader = house.reader()
        await asyncio.sleep(1)
        house.leads = False
        await asyncio.sleep(LOOK_SECONDS + GAP_SECONDS)
        assert set(reader.messages[-1]["parts"]) == {"role"}


async def test_who_follows_a_worker_of_several_managers_is_seen_soon_though_nobody_tells() -> None:
    """A slot has moved: the workers' lines, their Jobs, and what a Job's page says of who knows more."""
    async with house_of(Pretended()) as house:
        key = SourceKey("Job", "default", "there")
        house.known.put_worker(WorkerView(name="east", state="Connected", is_elsewhere=True))
        house.known.put(job("there"))
        house.known.elsewhere[key] = "Another manager (one) follows worker east."
        board, page = house.reader(), house.reader(key)
        await asyncio.sleep(1)
        house.known.owners, house.known.elsewhere[key] = "two", "Another manager (two) follows worker east."
        await asyncio.sleep(LOOK_SECONDS + GAP_SECONDS)
        assert "(two)" in page.messages[-1]["parts"]["elsewhere"]
        assert len(board.messages) == 1

        house.known.owners, house.known.elsewhere[key] = "us", ""
        house.known.by_name["east"] = WorkerView(name="east", state="Connected", version="v1.36.0")
        house.known.by_key[key] = job("there", lag_seconds=30.0)
        await asyncio.sleep(LOOK_SECONDS + GAP_SECONDS)
        assert "(two)" not in page.messages[-1]["parts"]["elsewhere"]
        assert {"w:east", "j:default/there"} <= set(board.messages[-1]["parts"])


async def test_a_status_that_stays_away_is_shown_as_late() -> None:
    """Its lag grows without any change of the Job."""
    async with house_of(Pretended()) as house:
        house.known.put(job("late", lag_seconds=0.1))
        reader = house.reader()
        await asyncio.sleep(1)
        house.known.by_key[SourceKey("Job", "default", "late")] = job("late", lag_seconds=30.0)
        await asyncio.sleep(LOOK_SECONDS + GAP_SECONDS)
        assert "status lag 30s" in reader.messages[-1]["parts"]["j:default/late"]


async def test_a_lost_worker_changes_what_is_said_of_its_jobs() -> None:
    """Only the worker's change is told; its Jobs are read again."""
    async with house_of(Pretended()) as house:
        house.known.put_worker(WorkerView(name="east", state="Connected"))
        house.known.put(job("there"))
        reader = house.reader()
        await asyncio.sleep(1)
        house.known.by_key[SourceKey("Job", "default", "there")] = job("there", because="worker east is unreachable")
        house.known.put_worker(WorkerView(name="east", state="Lost"))
        await asyncio.sleep(1)
        assert {"w:east", "j:default/there"} <= set(reader.messages[-1]["parts"])


async def test_the_end_ends_all_streams_at_once() -> None:
    """A manager that stops does not wait for browsers."""
    async with house_of(picture()) as house:
        readers = [house.reader() for _ in range(3)]
        await asyncio.sleep(1)
        house.streams.end()
        await asyncio.sleep(GAP_SECONDS)
        assert all(reader.task.done() for reader in readers)
