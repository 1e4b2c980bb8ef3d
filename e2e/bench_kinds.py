"""``python -m e2e.bench_kinds``: what other kinds cost those who have Jobs alone, and a wave of several kinds.

*switched*: Jobs under three managers in turn: one that knows Jobs alone, one with every built-in kind switched on and
their definitions absent, and the same with them present and unused. *mixed*: Jobs, JobSets and MPIJobs at once, in turn
with as many Jobs. Not here: each kind beside Jobs (``bench``).
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from bench.figures import Figures, median, ratio
from bench.minimum import MANAGED_BY as MINIMUM
from e2e.bench import KINDS, floor, manager, measure, show
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
    """A wave of all that ``bench.mirroring`` can create, in turn with as many Jobs; of the floor, the same.

    What a custom resource takes the API servers more than a Job, the floors show: a loop without checks for each kind.
    """
    others = [kind for kind in KINDS if kind != "Job"]
    rates: dict[str, list[Figures]] = {name: [] for name in ("mixed", "Jobs", "floor mixed", "floor Jobs")}
    async with served(clusters, others):
        for _ in range(runs):
            async with manager(*clusters, kinds=others) as running:
                more = ("--pid", f"manager={running.pid}")
                rates["mixed"].append(await _waves(clusters, KINDS, count // len(KINDS), *more))
                rates["Jobs"].append(await _waves(clusters, ("Job",), count, *more))
            more = ("--managed-by", MINIMUM)
            async with AsyncExitStack() as floors:
                for kind in KINDS:
                    await floors.enter_async_context(floor(*clusters, kind))
                rates["floor mixed"].append(await _waves(clusters, KINDS, count // len(KINDS), *more))
                rates["floor Jobs"].append(await _waves(clusters, ("Job",), count, *more))
    for a, b in (("mixed", "Jobs"), ("floor mixed", "floor Jobs"), ("mixed", "floor mixed"), ("Jobs", "floor Jobs")):
        one, other = (median(rates[name], "per_second") for name in (a, b))
        print(f"\n{count} at once, objects/s: {a} {one:.1f}, {b} {other:.1f}: {ratio(one, other):.2f}", flush=True)


async def _waves(clusters: tuple[Cluster, Cluster], kinds: Sequence[str], each: int, *more: str) -> Figures:
    """So many of each of these kinds at once."""
    waves = (measure(*clusters, "--kind", kind, "--jobs", str(each), "--name", kind, *more) for kind in kinds)
    found = await asyncio.gather(*waves)
    seconds = max(one["seconds"] for one in found)
    return {"per_second": sum(one["done"] for one in found) / seconds}


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
