"""HTTP to one cluster over aiohttp: connection pools, socket options, and failures by what they prove.

``client`` is the only caller; it adds limits, credentials, deadlines and the meaning of answers. Tests put an in-memory
implementation of ``Transport`` in this one's place.
"""

from __future__ import annotations

import asyncio
import errno
import io
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import lru_cache
from typing import NamedTuple, Protocol
from urllib.parse import urlencode

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.tracing import Trace
from multidict import CIMultiDict
from yarl import URL

from mirror.kube.amounts import InFlight
from mirror.kube.bodies import is_readable, read_body
from mirror.kube.credentials import Endpoint
from mirror.kube.errors import BadAnswer, KubeError, NotLeading, OutcomeUnknown, Unreachable
from mirror.kube.failure_words import http_words
from mirror.kube.permits import WritePermit
from mirror.kube.requests import Request
from mirror.kube.resolver import ThreadPerLookup

CLIENT_CLOSED = "the client was closed"

_MOST_CALLS = 64
_MOST_URGENT_CALLS = 4
_READ_BYTES = 2**21
"""The default makes the reader stop and go at every 64 KiB of a list."""
_KEEPALIVE_SECONDS = 30.0
"""Less than the idle timeouts of API servers (90 s) and load balancers: a write must not meet a closing connection."""
_CONNECT_SHARE = 0.8
_LONGEST_CONNECT_SECONDS = 10.0
_LARGE_BODY_BYTES = 2**20
_PIECE_BYTES = 2**16
_NOT_CONNECTED = "waiting for a connection"


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Opened(Protocol):
    """An answer whose body is still coming."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def chunk(self) -> bytes:
        """The next bytes, as soon as there are any; empty at the end."""
        ...


class Transport(Protocol):
    """What a client sends its requests through."""

    async def exchange(self, request: Request, headers: CIMultiDict[str], most_bytes: int) -> Answer:
        """Send, and read the whole answer; if it is cancelled, ``was_connecting`` knows whether anything was sent.

        Raises:
            Unreachable: nothing was sent.
            OutcomeUnknown: it was sent, and no whole answer came.
            BadAnswer: what came is not HTTP, or is compressed without leave.
            TooLarge: it is longer than ``most_bytes``, or all answers that are being read are too much together.
        """
        ...

    def open(self, request: Request, headers: CIMultiDict[str]) -> AbstractAsyncContextManager[Opened]:
        """Send, and hand out the answer while it comes; raises as ``exchange``, and so does ``chunk``."""
        ...

    async def reconnect(self) -> None:
        """Let no later request use a connection that exists now."""
        ...

    async def close(self) -> None: ...


class HttpTransport:
    """The real thing.

    Calls, watches and urgent calls have a pool each: were it one, as many watches as it has places would block every
    call for ever, and slow answers to calls would cost a leader its lease.
    """

    def __init__(self, endpoint: Endpoint, *, permit: WritePermit | None = None) -> None:
        self._endpoint = endpoint
        self._permit = permit
        self._proxy = URL(endpoint.proxy) if endpoint.proxy else None
        self._failures = _Failures(endpoint.peer)
        self._path_prefix = URL(endpoint.server, encoded=True).raw_path.rstrip("/")
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}
        self._in_flight = InFlight()
        self._open_pools()
        # The pools of before the last reconnect, where calls and watches may still be under way.
        self._retired: list[aiohttp.ClientSession] = []
        # What is being read, by pool. aiohttp does not tell a reader that its pool was closed: it would wait for ever.
        self._reading: dict[aiohttp.ClientSession, set[aiohttp.ClientResponse]] = {}

    async def exchange(self, request: Request, headers: CIMultiDict[str], most_bytes: int) -> Answer:
        with self._failures:
            pool = self._urgent if request.urgent else self._calls
            response = await self._start(pool, request, headers)
            with self._being_read(pool, response), self._in_flight.share() as share:
                return Answer(response.status, response.headers, await read_body(response, most_bytes, share))

    @asynccontextmanager
    async def open(self, request: Request, headers: CIMultiDict[str]) -> AsyncIterator[Opened]:
        pool = self._watches
        with self._failures:
            response = await self._start(pool, request, headers)
        with self._being_read(pool, response):
            yield _OpenedResponse(response, self._failures)

    async def reconnect(self) -> None:
        outdated = self._retired
        self._retired = self._pools()
        self._open_pools()
        await self._end(outdated)

    async def close(self) -> None:
        """Close every connection and wait until the sockets are gone; requests under way fail."""
        self._failures.closed = True
        await self._end([*self._pools(), *self._retired])
        self._retired.clear()
        # The loop closes a transport's socket in its next turn.
        await asyncio.sleep(0)

    def _open_pools(self) -> None:
        self._calls = self._new_session(limit=_MOST_CALLS)
        self._watches = self._new_session(limit=0)
        self._urgent = self._new_session(limit=_MOST_URGENT_CALLS)

    def _pools(self) -> list[aiohttp.ClientSession]:
        return [self._calls, self._watches, self._urgent]

    def _being_read(self, pool: aiohttp.ClientSession, response: aiohttp.ClientResponse) -> _Reading:
        return _Reading(self._reading.setdefault(pool, set()), response)

    async def _end(self, pools: list[aiohttp.ClientSession]) -> None:
        """Close pools' connections and fail what is read from them; all of them, even if cancelled meanwhile."""
        async with AsyncExitStack() as stack:
            for pool in pools:
                stack.push_async_callback(pool.close)
                for response in self._reading.pop(pool, ()):
                    response.content.set_exception(aiohttp.ClientConnectionError(CLIENT_CLOSED))

    async def _start(
        self, session: aiohttp.ClientSession, request: Request, headers: CIMultiDict[str]
    ) -> aiohttp.ClientResponse:
        if self._failures.closed:
            raise Unreachable("the client is closed")
        response = await session.request(
            request.method,
            self._url(request),
            data=self._data(request),
            headers=headers,
            allow_redirects=False,
            timeout=self._timeout(request.deadline_seconds),
            proxy=self._proxy,
            server_hostname=self._endpoint.server_hostname,
        )
        if not is_readable(response, may_be_compressed=request.compressed and self._endpoint.compresses):
            response.close()
            raise BadAnswer("the response is compressed in a way that was not accepted")
        return response

    def _data(self, request: Request) -> aiohttp.Payload | io.BytesIO | bytes | None:
        body = request.body
        if self._permit is not None and request.needs_permit:
            return _PermittedBody(body or b"", self._permit)
        return io.BytesIO(body) if body is not None and len(body) >= _LARGE_BODY_BYTES else body

    def _url(self, request: Request) -> URL:
        base = _server_with(self._endpoint.server, request.query)
        return base.with_path(self._path_prefix + request.path, encoded=True, keep_query=True)

    def _timeout(self, deadline_seconds: float) -> aiohttp.ClientTimeout:
        """Connecting ends before the caller's deadline does: what is wrong with it is reported as what it is."""
        found = self._timeouts.get(deadline_seconds)
        if found is None:
            connect = min(_LONGEST_CONNECT_SECONDS, deadline_seconds * _CONNECT_SHARE)
            found = aiohttp.ClientTimeout(total=None, connect=connect, ceil_threshold=float("inf"))
            if len(self._timeouts) < 256:
                self._timeouts[deadline_seconds] = found
        return found

    def _new_session(self, *, limit: int) -> aiohttp.ClientSession:
        connector = _Connector(
            limit=limit,
            ssl=self._endpoint.tls if self._endpoint.tls is not None else True,
            resolver=ThreadPerLookup(),
            keepalive_timeout=_KEEPALIVE_SECONDS,
            socket_factory=self._new_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            trust_env=False,  # else two hops to a thread per request, for ~/.netrc and proxy variables
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BYTES,
            auto_decompress=False,
        )
        # aiohttp would send a GET, PUT or DELETE again by itself when the connection breaks, and a caller whose first
        # PUT had been carried out would be told of a conflict. There is no public switch for it.
        session._retry_connection = False
        return session

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """A socket for an address that was looked up; notices a dead peer within half a minute."""
        family, kind, protocol, _, peer = address
        if self._endpoint.refuse_address is not None:
            why = self._endpoint.refuse_address(str(peer[0]))
            if why is not None:
                raise OSError(errno.EACCES, f"refused to connect: {why}")
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _TCP_OPTIONS:
                made.setsockopt(socket.IPPROTO_TCP, option, value)
        except OSError:
            made.close()
            raise
        return made


