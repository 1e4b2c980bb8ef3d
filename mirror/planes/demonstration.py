"""What ``mirror demo`` shows once clusters and manager run: sample Jobs that wait for room, a worker that is lost and
comes back, failures that are meant, and how it ended. On a terminal a table is drawn over; into a pipe, lines go.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds
from mirror.model import names
from mirror.model.views import JobView
from mirror.planes.fleet import NAMESPACE as MANAGERS
from mirror.planes.fleet import Fleet
from mirror.planes.samples import expected
from mirror.planes.showing import shares, table_of, view_of
from mirror.telemetry.metrics import Metrics

SECONDS = 60.0
PACE_SECONDS = 0.1
LOOK_SECONDS = 0.1
CAPACITY = 3
"""Jobs of each worker at a time, so that others are seen to wait."""
LOST_FROM = 4
"""So many Jobs have ended when a worker is taken away."""
AWAY_SECONDS = 3.5
LOST_AFTER_SECONDS = 1.0
"""``workers.lostAfter`` of the demonstration: it has little time."""
NAMESPACE = "default"
_COPIED = "jobmirror_create_to_copy_seconds"
_FOLLOWED = "jobmirror_status_lag_seconds"
_UP = "jobmirror_worker_up"


@dataclass(frozen=True, slots=True)
class Shown:
    """How a demonstration went."""

    jobs: list[JobView]
    copied_seconds: float
    """From the time that a Job might run to its copy on a worker, on average, of those that need not wait."""
    followed_seconds: float
    """From a change on a worker to the source's status, on average, on workers that were not lost."""


@dataclass(frozen=True, slots=True)
class Script:
    """What comes on the stage."""

    bodies: Sequence[Mapping[str, Any]]
    """Of the samples, in their order."""
    kinds: Kinds
    """The table in which their kinds are."""


