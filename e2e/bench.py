"""``make bench``: latency, throughput, cost, outages and size, on real control planes, beside the floor in one run.

``bench.mirroring`` measures from outside, as it does any other controller; here are the manager and the floor
(``bench.minimum``) that it measures in turn. Printed are one JSON line a run and a table of medians. Figures are for
``docs/performance.md``; none is a test. Not here: how control planes are made (``controlplane``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.figures import Figures, median, ratio
from bench.minimum import MANAGED_BY as MINIMUM
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.process import installed_mirror
from e2e.controlplane.provider import Binaries, control_planes
from e2e.definitions import defined
from e2e.go_modules import definition_of
from e2e.jobs import until
from e2e.manager import Identity, ManagerProcess
from e2e.serving import serving_manager

ROOT = Path(__file__).parent.parent
IDENTITY = Identity("jobmirror-system", "jobmirror.io/controller", "")
SETTINGS: dict[str, Any] = {
    "management": {"qps": 0},
    "workers": {"qps": 0},
    "mirrors": {"retention": "0s"},
    "leaderElection": {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"},
}
JOBS = "/apis/batch/v1/namespaces/default/jobs"
OUTAGES_SECONDS = (3, 15, 40)
GETS = 5
KINDS = ("Job", "JobSet", "MPIJob")
WARM_UP = ("--name", "warm-up", "--jobs", "10", "--rate", "2")
PARTS = ("idle", "burst", "kinds", "outage", "scale")


async def measure(management: Cluster, worker: Cluster, *more: str) -> Figures:
    """One run of ``bench.mirroring``, in a process of its own."""
    command = [sys.executable, "-m", "bench.mirroring", "--management", str(management.kubeconfig)]
    command += ["--worker", str(worker.kubeconfig), "--timeout", "600", *more]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        text, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    line = text.decode().splitlines()[0]
    print(line, flush=True)
    figures: Figures = json.loads(line)
    if process.returncode:
        raise SystemExit(f"not all Jobs ended: {text.decode()}")
    return figures


@asynccontextmanager
async def floor(management: Cluster, worker: Cluster, kind: str = "Job") -> AsyncIterator[int]:
    """The theoretical minimum, a loop without checks, running; gives its pid."""
    command = [sys.executable, "-m", "bench.minimum", "--kind", kind]
    command += [str(management.kubeconfig), str(worker.kubeconfig)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield process.pid
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def manager(management: Cluster, worker: Cluster, **more: Any) -> AsyncIterator[ManagerProcess]:
    """The manager, as it is measured; with more settings."""
    settings = {**SETTINGS, **more}
    async with ManagerProcess.start(management, {"east": worker}, identity=IDENTITY, settings=settings) as running:
        yield running


async def kinds(management: Cluster, worker: Cluster, runs: int, *more: str) -> None:
    """Other kinds beside Jobs, by a manager that has all of them, in turn with the floor of each; players run them.

    What a kind's floor takes is what the API servers take for it.
    """
    clients = [management.client(), worker.client()]
    others = [kind for kind in KINDS if kind != "Job"]
    try:
        found: dict[str, list[Figures]] = {kind: [] for kind in KINDS}
        floors: dict[str, list[Figures]] = {kind: [] for kind in KINDS}
        async with defined(clients, [definition_of(kind) for kind in others]):
            for kind in KINDS:  # an API server prepares what it needs for a kind when it is first asked for it
                async with floor(management, worker, kind):
                    await measure(management, worker, "--kind", kind, "--managed-by", MINIMUM, *WARM_UP)
            for _ in range(runs):
                async with manager(management, worker, kinds=others) as running:
                    for kind in KINDS:
                        who = ("--pid", f"manager={running.pid}", "--kind", kind)
                        found[kind].append(await measure(management, worker, *who, *more))
                for kind in KINDS:
                    async with floor(management, worker, kind) as pid:
                        who = ("--pid", f"manager={pid}", "--kind", kind)
                        named = ("--managed-by", MINIMUM, "--name", "floor")
                        floors[kind].append(await measure(management, worker, *who, *named, *more))
        for kind in others:
            show(f"{kind}s beside Jobs, {' '.join(more)}", found[kind], found["Job"], names=(kind, "Job"))
            show(f"The floors of both, {' '.join(more)}", floors[kind], floors["Job"], names=(kind, "Job"))
            show(f"{kind}s beside their floor, {' '.join(more)}", found[kind], floors[kind])
    finally:
        for client in clients:
            await client.close()


async def compare(management: Cluster, worker: Cluster, runs: int, *more: str) -> tuple[list[Figures], list[Figures]]:
    """Manager and floor in turn."""
    ours, theirs = [], []
    for _ in range(runs):
        async with manager(management, worker) as running:
            ours.append(await measure(management, worker, "--pid", f"manager={running.pid}", *more))
        async with floor(management, worker) as pid:
            named = ("--managed-by", MINIMUM, "--name", "floor", "--pid", f"manager={pid}")
            theirs.append(await measure(management, worker, *named, *more))
    return ours, theirs


def show(title: str, ours: list[Figures], theirs: list[Figures], names: tuple[str, str] = ("manager", "floor")) -> None:
    """A table of medians with ratios."""
    print(f"\n{title} (median of {len(ours)} alternating runs)\n\n| | {' | '.join(names)} | ratio |\n|---|---|---|---|")
    rows = (
        ("create → copy p50, ms", ("create_to_copy", "p50_ms")),
        ("create → copy p99, ms", ("create_to_copy", "p99_ms")),
        ("status → management p50, ms", ("status_to_management", "p50_ms")),
        ("status → management p99, ms", ("status_to_management", "p99_ms")),
        ("Jobs/s", ("jobs_per_second",)),
        ("management requests per Job", ("requests_per_job", "management")),
        ("worker requests per Job", ("requests_per_job", "workers")),
        ("CPU per Job, ms", ("cpu_ms_per_job", "manager")),
        ("RSS, MiB", ("rss_mib", "manager")),
    )
    for name, path in rows:
        a, b = median(ours, *path), median(theirs, *path)
        print(f"| {name} | {a:g} | {b:g} | {ratio(a, b):.2f} |")
    print(flush=True)


def big_job(name: str, kilobytes: float) -> dict[str, Any]:
    """A Job whose JSON, as it is stored, has about this size."""
    container = {"name": "c", "image": "bench", "env": [{"name": "PAD", "value": "x" * int(kilobytes * 1024 - 2300)}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "managedBy": IDENTITY.managed_by,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


async def each(items: list[str], at_once: int, work: Any) -> None:
    """Call ``work`` for each item, some at a time."""
    gate = asyncio.Semaphore(at_once)

    async def one(item: str) -> None:
        async with gate:
            await work(item)

    async with asyncio.TaskGroup() as scope:
        for item in items:
            scope.create_task(one(item))


async def outage(management: Cluster, worker: Cluster) -> None:
    """How soon a status flows again after the worker's API server was away."""
    print("\n| worker away | status on management after it is ready again |\n|---|---|")
    async with manager(management, worker), management.client() as here:
        for seconds in OUTAGES_SECONDS:
            name = f"outage-{seconds}"
            await here.create(JOBS, big_job(name, 3.5))
            async with worker.client() as there:
                await there.wait_until(f"{JOBS}/{name}", lambda found: found is not None)
                started = {"startTime": _now(), "active": 1, "ready": 0, "terminating": 0}
                await there.merge(f"{JOBS}/{name}/status", {"status": started})
            await here.wait_until(f"{JOBS}/{name}", lambda found: bool((found or {}).get("status", {}).get("active")))
            await worker.kill_apiserver()
            await asyncio.sleep(seconds)
            await worker.restart_apiserver()
            ready = time.perf_counter()
            async with worker.client() as there:
                await there.merge(f"{JOBS}/{name}/status", {"status": {"ready": 1}})
            await here.wait_until(f"{JOBS}/{name}", lambda found: bool((found or {}).get("status", {}).get("ready")))
            print(f"| {seconds} s | {time.perf_counter() - ready:.2f} s |", flush=True)


