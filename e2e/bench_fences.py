"""What fenced Jobs cost while they run: ``python -m e2e.bench_fences [--jobs N] [--minutes N] [--ttl DURATION]``.

On real control planes: so many Jobs with a lease run on one worker, and nothing else happens. Printed is how often a
manager has written to each, on the worker and on the management cluster, by their audit logs. Figures are for
``docs/performance.md``; none is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from datetime import UTC, datetime

from e2e.bench import IDENTITY, JOBS, SETTINGS, big_job, each
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import Shape
from e2e.controlplane.provider import Binaries, control_planes
from e2e.jobs import until
from e2e.manager import ManagerProcess
from mirror.model import names

AUDITED = Shape(audit="Metadata")
READS = ("get", "list", "watch")
SETTLED_SECONDS = 5.0
"""After which nothing of the start is written any more."""


async def run(options: argparse.Namespace) -> None:
    """Have them run, wait, and count."""
    async with control_planes(workers=1, provider=Binaries(AUDITED, AUDITED)) as planes:
        management, worker = planes.management, planes.workers["east"]
        assert isinstance(management, Cluster)
        assert isinstance(worker, Cluster)
        workers = {"onLoss": "Fence", "fenceTTL": options.ttl, "qps": 0}
        settings = {**SETTINGS, "workers": workers}
        async with (
            management.client() as here,
            worker.client() as there,
            ManagerProcess.start(management, {"east": worker}, identity=IDENTITY, settings=settings),
        ):
            await start(here, there, options.jobs)
            await asyncio.sleep(SETTLED_SECONDS)
            since = time.time()
            await asyncio.sleep(60 * options.minutes)  # what is measured: nothing happens meanwhile
            print(f"{options.jobs} fenced Jobs that run for {options.minutes:g} minutes, leases of {options.ttl}:")
            for cluster in (management, worker):
                print(f"{cluster.name}: {await writes(cluster, since, options.jobs)}", flush=True)


async def start(here: Client, there: Client, count: int) -> None:
    """So many run, and have a lease."""
    wanted = [f"fenced-{number}" for number in range(count)]

    async def create(name: str) -> None:
        await here.create(JOBS, big_job(name, 3.5))

    async def begin(name: str) -> None:
        path = f"{JOBS}/{name}"
        await there.wait_until(path, lambda found: found is not None, seconds=600)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        await there.merge(f"{path}/status", {"status": {"startTime": now, "active": 1, "ready": 1, "terminating": 0}})

    async def fenced() -> int:
        return sum(names.FENCE in job["metadata"].get("annotations", {}) for job in await there.list(JOBS))

    await each(wanted, 32, create)
    await each(wanted, 16, begin)
    await until(fenced, lambda ready: ready == count, seconds=600)


async def writes(cluster: Cluster, since: float, jobs: int) -> str:
    """How often each resource was written since then, for each Job, but for the Leases of who leads."""
    found: Counter[str] = Counter()
    for entry in await cluster.audit_entries():
        is_write = entry.verb not in READS and entry.resource not in ("leases", "")
        if is_write and entry.received.timestamp() >= since and entry.user_agent.startswith("jobmirror/"):
            found[f"{entry.verb} {entry.resource} {entry.subresource}".strip()] += 1
    listed = ", ".join(f"{what} {count} ({count / jobs:.3f} a Job)" for what, count in sorted(found.items()))
    return listed or "no writes"


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100, help="how many run")
    parser.add_argument("--minutes", type=float, default=20, help="for how long writes are counted")
    parser.add_argument("--ttl", default="30m", help="workers.fenceTTL")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
