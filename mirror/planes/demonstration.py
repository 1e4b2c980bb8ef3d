"""What ``mirror demo`` shows once clusters and manager run: a wave of sample Jobs, a live table, and how it ended."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live

from mirror.planes.fleet import Fleet
from mirror.planes.samples import expected, sample_jobs
from mirror.planes.showing import Row, row_of, shares, table_of
from mirror.telemetry.metrics import Metrics

SECONDS = 60.0
PACE_SECONDS = 0.1
LOOK_SECONDS = 0.1
JOBS = "/apis/batch/v1/namespaces/default/jobs"
_LATENCY = "jobmirror_create_to_copy_seconds"


async def play(fleet: Fleet, managed_by: str, console: Console) -> list[Row]:
    """Create the samples and show them until each has ended.

    Raises:
        TimeoutError: they do not.
    """
    api = fleet.management.plane.api
    for body in sample_jobs(managed_by):
        await api.create(JOBS, body)
        await asyncio.sleep(PACE_SECONDS)  # users come one by one, and three clusters share this one process
    with Live(console=console, refresh_per_second=8) as live:
        async with asyncio.timeout(SECONDS):
            while True:
                rows = [row_of(job, datetime.now(UTC)) for job in await api.list(JOBS)]
                live.update(table_of(rows))
                if all(row.has_ended for row in rows):
                    break
                await asyncio.sleep(LOOK_SECONDS)
    if not console.is_terminal:
        console.print()  # where nothing is drawn over, the table has no line end
    return rows


def report(rows: list[Row], metrics: Metrics, *, seconds: float, console: Console) -> int:
    """Say how it went; gives the exit code, 0 if every Job ended as its sample says."""
    copies = metrics.registry.get_sample_value(f"{_LATENCY}_count") or 1
    latency = (metrics.registry.get_sample_value(f"{_LATENCY}_sum") or 0.0) / copies
    console.print(
        f"{len(rows)} Jobs ended in {seconds:.1f} s, control planes included: {shares(rows)}; "
        f"a Job was on its worker {latency * 1000:.0f} ms after it was seen, on average.",
        soft_wrap=True,
    )
    wrong = [row for row in rows if row.state != expected(row)]
    for row in wrong:
        console.print(f"[red]{row.name} ended {row.state}, expected {expected(row)}[/]")
    return int(bool(wrong))
