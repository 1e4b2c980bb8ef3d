"""A flow world in which several managers work at once, on slots (S1–S8), each with a clock and ways of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar

from doubles.replicas import SharingProcess
from flow_world import HOME, hold_short_looks_to_whole_ones, tolerant
from replica_world import ReplicaWorld
from replicas import PacedClock, Replica

from mirror.controllers.mirroring import Mirroring
from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.kube.client import Client
from mirror.kube.errors import Unreachable
from mirror.model import names
from mirror.runtime.environment import Environment
from mirror.sharding.coordinator import Holding
from mirror.sharding.slots import Slot, fnv1a, slot_of_worker
from mirror.telemetry.logs import get_log
from mirror.workers.registry_parts import Connector

SLOTS = 3
"""One of them without a worker, where there are ``east`` and ``west``."""
CAPACITY = 2
"""Of ``west``, whatever is registered: so that who assigns late would exceed it."""
LEASE_SECONDS = 30.0
SLOWEST, FASTEST = 0.8, 1.2
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases"


class SlotProcess(SharingProcess):
    """What runs in a ``Replica`` of this world."""

    def __init__(self, world: SlotWorld, replica: Replica) -> None:
        self._world = world
        self._replica = replica
        super().__init__(replica.identity, SLOTS, Environment(PacedClock(replica), get_log("mirror"), world.metrics))

    def management(self, holding: Holding | None) -> Client:
        return self._world.client("management", self._replica, holding)

    async def worker(self, holding: Holding, name: str, kubeconfig: bytes) -> Client:
        cluster = kubeconfig.decode()
        if cluster not in self._world.planes:
            raise Unreachable("no such host")
        return self._world.client(cluster, self._replica, holding)

    def settings(self) -> MirroringSettings:
        return self._world.mirroring_settings()

    def mirroring(self, client: Client, settings: MirroringSettings, connector: Connector) -> Mirroring:
        made = super().mirroring(client, settings, connector)
        hold_short_looks_to_whole_ones(made)
        return made


class SlotWorld(ReplicaWorld):
    """All clusters, and up to five managers that share the workers."""

    MOST: ClassVar[int] = 5
    LEAST: ClassVar[int] = 2

    def __init__(self, *found: Any, **settings: Any) -> None:
        super().__init__(*found, **settings)
        self.processes: dict[Replica, SlotProcess] = {}
        self.deleted_leases: dict[str, float] = {}
        """When somebody deleted a Lease by hand: who holds it does not know that at once."""

    # -- managers ------------------------------------------------------------------------------------------------------

    @property
    def leader(self) -> Replica | None:
        """Who assigns workers, as the Lease has it."""
        holder = self.lease_holder()
        return next((replica for replica in self.replicas if replica.identity == holder), None)

    def start_manager(self) -> None:
        """Start two, unless there is one."""
        if not self.replicas:
            for _ in range(self.LEAST):
                self.start_replica()

    def start_paced(self, rate: float) -> None:
        """One more, whose clock goes at this rate."""
        before = len(self.replicas)
        self.start_replica()
        for replica in self.replicas[before:]:
            replica.rate = rate

    async def kill(self, replica: Replica) -> None:
        await super().kill(replica)
        self.processes.pop(replica, None)

    async def _run_replica(self, replica: Replica) -> None:
        process = self.processes[replica] = SlotProcess(self, replica)
        await process.coordinator.run()

    def client(self, cluster: str, replica: Replica, holding: Holding | None) -> Client:
        """Of what works on a holding; without one, of what writes Leases."""
        if holding is None:
            return self._client(cluster, replica, None, "")
        lease = holding.slot.lease if holding.slot is not None else names.LEASE
        return self._client(cluster, replica, holding.permit, lease)

    def mirroring_settings(self) -> MirroringSettings:
        """Of each process."""
        return self._mirroring_settings()

    # -- Leases --------------------------------------------------------------------------------------------------------

    async def delete_lease(self, name: str) -> None:
        """As somebody with ``kubectl`` does."""
        self.deleted_leases[name] = asyncio.get_running_loop().time()
        await tolerant(self.management.api.delete(f"{LEASES}/{name}"))

    def leases(self) -> list[str]:
        """The names of all that are stored."""
        return [record.name for record in self.management.storage.records("leases.coordination.k8s.io", HOME)]

    def term_of(self, lease: str) -> str:
        """In which term a Lease is held, as it is stored; empty: there is none."""
        found = self.lease(lease)
        if found is None:
            return ""
        uid, transitions = found["metadata"]["uid"], found["spec"].get("leaseTransitions") or 0
        return f"{fnv1a(f'{uid}/{transitions}'):016x}"  # not as the code under test has it: it must not judge itself

    def is_excused(self, lease: str) -> bool:
        """Whether its holder may not know yet that somebody has deleted it."""
        deleted_at = self.deleted_leases.get(lease, float("-inf"))
        return asyncio.get_running_loop().time() < deleted_at + LEASE_SECONDS / SLOWEST

    def holders(self) -> dict[int, list[str]]:
        """Who works on each slot, by its own account, of those that are there."""
        return {
            index: [one.identity for one, process in self.processes.items() if _works_on(process, index)]
            for index in range(SLOTS)
        }

    def stored_holders(self) -> dict[int, str]:
        """Whom the Lease of each slot names."""
        return {index: self.lease_holder(Slot(index, SLOTS).lease) for index in range(SLOTS)}

    def transitions(self) -> Counter[int]:
        """How often each slot has changed hands."""
        return Counter(
            {
                index: ((self.lease(Slot(index, SLOTS).lease) or {}).get("spec") or {}).get("leaseTransitions") or 0
                for index in range(SLOTS)
            }
        )

    # -- workers' Secrets ----------------------------------------------------------------------------------------------

    async def register(self, name: str, **more: Any) -> None:
        if name == "west":
            more.setdefault("capacity", str(CAPACITY))
        await super().register(name, **more)


def lease_of_worker(worker: str) -> str:
    """The name of the Lease that gives the right to write there."""
    return slot_of_worker(worker, SLOTS).lease


def _works_on(process: SlotProcess, index: int) -> bool:
    return any(slot.index == index for slot in process.coordinator.held)
