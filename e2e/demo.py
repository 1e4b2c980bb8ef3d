"""``make demo-real``: management cluster, two workers and manager, all real; a wave of sample Jobs and a live table.

Ends by itself with a summary; exit code 0 if every Job ended as its sample says. Not here: how control planes are
made (``controlplane``), how the manager is started (``manager``), and what Jobs look like (``mirror.planes``).
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live

from e2e.controlplane.assets import MissingBinaries
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.controlplane.provider import Binaries, Planes, control_planes
from e2e.manager import Identity, ManagerProcess
from mirror.kinds.registry import JOB
from mirror.model import names
from mirror.model.views import JobView
from mirror.planes.samples import expected, sample_jobs
from mirror.planes.showing import shares, table_of, view_of

SECONDS = 60.0
JOBS_PATH = "/apis/batch/v1/namespaces/default/jobs"


async def watch_until_all_ended(planes: Planes, console: Console) -> list[JobView]:
    """Show the Jobs until each has ended; raises TimeoutError."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(planes.management.client())
        live = stack.enter_context(Live(console=console, refresh_per_second=8))
        async with asyncio.timeout(SECONDS):
            while True:
                jobs = [view_of(JOB, job) for job in (await client.get(JOBS_PATH))["items"]]
                live.update(table_of(jobs, datetime.now(UTC)))
                if jobs and all(job.is_finished for job in jobs):
                    return jobs
                await asyncio.sleep(0.1)


async def run(console: Console) -> int:
    """The whole demo; returns the exit code."""
    began = time.monotonic()
    identity = Identity("jobmirror-system", names.DEFAULT_MANAGED_BY, "")
    console.print("Starting three Kubernetes control planes (one management cluster, workers east and west) …")
    async with control_planes(workers=2, provider=Binaries(MANAGEMENT, WORKER)) as planes:
        console.print(f"Ready after {time.monotonic() - began:.1f} s. Starting the manager …")
        async with ManagerProcess.start(planes.management, planes.workers, identity=identity) as manager:
            async with planes.management.client() as client, asyncio.TaskGroup() as wave:
                for body in sample_jobs(identity.managed_by):
                    wave.create_task(client.create(JOBS_PATH, body))
            jobs = await watch_until_all_ended(planes, console)
            samples = await manager.metrics()
    wrong = [job for job in jobs if job.state != expected(job)]
    copies = samples.value("jobmirror_create_to_copy_seconds_count") or 1
    latency = samples.value("jobmirror_create_to_copy_seconds_sum") / copies
    console.print(
        f"{len(jobs)} Jobs finished in {time.monotonic() - began:.0f} s, control planes included: {shares(jobs)}; "
        f"a Job was on its worker {latency * 1000:.0f} ms after it was seen, on average."
    )
    for job in wrong:
        console.print(f"[red]{job.name} ended {job.state}, expected {expected(job)}[/]")
    return int(bool(wrong))


def main() -> int:
    console = Console()
    try:
        return asyncio.run(run(console))
    except MissingBinaries as error:
        console.print(f"[red]{error}[/] (make build-controlplane)")
    except TimeoutError:
        console.print("[red]the Jobs did not end in time[/]")
    return 1


if __name__ == "__main__":
    sys.exit(main())
