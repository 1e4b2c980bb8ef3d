"""Random histories of two to five managers that share the workers by slots (S1–S8), for hypothesis."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import ClassVar

from flow_invariants import Invariants
from flow_machine import KINDS, Everybody
from flow_machine_base import NAMES, WAITS
from flow_machine_managers import WHICH, Managers
from flow_settled import disagreements, mend, wait_until_settled
from flow_world import MANAGER, FlowWorld, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from replicas import OF_LEASES, Replica
from slot_laws import SlotLaws, wait_until_shared
from slot_world import FASTEST, SLOWEST, SlotWorld, lease_of_worker

from mirror.embedded.apiserver.apimachinery.errors import forbidden
from mirror.embedded.faults.targets import Which
from mirror.model import names
from mirror.model.terms import CARRIED_OUT_SECONDS

RATE = st.sampled_from((SLOWEST, 1.0, 1.0, FASTEST))
STEADY_SECONDS = 100.0
"""After which three managers have made room for each other, at any rate."""
LATE_SECONDS = 45.0, 50.0
HEARD_AFTER_SECONDS = 8.0
"""As late as an answer is waited for, or nearly so."""


class Slots(Managers, Everybody):
    """All that ``Everybody`` does, with managers that share the workers."""

    WORLD: ClassVar[type[FlowWorld]] = SlotWorld
    world: SlotWorld
    laws: SlotLaws

    def _laws(self) -> Invariants:
        return SlotLaws(self.world)

    def calm_managers(self) -> None:
        super().calm_managers()
        for process in self.world.processes.values():
            process.is_ready = True

    async def _settle(self) -> None:
        self.calm_managers()
        await mend(self.world)
        await asyncio.sleep(CARRIED_OUT_SECONDS)
        await wait_until_shared(self.world)
        before = self.world.transitions()
        await wait_until_settled(self.world, self.laws, self._disagreements)
        after = self.world.transitions()
        assert after == before, f"S4: slots change hands though nothing changes: {before}, {after}"

    async def _disagreements(self) -> list[str]:
        return await disagreements(self.world)

    @initialize(rates=st.lists(RATE, min_size=1, max_size=3), wait=WAITS)
    def managers_begin(self, rates: list[float], wait: float) -> None:
        """Beside the two that are there."""
        self._do(self._at_once(lambda: [self.world.start_paced(rate) for rate in rates], wait))

    @rule(rate=RATE, wait=WAITS)
    def a_manager_with_a_clock_of_its_own_joins(self, rate: float, wait: float) -> None:
        self._do(self._at_once(lambda: self.world.start_paced(rate), wait))

    @precondition(lambda self: self.world.replicas)
    @rule(which=WHICH, is_ready=st.booleans(), wait=WAITS)
    def a_manager_is_ready_or_not(self, which: int, is_ready: bool, wait: float) -> None:
        def change() -> None:
            if (process := self.world.processes.get(self._manager(which))) is not None:
                process.is_ready = is_ready

        self._do(self._at_once(change, wait))

    @rule(which=st.integers(0, 20), wait=WAITS)
    def somebody_deletes_a_lease(self, which: int, wait: float) -> None:
        leases = self.world.leases()
        if leases:
            self._do(self._and_wait(self.world.delete_lease(leases[which % len(leases)]), wait))

    @rule(rounds=st.integers(1, 3), wait=WAITS)
    def all_managers_are_replaced(self, rounds: int, wait: float) -> None:
        """As a rolling upgrade does: one starts, one is stopped."""
        self._do(self._and_wait(self._roll(rounds), wait))

    async def _roll(self, rounds: int) -> None:
        for replica in self.world.replicas[:rounds]:
            self.world.start_replica()
            await asyncio.sleep(5.0)
            if replica in self.world.replicas:
                await self.world.end_well(replica)

    # -- what hangs on a moment ----------------------------------------------------------------------------------------

    @rule(
        name=NAMES,
        kind=st.sampled_from(sorted(KINDS)),
        worker=st.sampled_from(("east", "west")),
        late=st.sampled_from(("the clear", "the create", "")),
        dies=st.sampled_from(("killed", "frozen", "cut off")),
        wait=WAITS,
    )
    def a_holder_dies_as_its_worker_refuses(
        self, name: str, kind: str, worker: str, late: str, dies: str, wait: float
    ) -> None:
        """On a quiet day: what takes the refused record away, or a create, is carried out under the next holder."""
        self._do(self._and_wait(self._refuse(name, kind, worker, late, dies), wait))

    async def _refuse(self, name: str, kind: str, worker: str, late: str, dies: str) -> None:
        world, wire = self.world, self.world.workers[worker].faults
        await self._steady_day(name)
        holder = self._holder_beside_the_assigner(worker)
        if holder is None:
            return
        refused = forbidden("jobs", "batch", name, "not here"), Which("create", "jobs", peer=MANAGER)
        if late == "the create":
            holder.late[worker] = LATE_SECONDS[1]
        else:
            wire.arrange(*refused, times=1)
        if late == "the clear":
            holder.late["management"] = LATE_SECONDS[0]
        order = ",".join(sorted(world.workers, key=lambda one: one != worker))
        body = job(name, annotations={names.WORKER_ORDER: order}, **KINDS[kind])
        await tolerant(world.management.api.create(path(""), body))
        await asyncio.sleep(1.0)
        for replica in world.replicas:
            if replica is not holder and late == "the clear":
                replica.late[worker] = LATE_SECONDS[1]
        await self._end_manager(holder, dies)
        if late == "the create":
            wire.arrange(*refused, times=1)
        await asyncio.sleep(120.0)
        self.calm_managers()

    async def _steady_day(self, name: str) -> None:
        """Three managers at least, each with as many slots as any other; nothing else of this name is there."""
        world = self.world
        self.calm_managers()
        await mend(world)
        while len(world.replicas) < 3:
            world.start_replica()
        await world.delete(name)
        await asyncio.sleep(STEADY_SECONDS)

    def _holder_beside_the_assigner(self, worker: str) -> Replica | None:
        """Who holds the slot of a worker; None: it is who assigns, too."""
        holder = self.world.lease_holder(lease_of_worker(worker))
        if holder == self.world.lease_holder():
            return None
        return next((one for one in self.world.replicas if one.identity == holder), None)

    @rule(name=NAMES, wait=WAITS)
    def a_slow_holder_hears_late_of_its_lease(self, name: str, wait: float) -> None:
        """And then nothing more comes of what it sends about Leases; who takes its slots is faster."""
        self._do(self._and_wait(self._hear_late(name), wait))

    async def _hear_late(self, name: str) -> None:
        world = self.world
        await self._steady_day(name)
        for replica in tuple(world.replicas):
            await world.end_well(replica)
        world.start_paced(SLOWEST)
        slow = world.replicas[0]
        await asyncio.sleep(STEADY_SECONDS / 4)  # it has taken all slots, and gives some back now
        world.start_paced(FASTEST)
        await asyncio.sleep(STEADY_SECONDS)
        theirs = [one for one in world.workers if world.lease_holder(lease_of_worker(one)) == slow.identity]
        if not theirs:
            return
        body = job(name, annotations={names.WORKER_ORDER: theirs[0]}, completions=500, run_for="1s")
        await tolerant(world.management.api.create(path(""), body))
        slow.hears_late_seconds = HEARD_AFTER_SECONDS
        await asyncio.sleep(HEARD_AFTER_SECONDS / SLOWEST)  # what is on its way is heard of in time
        slow.heard.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(STEADY_SECONDS):
                await slow.heard.wait()
        slow.cut_off(OF_LEASES)
        await asyncio.sleep(40.0)
        await world.delete(name)
        self.calm_managers()
