"""Random users and operators of queues on every cluster, beside all that may happen, for hypothesis (D26).

Jobs and PyTorchJobs share quota and names.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from flow_machine import KINDS, Everybody
from flow_machine_base import CLUSTER, NAMES, WAITS
from flow_world import FlowWorld, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule
from queue_forms import PYTORCH_JOB, Form
from queue_hand import MIN_PARALLELISM
from queue_world import FLAVORS, QueueInvariants, QueueWorld, settle_others

from mirror.model import names

PLENTY = 100
STEPS = st.sampled_from((0.0, 0.0005, 0.004, 0.05, 1.0))
"""Seconds between two writes of a queue."""


class TwoKinds(QueueWorld):
    """In which there are PyTorchJobs beside Jobs."""

    SUBJECT: ClassVar[Form] = PYTORCH_JOB


class Queues(Everybody):
    """All that may happen, and a Kueue on each cluster."""

    WORLD: ClassVar[type[FlowWorld]] = TwoKinds
    world: QueueWorld
    laws: QueueInvariants

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
        await settle_others(self.world, self.laws)

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

    @rule(
        name=NAMES,
        queue=st.sampled_from(("users", "there")),
        run_for=st.sampled_from(("1s", "40s")),
        is_suspended=st.booleans(),
        wait=WAITS,
    )
    def a_user_creates_a_pytorch_job(
        self, name: str, queue: str, run_for: str, is_suspended: bool, wait: float
    ) -> None:
        body = PYTORCH_JOB.held(PYTORCH_JOB.body(name, run_for=run_for), is_suspended)
        body["metadata"]["labels"] = {names.QUEUE_NAME: queue}
        self._do(self._and_wait(tolerant(self.world.management.api.create(PYTORCH_JOB.path(), body)), wait))

    @rule(name=NAMES, is_suspended=st.booleans(), wait=WAITS)
    def a_user_suspends_or_resumes_a_pytorch_job(self, name: str, is_suspended: bool, wait: float) -> None:
        patch = PYTORCH_JOB.held({}, is_suspended)
        self._do(self._and_wait(tolerant(self.world.management.api.merge(PYTORCH_JOB.path(name), patch)), wait))

    @rule(name=NAMES, wait=WAITS)
    def a_user_deletes_a_pytorch_job(self, name: str, wait: float) -> None:
        self._do(self._and_wait(tolerant(self.world.management.api.delete(PYTORCH_JOB.path(name))), wait))

    @rule(cluster=CLUSTER, name=NAMES, times=st.integers(1, 5), step_seconds=STEPS, wait=WAITS)
    def a_queue_preempts(self, cluster: str, name: str, times: int, step_seconds: float, wait: float) -> None:
        hand = self.world.hands[cluster]
        hand.step_seconds = step_seconds
        self._do(self._preempt(cluster, name, times, wait))

    async def _preempt(self, cluster: str, name: str, times: int, wait: float) -> None:
        """What has this name, of both kinds."""
        hand, plane = self.world.hands[cluster], self.world.planes[cluster]
        for _ in range(times):
            for form in self.world.forms if plane.is_running else ():
                for found in await plane.api.list(form.path()):
                    if found["metadata"]["name"] == name:
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