async def get(management: Cluster) -> None:
    """What a user waits for who lists them all: ``mirror get``, with what the manager adds.

    The command's CPU time tells how much of it was waiting: for the server, or for a machine that does other things.
    """
    for form in ("table", "json"):
        took, cpu = [], []
        for _ in range(GETS):
            began, used = time.perf_counter(), _cpu_seconds_of_children()
            command = [str(installed_mirror()), "get", "-o", form, "--kubeconfig", str(management.kubeconfig)]
            listing = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            text, _ = await listing.communicate()
            took.append(time.perf_counter() - began)
            cpu.append(_cpu_seconds_of_children() - used)
            assert listing.returncode == 0
        print(
            f"mirror get -o {form}: {statistics.median(took):.2f} s (least {min(took):.2f} s; CPU {min(cpu):.2f} s), "
            f"{len(text) / 2**20:.1f} MiB",
            flush=True,
        )


def _cpu_seconds_of_children() -> float:
    """Of those that have ended: of all that this process does meanwhile, that is the command alone."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def scale(management: Cluster, worker: Cluster, count: int) -> None:
    """Memory with many running Jobs, a restart among them, and a list of them."""
    async with serving_manager(management, {"east": worker}, identity=IDENTITY, settings=SETTINGS) as running:
        await _fill(management, worker, running, count)
        began = time.perf_counter()
        await running.restart()
        await running.wait_until_ready()
        print(f"restart to ready: {time.perf_counter() - began:.1f} s", flush=True)
        await asyncio.sleep(10)  # as long as a person would look at it
        print(f"RSS after the restart: {_rss_mib(running.pid)} MiB", flush=True)
        await get(management)


async def _fill(management: Cluster, worker: Cluster, running: ManagerProcess, count: int) -> None:
    job_names = [f"scale-{number}" for number in range(count)]

    async def create(name: str) -> None:
        await here.create(JOBS, big_job(name, 3.5))

    async def start(name: str) -> None:
        await there.merge(f"{JOBS}/{name}/status", {"status": started})

    started = {"startTime": _now(), "active": 1, "ready": 1, "terminating": 0}
    async with management.client() as here, worker.client() as there:
        began = time.perf_counter()
        await each(job_names, 32, create)
        await until(lambda: _mirrors(running), lambda found: found >= count, seconds=1200)
        print(f"{count} Jobs on their worker after {time.perf_counter() - began:.0f} s", flush=True)
        await each(job_names, 32, start)
        await here.wait_until(f"{JOBS}/{job_names[-1]}", _is_active, seconds=600)
        await until(lambda: _lagging(here), lambda found: found == 0, seconds=600)
        print(f"RSS with {count} running Jobs: {_rss_mib(running.pid)} MiB", flush=True)


def _is_active(found: Any) -> bool:
    return bool((found or {}).get("status", {}).get("active"))


async def _mirrors(running: ManagerProcess) -> float:
    return (await running.metrics()).value("jobmirror_mirrored_jobs", worker="east", state="running")


async def _lagging(here: Client) -> int:
    """How many Jobs have no status yet."""
    found = await here.get(f"{JOBS}?resourceVersion=0")
    return sum(not _is_active(job) for job in found["items"])


def _rss_mib(pid: int) -> int:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) // 1024


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


async def run(options: argparse.Namespace) -> None:
    async with control_planes(workers=1, provider=Binaries(BARE, BARE)) as planes:
        management, worker = planes.management, planes.workers["east"]
        assert isinstance(management, Cluster)
        assert isinstance(worker, Cluster)
        if "idle" in options.parts:
            show(
                "Idle: 40 Jobs, 10 a second",
                *await compare(management, worker, options.runs, "--jobs", "40", "--rate", "10"),
            )
        if "burst" in options.parts:
            more = ("--jobs", str(options.jobs), "--settle", "30")
            show(f"{options.jobs} Jobs at once", *await compare(management, worker, options.runs, *more))
        if "kinds" in options.parts:
            # At ten a second servers of two cores have no idle moment: they take half as much again for each, and more.
            await kinds(management, worker, options.runs, "--jobs", "40", "--rate", "2")
            await kinds(management, worker, options.runs, "--jobs", str(options.jobs), "--settle", "30")
        if "outage" in options.parts:
            await outage(management, worker)
        if "scale" in options.parts:
            await scale(management, worker, options.scale)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=PARTS, help="what to measure; default all")
    parser.add_argument("--runs", type=int, default=3, help="runs of manager and floor each")
    parser.add_argument("--jobs", type=int, default=1000, help="Jobs of a burst")
    parser.add_argument("--scale", type=int, default=20_000, help="running Jobs of the size test")
    options = parser.parse_args()
    options.parts = options.parts or list(PARTS)
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
