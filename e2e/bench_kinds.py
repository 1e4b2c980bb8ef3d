"""``python -m e2e.bench_kinds``: what other kinds cost those who have Jobs alone, and a wave of several kinds.

*switched*: Jobs under three managers in turn: one that knows Jobs alone, one with every built-in kind switched on and
their definitions absent, and the same with them present and unused. *mixed*: Jobs, JobSets and MPIJobs at once, in turn
with as many Jobs. Not here: each kind beside Jobs (``bench``).
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.figures import Figures, median, ratio
from e2e.bench import KINDS, manager, measure, show
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.provider import Binaries, control_planes
from e2e.definitions import defined
from e2e.go_modules import definition_of
from mirror.kinds.declared.choosing import built_in

ALL = built_in()
PARTS = ("switched", "mixed")


@asynccontextmanager
async def served(clusters: tuple[Cluster, Cluster], kinds: list[str]) -> AsyncIterator[None]:
    """These kinds have their definitions on both clusters."""
    clients = [cluster.client() for cluster in clusters]
    try:
        async with defined(clients, [definition_of(kind) for kind in kinds]):
            yield
    finally:
        for client in clients:
            await client.close()


async def switched(clusters: tuple[Cluster, Cluster], runs: int, *more: str) -> None:
    """Jobs alone, by managers that know no other kind, all of which nothing is served, and all of which all is."""
    found: dict[str, list[Figures]] = {"off": [], "absent": [], "present": []}

    async def one(name: str, **settings: Any) -> None:
        async with manager(*clusters, **settings) as running:
            found[name].append(await measure(*clusters, "--pid", f"manager={running.pid}", "--name", name, *more))

    for number in range(runs):
        turns = ["off", "absent", "present"]
        for name in turns[number % 3 :] + turns[: number % 3]:
            if name == "present":
                async with served(clusters, list(ALL)):
                    await one(name, kinds=list(ALL))
            else:
                await one(name, **({"kinds": list(ALL)} if name == "absent" else {}))
    for name in ("absent", "present"):
        title = f"Jobs alone with {len(ALL)} kinds switched on, definitions {name}, {' '.join(more)}"
        show(title, found[name], found["off"], names=(name, "off"))


async def mixed(clusters: tuple[Cluster, Cluster], runs: int, count: int) -> None:
    """A wave of all that ``bench.mirroring`` can create, in turn with as many Jobs."""
    others = [kind for kind in KINDS if kind != "Job"]
    rates: dict[str, list[Figures]] = {"mixed": [], "Jobs": []}
    async with served(clusters, others), manager(*clusters, kinds=others) as running:
        for _ in range(runs):
            each = [await asyncio.gather(*(_wave(clusters, running.pid, kind, count // len(KINDS)) for kind in KINDS))]
            each.append([await _wave(clusters, running.pid, "Job", count)])
            for name, figures in zip(rates, each, strict=True):
                seconds = max(one["seconds"] for one in figures)
                rates[name].append({"per_second": sum(one["done"] for one in figures) / seconds})
    a, b = (median(rates[name], "per_second") for name in rates)
    print(f"\n{count} at once, objects/s: mixed {a:.1f}, Jobs {b:.1f}, ratio {ratio(a, b):.2f}", flush=True)


async def _wave(clusters: tuple[Cluster, Cluster], pid: int | None, kind: str, count: int) -> Figures:
    return await measure(*clusters, "--pid", f"manager={pid}", "--kind", kind, "--jobs", str(count), "--name", kind)


async def run(options: argparse.Namespace) -> None:
    async with control_planes(workers=1, provider=Binaries(BARE, BARE)) as planes:
        management, worker = planes.management, planes.workers["east"]
        assert isinstance(management, Cluster)
        assert isinstance(worker, Cluster)
        clusters = (management, worker)
        if "switched" in options.parts:
            await switched(clusters, options.runs, "--jobs", "40", "--rate", "10")
            await switched(clusters, options.runs, "--jobs", str(options.jobs), "--settle", "10")
        if "mixed" in options.parts:
            await mixed(clusters, options.runs, options.jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=PARTS, help="what to measure; default all")
    parser.add_argument("--runs", type=int, default=3, help="runs of each")
    parser.add_argument("--jobs", type=int, default=1000, help="objects of a burst")
    options = parser.parse_args()
    options.parts = options.parts or list(PARTS)
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
