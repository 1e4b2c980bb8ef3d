"""The connections to one server, with faults.

``Faults`` is a server's hook (``ApiServer.faults``): it sees each request before it is carried out and each answer
before it is sent, whatever transport carries them. What a fault is: ``kinds``; which requests it is for: ``targets``;
random ones: ``random_faults``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from mirror.embedded.apiserver.apimachinery.errors import StatusError, gone
from mirror.embedded.apiserver.messages import Answer, Request, Response, Stream
from mirror.embedded.faults.kinds import Dropped, Expiry, Fault, Loss, Slow, conflict
from mirror.embedded.faults.targets import EVERYBODY, INSIDER, Target, Which
from mirror.embedded.faults.watches import Watch


@dataclass(slots=True)
class Arranged:
    """A fault that waits for its requests."""

    which: Which
    what: Fault
    times: float


class FaultSource(Protocol):
    """Decides at random which fault a request meets, and its latency."""

    def fault(self, request: Request, target: Target) -> Fault | None: ...

    def seconds(self) -> float: ...


@dataclass(eq=False)
class Faults:
    """The state of the connections to one server. ``peer`` names a client; without one, all are meant."""

    latency_seconds: float = 0.0
    """One connection."""
    random_faults: FaultSource | None = None
    on_request: Callable[[Request, Target], None] | None = None
    """Told of each request that is sent, lost or not."""
    on_answer: Callable[[Request, Target, Answer], None] | None = None
    """Told of each answer at the moment when the work is done."""
    _arranged: list[Arranged] = field(default_factory=list)
    _down: set[str] = field(default_factory=set)
    _cut_off: set[str] = field(default_factory=set)
    _watches: list[Watch] = field(default_factory=list)
    """Those that are open; each is removed when its stream is closed."""
    _in_flight: dict[int, _OnTheWay] = field(default_factory=dict)
    _to_lose: dict[int, tuple[Request, Loss]] = field(default_factory=dict)
    """Requests being carried out whose answers will be lost, by identity."""

    # -- arranging -----------------------------------------------------------------------------------------------------

    def arrange(self, what: Fault, which: Which, *, times: float = 1) -> None:
        """The next such requests meet this; ``math.inf`` times: all of them, until ``restore``."""
        self._arranged.append(Arranged(which, what, times))

    def clear(self) -> None:
        """Nothing that was arranged happens any more; what else is wrong stays so."""
        self._arranged.clear()

    def refuse_writes(self, plural: str, *, times: float = math.inf, peer: str = EVERYBODY) -> None:
        """A storm of conflicts: updates and patches are answered with 409, as if others were always faster."""
        for verb in ("update", "patch"):
            self.arrange(conflict(), Which(verb, plural, peer=peer), times=times)

    def go_down(self, peer: str = EVERYBODY) -> None:
        """No connection is possible, and those that exist break."""
        self.refuse_connections(peer)
        self.break_connections(peer)

    def refuse_connections(self, peer: str = EVERYBODY) -> None:
        """No new connection is possible; watches that are open go on."""
        self._down.add(peer)

    def break_connections(self, peer: str = EVERYBODY) -> None:
        """Every connection that exists breaks, with what is on its way in it."""
        self.cut_watches(peer)
        for on_the_way in list(self._in_flight.values()):
            if peer in (EVERYBODY, on_the_way.peer):
                on_the_way.break_off()

    def cut_off(self, peer: str = EVERYBODY) -> None:
        """A partition: whatever is sent is lost, in both directions, without an error; watches are silent."""
        self._cut_off.add(peer)
        self._tell_watches()

    def restore(self, peer: str = EVERYBODY) -> None:
        """All is well from now on; silent watches go on. What is lost stays lost, what hangs stays hanging."""
        if peer == EVERYBODY:
            self.clear()
        self.restore_connections(peer)
        self.heal(peer)
        for watch in self._watches:
            if peer in (EVERYBODY, watch.peer):
                watch.is_muted = False
        self._tell_watches()

    def restore_connections(self, peer: str = EVERYBODY) -> None:
        """Connections are possible again."""
        self._down = self._down - {peer} if peer else set()

    def heal(self, peer: str = EVERYBODY) -> None:
        """The end of a partition."""
        self._cut_off = self._cut_off - {peer} if peer else set()
        self._tell_watches()

    def is_down(self, peer: str) -> bool:
        """Whether this client is refused a connection."""
        return bool(self._down & {EVERYBODY, peer})

    def is_cut_off(self, peer: str) -> bool:
        """Whether what this client sends vanishes."""
        return bool(self._cut_off & {EVERYBODY, peer})

    # -- watches -------------------------------------------------------------------------------------------------------

    def cut_watches(self, peer: str = EVERYBODY) -> None:
        """The connections of open watches break."""
        self._end(peer, Dropped(was_sent=True))

    def end_watches(self, peer: str = EVERYBODY) -> None:
        """A clean end, as after ``timeoutSeconds``."""
        self._end(peer, b"")

    def mute_watches(self, peer: str = EVERYBODY, *, plural: str = "") -> None:
        """Open watches (of this kind) say nothing any more; new ones do."""
        for watch in self._watches:
            if peer in (EVERYBODY, watch.peer) and plural in ("", watch.plural):
                watch.is_muted = True

    def expire_watches(self, form: Expiry, peer: str = EVERYBODY) -> None:
        """Open watches end because their version is too old; the caller compacts the storage, too."""
        if form is Expiry.BY_CODE:
            self.end_watches(peer)
            return
        status = gone("too old resource version: 1 (2)").status
        if form is Expiry.BY_REASON:
            status = {"kind": "Status", "apiVersion": "v1", "reason": status["reason"]}
        self._end(peer, msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n")

    @property
    def open_watches(self) -> int:
        """How many there are."""
        return len(self._watches)

    def _end(self, peer: str, last: bytes | Dropped) -> None:
        for watch in self._watches:
            if peer in (EVERYBODY, watch.peer):
                watch.end(last)

    def _tell_watches(self) -> None:
        for watch in self._watches:
            watch.changed.set()

    # -- the hook ------------------------------------------------------------------------------------------------------

    async def before(self, request: Request) -> None:
        """The request on its way to the server."""
        target = Target.of(request)
        if self.on_request is not None:
            self.on_request(request, target)
        if request.peer == INSIDER:
            return
        fault = self._fault_of(request, target)
        if self.is_cut_off(request.peer) or fault is Loss.HANG:
            await _for_ever()
        if self.is_down(request.peer) or fault is Loss.NO_CONNECTION:
            raise Dropped(was_sent=False)
        seconds = self._seconds() + (fault.seconds if isinstance(fault, Slow) else 0.0)
        if seconds:
            await self._travel(request, seconds)
        if self.is_cut_off(request.peer):
            await _for_ever()
        match fault:
            case StatusError():
                raise fault
            case Loss.LOSE_REQUEST:
                raise Dropped(was_sent=True)
            case Loss.LOSE_ANSWER | Loss.HANG_AFTER:
                self._to_lose[id(request)] = request, fault

    async def after(self, request: Request, answer: Answer) -> Answer:
        """The response on its way back."""
        if self.on_answer is not None:
            self.on_answer(request, Target.of(request), answer)
        if request.peer == INSIDER:
            return answer
        if id(request) in self._to_lose:
            _, loss = self._to_lose.pop(id(request))
            await _discard(answer)
            if loss is Loss.HANG_AFTER:
                await _for_ever()
            raise Dropped(was_sent=True)
        if isinstance(answer, Response):
            if seconds := self._seconds():
                await self._travel(request, seconds)
            if self.is_cut_off(request.peer):
                await _for_ever()
            return answer
        watch = Watch(request.peer, Target.of(request).plural, answer.pieces, is_cut_off=self.is_cut_off)
        return replace(answer, pieces=self._follow(watch))

    async def _follow(self, watch: Watch) -> AsyncGenerator[bytes, None]:
        """The watch's pieces; it is among those that are open as long as somebody reads."""
        self._watches.append(watch)
        try:
            async with aclosing(watch.read()) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._watches.remove(watch)

    def _fault_of(self, request: Request, target: Target) -> Fault | None:
        for arranged in self._arranged:
            if arranged.which.suits(request, target):
                arranged.times -= 1
                if arranged.times <= 0:
                    self._arranged.remove(arranged)
                return arranged.what
        return self.random_faults.fault(request, target) if self.random_faults is not None else None

    def _seconds(self) -> float:
        return self.random_faults.seconds() if self.random_faults is not None else self.latency_seconds

    async def _travel(self, request: Request, seconds: float) -> None:
        """Let time pass; raises Dropped when the connection breaks meanwhile."""
        on_the_way = self._in_flight[id(request)] = _OnTheWay(request.peer)
        try:
            async with asyncio.timeout(None) as on_the_way.limit:
                await asyncio.sleep(seconds)
        except TimeoutError:
            raise Dropped(was_sent=True) from None
        finally:
            del self._in_flight[id(request)]


@dataclass(slots=True)
class _OnTheWay:
    """A request, or its answer, that has not arrived yet."""

    peer: str
    limit: asyncio.Timeout | None = None

    def break_off(self) -> None:
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time())


async def _discard(answer: Answer) -> None:
    """Close what nobody will read."""
    if isinstance(answer, Stream):
        await answer.pieces.aclose()


async def _for_ever() -> None:
    await asyncio.Event().wait()
