"""Takes slots, works on those that it holds, and gives them back: the shell around ``claims`` (S3–S5, S9, S12).

Each slot is led on its own: its work begins when its Lease is taken, with nothing that was known before (S7), and ends
before the Lease can be another's. Losing one ends that work alone, not the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import NotFound
from mirror.kube.limits import Limiter
from mirror.kube.objects import Object
from mirror.kube.permits import WritePermit
from mirror.kube.resources import LEASES
from mirror.model import names
from mirror.model.terms import Terms
from mirror.runtime.environment import Environment
from mirror.runtime.informer import Change, Informer, InformerHooks, Scope
from mirror.runtime.leadership import Leadership, LeadershipLost, LeaseSettings
from mirror.runtime.store import Store
from mirror.runtime.supervise import supervise
from mirror.sharding.board import LeaseBoard, observed_lease, slots_of, slots_said
from mirror.sharding.claims import decide
from mirror.sharding.membership import MemberSettings, Membership
from mirror.sharding.rates import Parts
from mirror.sharding.slots import Slot, slot_of_worker, term_id

LOOK_SECONDS = 5.0
"""However little happens: what is seen late is not waited for longer."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A share of the work, and the right to do it."""

    slot: Slot | None
    """None: assigning workers, which one replica does for all."""
    permit: WritePermit
    """What every client of that work looks at (D28)."""
    term: Callable[[], str]
    """Which time of holding it this is (S6)."""


Work = Callable[[Holding], Awaitable[None]]
"""Works until cancelled. What it knows it has found out itself, since it began (S7)."""


@dataclass(frozen=True, slots=True)
class ShardingSettings:
    """Which replica this is, and how long Leases last, in seconds."""

    member: MemberSettings
    duration_seconds: float = 30.0
    renew_deadline_seconds: float = 15.0
    retry_period_seconds: float = 5.0

    def lease(self, name: str) -> LeaseSettings:
        member = self.member
        return LeaseSettings(
            member.namespace,
            name,
            member.identity,
            self.duration_seconds,
            self.renew_deadline_seconds,
            self.retry_period_seconds,
            annotations={names.SLOTS: slots_said(member.slots, member.identity)},
        )


@dataclass(slots=True)
class _Held:
    """A slot that is being taken, or held."""

    leadership: Leadership
    task: asyncio.Task[None] = field(init=False)
    is_given_back: bool = False


