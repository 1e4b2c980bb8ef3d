"""How soon the Jobs of a lost worker run elsewhere: ``python -m e2e.bench_moves [--jobs N] [--rate N]``.

On real control planes: so many Jobs of four namespaces run on one worker, whose API server is killed; another one has
room for half of them again. Printed is how long after the first move the last Job was recorded there, when its new copy
was there, and by how much capacity was exceeded at any time, as watches of the management cluster and the other worker
show it. Figures are for ``docs/performance.md``; none is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from e2e.bench import IDENTITY, SETTINGS, big_job, each
from e2e.controlplane.client import Client, Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.provider import Binaries, control_planes
from e2e.jobs import placed_on, until
from e2e.manager import ManagerProcess
from mirror.model import names

NAMESPACES = ("team-a", "team-b", "team-c", "team-d")
ALL_JOBS = "/apis/batch/v1/jobs"
LOST_AFTER_SECONDS = 70
"""Nothing is moved in a manager's first minute."""


def collection(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


class Moves:
    """When each Job was seen on the other worker: recorded there, and with a copy."""

    def __init__(self) -> None:
        self.recorded: dict[str, float] = {}
        self.copied: dict[str, float] = {}
        self.on_west: set[str] = set()
        self.most_on_west = 0

    def take_source(self, job: Json) -> None:
        """A version of a source."""
        key = key_of(job)
        if placed_on(job) == "west":
            self.on_west.add(key)
            self.most_on_west = max(self.most_on_west, len(self.on_west))
            self.recorded.setdefault(key, time.perf_counter())
        else:
            self.on_west.discard(key)

    def take_copy(self, job: Json) -> None:
        """A version of a copy on the other worker."""
        self.copied.setdefault(key_of(job), time.perf_counter())

    async def count(self) -> int:
        """How many are recorded on the other worker, and have a copy there."""
        return len(self.recorded.keys() & self.copied.keys())


def key_of(job: Json) -> str:
    return f"{job['metadata']['namespace']}/{job['metadata']['name']}"


async def follow(client: Client, take: Callable[[Json], None]) -> None:
    """Take each version of each Job, until cancelled."""
    listed = await client.get(ALL_JOBS)
    for job in listed["items"]:
        take(job)
    async for event in client.watch(ALL_JOBS, listed["metadata"]["resourceVersion"], timeoutSeconds="3600"):
        take(event["object"])


async def run(options: argparse.Namespace) -> None:
    """Fill one worker, lose it, and see where its Jobs go."""
    async with control_planes(workers=2, provider=Binaries(BARE, BARE)) as planes:
        management, east, west = planes.management, planes.workers["east"], planes.workers["west"]
        assert isinstance(management, Cluster)
        assert isinstance(east, Cluster)
        assert isinstance(west, Cluster)
        workers = {"lostAfter": f"{LOST_AFTER_SECONDS}s", "onLoss": "Reschedule", "moveRate": options.rate, "qps": 0}
        settings = {**SETTINGS, "workers": workers}
        async with (
            management.client() as here,
            west.client() as there,
            east.client() as lost,
            ManagerProcess.start(management, {"east": east}, identity=IDENTITY, settings=settings) as manager,
        ):
            for client in (here, there, lost):
                for namespace in NAMESPACES:
                    await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            await fill(here, lost, options.jobs)
            await manager.register("west", west, annotations={"capacity": str(options.jobs * 3 // 2)})
            await lose(east, here, there, options.jobs)
            manager.expect_complaints("east|moved|lost")


async def fill(here: Client, lost: Client, count: int) -> None:
    """So many Jobs run on the worker that will be lost."""
    status = {"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 1, "terminating": 0}
    keys = [f"{NAMESPACES[number % len(NAMESPACES)]}/moves-{number}" for number in range(count)]

    async def create(key: str) -> None:
        namespace, _, name = key.partition("/")
        await here.create(collection(namespace), big_job(name, 3.5))

    async def start(key: str) -> None:
        namespace, _, name = key.partition("/")
        path = f"{collection(namespace)}/{name}"
        await lost.wait_until(path, lambda found: found is not None, seconds=600)
        await lost.merge(f"{path}/status", {"status": status})

    await each(keys, 32, create)
    await each(keys, 16, start)
    await until(lambda: _running(here), lambda running: running == count, seconds=600)


async def _running(here: Client) -> int:
    found = await here.get(f"{ALL_JOBS}?resourceVersion=0")
    return sum(bool(job.get("status", {}).get("active")) for job in found["items"])


async def lose(east: Cluster, here: Client, there: Client, count: int) -> None:
    """Kill the API server of the one worker, and print how its Jobs moved to the other."""
    moves = Moves()
    followers = [
        asyncio.create_task(follow(here, moves.take_source), name="sources"),
        asyncio.create_task(follow(there, moves.take_copy), name="copies"),
    ]
    await east.kill_apiserver()
    killed = time.perf_counter()
    await until(moves.count, lambda moved: moved >= count, seconds=LOST_AFTER_SECONDS + 600)
    for task in followers:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    first, last = min(moves.recorded.values()), max(moves.recorded.values())
    print(f"{count} Jobs of a lost worker, {len(NAMESPACES)} namespaces, by {names.MOVED}:")
    print(f"first move {first - killed:.1f} s after its API server was killed (lostAfter {LOST_AFTER_SECONDS} s)")
    print(f"last one recorded elsewhere {last - first:.1f} s after the first")
    print(f"last copy there {max(moves.copied.values()) - first:.1f} s after the first move")
    print(f"most at once on the other worker: {moves.most_on_west} of {count * 3 // 2}", flush=True)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000, help="Jobs on the worker that is lost")
    parser.add_argument("--rate", type=int, default=50, help="workers.moveRate")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
