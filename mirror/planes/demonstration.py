"""What ``mirror demo`` shows once clusters and manager run: a wave of sample Jobs, a live table, and how it ended."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live

from mirror.kinds import registry
from mirror.kinds.base import Kind
from mirror.model.views import JobView
from mirror.planes.fleet import Fleet
from mirror.planes.samples import expected, sample_jobs
from mirror.planes.showing import shares, table_of, view_of
from mirror.telemetry.metrics import Metrics

SECONDS = 60.0
PACE_SECONDS = 0.1
LOOK_SECONDS = 0.1
NAMESPACE = "default"
_LATENCY = "jobmirror_create_to_copy_seconds"


async def play(fleet: Fleet, managed_by: str, console: Console) -> list[JobView]:
    """Create the samples and show them until each has ended.

    Raises:
        TimeoutError: they do not.
    """
    api = fleet.management.plane.api
    kinds: dict[Kind, None] = {}  # in the order in which they come
    for body in sample_jobs(managed_by):
        kind = registry.BUILT_IN.of_type(body["apiVersion"], body["kind"])
        assert kind is not None, "a sample is of a kind of the table"
        kinds[kind] = None
        await api.create(kind.resource.path(NAMESPACE), body)
        await asyncio.sleep(PACE_SECONDS)  # users come one by one, and three clusters share this one process
    with Live(console=console, refresh_per_second=8) as live:
        async with asyncio.timeout(SECONDS):
            while True:
                jobs = [view_of(kind, job) for kind in kinds for job in await api.list(kind.resource.path(NAMESPACE))]
                live.update(table_of(jobs, datetime.now(UTC)))
                if all(job.is_finished for job in jobs):
                    break
                await asyncio.sleep(LOOK_SECONDS)
    if not console.is_terminal:
        console.print()  # where nothing is drawn over, the table has no line end
    return jobs


def report(jobs: list[JobView], metrics: Metrics, *, seconds: float, console: Console) -> int:
    """Say how it went; gives the exit code, 0 if every Job ended as its sample says."""
    copies = metrics.registry.get_sample_value(f"{_LATENCY}_count") or 1
    latency = (metrics.registry.get_sample_value(f"{_LATENCY}_sum") or 0.0) / copies
    console.print(
        f"{len(jobs)} Jobs finished in {seconds:.1f} s, control planes included: {shares(jobs)}; "
        f"a Job was on its worker {latency * 1000:.0f} ms after it was seen, on average.",
        soft_wrap=True,
    )
    wrong = [job for job in jobs if job.state != expected(job)]
    for job in wrong:
        console.print(f"[red]{job.name} ended {job.state}, expected {expected(job)}[/]")
    return int(bool(wrong))
