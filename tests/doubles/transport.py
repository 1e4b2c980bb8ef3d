"""The wire between a client and an ``ApiServer``, with the faults of one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import format_datetime
from enum import Enum

from multidict import CIMultiDict

from doubles.apiserver import ApiServer, Target, Watching
from doubles.clock import LoopClock
from doubles.refusals import Refused, expired
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.errors import OutcomeUnknown, Unreachable
from mirror.kube.limits import Limiter
from mirror.kube.requests import Request
from mirror.kube.transport import Answer, Opened

BOOKMARK_SECONDS = 60.0
LATENCY_SECONDS = 0.001


class Fault(Enum):
    """What can happen to one request."""

    LOSE_ANSWER = "it is carried out, and the answer is lost"
    HANG = "nothing ever comes back"
    BREAK = "no connection"


class Gone(Enum):
    """The forms in which a server says that a version is too old."""

    BY_CODE = "an answer 410, when the next watch begins"
    BY_EVENT = "an ERROR event with code 410"
    BY_REASON = "an ERROR event with the reason alone"


@dataclass(frozen=True)
class Sent:
    """One request that arrived."""

    at: float
    verb: str
    path: str

    @property
    def writes(self) -> bool:
        return self.verb not in ("get", "list", "watch")


@dataclass
class Arranged:
    """A fault that waits for its request."""

    verb: str
    plural: str
    what: Fault | Refused
    times: int
    name: str = ""

    def suits(self, request: Request) -> bool:
        target = Target.of(request.path) if request.path != "/version" else None
        is_about = target is not None and target.plural == self.plural
        return request.verb == self.verb and is_about and self.name in ("", target.name if target else "")


@dataclass
class Wire:
    """The way to one server, for all its clients."""

    server: ApiServer
    clock: LoopClock
    sent: list[Sent] = field(default_factory=list)
    is_down: bool = False
    is_hung: bool = False
    ends_watches: bool = False
    """Each watch ends as soon as it has sent what it begins with."""
    clock_ahead_seconds: float = 0.0
    _arranged: list[Arranged] = field(default_factory=list)

    def arrange(self, verb: str, plural: str, what: Fault | Refused, *, times: int = 1, name: str = "") -> None:
        """The next such requests meet this."""
        self._arranged.append(Arranged(verb, plural, what, times, name))

    def restore(self) -> None:
        """All is well from now on."""
        self.is_down = self.is_hung = False
        self._arranged.clear()

    def go_down(self) -> None:
        """No connection is possible, and those that exist break."""
        self.is_down = True
        self.break_watches()

    def break_watches(self) -> None:
        self._each_watch(lambda watching: watching.lines.put_nowait(OutcomeUnknown("the connection broke")))

    def end_watches(self) -> None:
        """A clean end, as after ``timeoutSeconds``."""
        self._each_watch(lambda watching: watching.lines.put_nowait(b""))

    def expire(self, form: Gone) -> None:
        """Open watches cannot go on from their version, and no other can from an earlier one."""
        if form is Gone.BY_CODE:
            self.end_watches()
        else:
            status = expired().status() if form is Gone.BY_EVENT else {"kind": "Status", "reason": "Expired"}
            self._each_watch(lambda watching: watching.send("ERROR", status))
        self.server.compact()

    def writes(self) -> list[Sent]:
        """What was written, but for leases."""
        return [sent for sent in self.sent if sent.writes and "/leases" not in sent.path]

    def _each_watch(self, do: Callable[[Watching], None]) -> None:
        for watching in self.server.watches:
            do(watching)
        self.server.watches.clear()

    def fault_of(self, request: Request) -> Fault | Refused | None:
        found = next((arranged for arranged in self._arranged if arranged.suits(request)), None)
        if found is None:
            return None
        found.times -= 1
        if not found.times:
            self._arranged.remove(found)
        return found.what

    def headers(self) -> dict[str, str]:
        now = self.clock.now().timestamp() + self.clock_ahead_seconds
        date = format_datetime(type(self.clock.now()).fromtimestamp(now, self.clock.now().tzinfo), usegmt=True)
        return {"Content-Type": "application/json", "Date": date}

    async def pass_on(self, request: Request) -> Fault | Refused | None:
        """What meets this request on its way."""
        self.sent.append(Sent(self.clock.monotonic(), request.verb, request.path))
        fault = self.fault_of(request)
        if self.is_hung or fault is Fault.HANG:
            await asyncio.Event().wait()
        if self.is_down or fault is Fault.BREAK:
            raise Unreachable("connection refused")
        await asyncio.sleep(LATENCY_SECONDS)
        return fault


@dataclass
class _Coming:
    """An answer whose body is still coming (``kube.transport.Opened``)."""

    wire: Wire
    watching: Watching | None
    body: bytes
    status: int
    headers: Mapping[str, str]
    ends_at: float = 0.0

    async def chunk(self) -> bytes:
        if self.watching is None:
            body, self.body = self.body, b""
            return body
        while True:
            try:
                async with asyncio.timeout(min(BOOKMARK_SECONDS, self.ends_at - self.wire.clock.monotonic())):
                    found = await self.watching.lines.get()
            except TimeoutError:
                if self.wire.clock.monotonic() >= self.ends_at - 0.001:  # timers are rounded
                    return b""
                self.watching.bookmark(self.wire.server.version)
                continue
            if self.wire.is_hung:
                await asyncio.Event().wait()
            if isinstance(found, BaseException):
                raise found
            return found


class MemoryTransport:
    """``kube.transport.Transport`` over a ``Wire``."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.is_closed = False

    async def exchange(self, request: Request, headers: CIMultiDict[str], most_bytes: int) -> Answer:
        self._check_open()
        fault = await self._wire.pass_on(request)
        try:
            if isinstance(fault, Refused):
                raise fault
            body = json.dumps(self._wire.server.answer(request)).encode()
        except Refused as refused:
            return Answer(refused.code, CIMultiDict({**self._wire.headers(), **refused.headers}), refused.body())
        if fault is Fault.LOSE_ANSWER:
            raise OutcomeUnknown("the answer was lost")
        await asyncio.sleep(0)
        return Answer(200, CIMultiDict(self._wire.headers()), body)

    @asynccontextmanager
    async def open(self, request: Request, headers: CIMultiDict[str]) -> AsyncIterator[Opened]:
        self._check_open()
        fault, wire = await self._wire.pass_on(request), self._wire
        watching = None
        try:
            if isinstance(fault, Refused):
                raise fault
            watching = wire.server.open_watch(request)
        except Refused as refused:
            yield _Coming(wire, None, refused.body(), refused.code, {**wire.headers(), **refused.headers})
            return
        if wire.ends_watches:
            watching.lines.put_nowait(b"")
        ends_at = wire.clock.monotonic() + float(dict(request.query)["timeoutSeconds"])
        try:
            yield _Coming(wire, watching, b"", 200, wire.headers(), ends_at)
        finally:
            if watching in wire.server.watches:
                wire.server.watches.remove(watching)

    async def reconnect(self) -> None:
        """Nothing is kept that could be stale."""

    async def close(self) -> None:
        self.is_closed = True

    def _check_open(self) -> None:
        if self.is_closed:
            raise OutcomeUnknown("the client was closed")


class NoCount:
    """An observer of requests that looks away."""

    def on_request(self, cluster: str, verb: str, code: str, seconds: float) -> None:
        """Not interesting here."""


def client_of(wire: Wire, name: str = "") -> Client:
    """A client of that server, without limits."""
    return Client(
        name or wire.server.name,
        Credentials(Endpoint(f"https://{wire.server.name}", None), Identity()),
        Limiter(0, 1, wire.clock.monotonic),
        NoCount(),
        transport=MemoryTransport(wire),
        wall=wire.clock.wall,
    )


def wire_to(name: str, *, minor: int = 36, streams_lists: bool = True) -> Wire:
    """A new, empty server and the way to it; call it in the running loop."""
    clock = LoopClock()
    return Wire(ApiServer(name, clock.text, minor=minor, streams_lists=streams_lists), clock)
