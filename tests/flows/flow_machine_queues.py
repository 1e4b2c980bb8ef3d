"""Random users and operators of queues on every cluster, beside all that may happen, for hypothesis (D26)."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from flow_machine import KINDS, Everybody
from flow_machine_base import CLUSTER, NAMES, WAITS
from flow_world import FlowWorld, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule
from queue_hand import MIN_PARALLELISM
from queue_world import FLAVORS, QueueInvariants, QueueWorld

from mirror.model import names

PLENTY = 100
STEPS = st.sampled_from((0.0, 0.0005, 0.004, 0.05, 1.0))
"""Seconds between two writes of a queue."""


class Queues(Everybody):
    """All that may happen, and a Kueue on each cluster."""

    WORLD: ClassVar[type[FlowWorld]] = QueueWorld
    world: QueueWorld

    def __init__(self) -> None:
        super().__init__()
        self.world.hands["management"].queues = frozenset(("users",))

    def _laws(self) -> QueueInvariants:
        return QueueInvariants(self.world)

    async def _settle(self) -> None:
        for hand in self.world.hands.values():
            hand.quota = PLENTY
            for workload in hand.workloads.values():
                workload.is_active = True
        await super()._settle()

    @rule(
        name=NAMES,
        kind=st.sampled_from(("slow", "wide", "indexed", "failing")),
        queue=st.sampled_from(("users", "there")),
        least=st.sampled_from((None, "1")),
        is_suspended=st.booleans(),
        wait=WAITS,
    )
    def a_user_creates_in_a_queue(
        self, name: str, kind: str, queue: str, least: str | None, is_suspended: bool, wait: float
    ) -> None:
        annotations = {MIN_PARALLELISM: least} if least else None
        body = job(name, annotations=annotations, suspend=is_suspended, **KINDS[kind])
        body["metadata"]["labels"] = {names.QUEUE_NAME: queue}
        self._do(self._and_wait(tolerant(self.world.management.api.create(path(""), body)), wait))

    @rule(cluster=CLUSTER, name=NAMES, times=st.integers(1, 5), step_seconds=STEPS, wait=WAITS)
    def a_queue_preempts(self, cluster: str, name: str, times: int, step_seconds: float, wait: float) -> None:
        hand = self.world.hands[cluster]
        hand.step_seconds = step_seconds
        self._do(self._preempt(cluster, name, times, wait))

    async def _preempt(self, cluster: str, name: str, times: int, wait: float) -> None:
        hand = self.world.hands[cluster]
        for _ in range(times):
            found = await self.world.source(name) if cluster == "management" else None
            if cluster != "management" and self.world.workers[cluster].is_running:
                found = await self.world.mirror(cluster, name)
            if found is not None:
                hand.preempt(found["metadata"]["uid"])
            await asyncio.sleep(wait)

    @rule(cluster=CLUSTER, quota=st.integers(0, 3), flavor=st.sampled_from(FLAVORS), wait=WAITS)
    def an_operator_changes_a_queue(self, cluster: str, quota: int, flavor: str, wait: float) -> None:
        hand = self.world.hands[cluster]
        hand.quota, hand.flavors = quota, [flavor]
        self._do(asyncio.sleep(wait))

    @rule(cluster=CLUSTER, is_active=st.booleans(), wait=WAITS)
    def an_operator_holds_workloads(self, cluster: str, is_active: bool, wait: float) -> None:
        for workload in self.world.hands[cluster].workloads.values():
            workload.is_active = is_active
            workload.is_evicted = workload.is_admitted and not is_active
        self._do(asyncio.sleep(wait))
