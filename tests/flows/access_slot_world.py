"""A flow world in which several managers work at once, on slots, each with an ``access`` of its own, without HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast
from urllib.parse import urlencode

from access_world import AccessWorld, Got
from doubles.managers import placed
from replicas import Replica
from slot_world import SLOTS, SlotProcess, SlotWorld

from mirror.access.bounds import Bounds
from mirror.access.elsewhere import Elsewhere, PassedOn
from mirror.access.logs import Cut
from mirror.access.peers import Caller, NoAnswer, Peers, headers_of
from mirror.access.request_parsing import Asked
from mirror.access.service import Access
from mirror.controllers.known_over_slots import KnowledgeOverSlots, WorkersOverSlots
from mirror.controllers.mirroring import Mirroring
from mirror.controllers.state import MirroringState
from mirror.http_services import access_sources
from mirror.kube.client import Client
from mirror.kube.errors import OutcomeUnknown
from mirror.kube.transport import Answer
from mirror.model import names
from mirror.serving.client_certificates import CertificateUser
from mirror.sharding.share import Share
from mirror.telemetry.logs import get_log
from mirror.wiring import build_mirroring

BROKEN = "connection closed by the manager before the response was complete"


@dataclass
class Passed:
    """A request that one manager passed on to another."""

    to: str
    path: str
    authorization: str


@dataclass
class Ways:
    """``peers.Peers``: straight to the other's ``access``, as long as that one lives."""

    at: dict[str, Replica] = field(default_factory=dict)
    """By address."""
    accesses: dict[Replica, Access] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
    own_host: str = ""
    """Of the manager that asks."""

    async def answer(
        self, address: str, path: str, query: tuple[tuple[str, str], ...], caller: Caller, *, seconds: float
    ) -> Answer:
        got, asking = Got(), self._asking(address, path, query, caller)
        await self._while_alive(address, asking(got))
        assert got.answer is not None
        return Answer(got.answer.status, dict(got.answer.headers), got.answer.body)

    @asynccontextmanager
    async def opened(
        self, address: str, path: str, query: tuple[tuple[str, str], ...], caller: Caller, *, seconds: float
    ) -> AsyncIterator[Coming]:
        asking = self._asking(address, path, query, caller)
        coming = Coming(self.at[address])
        task = asyncio.ensure_future(coming.fill(asking))
        try:
            await coming.has_begun.wait()
            yield coming
        finally:
            task.cancel()
            await asyncio.wait({task})

    def _asking(self, address: str, path: str, query: tuple[tuple[str, str], ...], caller: Caller) -> Any:
        if address not in self.at or self.at[address].is_dead:
            raise NoAnswer("does not answer: connection refused")
        replica = self.at[address]
        self.passed.append(Passed(replica.identity, path, caller.authorization))
        headers = {name.lower(): text for name, text in headers_of(caller).items()}
        asked = Asked("GET", path + (f"?{urlencode(query)}" if query else ""), headers, self.own_host)
        return lambda got: self.accesses[replica].handle(asked, got)

    async def _while_alive(self, address: str, answering: Any) -> None:
        task = asyncio.ensure_future(answering)
        while not task.done():
            await asyncio.wait({task}, timeout=0.05)
            if self.at[address].is_dead:
                task.cancel()
                await asyncio.wait({task})
                raise NoAnswer(f"does not answer: {BROKEN}")
        task.result()


class Coming(Got):
    """``transport.Opened``, of what ``access`` writes."""

    def __init__(self, replica: Replica) -> None:
        super().__init__()
        self._replica = replica
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._is_cut = False
        self.has_begun = asyncio.Event()

    @property
    def status(self) -> int:
        return self.code

    async def fill(self, asking: Any) -> None:
        try:
            await asking(self)
        except Cut:
            self._is_cut = True
        if self.answer is not None:
            self.headers = dict(self.answer.headers)
            await self._pieces.put(self.answer.body)
        self.has_begun.set()
        await self._pieces.put(b"")

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        await super().begin(headers)
        self.has_begun.set()

    async def write(self, piece: bytes) -> None:
        await self._pieces.put(piece)

    async def chunk(self) -> bytes:
        piece = None
        while piece is None and not self._replica.is_dead:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    piece = await self._pieces.get()
        if not piece and (self._is_cut or self._replica.is_dead):
            raise OutcomeUnknown(BROKEN)
        return piece or b""


class Run(NamedTuple):
    """Where the Job ``train`` runs."""

    worker: str
    pod: str
    owner: Replica
    """The manager that follows the worker."""
    other: Replica
    """One that does not."""