class _PermittedBody(aiohttp.Payload):
    """A write's body that looks at the permit when the connection is there, just before the bytes go out (D28).

    The head goes out with the first piece, and a server does nothing before the last one has come: whichever piece is
    held back, the write was certainly not carried out.
    """

    def __init__(self, body: bytes, permit: WritePermit) -> None:
        super().__init__(body)
        self._body = body
        self._size = len(body)
        self._permit = permit

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for start in range(0, max(1, len(self._body)), _PIECE_BYTES):
            self._permit.check()
            await writer.write(self._body[start : start + _PIECE_BYTES])


class _Connector(aiohttp.TCPConnector):
    """Notes in a cancellation that it came before there was a connection."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        try:
            return await super().connect(req, traces, timeout)
        except asyncio.CancelledError as cancelled:
            raise asyncio.CancelledError(_NOT_CONNECTED) from cancelled


def was_connecting(too_late: TimeoutError) -> bool:
    """Whether an ``asyncio.timeout`` that expired during ``exchange`` found it without a connection: nothing was sent.

    Connecting has a shorter limit of its own. After a pause of the event loop both have expired when the loop looks,
    and the outer one wins, so the limits alone do not keep "never sent" and "no answer" apart.
    """
    cancelled = too_late.__cause__
    return isinstance(cancelled, asyncio.CancelledError) and cancelled.args == (_NOT_CONNECTED,)


class _Reading:
    """A context in which a response is among those that are read; it is closed at the end."""

    __slots__ = ("_among", "_response")

    def __init__(self, among: set[aiohttp.ClientResponse], response: aiohttp.ClientResponse) -> None:
        self._among = among
        self._response = response

    def __enter__(self) -> None:
        self._among.add(self._response)

    def __exit__(self, *_: object) -> None:
        self._among.discard(self._response)
        self._response.close()


class _OpenedResponse:
    """``Opened`` over an aiohttp response."""

    def __init__(self, response: aiohttp.ClientResponse, failures: _Failures) -> None:
        self._content = response.content
        self._failures = failures
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def chunk(self) -> bytes:
        with self._failures:
            return await self._content.readany()


class _Failures:
    """A context in which what aiohttp raises becomes an error that says what is known about the request."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self.closed = False
        """Whether we closed the connections ourselves."""

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if error is not None and (meaning := self._meaning(error)) is not None:
            raise meaning from error

    def _meaning(self, error: BaseException) -> KubeError | None:
        if isinstance(error.__cause__, NotLeading):  # of ``_PermittedBody``, as aiohttp tells it
            return NotLeading(str(error.__cause__))
        if isinstance(error, _NEVER_SENT):
            return Unreachable(http_words(error, peer=self._peer))
        if isinstance(error, aiohttp.ClientResponseError):
            return BadAnswer(http_words(error, peer=self._peer))
        if isinstance(error, aiohttp.ClientError | OSError):
            return OutcomeUnknown(http_words(error, peer=self._peer))
        if not self.closed:
            return None
        if isinstance(error, asyncio.CancelledError):
            # A pool that is closed cancels what waits in it; that must not look as if the waiting task were cancelled.
            task = asyncio.current_task()
            return None if task is None or task.cancelling() else OutcomeUnknown(CLIENT_CLOSED)
        return OutcomeUnknown(CLIENT_CLOSED) if isinstance(error, RuntimeError) else None


_NEVER_SENT = (
    aiohttp.ClientConnectorError,  # refused, no route, no such name, TLS
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
)


@lru_cache(maxsize=256)
def _server_with(server: str, query: tuple[tuple[str, str], ...]) -> URL:
    """The server's URL with a query. Most requests have the same one, and only their paths differ."""
    return URL(f"{server}?{urlencode(query)}", encoded=True)


def _tcp_options() -> tuple[tuple[int, int], ...]:
    """What this system has of: the first probe after 15 s, then every 5 s, three times; unacknowledged data 30 s."""
    wanted = {"TCP_NODELAY": 1, "TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
    return tuple((getattr(socket, name), value) for name, value in wanted.items() if hasattr(socket, name))


_TCP_OPTIONS = _tcp_options()