class Coordinator:
    """One replica among several."""

    def __init__(  # noqa: PLR0913 - the parts of one replica
        self,
        client: Client,
        settings: ShardingSettings,
        work: Work,
        *,
        is_ready: Callable[[], bool],
        limiter: Limiter,
        address: Callable[[], str] = lambda: "",
        environment: Environment,
    ) -> None:
        """Not running yet.

        Args:
            client: without a permit; what it writes are Leases, each guarded by its resourceVersion.
            limiter: of all that this replica sends to the management cluster beside those: its part of a sum (S12).
            address: where others ask this replica for what only it knows; empty: nowhere.
        """
        self._client = client
        self._settings = settings
        self._work = work
        self._clock = environment.clock
        self._log = environment.log
        self._environment = environment
        member = settings.member
        self._board = LeaseBoard(member.identity, member.slots)
        # Before it has seen the others, there may be as many as slots.
        self._limiter, self._parts = limiter, Parts(member.slots, settings.duration_seconds)
        self._limiter.divide(self._parts.note(None, self._clock.boottime()))
        self._membership = Membership(
            client, member, is_ready=is_ready, address=address, clock=self._clock, log=self._log
        )
        hooks = InformerHooks(self._on_lease, on_healthy=self._on_listed)
        scope = Scope(LEASES, member.namespace)
        self._informer = Informer(scope, Store({}), client=lambda: client, hooks=hooks)
        self._changed = asyncio.Event()
        self._held: dict[int, _Held] = {}
        self._assigning: Leadership | None = None
        self._obstacle = ""
        environment.metrics.before_scrape(self._count_holders)

    @property
    def obstacle(self) -> str:
        """Why this replica takes no slot; empty while nothing speaks against it."""
        return self._obstacle

    @property
    def held(self) -> tuple[Slot, ...]:
        """The slots that it works on."""
        slots = self._settings.member.slots
        return tuple(Slot(index, slots) for index, held in sorted(self._held.items()) if held.leadership.is_leader)

    def _count_holders(self) -> None:
        """Of each slot, so that the sum over all replicas is how many hold it: 1, or something is wrong."""
        held = {slot.index for slot in self.held}
        for index in range(self._settings.member.slots):
            self._environment.metrics.slot_holders.labels(str(index)).set(index in held)

    @property
    def terms(self) -> Terms:
        """What whoever assigns workers knows of slots."""
        return Terms(self.term_of, read=self.read_term, holder=self.holder_of)

    def term_of(self, worker: str) -> str:
        """In which term the slot of a worker is held, by whomever; empty: nobody holds it (S6)."""
        return self._board.term_of(self._slot_of(worker), self._clock.boottime())

    def holder_of(self, worker: str) -> str:
        """Which replica holds the slot of a worker; empty: nobody does."""
        return self._board.holder_of(self._slot_of(worker), self._clock.boottime())

    @property
    def holders(self) -> tuple[str, ...]:
        """Which replica holds each slot, by their numbers; empty: nobody does."""
        now, slots = self._clock.boottime(), self._settings.member.slots
        return tuple(self._board.holder_of(Slot(index, slots), now) for index in range(slots))

    @property
    def me(self) -> str:
        """This replica, as Leases name it."""
        return self._board.me

    @property
    def assigner(self) -> str:
        """Which replica assigns workers; empty: none does."""
        return self._board.assigner(self._clock.boottime())

    def address_of(self, member: str) -> str:
        """Where a replica is asked for what only it knows, as it says itself; empty: it is not there, or does not."""
        return self._board.address_of(member, self._clock.boottime())

    @property
    def addresses(self) -> frozenset[str]:
        """Where the replicas are asked that are there now."""
        return self._board.addresses(self._clock.boottime())

    def unheld(self) -> Mapping[Slot, float]:
        """The slots that nobody works on, as far as that is known, and for how many seconds."""
        slots = self._settings.member.slots
        return {Slot(index, slots): seconds for index, seconds in self._board.unheld(self._clock.boottime()).items()}

    @property
    def is_spokesman(self) -> bool:
        """Whether it is this replica that says to users what all see."""
        return self._board.is_spokesman(self._clock.boottime())

    async def read_term(self, worker: str) -> str:
        """In which term the slot of a worker is held, as its Lease says now; empty: nobody holds it.

        Raises:
            KubeError: it could not be read.
        """
        lease = self._slot_of(worker).lease
        try:
            found = await self._client.send_object(
                requests.get(LEASES, lease, namespace=self._settings.member.namespace)
            )
        except NotFound:
            return ""
        seen = observed_lease(found, self._clock.boottime())
        return seen.term if seen.holder else ""

    async def _is_in_force(self) -> bool:
        """Whether those who assign workers have as many slots, as their Lease says now (S9): no watch that may be late.

        Raises:
            KubeError: it could not be read, or is not there.
        """
        lease = requests.get(LEASES, names.LEASE, namespace=self._settings.member.namespace)
        deadline = self._settings.renew_deadline_seconds / 2
        found = await self._client.send_object(replace(lease, urgent=True, deadline_seconds=deadline))
        return slots_of(found) == self._settings.member.slots

    def _slot_of(self, worker: str) -> Slot:
        return slot_of_worker(worker, self._settings.member.slots)

    async def run(self) -> None:
        """Take part until cancelled; then the others are told first, and all work has ended at the end."""
        async with asyncio.TaskGroup() as scope:
            watch = supervise("watch Leases", self._informer.run, log=self._log)
            scope.create_task(watch, name="watch Leases")
            assigning = scope.create_task(self._assign(), name="assign")
            member = scope.create_task(self._membership.run(), name="member")
            try:
                await self._coordinate(scope)
            finally:
                member.cancel()
                with suppress(asyncio.CancelledError):
                    await member
                assigning.cancel()
                for index in self._held:
                    self._give_back(index)
                # A task that is cancelled once more would not end its work in order.
                await asyncio.wait({assigning, *(held.task for held in self._held.values())})

    # -- what is seen -------------------------------------------------------------------------------------------------

    def _on_lease(self, old: Object | None, new: Object | None, change: Change) -> None:
        now = self._clock.boottime()
        if new is not None:
            self._board.note(new, now)
            if new.metadata.name == names.LEASE and not self._board.assigner(now) and self._assigning is not None:
                self._assigning.note_free()  # nothing else may be taken before somebody assigns
        elif old is not None:
            self._board.remove(old.metadata.name, now)
        self._changed.set()

    def _on_listed(self) -> None:
        self._board.begin(self._clock.boottime())
        self._changed.set()

    # -- what is done -------------------------------------------------------------------------------------------------

    async def _coordinate(self, scope: asyncio.TaskGroup) -> None:
        await self._informer.wait_until_synced()
        while True:
            self._changed.clear()
            wait = self._look(scope)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    def _look(self, scope: asyncio.TaskGroup) -> float:
        """Take and give back what is due now; the seconds until the next look."""
        now, board = self._clock.boottime(), self._board
        self._limiter.divide(self._parts.note(board.managers(now), now))
        self._note_obstacle(board.obstacle(now))
        if board.foreign_assigner(now):
            for index in list(self._held):
                self._give_back(index)
            return LOOK_SECONDS
        for index, held in list(self._held.items()):
            holder = board.holder_of(Slot(index, board.slots), now)
            if not held.leadership.is_leader and holder not in ("", board.me):
                self._give_back(index)  # somebody else was first
        decision = decide(board.board(now))
        for index in decision.claim if not self._obstacle else ():
            if index not in self._held:
                self._claim(index, scope)
        for index in decision.give_back:
            # What is just being taken leads first: given back before, it would only be taken once more.
            if index in self._held and self._held[index].leadership.is_leader:
                self._give_back(index)
        waits = (LOOK_SECONDS, decision.look_again_seconds, board.until_next_end(now))
        return max(0.05, min(one for one in waits if one is not None))

    def _note_obstacle(self, obstacle: str) -> None:
        if obstacle and obstacle != self._obstacle:
            self._log.warning("no slots taken", because=obstacle)
        self._obstacle = obstacle

    def _claim(self, index: int, scope: asyncio.TaskGroup) -> None:
        slot = Slot(index, self._settings.member.slots)
        permit = WritePermit(self._clock.boottime)
        held = self._held[index] = _Held(self._leadership(slot.lease, permit))
        held.task = scope.create_task(self._hold(slot, held, permit), name=f"slot {slot}")

    def _give_back(self, index: int) -> None:
        held = self._held.get(index)
        if held is not None and not held.is_given_back:
            held.is_given_back = True
            held.task.cancel()

    def _leadership(self, lease: str, permit: WritePermit) -> Leadership:
        settings, seen = self._settings.lease(lease), self._board.sighting_of(lease)
        if lease != names.LEASE:
            settings = replace(settings, guard=self._is_in_force)
        log = self._log.bind(lease=lease)
        return Leadership(self._client, settings, clock=self._clock, log=log, permit=permit, seen=seen)

    async def _hold(self, slot: Slot, held: _Held, permit: WritePermit) -> None:
        try:
            await held.leadership.run(self._work_with(slot, held.leadership, permit))
        except LeadershipLost as error:
            self._log.warning("slot lost", slot=str(slot), error=error)
        finally:
            if self._held.get(slot.index) is held:
                del self._held[slot.index]
            self._changed.set()

    async def _assign(self) -> None:
        """Assign workers whenever nobody else does."""
        while True:
            permit = WritePermit(self._clock.boottime)
            leadership = self._assigning = self._leadership(names.LEASE, permit)
            with suppress(LeadershipLost):
                await leadership.run(self._work_with(None, leadership, permit))
            self._log.warning("assigning lost")

    def _work_with(
        self, slot: Slot | None, leadership: Leadership, permit: WritePermit
    ) -> Callable[[], Awaitable[None]]:
        return lambda: self._work(Holding(slot, permit, lambda: term_id(*leadership.term)))
