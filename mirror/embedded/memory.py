"""A client's transport to an API server in this process: no sockets, no threads, and virtual time if the loop has it.

What goes wrong on the way is decided by the server's hook (``faults``); here it becomes what a client of a real network
would meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import format_datetime
from functools import lru_cache
from types import TracebackType
from typing import Protocol
from urllib.parse import urlencode

from multidict import CIMultiDict

from mirror.embedded.apiserver.messages import ADMIN, Request, Response, Stream, User
from mirror.embedded.apiserver.messages import Answer as Answered
from mirror.embedded.faults.kinds import Dropped
from mirror.kube.client import Client, Observer
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.errors import BadAnswer, OutcomeUnknown, Unreachable
from mirror.kube.limits import Limiter
from mirror.kube.permits import WritePermit
from mirror.kube.requests import Request as Asked
from mirror.kube.transport import Answer, Opened
from mirror.runtime.clock import Clock

CLOSED = "the client was closed"

_query_of = lru_cache(1024)(urlencode)


class Server(Protocol):
    """What answers: an ``ApiServer``."""

    async def handle(self, request: Request) -> Answered: ...


@dataclass(eq=False, slots=True)
class Wire:
    """Where a server is found; None: nobody listens there (now)."""

    name: str
    clock: Clock
    """The server's."""
    server: Server | None = None


class MemoryTransport:
    """``kube.transport.Transport`` over ``ApiServer.handle``."""

    def __init__(self, wire: Wire, *, user: User | None = ADMIN, peer: str = "") -> None:
        """``user``: who sends the requests, as if by a client certificate; None: as the headers say."""
        self._wire = wire
        self._user = user
        self._peer = peer
        self._is_closed = False
        self._under_way: set[asyncio.Timeout] = set()
        self._headers: CIMultiDict[str] | None = None
        self._lowered: Mapping[str, str] = {}
        self._date = ("", -1)

    async def exchange(self, request: Asked, headers: CIMultiDict[str], most_bytes: int) -> Answer:
        async with _OverWire(self._under_way):
            answered = await self._ask(request, headers)
            body = answered.body if isinstance(answered, Response) else await _whole(answered, most_bytes)
        if len(body) > most_bytes:
            raise BadAnswer(f"an answer of more than {most_bytes} bytes")
        return Answer(answered.status, self._head(answered), body)

    @asynccontextmanager
    async def open(self, request: Asked, headers: CIMultiDict[str]) -> AsyncIterator[Opened]:
        async with _OverWire(self._under_way):
            answered = await self._ask(request, headers)
        opened = _Coming(answered, self._head(answered), self._under_way)
        try:
            yield opened
        finally:
            await opened.close()

    async def reconnect(self) -> None:
        """Nothing is kept that could be stale."""

    async def close(self) -> None:
        """Requests under way fail, later ones find nothing."""
        self._is_closed = True
        now = asyncio.get_running_loop().time()
        for limit in self._under_way:
            if not limit.expired():
                limit.reschedule(now)

    async def _ask(self, request: Asked, headers: CIMultiDict[str]) -> Answered:
        if self._is_closed:
            raise Unreachable("the client is closed")
        await asyncio.sleep(0)  # as with a socket, others get their turn
        server = self._wire.server
        if server is None:
            raise Unreachable("connection refused")
        return await server.handle(
            Request(
                method=request.method,
                path=request.path,
                query=_query_of(request.query) if request.query else "",
                headers=self._lower(headers),
                body=request.body or b"",
                user=self._user,
                peer=self._peer,
            )
        )

    def _lower(self, headers: CIMultiDict[str]) -> Mapping[str, str]:
        """The headers with lower-case names; a client sends the same ones again and again."""
        if headers is not self._headers:
            lowered: dict[str, str] = {}
            for name, value in headers.items():
                name = name.lower()
                lowered[name] = f"{lowered[name]},{value}" if name in lowered else value
            self._headers, self._lowered = headers, lowered
        return self._lowered

    def _head(self, answered: Answered) -> CIMultiDict[str]:
        head = CIMultiDict({"Content-Type": answered.content_type, "Date": self._now()})
        head.extend(answered.headers)
        return head

    def _now(self) -> str:
        """The server's time as a Date header, made anew once a second."""
        now = self._wire.clock.now()
        text, second = self._date
        if second != int(now.timestamp()):
            text = format_datetime(now.replace(microsecond=0), usegmt=True)
            self._date = text, int(now.timestamp())
        return text


class _OverWire:
    """A context in which something comes over the wire: errors are raised as a client of a network would see them.

    ``under_way`` is where a transport that is closed finds what it has to end.
    """

    __slots__ = ("_limit", "_under_way")

    def __init__(self, under_way: set[asyncio.Timeout]) -> None:
        self._under_way = under_way
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        self._under_way.add(self._limit)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._under_way.discard(self._limit)
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            raise OutcomeUnknown(CLOSED) from None
        if isinstance(error, Dropped):
            raise (OutcomeUnknown if error.was_sent else Unreachable)(str(error)) from None


class _Coming:
    """``kube.transport.Opened``: an answer whose body is still coming."""

    def __init__(self, answered: Answered, headers: Mapping[str, str], under_way: set[asyncio.Timeout]) -> None:
        self._answered = answered
        self._under_way = under_way
        self._is_over = False
        self.status = answered.status
        self.headers = headers

    async def chunk(self) -> bytes:
        if self._is_over:
            return b""
        answered = self._answered
        if isinstance(answered, Response):
            self._is_over = True
            return answered.body
        async with _OverWire(self._under_way):
            async for piece in answered.pieces:
                if piece:
                    return piece
        self._is_over = True
        return b""

    async def close(self) -> None:
        """The reader has left."""
        self._is_over = True
        if isinstance(self._answered, Stream):
            await self._answered.pieces.aclose()


async def _whole(answered: Stream, most_bytes: int) -> bytes:
    """A stream that is read like any answer."""
    body = bytearray()
    try:
        async for piece in answered.pieces:
            body += piece
            if len(body) > most_bytes:
                break
    finally:
        await answered.pieces.aclose()
    return bytes(body)


def client_of(  # noqa: PLR0913 - options, each with a default
    wire: Wire,
    name: str = "",
    *,
    user: User | None = ADMIN,
    peer: str = "",
    token: str = "",
    observer: Observer | None = None,
    clock: Clock | None = None,
    permit: WritePermit | None = None,
) -> Client:
    """A client of that server, without limits; call it in the running loop.

    Args:
        wire: the way to it.
        name: in metrics and logs; the wire's name by default.
        user: who sends the requests; None: by ``token``, or unknown.
        peer: what its requests are known by to faults.
        token: a bearer token.
        observer: told of each request.
        clock: the client's; the server's by default.
        permit: what its writes look at, where a Lease decides who may send them.
    """
    own = clock or wire.clock
    return Client(
        name or wire.name,
        Credentials(Endpoint(f"memory://{wire.name}", None), Identity(f"Bearer {token}" if token else "")),
        Limiter(0, 1, asyncio.get_running_loop().time),
        observer,
        transport=MemoryTransport(wire, user=user, peer=peer),
        wall=lambda: own.now().timestamp(),
        permit=permit,
    )
