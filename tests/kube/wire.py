"""What the tests of this room share: a server that answers as it is told, and clients for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.limits import Limiter
from mirror.kube.permits import WritePermit
from mirror.kube.requests import Request
from mirror.kube.resources import JOBS
from mirror.kube.transport import Answer, Opened, Transport


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


HTML = b"<html><body><h1>no healthy upstream</h1></body></html>"
"""What load balancers say."""

Answering = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """An HTTP/1.1 server on a free port of this machine, whose answers a test writes byte by byte."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.received: list[Received] = []
        self.connections = 0
        self.port = 0
        self.scheme = "http"
        self._writers: set[asyncio.StreamWriter] = set()
        self._arrivals = asyncio.Semaphore(0)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        # The end of a connection is the test's doing.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while True:
                received = await _receive(reader)
                self.received.append(received)
                self._arrivals.release()
                await self.answering(received, writer)
                await writer.drain()
        writer.close()

    async def arrivals(self, count: int) -> None:
        """Wait until so many more requests have arrived."""
        for _ in range(count):
            await self._arrivals.acquire()

    def drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


async def _receive(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        headers[name.lower()] = f"{headers[name.lower()]}, {value}" if name.lower() in headers else value
    return Received(method, target, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


@contextlib.asynccontextmanager
async def serving(answering: Answering, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answering)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    server.scheme = "https" if tls else "http"
    try:
        yield server
    finally:
        listening.close()
        server.drop()
        # Handlers end with their connections.
        for _ in range(5):
            await asyncio.sleep(0)


def answer(code: int, body: bytes = b"{}", **headers: str) -> bytes:
    """The bytes of a whole answer; JSON unless ``content_type`` says otherwise."""
    lines = {"content-type": "application/json", "content-length": str(len(body))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {code} Whatever\r\n{head}\r\n".encode() + body


async def never(_: Received, writer: asyncio.StreamWriter) -> None:
    """Accept a request, and never say a word."""
    await asyncio.get_running_loop().create_future()


async def too_late(received: Received, writer: asyncio.StreamWriter) -> None:
    """Accept a request, and never say a word: every limit of the client has passed as soon as it arrived."""
    skip_time()
    await never(received, writer)


def skip_time(seconds: float = 3600.0) -> None:
    """Put the running loop's clock forward: the timers of this time are due now, however slow the machine is."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds


def always(*answers: bytes) -> Answering:
    """One answer after the other; the last one again and again."""
    left = list(answers)

    async def answering(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return answering


def status(code: int, reason: str, **more: Any) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, **more}).encode()


def event(kind: str, name: str = "train", version: str = "5", **more: object) -> bytes:
    """One line of a watch."""
    found = {"metadata": {"name": name, "resourceVersion": version, "managedFields": [{"x": 1}]}, **more}
    return json.dumps({"type": kind, "object": found}).encode()


def error_event(code: int, reason: str) -> bytes:
    return b'{"type":"ERROR","object":' + status(code, reason) + b"}"


def read(deadline_seconds: float = requests.DEADLINE_SECONDS) -> Request:
    """A request that changes nothing."""
    return Request("get", "GET", JOBS.path("team", "train"), deadline_seconds=deadline_seconds)


def write(deadline_seconds: float = requests.DEADLINE_SECONDS) -> Request:
    """A request that must not be carried out twice."""
    made = requests.create(JOBS, {"metadata": {"name": "train"}}, namespace="team")
    return Request(made.verb, made.method, made.path, made.query, made.body, made.content_type, deadline_seconds)


def chunked_head(**headers: str) -> bytes:
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"
    return f"{head}{more}\r\n".encode()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


class InMemory:
    """A transport without sockets, for virtual time: an answer that takes some seconds, or comes in pieces."""

    def __init__(self, *pieces: tuple[float, bytes]) -> None:
        """Seconds to wait before each piece, and the piece."""
        self.pieces = pieces
        self.status = 200
        self.headers: dict[str, str] = {"Content-Type": "application/json"}
        self._ready: deque[tuple[float, bytes]] = deque()

    async def exchange(self, request: Request, headers: CIMultiDict[str], most_bytes: int) -> Answer:
        for delay, _ in self.pieces:
            await asyncio.sleep(delay)
        return Answer(self.status, self.headers, b"".join(piece for _, piece in self.pieces))

    @contextlib.asynccontextmanager
    async def open(self, request: Request, headers: CIMultiDict[str]) -> AsyncIterator[Opened]:
        now = asyncio.get_running_loop().time()
        for delay, piece in self.pieces:
            now += delay
            self._ready.append((now, piece))
        yield self

    async def chunk(self) -> bytes:
        """Pieces come at their time, whether somebody is reading or not."""
        if not self._ready:
            return b""
        at, piece = self._ready[0]
        await asyncio.sleep(max(0.0, at - asyncio.get_running_loop().time()))
        self._ready.popleft()
        return piece

    async def reconnect(self) -> None:
        """There is no connection."""

    async def close(self) -> None:
        """Nor anything to close."""


@dataclass
class Observed:
    """Remembers what was counted."""

    requests: list[tuple[str, str, str]] = field(default_factory=list)

    def on_request(self, cluster: str, verb: str, code: str, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((cluster, verb, code))


class Clients:
    """Makes clients, and closes them at the end of a test."""

    def __init__(self) -> None:
        self.observed = Observed()
        self._made: list[Client] = []

    def make(
        self,
        url: str,
        *,
        credentials: Credentials | None = None,
        limiter: Limiter | None = None,
        transport: Transport | None = None,
        permit: WritePermit | None = None,
    ) -> Client:
        credentials = credentials or Credentials(Endpoint(url, None), Identity(authorization="Bearer one"))
        limiter = limiter or Limiter(0, 1, asyncio.get_running_loop().time)
        client = Client("east", credentials, limiter, self.observed, transport=transport, permit=permit)
        self._made.append(client)
        return client

    async def close(self) -> None:
        for client in self._made:
            await client.close()
