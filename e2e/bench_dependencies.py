"""What it costs that something goes along (D27): ``python -m e2e.bench_dependencies [--jobs N] [--rate N]``.

On real control planes, in one run: Jobs without anything, with two ConfigMaps and a Secret that are on the worker
already, and with new ones, in turn. Printed is the time from a Job's create to its copy on the worker, and what the
three reads and three creates take a bare client meanwhile. Figures are for ``docs/performance.md``; none is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence

from e2e.bench import IDENTITY, JOBS, SETTINGS, big_job, each
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.provider import Binaries, control_planes
from e2e.jobs import until
from e2e.manager import ManagerProcess
from mirror.model import names

COPYING = {"dependencies": {"configMaps": True, "secrets": True, "interval": "1m"}}
WAYS = ("nothing", "shared", "new")
"""What goes along with every third Job."""
CORE = "/api/v1/namespaces/default"
KINDS = (("configmaps", "a"), ("configmaps", "b"), ("secrets", "c"))
WARM_UP = 6
"""Jobs at the start that are not counted: connections are opened, shared copies are made."""


def needing(name: str, objects: str) -> Json:
    """A Job that takes two ConfigMaps and a Secret along, whose names begin so; none if that is empty."""
    body = big_job(name, 3.5)
    if objects:
        body["metadata"]["annotations"] = {names.CARRY: "configmaps,secrets"}
        container = body["spec"]["template"]["spec"]["containers"][0]
        container["envFrom"] = [
            {"configMapRef": {"name": f"{objects}-a"}},
            {"configMapRef": {"name": f"{objects}-b"}},
            {"secretRef": {"name": f"{objects}-c"}},
        ]
    return body


async def provide(cluster: Client, objects: str) -> None:
    """What such a Job needs, created at once."""
    async with asyncio.TaskGroup() as scope:
        for kind, letter in KINDS:
            body: Json = {"metadata": {"name": f"{objects}-{letter}"}, "data": {"level": "eA=="}}
            scope.create_task(cluster.create(f"{CORE}/{kind}", body), name="create")


async def bare(here: Client, there: Client, objects: str, count: int) -> list[float]:
    """The milliseconds that the same three objects take to be read here and created there, one set after the other."""
    taken = []
    for number in range(count):
        began = time.perf_counter()
        async with asyncio.TaskGroup() as scope:
            for kind, letter in KINDS:
                scope.create_task(here.get(f"{CORE}/{kind}/{objects}-{letter}"), name="get")
        await provide(there, f"bare-{objects}-{number}")
        taken.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(0.1)
    return taken


class Copies:
    """When each Job was created, and when its copy was seen."""

    def __init__(self) -> None:
        self.created: dict[str, float] = {}
        self.copied: dict[str, float] = {}
        self.bare: list[float] = []

    async def watch(self, there: Client, version: str) -> None:
        """Note copies, until cancelled."""
        async for event in there.watch(JOBS, version):
            self.copied.setdefault(event["object"]["metadata"]["name"], time.perf_counter())

    async def create(self, here: Client, body: Json) -> None:
        """As ``bench.mirroring`` counts: from when the request is sent."""
        self.created[body["metadata"]["name"]] = time.perf_counter()
        await here.create(JOBS, body)

    async def count(self) -> int:
        """How many were seen."""
        return len(self.copied)

    def milliseconds(self, way: str) -> list[float]:
        """Of one way's Jobs, sorted; those at the start are left out."""
        named = [name for name in self.created if name.rpartition("-")[0].endswith(way)][WARM_UP:]
        return sorted(1000 * (self.copied[name] - self.created[name]) for name in named)


async def measure(management: Cluster, worker: Cluster, jobs: int, rate: float, run: int) -> Copies:
    """One manager, as many Jobs of each way, in turn."""
    copies = Copies()
    settings = {**SETTINGS, **COPYING}
    async with management.client() as here, worker.client() as there:
        await each([f"new-{run}-{number}" for number in range(jobs)], 8, lambda name: provide(here, name))
        await provide(here, f"shared-{run}")
        async with ManagerProcess.start(management, {"east": worker}, identity=IDENTITY, settings=settings):
            version = (await there.get(JOBS))["metadata"]["resourceVersion"]
            watching = asyncio.create_task(copies.watch(there, version), name="copies")
            began = time.perf_counter()
            async with asyncio.TaskGroup() as scope:
                for number in range(jobs * len(WAYS)):
                    way, count = WAYS[number % len(WAYS)], number // len(WAYS)
                    objects = {"nothing": "", "shared": f"shared-{run}", "new": f"new-{run}-{count}"}[way]
                    body = needing(f"r{run}-{way}-{count}", objects)
                    await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                    scope.create_task(copies.create(here, body), name="create")
            await until(copies.count, lambda count: count >= jobs * len(WAYS), seconds=60)
            copies.bare = await bare(here, there, f"shared-{run}", jobs)
            await each(list(copies.created), 8, lambda name: _delete(here, name))
            await until(lambda: there.list(JOBS), lambda found: not found, seconds=120)
            watching.cancel()
            await asyncio.wait([watching])
    return copies


async def _delete(here: Client, name: str) -> None:
    try:
        await here.delete(f"{JOBS}/{name}")
    except StatusError as error:
        if error.status != 404:
            raise


def show(runs: Sequence[Copies]) -> None:
    """A row for each way: the median of the runs."""
    print("\n| goes along | p25 | p50 | p99, ms | p50 beyond nothing, ms |\n|---|---|---|---|---|")
    beside = [statistics.median(run.milliseconds("nothing")) for run in runs]
    rows = {way: [run.milliseconds(way) for run in runs] for way in WAYS}
    rows["requests of new, bare"] = [sorted(run.bare) for run in runs]
    for way, found in rows.items():
        parts = (statistics.median(row[int(len(row) * part)] for row in found) for part in (0.25, 0.5, 0.99))
        more = statistics.median(statistics.median(row) - base for row, base in zip(found, beside, strict=True))
        print(
            f"| {way} | {' | '.join(f'{part:.1f}' for part in parts)} | {more if way in WAYS else 0:.1f} |", flush=True
        )


async def run(options: argparse.Namespace) -> None:
    async with control_planes(workers=1, provider=Binaries(BARE, BARE)) as planes:
        management, worker = planes.management, planes.workers["east"]
        assert isinstance(management, Cluster)
        assert isinstance(worker, Cluster)
        runs = []
        for number in range(options.runs):
            runs.append(await measure(management, worker, options.jobs, options.rate, number))
            show(runs[-1:])
        show(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="managers, one after the other")
    parser.add_argument("--jobs", type=int, default=60, help="Jobs of each way and run")
    parser.add_argument("--rate", type=float, default=10, help="Jobs a second")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