class Play:
    """One demonstration: what is on the stage, and what the audience has seen of it."""

    def __init__(self, fleet: Fleet, script: Script, console: Console, metrics: Metrics) -> None:
        self._fleet = fleet
        self._script = script
        self._console = console
        self._metrics = metrics
        self._began = time.monotonic()
        self._kinds: dict[Kind, None] = {}  # in the order in which they come
        self._jobs: list[JobView] = []
        self._told: set[str] = set()
        self._copied_seconds: float | None = None

    async def run(self) -> Shown:
        """Create the samples, take a worker away for a while, and show it all until each Job has ended.

        Raises:
            TimeoutError: they do not end.
        """
        lost = next(iter(self._fleet.workers))
        for name in self._fleet.workers:
            await self._fleet.management.plane.api.merge(
                f"/api/v1/namespaces/{MANAGERS}/secrets/{name}",
                {"metadata": {"annotations": {names.CAPACITY: str(CAPACITY)}}},
            )
        with Live(console=self._console, refresh_per_second=8, transient=False) as live:
            if not self._console.is_terminal:
                live.stop()
            async with asyncio.timeout(SECONDS), self._working(lost):
                while not await self._look(live):  # noqa: ASYNC110 - what is shown is looked at
                    await asyncio.sleep(LOOK_SECONDS)
        if not self._console.is_terminal:
            self._console.print(self._table())
        others = [name for name in self._fleet.workers if name != lost] or [lost]
        followed = [self._mean(_FOLLOWED, worker=name) for name in others]
        return Shown(self._jobs, self._copied_seconds or 0.0, sum(followed) / len(followed))

    @asynccontextmanager
    async def _working(self, lost: str) -> AsyncIterator[None]:
        """Jobs come and a worker goes, beside what is shown."""
        async with asyncio.TaskGroup() as scope:
            scope.create_task(self._create(), name="samples")
            scope.create_task(self._lose(lost), name="loss")
            yield

    async def _create(self) -> None:
        bodies = self._script.bodies
        self._say(f"{_counted(bodies)} are created; each worker takes {CAPACITY} at a time, so others wait.")
        for body in bodies:
            kind = self._script.kinds.of_type(body["apiVersion"], body["kind"])
            assert kind is not None, "a sample is of a kind of the table"
            self._kinds[kind] = None
            await self._fleet.management.plane.api.create(kind.resource.path(NAMESPACE), dict(body))
            await asyncio.sleep(PACE_SECONDS)  # users come one by one, and three clusters share this one process

    async def _lose(self, worker: str) -> None:
        """The worker's API server goes down and comes back; its pods run on."""
        faults = self._fleet.workers[worker].plane.faults
        while sum(job.is_finished for job in self._jobs) < LOST_FROM:  # noqa: ASYNC110 - the audience has seen them
            await asyncio.sleep(LOOK_SECONDS)
        self._say(f"The API server of worker {worker} goes down; its Jobs stay its own.")
        faults.go_down()
        await asyncio.sleep(AWAY_SECONDS)
        faults.restore()
        self._say(f"The API server of worker {worker} is up again.")
        while not self._is_up(worker):  # noqa: ASYNC110 - gauges tell nobody
            await asyncio.sleep(LOOK_SECONDS)
        self._say(f"Worker {worker} is connected again; its Jobs' statuses are read.")

    async def _look(self, live: Live) -> bool:
        """Show the Jobs as they are; gives whether it is over."""
        api, kinds = self._fleet.management.plane.api, list(self._kinds)
        self._jobs = [view_of(kind, job) for kind in kinds for job in await api.list(kind.resource.path(NAMESPACE))]
        if self._copied_seconds is None and self._of_kinds(f"{_COPIED}_count") >= CAPACITY:
            self._copied_seconds = self._of_kinds(f"{_COPIED}_sum") / self._of_kinds(
                f"{_COPIED}_count"
            )  # until now, there was room for all
        if self._console.is_terminal:
            live.update(self._table())
        else:
            self._tell_ends()
        total = len(self._script.bodies)
        is_back = all(map(self._is_up, self._fleet.workers))
        return is_back and len(self._jobs) == total and all(job.is_finished for job in self._jobs)

    def _table(self) -> Table:
        return table_of(self._jobs, datetime.now(UTC), ends=expected, kinds=self._script.kinds)

    def _tell_ends(self) -> None:
        """A line for each Job that has ended since the last look."""
        for job in self._jobs:
            if job.is_finished and job.name not in self._told:
                self._told.add(job.name)
                why = f" ({job.because}, as expected)" if job.state == "Failed" == expected(job) else ""
                self._say(f"{job.name} on {job.worker}: {job.state}{why}")

    def _say(self, text: str) -> None:
        """A line of the story, above the table."""
        self._console.print(f"[dim]{time.monotonic() - self._began:4.1f} s[/]  {text}", highlight=False)

    def _is_up(self, worker: str) -> bool:
        return self._sample(_UP, worker=worker) == 1.0

    def _mean(self, name: str, **labels: str) -> float:
        return self._sample(f"{name}_sum", **labels) / (self._sample(f"{name}_count", **labels) or 1.0)

    def _of_kinds(self, name: str) -> float:
        return sum(self._sample(name, kind=kind.name) for kind in self._kinds)

    def _sample(self, name: str, **labels: str) -> float:
        return self._metrics.registry.get_sample_value(name, labels) or 0.0


def _counted(bodies: Sequence[Mapping[str, Any]]) -> str:
    """How many there are of each kind: ``15 Jobs, 1 JobSet and 1 MPIJob``."""
    counts = Counter(body["kind"] for body in bodies)
    *first, last = (f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items())
    return f"{', '.join(first)} and {last}" if first else last


async def play(fleet: Fleet, script: Script, console: Console, metrics: Metrics) -> Shown:
    """Show it all, and give how it went.

    Raises:
        TimeoutError: they do not end.
    """
    return await Play(fleet, script, console, metrics).run()


def report(shown: Shown, *, seconds: float, console: Console) -> int:
    """Print the result; returns the exit code, 0 if every Job ended as its sample declares."""
    jobs = shown.jobs
    failed = sum(job.state == "Failed" == expected(job) for job in jobs)
    wrong = [job for job in jobs if job.state != expected(job)]
    lines = (
        f"{len(jobs)} Jobs finished in {seconds:.1f} s, control planes included: {shares(jobs)}.",
        f"{failed} failed as expected; {len(wrong) or 'none'} ended otherwise than expected.",
        f"A Job was on its worker {shown.copied_seconds * 1000:.0f} ms after it was seen, where there was room;",
        f"a change there was the Job's status {shown.followed_seconds * 1000:.0f} ms later (averages).",
    )
    for line in lines:
        console.print(line, soft_wrap=True)
    for job in wrong:
        console.print(f"[red]{job.name} ended {job.state}, expected {expected(job)}[/]")
    return int(bool(wrong))
