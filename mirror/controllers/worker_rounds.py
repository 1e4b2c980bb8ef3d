"""Reads something of every worker from time to time, for a score (``placement.policy``).

Soft facts: what cannot be read is unknown, and unknown is neutral. A worker of which it was last read too long ago
counts as one without; so does one that is not reachable, which gets no Jobs anyway. What is read: ``reading_*``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from mirror.kube.errors import KubeError
from mirror.runtime import turns
from mirror.runtime.environment import Environment
from mirror.workers.worker import Worker

Facts = TypeVar("Facts")

INTERVAL_SECONDS = 60.0
LOOK_SECONDS = 1.0
"""Between two looks at who is due: a worker that has just become reachable is read soon."""
LAPSE_SECONDS = 200.0
"""After three rounds without an answer."""
DEADLINE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Reading(Generic[Facts]):
    """What is read, and who gets it."""

    what: str
    """For the log."""
    read: Callable[[Worker], Awaitable[Facts]]
    """Raises KubeError."""
    report: Callable[[str, Facts], None]
    """Takes a worker, and what was read there."""
    nothing: Facts
    """Reported of a worker of which nothing is known any more."""
    interval_seconds: float = INTERVAL_SECONDS


class WorkerRounds(Generic[Facts]):
    """Goes round the workers; each on its own, so that one that hangs delays nobody (D12)."""

    def __init__(self, workers: Mapping[str, Worker], reading: Reading[Facts], *, environment: Environment) -> None:
        self.what = reading.what
        self._workers = workers
        self._reading = reading
        self._log = environment.log
        self._clock = environment.clock
        self._read_at: dict[str, float] = {}
        self._due_at: dict[str, float] = {}
        self._failed: set[str] = set()
        self._busy: set[str] = set()

    async def run(self) -> None:
        """Look at every reachable worker at each interval, until cancelled."""
        async with asyncio.TaskGroup() as scope:
            while True:
                now = self._clock.monotonic()
                for worker in list(self._workers.values()):
                    is_due = now >= self._due_at.get(worker.name, now)
                    if is_due and worker.is_reachable and worker.name not in self._busy:
                        self._busy.add(worker.name)
                        self._due_at[worker.name] = now + self._reading.interval_seconds
                        scope.create_task(self._look(worker), name=f"{self.what} of {worker.name}")
                self._lapse()
                await asyncio.sleep(LOOK_SECONDS)

    async def _look(self, worker: Worker) -> None:
        try:
            await turns.reading().wait()
            async with asyncio.timeout(DEADLINE_SECONDS):
                found = await self._reading.read(worker)
        except (KubeError, TimeoutError) as error:
            if worker.name not in self._failed:
                self._log.warning(f"{self.what} not read", worker=worker.name, error=error)
            self._failed.add(worker.name)
        else:
            self._failed.discard(worker.name)
            if self._workers.get(worker.name) is worker:
                self._read_at[worker.name] = self._clock.monotonic()
                self._reading.report(worker.name, found)
        finally:
            self._busy.discard(worker.name)

    def _lapse(self) -> None:
        """Forget what is too old, and who is a worker no more."""
        now = self._clock.monotonic()
        for name, at in list(self._read_at.items()):
            if name not in self._workers or now - at > LAPSE_SECONDS:
                del self._read_at[name]
                self._reading.report(name, self._reading.nothing)
        self._failed &= self._workers.keys()
        for name in self._due_at.keys() - self._workers.keys():
            del self._due_at[name]
