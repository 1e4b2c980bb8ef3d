"""``make demo``: a management cluster, two workers and the manager, all real; a wave of sample Jobs and a live table.

Ends by itself with a summary; exit code 0 if every Job ended as its sample says. Not here: how control planes are
made (``controlplane``) and how the manager is started (``manager``).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.live import Live
from rich.table import Table

from e2e.controlplane.assets import MissingBinaries
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.controlplane.provider import Binaries, Planes, control_planes
from e2e.manager import Identity, ManagerProcess
from mirror.model import names
from mirror.model.text import clean

SAMPLES = Path(__file__).parent.parent / "config" / "samples"
SECONDS = 60.0
JOBS_PATH = "/apis/batch/v1/namespaces/default/jobs"
_COLOURS = {"Complete": "green", "Failed": "red", "Running": "cyan", "Suspended": "yellow", "Waiting": "magenta"}
# What each sample says of itself in its first lines.
EXPECTED = {
    "plain": "Complete",
    "indexed": "Complete",
    "failing": "Failed",
    "pod-failure-policy": "Failed",
    "success-policy": "Complete",
}
COPIES = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One Job as a person sees it."""

    name: str
    worker: str
    state: str
    active: int
    done: str
    failed: int
    age: str
    why: str


def row_of(job: dict[str, Any], now: datetime) -> Row:
    """What the management cluster tells about one Job."""
    metadata, status = job["metadata"], job.get("status") or {}
    true = {c["type"]: c for c in status.get("conditions") or () if c.get("status") == "True"}
    placed = true.get(names.PLACED, {}).get("message", "")
    ended = next((true[kind] for kind in ("Complete", "Failed") if kind in true), None)
    state = ended["type"] if ended else "Suspended" if "Suspended" in true else "Running" if placed else "Waiting"
    waiting = (metadata.get("annotations") or {}).get(names.WAITING_BECAUSE, "")
    done, active, failed = (status.get(name) or 0 for name in ("succeeded", "active", "failed"))
    end = datetime.fromisoformat(ended["lastTransitionTime"]) if ended else now
    age = (end - datetime.fromisoformat(metadata["creationTimestamp"])).total_seconds()
    return Row(
        name=metadata["name"],
        worker=clean(placed) or "–",
        state=state,
        active=active,
        done=f"{done}/{job['spec'].get('completions') or '?'}",
        failed=failed,
        age=f"{max(age, 0):.0f}s",
        why=clean((ended or {}).get("reason") or waiting, longest=60),
    )


def table_of(rows: list[Row]) -> Table:
    """The live table."""
    table = Table(title="Jobs on the management cluster, run by workers", title_justify="left")
    for heading in ("Job", "Worker", "State"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Active", "Done", "Failed", "Age"):
        table.add_column(heading, no_wrap=True, justify="right")
    table.add_column("Why", overflow="ellipsis", no_wrap=True)
    for row in rows:
        state = f"[{_COLOURS[row.state]}]{row.state}[/]"
        table.add_row(row.name, row.worker, state, str(row.active), row.done, str(row.failed), row.age, row.why)
    return table


def sample_jobs(managed_by: str) -> Iterator[dict[str, Any]]:
    """The samples that end by themselves, a few times each."""
    for kind in EXPECTED:
        body = yaml.safe_load((SAMPLES / f"{kind}.yaml").read_text())
        body["spec"]["managedBy"] = managed_by
        for number in range(1, COPIES + 1):
            yield {**body, "metadata": {**body["metadata"], "name": f"{kind}-{number}"}}


async def watch_until_all_ended(planes: Planes, console: Console) -> list[Row]:
    """Show the Jobs until each has ended; raises TimeoutError."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(planes.management.client())
        live = stack.enter_context(Live(console=console, refresh_per_second=8))
        async with asyncio.timeout(SECONDS):
            while True:
                jobs = (await client.get(JOBS_PATH))["items"]
                rows = [row_of(job, datetime.now(UTC)) for job in jobs]
                live.update(table_of(sorted(rows, key=lambda row: row.name)))
                if rows and all(row.state in ("Complete", "Failed") for row in rows):
                    return rows
                await asyncio.sleep(0.1)


async def run(console: Console) -> int:
    """The whole demo; returns the exit code."""
    began = time.monotonic()
    identity = Identity("jobmirror-system", names.DEFAULT_MANAGED_BY, "")
    console.print("Starting three Kubernetes control planes (one management cluster, workers east and west) …")
    async with control_planes(workers=2, provider=Binaries(MANAGEMENT, WORKER)) as planes:
        console.print(f"They are ready after {time.monotonic() - began:.1f} s. Starting the manager …")
        async with ManagerProcess.start(planes.management, planes.workers, identity=identity) as manager:
            async with planes.management.client() as client, asyncio.TaskGroup() as wave:
                for body in sample_jobs(identity.managed_by):
                    wave.create_task(client.create(JOBS_PATH, body))
            rows = await watch_until_all_ended(planes, console)
            samples = await manager.metrics()
    wrong = [row for row in rows if row.state != EXPECTED[row.name.rpartition("-")[0]]]
    copies = samples.value("jobmirror_create_to_copy_seconds_count") or 1
    latency = samples.value("jobmirror_create_to_copy_seconds_sum") / copies
    by_worker = {worker: sum(row.worker == worker for row in rows) for worker in sorted({row.worker for row in rows})}
    console.print(
        f"{len(rows)} Jobs ended in {time.monotonic() - began:.0f} s, control planes included: "
        + ", ".join(f"{count} on {worker}" for worker, count in by_worker.items())
        + f"; a Job was on its worker {latency * 1000:.0f} ms after it was seen, on average."
    )
    for row in wrong:
        console.print(f"[red]{row.name} ended {row.state}, expected {EXPECTED[row.name.rpartition('-')[0]]}[/]")
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
