"""Server-sent events: each browser gets its page once, and then what changes on it, no faster than it can take.

A stream works out what is new only when it is about to send, from what is known then: what changed in between is
merged, a slow browser delays nobody and fills no memory, and one that takes nothing at all is let go. ``serving``
opens streams. Not here: what a page shows (``view``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from aiohttp import web

from mirror.page.board import Board
from mirror.page.pace import PAGES_BURST_SECONDS, PAGES_SHARE, Pace
from mirror.page.view import Sent, View
from mirror.telemetry.logs import Log

MOST_STREAMS = 64
GAP_SECONDS = 0.25
"""Between two messages to one browser, at least."""
CPU_SHARE = 0.08
"""Of one core, for all streams together; when they cost more for long, gaps grow."""
CPU_BURST_SECONDS = 0.25
"""Of time on a core: what may be spent at once after it was quiet."""
HEARTBEAT_SECONDS = 15.0
"""So that proxies keep a quiet stream open, and we notice who has gone."""
SEND_SECONDS = 10.0
"""Within which a browser takes a message, or is let go."""
LONGEST_SECONDS = 3600.0
"""Of one stream. The browser comes back by itself; one whose login has ended at a proxy does not."""

RENEW_SECONDS = 30.0
"""How long what somebody may see is taken for granted, but for the time until the next heartbeat."""

Renew = Callable[[], Awaitable[bool]]
Write = Callable[[bytes], Awaitable[None]]

_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
_HEARTBEAT = b": still here\n\n"
_END = b"event: login\ndata: {}\n\n"
_RETRY = b"retry: 2000\n\n"


class TooMany(Exception):
    """As many look as may."""


class Streams:
    """Those who look now."""

    def __init__(self, board: Board, *, log: Log) -> None:
        self._board = board
        self._log = log
        self._open = 0
        self._is_ending = False
        self._pace = Pace(CPU_SHARE, CPU_BURST_SECONDS)
        self._opening = Pace(PAGES_SHARE, PAGES_BURST_SECONDS)
        """Of first messages, before which nothing was paid for: who opens stream after stream gets a share, too."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self._open

    def end(self) -> None:
        """End all streams now."""
        self._is_ending = True
        self._board.release()

    async def serve(
        self, request: web.Request, view: Callable[[], View], renew: Renew | None = None
    ) -> web.StreamResponse:
        """Send one page's news until its reader goes, or may look no more.

        Args:
            request: whose answer it is.
            view: what they see, now.
            renew: asks again what they may see, as ``view`` then shows; says whether they may look at all.

        Raises:
            TooMany: there is no room for another.
        """
        response = web.StreamResponse(headers=_HEADERS)
        try:
            with self._room():
                await response.prepare(request)
                await self.send_to(response.write, view, renew)
        except (TimeoutError, ConnectionError) as error:
            self._log.debug("a reader of the page is gone", error=error)
            if request.transport is not None:
                request.transport.abort()
        return response

    async def send_to(self, write: Write, view: Callable[[], View], renew: Renew | None = None) -> None:
        """Serve one stream to any writer."""
        loop, sent = asyncio.get_running_loop(), Sent()
        asked = loop.time()
        end = loop.time() + LONGEST_SECONDS
        with self._board.looking():
            await _send(write, _RETRY)
            await self._board.wait_until_ready()
            await asyncio.sleep(self._opening.owed(loop.time()))
            told, is_first = loop.time(), True
            while not self._is_ending and loop.time() < end:
                await self._board.wait_until_ready()
                if renew is not None and loop.time() - asked >= RENEW_SECONDS:
                    if not await renew():
                        await _send(write, _END)
                        return
                    asked = loop.time()
                change = self._board.next_change  # got first: what changes while we send is not missed
                began = time.thread_time()
                news = sent.news(view())
                cost = time.thread_time() - began
                if is_first:
                    self._opening.paid(cost, loop.time())
                    is_first = False
                if news is not None or loop.time() - told >= HEARTBEAT_SECONDS:
                    await _send(write, _HEARTBEAT if news is None else b"data: " + news + b"\n\n")
                    told = loop.time()
                await asyncio.sleep(max(GAP_SECONDS, self._pace.paid(cost, loop.time())))
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(told + HEARTBEAT_SECONDS):
                        await change.wait()

    @contextmanager
    def _room(self) -> Iterator[None]:
        if self._is_ending or self._open >= MOST_STREAMS:
            raise TooMany
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


async def _send(write: Write, message: bytes) -> None:
    async with asyncio.timeout(SEND_SECONDS):
        await write(message)
