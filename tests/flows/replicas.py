"""One manager as a process among others: it is killed, frozen and woken, cut off, late; Leases decide who works.

A process has a number, which every request of it bears as its user; ``Way`` is how its requests leave it. What is on
its way when the process ends or freezes is carried out all the same, as over a network.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from mirror.controllers.mirroring import Mirroring
from mirror.embedded.apiserver.messages import MASTERS_GROUP, Answer, Request, Response, Stream, User
from mirror.embedded.clocks import LoopClock
from mirror.embedded.faults.kinds import Dropped
from mirror.embedded.memory import Server, Wire
from mirror.embedded.virtual import VirtualLoop
from mirror.kube.permits import WritePermit
from mirror.runtime.clock import Clock
from mirror.runtime.leadership import Leadership

_replica: contextvars.ContextVar[Replica | None] = contextvars.ContextVar("replica", default=None)
_USER, _UNDER = "replica-", "under:"
OF_LEASES = "leases"
"""In place of a cluster: requests for Leases alone are lost."""
MOST_CALLBACKS = 100_000
"""Of all processes at one moment: time does not pass while they go on."""


class Observer(Protocol):
    """Who looks at what a process sends and receives."""

    def on_sent(self, replica: Replica, cluster: str, request: Request) -> None: ...

    def on_received(self, replica: Replica, cluster: str, request: Request, body: bytes) -> None: ...


@dataclass(eq=False)
class Replica:
    """A process; ``task`` is all that runs in it."""

    number: int
    mirroring: Mirroring | None = None
    leadership: Leadership | None = None
    permit: WritePermit | None = None
    task: asyncio.Task[None] | None = None
    is_dead: bool = False
    is_frozen: bool = False
    began_at: float = 0.0
    rate: float = 1.0
    """How many of its seconds pass in one of everybody's."""
    late: dict[str, float] = field(default_factory=dict)
    """How many seconds later what it writes is carried out, by cluster, whatever has become of it by then."""
    cut_from: set[str] = field(default_factory=set)
    """Clusters that it does not reach: what goes either way is lost, without an error."""
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    hears_late_seconds: float = 0.0
    """Of its own: so long the answers to what it writes to Leases are on their way."""
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with each answer that has come so late."""
    held: list[tuple[list[asyncio.Handle], Callable[..., object], tuple[Any, ...], contextvars.Context]] = field(
        default_factory=list
    )
    """What would have run while it is frozen, in order."""

    @property
    def identity(self) -> str:
        return f"{_USER}{self.number}"

    def user(self, lease: str) -> User:
        """Who sends what this Lease gives the right to."""
        return User(self.identity, (MASTERS_GROUP, f"{_UNDER}{lease}"))

    @property
    def is_leader(self) -> bool:
        return not self.is_dead and self.leadership is not None and self.leadership.is_leader

    def cut_off(self, cluster: str) -> None:
        """From now on it does not reach this cluster."""
        self.healed.clear()
        self.cut_from.add(cluster)

    def heal(self) -> None:
        """It reaches all clusters, at once; watches go on, and what was lost stays lost."""
        self.late.clear()
        self.hears_late_seconds = 0.0
        self.cut_from.clear()
        self.healed.set()

    def wake(self) -> None:
        """Go on where it was frozen; timers that ran out meanwhile all go off now."""
        self.is_frozen = False
        held, self.held = self.held, []
        loop = asyncio.get_running_loop()
        for cell, callback, arguments, context in held:
            loop.call_soon(_unless_cancelled, cell, callback, arguments, context=context)


def identity_of(request: Request) -> str:
    """The process that sent it; empty: none."""
    name = request.user.name if request.user else ""
    return name if name.startswith(_USER) else ""


def lease_of(request: Request) -> str:
    """The Lease that gives a process the right to send it; empty: none does."""
    groups = request.user.groups if request.user else ()
    return next((one.removeprefix(_UNDER) for one in groups if one.startswith(_UNDER)), "")


@dataclass(frozen=True, slots=True)
class PacedClock:
    """``runtime.clock.Clock`` of a process whose seconds are longer or shorter; its date is right."""

    replica: Replica

    def now(self) -> datetime:
        return LoopClock().now()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() * self.replica.rate

    def boottime(self) -> float:
        return self.monotonic()


class ProcessLoop(VirtualLoop):
    """Virtual time in which the callbacks of a frozen process wait, and in which a process that spins is noticed."""

    def __init__(self) -> None:
        super().__init__()
        self.on_spinning: Callable[[], None] = lambda: None
        self._moment = (0.0, 0)
        """A time, and how often processes were called back at it."""

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:
        replica = _replica.get() if context is None else context.get(_replica)
        if replica is None:
            return super().call_soon(callback, *args, context=context)
        now, (moment, times) = self.time(), self._moment
        self._moment = (now, times + 1 if moment == now else 0)
        if times == MOST_CALLBACKS:
            self.on_spinning()
        cell: list[asyncio.Handle] = []
        handle = super().call_soon(_unless_frozen, replica, cell, callback, args, context=context)
        cell.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        replica = _replica.get() if context is None else context.get(_replica)
        if replica is None:
            return super().call_at(when, callback, *args, context=context)
        cell: list[asyncio.Handle] = []
        if replica.rate != 1.0:
            now = self.time()
            when = now + (when - now) / replica.rate
        handle = super().call_at(when, _unless_frozen, replica, cell, callback, args, context=context)
        cell.append(handle)
        return handle


def _unless_frozen(
    replica: Replica, cell: list[asyncio.Handle], callback: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    if replica.is_frozen:
        replica.held.append((cell, callback, arguments, contextvars.copy_context()))
    else:
        callback(*arguments)


def _unless_cancelled(cell: list[asyncio.Handle], callback: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    if not cell[0].cancelled():
        callback(*arguments)


def context_of(replica: Replica) -> contextvars.Context:
    """In which all of its tasks run."""
    context = contextvars.copy_context()
    context.run(_replica.set, replica)
    return context


class Way:
    """From one process to one server; ``memory.Wire`` to the transport."""

    def __init__(
        self,
        wire: Wire,
        replica: Replica,
        observer: Observer,
        under_way: set[asyncio.Task[Answer]],
        outside: contextvars.Context,
        permit: WritePermit | None = None,
    ) -> None:
        self.name = wire.name
        self.clock: Clock = wire.clock
        self._wire = wire
        self._replica = replica
        self._observer = observer
        self._under_way = under_way
        self._outside = outside
        self._permit = permit

    @property
    def server(self) -> Way | None:
        return self if self._wire.server is not None and not self._replica.is_dead else None

    async def handle(self, request: Request) -> Answer:
        """``memory.Server``: what is sent is carried out, whatever becomes of its sender.

        Raises:
            NotLeading: as the transport of a network, it looks at the permit with the bytes in hand.
        """
        server = self._wire.server
        assert server is not None
        if self._permit is not None and request.method != "GET" and "/leases" not in request.path:
            self._permit.check()
        self._observer.on_sent(self._replica, self.name, request)
        await self._unless_cut_off(request)
        carried_out = self._carry_out(server, request, self._replica.late.get(self.name, 0.0))
        task = asyncio.get_running_loop().create_task(carried_out, context=self._outside)
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        answer = await asyncio.shield(task)
        await self._unless_cut_off(request)
        if isinstance(answer, Response):
            if self._replica.hears_late_seconds and request.method == "PUT" and "/leases" in request.path:
                await asyncio.sleep(self._replica.hears_late_seconds)
                self._replica.heard.set()
            self._observer.on_received(self._replica, self.name, request, answer.body)
            return answer
        return replace(answer, pieces=self._read(request, answer))

    async def _carry_out(self, server: Server, request: Request, late_seconds: float) -> Answer:
        if late_seconds and request.method != "GET":
            await asyncio.sleep(late_seconds)
            if self._wire.server is not server:
                raise Dropped(was_sent=True)
        return await server.handle(request)

    async def _unless_cut_off(self, request: Request) -> None:
        cut_from = self._replica.cut_from
        if self.name in cut_from or (OF_LEASES in cut_from and "/leases" in request.path):
            await asyncio.Event().wait()

    async def _read(self, request: Request, answer: Stream) -> AsyncGenerator[bytes, None]:
        async with aclosing(answer.pieces) as pieces:
            async for piece in pieces:
                while self.name in self._replica.cut_from:
                    await self._replica.healed.wait()
                self._observer.on_received(self._replica, self.name, request, piece)
                yield piece

    def _forget(self, task: asyncio.Task[Answer]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # who asked has it, or is gone
