"""The managers of a simulation: processes as they are installed, one or several that work at once."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec

from bench import outside
from e2e.manager import Identity, ManagerProcess, Samples
from e2e.scale.clusters import LEASES_STORED, NAMESPACE, Clusters
from mirror.sharding.slots import slot_of_lease, slot_of_worker

IDENTITY = Identity(NAMESPACE, "jobmirror.io/controller", "")
LIMITS = {"management": {"qps": 0}, "workers": {"qps": 0}}
_LOOK_SECONDS = 0.1
_REST = 20
"""Between two looks so many times as long as one took."""
_LONGEST_REST_SECONDS = 10.0
"""Less than for how long a manager remembers how late its loop was."""


class Managers:
    """So many of one installation; with one, there are no slots."""

    def __init__(
        self, clusters: Clusters, processes: list[ManagerProcess], slots: int, cores: Collection[int] = ()
    ) -> None:
        """``cores``: those on which they run; all, if none are named."""
        self._clusters = clusters
        self.processes = processes
        self._slots = slots
        self._cores = cores
        self._worst_lag = 0.0

    @property
    def pids(self) -> dict[str, int]:
        """Of those that run."""
        return {str(number): one.pid for number, one in enumerate(self.processes) if one.is_running}

    # -- their lives ------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        """Start all."""
        for one in self.processes:
            self.launch_one(one)

    def launch_one(self, process: ManagerProcess) -> None:
        """Start this one, on the cores of managers."""
        process.launch()
        if self._cores:
            os.sched_setaffinity(process.pid, self._cores)

    async def wait_until_ready(self, seconds: float) -> None:
        """Until each says so, and, of one, that it leads."""
        async with asyncio.TaskGroup() as scope:
            for one in self.processes:
                scope.create_task(one.wait_until_ready(is_leading=self._slots == 1, seconds=seconds))

    async def wait_until_connected(self, seconds: float) -> None:
        """Until every worker is up, by whoever works on it."""
        await self._until(lambda found: _sum(found, "jobmirror_worker_up") >= len(self._clusters.workers), seconds)

    async def wait_until_idle(self, seconds: float) -> None:
        """Until nothing is queued, twice in a row."""
        for _ in range(2):
            await self._until(lambda found: _sum(found, "jobmirror_queue_depth") == 0, seconds)
            await asyncio.sleep(_LOOK_SECONDS)

    async def stop(self) -> None:
        """All, as a rolling update does; each looks at its log."""
        async with asyncio.TaskGroup() as scope:
            for one in self.processes:
                scope.create_task(one.stop())

    # -- what they say and use --------------------------------------------------------------------------------------

    async def loop_lag_ms(self) -> float:
        """How late a loop was at worst since this was last asked, and in the 15 s before that."""
        await self._samples()
        worst, self._worst_lag = self._worst_lag, 0.0
        return round(worst * 1000, 1)

    def rss_mib(self) -> list[int]:
        """Of each."""
        return list(outside.rss_mib(self.pids).values())

    def cpu_seconds(self) -> float:
        """Of all that run, since they began."""
        return sum(outside.cpu_seconds(self.pids).values())

    # -- who works on what ------------------------------------------------------------------------------------------

    def workers_of(self, process: ManagerProcess) -> set[str]:
        """Those on which it works now, by the Leases; all, without slots."""
        if self._slots == 1:
            return set(self._clusters.workers)
        held = set()
        for record in self._clusters.management.storage.records(LEASES_STORED, NAMESPACE):
            slot, holder = slot_of_lease(record.name), _holder(record.raw)
            if slot is not None and f"_{process.pid}_" in holder:
                held.add(slot)
        return {name for name in self._clusters.workers if slot_of_worker(name, self._slots) in held}

    def busiest(self) -> ManagerProcess:
        """Which works on most workers."""
        return max(self.processes, key=lambda one: len(self.workers_of(one)))

    async def wait_until_shared_out(self, seconds: float) -> None:
        """Until all of them work, and somebody works on each worker."""
        async with asyncio.timeout(seconds):
            while True:
                each = [self.workers_of(one) for one in self.processes]
                if all(each) and sum(map(len, each)) == len(self._clusters.workers):
                    return
                await asyncio.sleep(_LOOK_SECONDS)

    async def end(self, process: ManagerProcess, number: signal.Signals) -> None:
        """By this signal, and wait for it."""
        process.send(number)
        await process.wait_until_ended()

    # -- inside -----------------------------------------------------------------------------------------------------

    async def _samples(self) -> list[Samples]:
        found = await asyncio.gather(*(one.metrics() for one in self.processes if one.is_running))
        self._worst_lag = max([self._worst_lag, *(one.value("jobmirror_loop_lag_seconds") for one in found)])
        return found

    async def _until(self, holds: Callable[[list[Samples]], bool], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while True:
                began = time.perf_counter()
                if holds(await self._samples()):
                    return
                # What is measured must not be the looking: metrics of a thousand workers are a long text.
                rest = min((time.perf_counter() - began) * _REST, _LONGEST_REST_SECONDS)
                await asyncio.sleep(max(_LOOK_SECONDS, rest))


def _sum(found: list[Samples], name: str) -> float:
    return sum(one.value(name) for one in found)


class _Spec(msgspec.Struct):
    holder: str | None = msgspec.field(name="holderIdentity", default=None)


class _Lease(msgspec.Struct):
    spec: _Spec


def _holder(raw: bytes) -> str:
    return msgspec.json.decode(raw, type=_Lease).spec.holder or ""


@asynccontextmanager
async def managers(clusters: Clusters, count: int, slots: int, cores: Collection[int] = ()) -> AsyncIterator[Managers]:
    """So many, which do not run yet; what runs at the end is killed."""
    settings: dict[str, Any] = {**LIMITS, "kubeconfig": str(clusters.served.kubeconfig)}
    settings |= {"mirrors": {"retention": "0s"}, "leaderElection": {"leaseDuration": "15s", "renewDeadline": "10s"}}
    settings["leaderElection"]["retryPeriod"] = "2s"
    if count > 1:
        settings["sharding"] = {"slots": slots}
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(count):
            process = ManagerProcess(clusters.served, identity=IDENTITY, settings=settings)
            stack.push_async_callback(_closed(process))
            await process.prepare()
            made.append(process)
        yield Managers(clusters, made, slots if count > 1 else 1, cores)


def _closed(process: ManagerProcess) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        await process.close(removes_namespace=False)

    return close
