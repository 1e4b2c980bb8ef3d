"""One connection of a client: requests are read, handed on one at a time, and answered in order.

``web`` makes one for each client and looks after all of them: it calls ``check_time`` about once a second. What a
request means is decided by the handler; a defect there ends this connection and no other.

A reader that is slower than its stream costs a bounded amount of memory: nothing is taken from the stream while the
socket is full, and a reader that takes nothing for ``STALLED_SECONDS`` is cut off.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, Protocol, cast

from mirror.embedded.apiserver.apimachinery.errors import StatusError, failure
from mirror.embedded.apiserver.messages import Answer, Request, Response, Stream, User
from mirror.embedded.faults.kinds import Dropped
from mirror.embedded.http import writing
from mirror.embedded.http.reading import Head, Malformed, Reader, Received
from mirror.embedded.http.streaming import next_piece, pause_seconds
from mirror.telemetry.logs import get_module_log

REQUEST_SECONDS = 60.0
"""From the first byte of a request to its last."""
IDLE_SECONDS = 120.0
"""Between requests; longer than clients keep idle connections, so that no write meets a closing one."""
STALLED_SECONDS = 30.0
LINGER_SECONDS = 1.0
"""How long what a client still sends is thrown away after the last answer, so that it can read that answer."""
_LARGE = 64 << 10
_MOST_BUFFERED = 256 << 10
"""Bytes of answers that wait for the client, before it is waited for."""
_MOST_AHEAD = 64 << 10
"""Bytes that a client may send before its last request is answered."""
_UPGRADES = ("websocket", "spdy/")
_NO_UPGRADES = "this server runs no containers to talk to: exec, attach, port-forward and WebSockets are not served"

_log = get_module_log("web")


class Handler(Protocol):
    """What answers: ``apiserver.server.ApiServer``."""

    async def handle(self, request: Request) -> Answer:
        """The answer to one request; refusals are answers too."""
        ...


class ConnectionServer(Protocol):
    """What the connections of one server share."""

    handler: Handler
    date: bytes
    """The Date header, line end included."""
    streams: int
    """How many of them are streaming."""

    def opened(self, connection: Connection, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Keep this connection and run its work; None: there are too many."""
        ...

    def closed(self, connection: Connection) -> None:
        """Forget it."""
        ...

    def user_of(self, transport: asyncio.Transport) -> User | None:
        """Whom the client's certificate names."""
        ...