class AccessSlotWorld(AccessWorld, SlotWorld):
    """Three managers; ``ask_at`` asks one of them."""

    LEAST: ClassVar[int] = 3

    def __init__(self, scope: asyncio.TaskGroup, workers: list[str], *, bounds: Bounds | None = None) -> None:
        super().__init__(scope, workers, bounds=bounds)
        self.ways = Ways()
        self.known: dict[Replica, KnowledgeOverSlots] = {}
        self.counted: Counter[PassedOn] = Counter()

    def open_access(self) -> None:
        """Each manager has its own."""

    async def until_shared(self) -> None:
        """Each slot is held, and each manager has one."""
        everybody = sorted([*(f"{index} of {SLOTS}" for index in range(SLOTS)), "assigning"])

        async def is_shared() -> bool:
            processes = [self.processes[one] for one in self.replicas]
            shares = sorted(share for one in processes for share in one.shares)
            return shares == everybody and all(any(" of " in share for share in one.shares) for one in processes)

        await self.until(is_shared, seconds=400)
        await asyncio.sleep(10)

    async def _run_replica(self, replica: Replica) -> None:
        process = self.processes[replica] = SlotProcess(self, replica)
        process.address = f"{host_of(replica)}:8443"
        management = self.client("management", replica, None)

        async def connect(name: str, kubeconfig: bytes) -> Client:
            raise AssertionError("it follows no worker")

        settings = replace(self.mirroring_settings(), share=Share(slots=SLOTS))
        standby = build_mirroring(management, settings, connector=connect, environment=process.environment)
        self._open(replica, process, standby)
        async with asyncio.TaskGroup() as scope:
            for name, work in (("sources", standby.watch), ("workers", standby.registry.run)):
                scope.create_task(work(), name=name)
            await process.coordinator.run()

    def _open(self, replica: Replica, process: SlotProcess, standby: Mirroring) -> None:
        def held() -> tuple[MirroringState, ...]:
            return tuple(cast(Any, one).mirroring.state for _, one in process.instances)

        bounds = self.bounds or Bounds()
        known = self.known[replica] = KnowledgeOverSlots(standby.known().state, held, process.coordinator)
        workers = WorkersOverSlots(standby.registry.workers, held)
        management, managed_by = self.management.client(), names.DEFAULT_MANAGED_BY
        sources = access_sources(management, standby, known, workers, managed_by=managed_by)
        peers = cast(Peers, replace(self.ways, own_host=host_of(replica)))

        def count(result: PassedOn) -> None:
            self.counted[result] += 1

        elsewhere = Elsewhere(process.coordinator, peers, workers, bounds, count=count)
        self.ways.at[process.address] = replica
        self.ways.accesses[replica] = Access(sources, log=get_log("access"), bounds=bounds, elsewhere=elsewhere)

    async def runs(self, text: bytes = b"") -> Run:
        """The Job ``train``, whose pods run and have written this, once each manager has a slot."""
        await self.until_shared()
        await self.create("train", run_for="never")

        async def is_placed() -> bool:
            return placed(await self.source("train")) is not None

        await self.until(is_placed)
        worker = str(placed(await self.source("train")))

        async def has_pod() -> bool:
            return any(pod["status"].get("phase") == "Running" for pod in await self.pods(worker))

        await self.until(has_pod)
        (pod,) = await self.pods(worker)
        if text:
            self.writes(worker, pod, text)
        await asyncio.sleep(5)
        owner = self.holder(worker)
        return Run(worker, pod["metadata"]["name"], owner, self.others(owner)[0])

    # -- who asks ------------------------------------------------------------------------------------------------------

    def holder(self, worker: str) -> Replica:
        """Who follows a worker."""
        return self._who(self.processes[self.replicas[0]].coordinator.holder_of(worker))

    def assigner(self) -> Replica:
        return self._who(self.lease_holder())

    def others(self, *known: Replica) -> list[Replica]:
        return [one for one in self.replicas if one not in known]

    def _who(self, identity: str) -> Replica:
        return next(one for one in self.replicas if one.identity == identity)

    async def ask_at(
        self,
        replica: Replica,
        what: str,
        *,
        headers: Mapping[str, str] | None = None,
        got: Got | None = None,
        certificate: CertificateUser | None = None,
        peer: str = "10.0.0.1",
    ) -> Got:
        """As ``ask``, of this manager."""
        self.access = self.ways.accesses[replica]
        return await self.ask(what, headers=headers, got=got, certificate=certificate, peer=peer)


def host_of(replica: Replica) -> str:
    """The address of its pod."""
    return f"10.0.1.{replica.number}"
