"""Who asks for page after page gets a share of a core and no more (D29), in virtual time."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from mirror.page import pace, streams
from mirror.page.board import Board, NotReady
from mirror.page.pace import MOST_WAITING, MOST_WAITING_OF_ONE, PAGES_BURST_SECONDS, PAGES_SHARE, Turns
from mirror.page.query import Query
from mirror.page.streams import Streams
from mirror.page.view import View
from mirror.page.visiting import Refused
from mirror.telemetry.logs import get_log
from tests.doubles.clock import LoopClock
from tests.doubles.pretended import picture

pytestmark = pytest.mark.looptime

COST = 0.125


class Core:
    """The time on a core, which only pages take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self.made = 0
        clock = SimpleNamespace(thread_time=lambda: self.seconds, monotonic=time.monotonic)
        for module in (pace, streams):
            monkeypatch.setattr(module, "time", clock)

    def page(self) -> str:
        self.seconds += COST
        self.made += 1
        return "a page"


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    return Core(monkeypatch)


async def test_pages_take_a_share_of_a_core(core: Core) -> None:
    """A few are made at once; who goes on asking waits."""
    loop, turns = asyncio.get_running_loop(), Turns()
    began = loop.time()
    for _ in range(round(PAGES_BURST_SECONDS / COST)):
        await turns.make(core.page, "")
    assert loop.time() == began
    for _ in range(40):
        assert await turns.make(core.page, "") == "a page"
    assert loop.time() - began == pytest.approx(40 * COST / PAGES_SHARE, abs=COST / PAGES_SHARE)


async def test_nobody_waits_for_ever_and_nobody_takes_all_places(core: Core) -> None:
    """Who is refused may try again; what was waited for in vain costs nothing."""
    turns = Turns()
    await asyncio.gather(*(turns.make(core.page, "") for _ in range(round(PAGES_BURST_SECONDS / COST) + 1)))
    core.made = 0
    many = [turns.make(core.page, "ann") for _ in range(100)] + [turns.make(core.page, "bob") for _ in range(3)]
    found = await asyncio.gather(*many, return_exceptions=True)
    assert sum(one == "a page" for one in found[:100]) <= MOST_WAITING_OF_ONE + 1
    assert found[100:] == ["a page"] * 3
    strangers = await asyncio.gather(*(turns.make(core.page, "") for _ in range(300)), return_exceptions=True)
    refused = [one for one in strangers if isinstance(one, Refused)]
    assert {one.code for one in refused} == {429}
    assert len(strangers) - len(refused) == core.made - sum(one == "a page" for one in found) <= MOST_WAITING + 1


async def test_a_page_that_fails_or_is_not_waited_for_keeps_no_other_from_its_turn(core: Core) -> None:
    """The next one is made."""
    turns = Turns()

    def broken() -> str:
        raise NotReady

    with pytest.raises(NotReady):
        await turns.make(broken, "")
    core.seconds = 0.0
    for _ in range(round(PAGES_BURST_SECONDS / COST) + 1):
        await turns.make(core.page, "")
    waiting = asyncio.create_task(turns.make(core.page, ""))
    await asyncio.sleep(0)
    waiting.cancel()
    assert await turns.make(core.page, "") == "a page"


async def test_who_opens_stream_after_stream_gets_no_more(core: Core) -> None:
    """The first message is a whole page."""
    known = picture()
    board = Board(known, is_leading=lambda: True, clock=LoopClock())
    opened, loop = Streams(board, log=get_log("test")), asyncio.get_running_loop()
    first = asyncio.Event()

    def view() -> View:
        core.page()
        return board.list_view(Query())

    async def take(message: bytes) -> None:
        if message.startswith(b"data: "):
            first.set()

    running = asyncio.create_task(board.run())
    with board.looking():
        await board.wait_until_ready()
        began = loop.time()
        for _ in range(40):
            first.clear()
            reading = asyncio.create_task(opened.send_to(take, view))
            await first.wait()
            reading.cancel()
        assert loop.time() - began >= (40 * COST - PAGES_BURST_SECONDS) / PAGES_SHARE - COST / PAGES_SHARE
    running.cancel()