class Connection(asyncio.Protocol):
    """A client.

    Invariant: ``_deadline`` is when the client will have been too slow, and infinite while it is we who are waited for.
    """

    def __init__(self, server: ConnectionServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._reader = Reader()
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._task: asyncio.Task[None] | None = None
        self._user: User | None = None
        self._peer = ""
        self._deadline = math.inf
        self._next: asyncio.Future[Received | Malformed | None] | None = None
        """What the work waits for; None while it is busy. A result of None: no more requests."""
        self._has_begun = False
        """Some of the next request has come."""
        self._has_continued = False
        """The client was told to go on with its body."""
        self._is_ending = False
        """No more requests are taken; what arrives is thrown away."""
        self._is_reading_paused = False
        self._drained: asyncio.Future[None] | None = None
        """What the work waits for while the socket is full."""
        self._is_full = False
        self._left_bytes = 0
        """How much was not sent yet when the client was last looked at."""
        self._is_streaming = False
        self._is_chunked = True
        self._pending: list[bytes] = []
        """Pieces of the stream that were not sent yet."""
        self._flushed_at = -math.inf

    # What the event loop says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)
        transport.set_write_buffer_limits(high=_MOST_BUFFERED)
        peer = transport.get_extra_info("peername")
        self._peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else ""
        self._user = self._server.user_of(transport)
        work = self._work()
        self._task = self._server.opened(self, work)
        if self._task is None:
            work.close()
            refusal = StatusError(
                failure(429, "TooManyRequests", "there are too many connections, please try again later")
            )
            self._send(writing.refusal_response(refusal), closes=True)
            transport.close()

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        self._reader.feed(data)
        if self._next is not None:
            self._look_for_request()
        elif self._reader.held_bytes > _MOST_AHEAD and not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()

    def connection_lost(self, _: Exception | None) -> None:
        self._is_ending = True
        self._server.closed(self)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # What ``web`` says.

    def check_time(self, now: float) -> None:
        """End the connection if its client has been too slow."""
        if now < self._deadline:
            return
        if self._drained is not None and (left := self._transport.get_write_buffer_size()) < self._left_bytes:
            self._left_bytes, self._deadline = left, now + STALLED_SECONDS
        elif self._next is not None and not self._next.done() and self._has_begun:
            self._deadline = math.inf
            refusal = StatusError(failure(408, "Timeout", "the request did not come in time"))
            self._next.set_result(Malformed(refusal))
        else:
            self._transport.abort()

    def finish(self) -> None:
        """Take no more requests: end a stream now, a request once it is answered."""
        self._is_ending = True
        if self._next is not None and not self._next.done():
            self._next.set_result(None)
        elif self._is_streaming and self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    # Its work.

    async def _work(self) -> None:
        try:
            while (received := await self._received()) is not None:
                if isinstance(received, Malformed):
                    self._send(writing.refusal_response(received.refusal), closes=True)
                    await self._linger()
                    break
                if not await self._serve(received) or self._is_ending:
                    break
        except (Dropped, ConnectionError):  # a fault: the client shall see that nobody answers
            self._transport.abort()
        except Exception as error:  # noqa: BLE001 - a defect must not end everybody's connections
            _log.error("connection failed", error=error, exc_info=error, peer=self._peer)
            self._transport.abort()
        finally:
            self._is_ending = True
            self._deadline = self._loop.time() + STALLED_SECONDS
            self._transport.close()

    async def _received(self) -> Received | Malformed | None:
        """The next request, when it is there."""
        self._next = self._loop.create_future()
        self._has_begun = self._has_continued = False
        self._deadline = self._loop.time() + IDLE_SECONDS
        if self._reader.held_bytes:
            self._look_for_request()
        self._resume_reading()
        try:
            return await self._next
        finally:
            self._next = None
            self._deadline = math.inf

    def _look_for_request(self) -> None:
        """Tell the work if one is there as a whole."""
        waiting = self._next
        if waiting is None or waiting.done():
            return
        try:
            received = self._reader.next_request()
        except Malformed as malformed:
            waiting.set_result(malformed)
            return
        if received is not None:
            waiting.set_result(received)
            return
        if not self._has_begun:
            self._has_begun = True
            self._deadline = self._loop.time() + REQUEST_SECONDS
        if self._reader.expects_continue and not self._has_continued:
            self._has_continued = True
            self._transport.write(writing.CONTINUE)

    async def _serve(self, received: Received) -> bool:
        """Answer a request; whether there may be another."""
        head = received.head
        if head.headers.get("upgrade", "").lower().startswith(_UPGRADES):
            self._send(writing.refusal_response(StatusError(failure(501, "", _NO_UPGRADES))), closes=True)
            return False
        request = Request(head.method, head.path, head.query, head.headers, received.body, self._user, self._peer)
        answer = await self._server.handler.handle(request)
        if isinstance(answer, Stream):
            return await self._stream(answer, head)
        closes = self._is_ending or not head.is_kept_alive
        self._send(answer, is_head=head.method == "HEAD", closes=closes)
        if self._is_full:
            await self._until_drained()
        return not closes

    def _send(self, answer: Response, *, closes: bool, is_head: bool = False) -> None:
        self._transport.write(writing.whole(answer, date=self._server.date, is_head=is_head, closes=closes))

    async def _stream(self, answer: Stream, head: Head) -> bool:
        """Send all of it; whether there may be another request."""
        self._is_chunked = head.is_modern
        closes = self._is_ending or not (head.is_kept_alive and head.is_modern)
        date, is_chunked = self._server.date, self._is_chunked
        self._transport.write(writing.stream_head(answer, date=date, is_chunked=is_chunked, closes=closes))
        self._is_streaming = True
        self._server.streams += 1
        try:
            async with aclosing(answer.pieces) as pieces:
                if head.method != "HEAD":
                    await self._send_pieces(pieces)
        finally:
            self._is_streaming = False
            self._server.streams -= 1
        return not closes

    async def _send_pieces(self, pieces: AsyncGenerator[bytes, None]) -> None:
        """Until they end, or until we end it by cancelling; the last chunk says that it was not the network."""
        size = 0
        try:
            while (piece := await next_piece(pieces, self._flush)) is not None:
                if self._is_full:
                    await self._until_drained()
                if piece and not self._pending:
                    size = 0
                    pause = self._flushed_at + pause_seconds(self._server.streams) - self._loop.time()
                    if pause > 0:
                        await asyncio.sleep(pause)
                self._pending.append(piece)
                size += len(piece)
                if not piece or size >= _LARGE:
                    self._flush()
                    await asyncio.sleep(0)
            self._end_stream()
        except asyncio.CancelledError:
            if not self._transport.is_closing():
                self._end_stream()
            raise

    def _end_stream(self) -> None:
        self._flush()
        if self._is_chunked:
            self._transport.write(writing.LAST_CHUNK)

    def _flush(self) -> None:
        if self._pending:
            pieces, self._pending = self._pending, []
            self._flushed_at = self._loop.time()
            self._transport.write(writing.chunk(pieces) if self._is_chunked else b"".join(pieces))

    async def _until_drained(self) -> None:
        """Until the client has taken what it was sent."""
        self._drained = self._loop.create_future()
        self._left_bytes = self._transport.get_write_buffer_size()
        self._deadline = self._loop.time() + STALLED_SECONDS
        try:
            await self._drained
        finally:
            self._drained = None
            self._deadline = math.inf

    async def _linger(self) -> None:
        """Throw away what still comes: a client that is cut off while it sends loses the answer."""
        self._is_ending = True
        self._resume_reading()
        await asyncio.sleep(LINGER_SECONDS)

    def _resume_reading(self) -> None:
        if self._is_reading_paused:
            self._is_reading_paused = False
            self._transport.resume_reading()
