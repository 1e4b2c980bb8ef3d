"""The wire between clients and an ``ApiServer``, with the faults of one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from multidict import CIMultiDict

from doubles.apiserver import ApiServer
from doubles.clock import LoopClock
from doubles.refusals import Refused
from mirror.embedded import memory
from mirror.embedded.apiserver.messages import Request
from mirror.embedded.clocks import SkewedClock
from mirror.embedded.faults.injector import Faults
from mirror.embedded.faults.kinds import Expiry as Gone
from mirror.embedded.faults.kinds import Loss
from mirror.embedded.faults.targets import INSIDER, Target, Which
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.limits import Limiter
from mirror.kube.permits import WritePermit
from mirror.kube.requests import Request as Asked
from mirror.kube.transport import Answer

__all__ = ["Fault", "Gone", "MemoryTransport", "Sent", "Wire", "client_of", "wire_to"]

LATENCY_SECONDS = 0.0005
"""One way."""


class Fault(Enum):
    """What can happen to one request."""

    LOSE_REQUEST = Loss.LOSE_REQUEST
    LOSE_ANSWER = Loss.LOSE_ANSWER
    HANG = Loss.HANG
    BREAK = Loss.NO_CONNECTION


@dataclass(frozen=True)
class Sent:
    """One request that was sent."""

    at: float
    verb: str
    path: str
    peer: str = ""
    """Whose client has sent it, where clients have names."""

    @property
    def writes(self) -> bool:
        return self.verb not in ("get", "list", "watch")


class GivenUp(NamedTuple):
    """A request that was sent, whose sender was cancelled before there was an answer."""

    peer: str
    request: Asked


@dataclass
class Wire:
    """The way to one server, for all its clients."""

    server: ApiServer
    clock: LoopClock
    sent: list[Sent] = field(default_factory=list)
    faults: Faults = field(default_factory=lambda: Faults(latency_seconds=LATENCY_SECONDS))
    late: dict[str, float] = field(default_factory=dict)
    """How many seconds later what a peer writes is carried out, whatever has become of that peer by then."""
    coming: list[Asked] = field(default_factory=list)
    """What is on its way like that."""
    given_up: list[GivenUp] = field(default_factory=list)
    """For whose answers their senders wait no more, though they may still come."""

    def __post_init__(self) -> None:
        self._skewed = SkewedClock(self.clock)
        self.way = memory.Wire(self.server.name, self._skewed, self.server)
        self.faults.on_request = self._note
        self.server.inner.faults = self.faults

    def _note(self, request: Request, target: Target) -> None:
        if request.peer != INSIDER:
            verb = target.verb if target.plural else "get"
            self.sent.append(Sent(self.clock.monotonic(), verb, request.path, request.peer))

    @property
    def clock_ahead_seconds(self) -> float:
        """How far the server's Date is ahead."""
        return self._skewed.ahead_seconds

    @clock_ahead_seconds.setter
    def clock_ahead_seconds(self, seconds: float) -> None:
        self._skewed.ahead_seconds = seconds

    @property
    def is_down(self) -> bool:
        """Whether no new connection is possible; those that exist stay."""
        return self.faults.is_down("")

    @is_down.setter
    def is_down(self, is_so: bool) -> None:
        if is_so:
            self.faults.refuse_connections()
        else:
            self.faults.restore_connections()

    @property
    def is_hung(self) -> bool:
        """Whether nothing comes back any more."""
        return self.faults.is_cut_off("")

    @is_hung.setter
    def is_hung(self, is_so: bool) -> None:
        if is_so:
            self.faults.cut_off()
        else:
            self.faults.heal()

    @property
    def ends_watches(self) -> bool:
        return self.server.ends_watches

    @ends_watches.setter
    def ends_watches(self, is_so: bool) -> None:
        self.server.ends_watches = is_so

    def arrange(self, verb: str, plural: str, what: Fault | Refused, *, times: int = 1, name: str = "") -> None:
        """The next such requests meet this."""
        fault = what.value if isinstance(what, Fault) else what.answer()
        self.faults.arrange(fault, Which(verb, plural, name), times=times)

    def restore(self) -> None:
        """All is well from now on."""
        self.faults.restore()

    def go_down(self) -> None:
        """No connection is possible, and those that exist break."""
        self.faults.go_down()

    def break_watches(self) -> None:
        self.faults.cut_watches()

    def end_watches(self) -> None:
        """A clean end, as after ``timeoutSeconds``."""
        self.faults.end_watches()

    def mute_watches(self, plural: str) -> None:
        """Open watches of this kind say nothing any more."""
        self.faults.mute_watches(plural=plural)

    def expire(self, form: Gone) -> None:
        """Open watches cannot go on from their version, and no other can from an earlier one."""
        self.faults.expire_watches(form)
        self.server.compact()

    def writes(self) -> list[Sent]:
        """What was written, but for leases."""
        return [sent for sent in self.sent if sent.writes and "/leases" not in sent.path]


class MemoryTransport(memory.MemoryTransport):
    """``kube.transport.Transport`` over a ``Wire``."""

    def __init__(self, wire: Wire, *, peer: str = "") -> None:
        super().__init__(wire.way, peer=peer)
        self._late, self._coming, self._given_up = wire.late, wire.coming, wire.given_up
        self._name = peer
        self._on_the_way = memory.MemoryTransport(wire.way, peer=f"late {peer}")
        self._sent: set[asyncio.Task[Answer]] = set()

    async def exchange(self, request: Asked, headers: CIMultiDict[str], most_bytes: int) -> Answer:
        try:
            return await self._exchange(request, headers, most_bytes)
        except asyncio.CancelledError:
            self._given_up.append(GivenUp(self._name, request))
            raise

    async def _exchange(self, request: Asked, headers: CIMultiDict[str], most_bytes: int) -> Answer:
        seconds = self._late.get(self._name, 0.0)
        if not seconds or request.method == "GET":
            return await super().exchange(request, headers, most_bytes)
        sent = asyncio.ensure_future(self._arrive_late(request, headers.copy(), most_bytes, seconds))
        self._sent.add(sent)
        sent.add_done_callback(self._forget)
        return await asyncio.shield(sent)

    async def _arrive_late(self, request: Asked, headers: CIMultiDict[str], most_bytes: int, seconds: float) -> Answer:
        self._coming.append(request)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._coming.remove(request)
        return await self._on_the_way.exchange(request, headers, most_bytes)

    def _forget(self, sent: asyncio.Task[Answer]) -> None:
        self._sent.discard(sent)
        if not sent.cancelled():
            sent.exception()  # its sender may wait for it no more


def client_of(
    wire: Wire,
    name: str = "",
    *,
    qps: float = 0,
    limiter: Limiter | None = None,
    peer: str = "",
    permit: WritePermit | None = None,
) -> Client:
    """A client of that server that may ask so many times a second, 0 for no limit, or as a limiter says."""
    return Client(
        name or wire.server.name,
        Credentials(Endpoint(f"https://{wire.server.name}", None), Identity()),
        limiter or Limiter(qps, 1, wire.clock.monotonic),
        transport=MemoryTransport(wire, peer=peer),
        permit=permit,
        wall=wire.clock.wall,
    )


def wire_to(name: str, *, minor: int = 36, streams_lists: bool = True) -> Wire:
    """A new, empty server and the way to it; call it in the running loop."""
    clock = LoopClock()
    return Wire(ApiServer(name, clock, minor=minor, streams_lists=streams_lists), clock)
