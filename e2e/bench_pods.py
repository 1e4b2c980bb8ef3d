"""What watching pods costs (D22): ``python -m e2e.bench_pods [memory] [burst]``.

``memory``: what the watch keeps of 20,000 pods of ours and of 5,000 in trouble, and the CPU of a change, from lines as
a worker sends them. ``burst``: on real control planes, Jobs a second and the manager's CPU for each whose pod is made,
runs and ends, with and without ``workers.watchPods``, in turn; on a machine that does other work only CPU says much.
Figures are for ``docs/performance.md``; none is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import time
import tracemalloc
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from e2e.bench import JOBS, SETTINGS, each
from e2e.controlplane.client import Client as Outside
from e2e.controlplane.client import Json
from e2e.controlplane.components import BARE
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.provider import Binaries, control_planes
from e2e.jobs import job, until
from e2e.manager import ManagerProcess
from e2e.shipped_life import PULLING
from mirror.kinds.registry import BUILT_IN
from mirror.kube.client import Client
from mirror.kube.requests import Request
from mirror.model import names
from mirror.runtime.clock import SystemClock
from mirror.telemetry.logs import get_log
from mirror.workers.pods import PodHost, PodWatches

PARTS = ("memory", "burst")
RUNNING: Json = {
    "phase": "Running",
    "conditions": [{"type": one, "status": "True"} for one in ("Initialized", "Ready", "PodScheduled")],
    "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}}],
}
AT_ONCE = 16
WAYS = ("none", "labelled")
_TICKS = os.sysconf("SC_CLK_TCK")


def settings(way: str) -> Json:
    """As other measurements, with the setting."""
    return {**SETTINGS, "workers": {**SETTINGS["workers"], "watchPods": way}}


def cpu_ms(manager: ManagerProcess) -> float:
    """Of user and system, since its start."""
    fields = Path(f"/proc/{manager.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / _TICKS


class Replay:
    """In place of a worker's client: a watch of pods that begins with what is there, and goes on; no warnings."""

    def __init__(self, count: int, status: Json) -> None:
        self._count = count
        self._status = status
        self.more: asyncio.Queue[int] = asyncio.Queue()
        """How many changes of pods come next; they are what their status was."""
        self.done = asyncio.Event()

    @asynccontextmanager
    async def stream(self, request: Request, *, silent_seconds: object) -> AsyncIterator[AsyncIterator[bytes]]:
        """As ``Client.stream``."""
        yield self._lines() if request.path.endswith("/pods") else self._nothing()

    async def _lines(self) -> AsyncIterator[bytes]:
        for number in range(self._count):
            yield line("ADDED", number, self._status)
        marks = {"resourceVersion": str(self._count), "annotations": {"k8s.io/initial-events-end": "true"}}
        yield msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": marks}})
        self.done.set()
        while True:
            for number in range(await self.more.get()):
                yield self._prepared[number % len(self._prepared)]
            self.done.set()

    async def _nothing(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    def prepare(self) -> None:
        """What changes look like, made before they are timed."""
        self._prepared = [line("MODIFIED", number, self._status) for number in range(min(self._count, 500))]


def line(type_name: str, number: int, status: Json) -> bytes:
    """A pod as a Job controller makes it of a mirror's template and a kubelet reports it, 4 KB."""
    environment = [{"name": f"VARIABLE_{one}", "value": "x" * 40} for one in range(12)]
    container = {"name": "main", "image": "registry.example/team/training:1.2.3", "env": environment}
    labels = {names.ORIGIN: "here", names.SOURCE_UID: str(uuid.UUID(int=number)), "job-name": f"train-{number}"}
    fields = [{"manager": "kube", "fieldsV1": {f"f:field{one}": {"f:x": {}} for one in range(40)}} for _ in range(2)]
    metadata = {
        "name": f"train-{number}-x7k2p",
        "namespace": "default",
        "uid": str(uuid.UUID(int=number + 2**64)),
        "resourceVersion": str(number + 1),
        "labels": labels,
        "managedFields": fields,
    }
    body = {"metadata": metadata, "spec": {"containers": [container]}, "status": status}
    return msgspec.json.encode({"type": type_name, "object": body})


class NoMirrors:
    """None is warned of."""

    are_synced = True

    def source_uid_of(self, kind: str, namespace: str, name: str, uid: str) -> str | None:
        return None


def watching(replay: Replay) -> asyncio.Task[None]:
    """What a worker's watches of pods do with it."""
    host = PodHost("east", SystemClock(), "here", lambda _: None, NoMirrors(), BUILT_IN)
    watches = PodWatches(host, log=get_log("bench"))
    return asyncio.create_task(watches.run(lambda: cast("Client", replay), [None]), name="watch")


async def memory(count: int, troubled: int) -> None:
    """What ``PodWatches`` keeps of pods, as ``tracemalloc`` counts it."""
    for title, status, pods in (("that run", RUNNING, count), ("in trouble", PULLING, troubled)):
        tracemalloc.start()
        replay = Replay(pods, status)
        before = tracemalloc.get_traced_memory()[0]
        running = watching(replay)
        await replay.done.wait()
        await asyncio.sleep(0.5)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        print(f"{pods} pods {title}: {kept / 1024 / pods:.3f} KiB each", flush=True)
        await stop(running)


async def changes(count: int) -> None:
    """The CPU of each change of a pod."""
    for title, status in (("runs", RUNNING), ("is in trouble", PULLING)):
        replay = Replay(1000, status)
        running = watching(replay)
        await replay.done.wait()
        replay.prepare()
        replay.done.clear()
        began = time.process_time()
        replay.more.put_nowait(count)
        await replay.done.wait()
        each_us = (time.process_time() - began) / count * 1e6
        print(f"a change of a pod that {title}: {each_us:.0f} µs of CPU", flush=True)
        await stop(running)


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


@dataclass(frozen=True, slots=True)
class Burst:
    """What one burst has come to."""

    cpu_ms: float
    """Of the manager, for each Job, from its create to the end of its mirror."""
    jobs_per_second: float
    """From the first create to the last final status."""


async def burst(jobs: int, pairs: int) -> None:
    """The same burst, the manager with and without watching."""
    taken: dict[str, list[Burst]] = {way: [] for way in WAYS}
    async with control_planes(workers=1, provider=Binaries(BARE, Binaries().worker)) as planes:
        for number in range(pairs):
            for way in WAYS if number % 2 == 0 else reversed(WAYS):
                last = await one_burst(planes.management, planes.workers["east"], way, jobs, number)
                taken[way].append(last)
                print(f"{way}: {last.jobs_per_second:.1f} Jobs/s, {last.cpu_ms:.2f} ms of CPU a Job", flush=True)
    for what, unit, of in (("Jobs/s", "", "jobs_per_second"), ("CPU a Job", " ms", "cpu_ms")):
        without, watching = (statistics.median(getattr(one, of) for one in taken[way]) for way in WAYS)
        print(f"| {what} | {without:.2f}{unit} | {watching:.2f}{unit} | {100 * (watching / without - 1):+.1f} % |")


async def one_burst(management: ControlPlane, worker: ControlPlane, way: str, jobs: int, number: int) -> Burst:
    """Jobs created at once, each with a pod that is made, runs and ends."""
    async with (
        management.client() as here,
        worker.client() as there,
        ManagerProcess.start(management, {"east": worker}, settings=settings(way)) as manager,
    ):
        await asyncio.sleep(2)  # what a start costs is not to be counted
        used, began = cpu_ms(manager), time.perf_counter()
        listed = [f"{way}-{number}-{one}" for one in range(jobs)]
        await each(listed, AT_ONCE, lambda name: here.create(JOBS, job(name, manager.managed_by)))
        await until(lambda: _one_left(here), lambda left: not left, seconds=600)
        seconds = time.perf_counter() - began
        await until(lambda: there.list(JOBS), lambda found: not found, seconds=120)
        taken = (cpu_ms(manager) - used) / jobs
        await each(listed, AT_ONCE, lambda name: here.delete(f"{JOBS}/{name}"))
    return Burst(taken, jobs / seconds)


async def _one_left(here: Outside) -> list[dict[str, Any]]:
    """One of those that have not ended, or none: a list of all each moment would be most of what is measured."""
    return await here.list(JOBS, fieldSelector="status.successful!=1", limit="1")


async def run(options: argparse.Namespace) -> None:
    if "memory" in options.parts:
        await memory(options.pods, options.troubled)
        await changes(20_000)
    if "burst" in options.parts:
        await burst(options.jobs, options.pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=list(PARTS), help="what to measure; default all")
    parser.add_argument("--pods", type=int, default=20_000, help="pods of the memory test")
    parser.add_argument("--troubled", type=int, default=5_000, help="those of them in trouble")
    parser.add_argument("--jobs", type=int, default=200, help="Jobs of a burst")
    parser.add_argument("--pairs", type=int, default=3, help="bursts with and without watching")
    options = parser.parse_args()
    options.parts = options.parts or list(PARTS)
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
