"""Load for an API server: many connections at once, as cheap for the machine as Python lets them be.

``bench_embedded`` uses it. Answers are not parsed beyond their status and length, watches are counted by their lines,
so that what is measured is the server. Not here: which servers, and what the figures mean.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import urlsplit

from e2e.controlplane.kubeconfigs import read_kubeconfig


class Broken(RuntimeError):
    """The server has closed a connection, or answered with what was not asked for."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What a run has shown."""

    count: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


class Caller(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = 0
        """Bytes of the answer that is coming; 0: its head is not there yet."""
        self._status = 0
        self._answer: asyncio.Future[int] | None = None
        self.content = b""
        """The body of the last answer; in chunks if it came in chunks."""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._needed:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            self._status = int(head[9:12])
            length = head.find(b"content-length:")
            if length >= 0:
                self._needed = end + 4 + int(head[length + 15 :].split(b"\r\n", 1)[0])
            else:
                self._needed = -1
        done = self._buffer.endswith(b"0\r\n\r\n") if self._needed < 0 else len(self._buffer) >= self._needed
        if done and self._answer is not None:
            self._needed = 0
            self.content = bytes(self._buffer[self._buffer.find(b"\r\n\r\n") + 4 :])
            self._buffer.clear()
            self._answer.set_result(self._status)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Broken(f"the server has closed the connection: {error}"))

    async def call(self, request: bytes) -> int:
        """Send it, and give the status of the answer."""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer


class Watcher(asyncio.Protocol):
    """Counts the events of a watch."""

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self.is_open = True
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own

    def data_received(self, data: bytes) -> None:
        self.count += data.count(b"}\n")
        self.bytes += len(data)

    def connection_lost(self, _: Exception | None) -> None:
        self.is_open = False


P = TypeVar("P", Caller, Watcher)


class Load:
    """Connections to the server of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        access = read_kubeconfig(kubeconfig)
        parts = urlsplit(access.server)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._tls = access.tls
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in access.headers.items())
        self._open: list[asyncio.Transport] = []

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """A request as bytes."""
        content = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        accept = "Accept: application/json\r\nUser-Agent: bench\r\nAccept-Encoding: identity\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n{self._headers}{accept}{content}\r\n"
        return head.encode() + body

    async def callers(self, count: int) -> list[Caller]:
        """So many connections."""
        return [await self._connect(Caller) for _ in range(count)]

    async def watchers(self, count: int, path: str) -> list[Watcher]:
        """So many watches, begun."""
        found = [await self._connect(Watcher) for _ in range(count)]
        for one in found:
            one.transport.write(self.request("GET", path))
        return found

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._open:
            transport.abort()
        self._open.clear()
        await asyncio.sleep(0)

    async def _connect(self, make: Callable[[], P]) -> P:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(make, self._host, self._port, ssl=self._tls)
        self._open.append(transport)
        return protocol


async def closed_loop(callers: list[Caller], requests: Iterator[bytes], *, expected: int) -> Pace:
    """Each connection asks again as soon as it is answered, until there are no more requests."""
    times: list[float] = []

    async def work(caller: Caller) -> None:
        for request in requests:
            began = time.perf_counter()
            status = await caller.call(request)
            times.append(time.perf_counter() - began)
            if status != expected:
                raise Broken(f"the server has answered {status}: {caller.content[-1000:]!r}")

    began = time.perf_counter()
    async with asyncio.TaskGroup() as scope:
        for caller in callers:
            scope.create_task(work(caller))
    return _pace(times, time.perf_counter() - began)


async def paced(callers: list[Caller], requests: Iterator[bytes], *, per_second: float, expected: int) -> Pace:
    """So many a second, spread over the connections; latencies count from when a request was due."""
    times: list[float] = []
    began = time.perf_counter()
    due_next = iter(range(10**9))

    async def work(caller: Caller) -> None:
        for request in requests:
            due = began + next(due_next) / per_second
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            if await caller.call(request) != expected:
                raise Broken(f"the server has answered otherwise than {expected}: {caller.content[-1000:]!r}")
            times.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as scope:
        for caller in callers:
            scope.create_task(work(caller))
    return _pace(times, time.perf_counter() - began)


def _pace(times: list[float], seconds: float) -> Pace:
    times.sort()
    if not times:
        return Pace(0, seconds, math.nan, math.nan)
    at = [times[min(len(times) - 1, int(len(times) * share))] * 1000 for share in (0.5, 0.99)]
    return Pace(len(times), seconds, round(at[0], 2), round(at[1], 2))
