"""``python -m e2e.bench_embedded``: the embedded API server beside kube-apiserver with etcd, the same load on each.

They take turns, each time with a fresh server, which runs no controllers, since those would make load of their own; how
soon a whole control plane is ready, and what it takes, is looked at by itself. Measured through HTTPS: time to ready,
memory, creates and gets of a Job of 1 KiB with 50 connections, what a stored Job costs, and changes that many watchers
see. The load (``load``) is made by this process, on the same machine. Printed are one JSON line a run and a table of
medians; figures are for ``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from e2e.controlplane.cluster import Cluster
from e2e.controlplane.process import Program
from e2e.controlplane.scratch import Scratch
from e2e.load import Broken, Caller, Load, Watcher, closed_loop, paced

NAMESPACE = "/apis/batch/v1/namespaces/default"
JOBS, CONFIG_MAPS = f"{NAMESPACE}/jobs", "/api/v1/namespaces/default/configmaps"
OBJECT_BYTES = 1024
KNOWN = "known"
EMBEDDED = "embedded"
START_SECONDS = 60.0
CALM_SECONDS = 0.5
CATCH_UP_SECONDS = 30.0

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Running:
    """A server under test."""

    kubeconfig: Path
    pids: list[int]
    ready_seconds: float

    @property
    def rss_kib(self) -> int:
        """Of all its processes."""
        return sum(_status(pid, "VmRSS") for pid in self.pids)

    @property
    def cpu_seconds(self) -> float:
        """Of all its processes, since they began."""
        return sum(_cpu_seconds(pid) for pid in self.pids)


Target = Callable[[], AbstractAsyncContextManager[Running]]


def embedded(controllers: str) -> Target:
    """``mirror apiserver`` with these controllers."""

    @asynccontextmanager
    async def run() -> AsyncIterator[Running]:
        with closing(Scratch("bench-embedded")) as scratch:
            kubeconfig = scratch.path / "kubeconfig"
            command: list[str | Path] = [Path(sys.executable).parent / "mirror", "apiserver", "--listen=127.0.0.1:0"]
            command += [f"--kubeconfig-out={kubeconfig}", f"--controllers={controllers}", "--log-level=warning"]
            program = Program(command, scratch)
            began = time.perf_counter()
            program.start()
            try:
                await _until_ready(program, kubeconfig)
                assert program.pid is not None
                yield Running(kubeconfig, [program.pid], time.perf_counter() - began)
                program.check()
            finally:
                await program.kill()

    return run


@asynccontextmanager
async def upstream() -> AsyncIterator[Running]:
    """kube-apiserver and etcd, which never flushes to disk."""
    began = time.perf_counter()
    async with Cluster.start("bench") as cluster:
        yield Running(cluster.kubeconfig, list(cluster.pids.values()), time.perf_counter() - began)


async def measure(target: Target, options: argparse.Namespace) -> Figures:
    """One run on a fresh server."""
    async with target() as server:
        found = await _measure_start(server)
        load = Load(server.kubeconfig)
        try:
            await _measure_jobs(server, load, found, options)
            await _measure_watches(server, load, found, options)
        finally:
            await load.close()
    return found


async def _measure_start(server: Running) -> Figures:
    await asyncio.sleep(CALM_SECONDS)
    return {"ready_seconds": round(server.ready_seconds, 2), "idle_mib": round(server.rss_kib / 1024, 1)}


async def measure_whole() -> Figures:
    """The start of an embedded control plane with all its controllers."""
    async with embedded("all")() as server:
        return {f"whole_{name}": value for name, value in (await _measure_start(server)).items()}


async def _measure_jobs(server: Running, load: Load, found: Figures, options: argparse.Namespace) -> None:
    callers = await load.callers(options.connections)
    create = load.request("POST", JOBS, job())
    # What is made once (caches, pools) is not the price of a Job.
    await closed_loop(callers, itertools.repeat(create, options.requests // 10 + 1), expected=201)
    await asyncio.sleep(CALM_SECONDS)
    before, cpu = server.rss_kib, server.cpu_seconds
    pace = await closed_loop(callers, itertools.repeat(create, options.requests), expected=201)
    found["creates_per_second"] = round(pace.per_second)
    found["create_p99_ms"] = pace.p99_ms
    found["create_cpu_us"] = round((server.cpu_seconds - cpu) / options.requests * 1e6)
    await asyncio.sleep(CALM_SECONDS)
    size = await _known_job(callers[0], load)
    found["kib_per_job_beside_json"] = round((server.rss_kib - before) / options.requests - size / 1024, 2)
    get = load.request("GET", f"{JOBS}/{KNOWN}")
    cpu = server.cpu_seconds
    pace = await closed_loop(callers, itertools.repeat(get, options.requests), expected=200)
    found["gets_per_second"] = round(pace.per_second)
    found["get_p99_ms"] = pace.p99_ms
    found["get_cpu_us"] = round((server.cpu_seconds - cpu) / options.requests * 1e6)


async def _measure_watches(server: Running, load: Load, found: Figures, options: argparse.Namespace) -> None:
    callers = await load.callers(options.connections)
    for number, caller in enumerate(callers):
        await caller.call(load.request("POST", CONFIG_MAPS, config_map(number, 0)))
    watchers = await load.watchers(options.watchers, f"{CONFIG_MAPS}?watch=true")
    await asyncio.sleep(CALM_SECONDS)
    before = [watcher.count for watcher in watchers]
    count = int(options.changes * options.seconds)
    cpu, began = server.cpu_seconds, time.perf_counter()
    pace = await paced(callers, _changes(load, options, count), per_second=options.changes, expected=200)
    await _until_seen(watchers, before, count)
    seconds = time.perf_counter() - began
    least = min(watcher.count - seen for watcher, seen in zip(watchers, before, strict=True))
    found["changes_seen_per_second"] = round(least / seconds)
    found["change_p99_ms"] = pace.p99_ms
    found["watch_cores"] = round((server.cpu_seconds - cpu) / seconds, 2)
    found["watch_rss_mib"] = round(server.rss_kib / 1024, 1)


def _changes(load: Load, options: argparse.Namespace, count: int) -> Iterator[bytes]:
    """Updates of one object after another, no two the same."""
    for change in range(1, count + 1):
        number = change % options.connections
        body = config_map(number, change)
        yield load.request("PUT", f"{CONFIG_MAPS}/bench-{number}", body)


async def _until_seen(watchers: list[Watcher], before: list[int], count: int) -> None:
    """Until each has seen all of it, or will not."""
    ends = time.perf_counter() + CATCH_UP_SECONDS
    while time.perf_counter() < ends:
        if not any(one.is_open and one.count - seen < count for one, seen in zip(watchers, before, strict=True)):
            return
        await asyncio.sleep(0.005)


async def _known_job(caller: Caller, load: Load) -> int:
    """Create a Job of a known name; gives its bytes as it is served."""
    await caller.call(load.request("POST", JOBS, job(KNOWN)))
    await caller.call(load.request("GET", f"{JOBS}/{KNOWN}"))
    return len(caller.content)


async def _until_ready(program: Program, kubeconfig: Path) -> None:
    ends = time.perf_counter() + START_SECONDS
    while time.perf_counter() < ends:
        program.check()
        if kubeconfig.exists():  # noqa: ASYNC240 - a local file, and nothing else is going on
            load = Load(kubeconfig)
            (caller,) = await load.callers(1)
            status = await caller.call(load.request("GET", "/readyz"))
            await load.close()
            if status == 200:
                return
        await asyncio.sleep(0.01)
    raise Broken(f"{program.name} is not ready in time:\n{program.last_words()}")


def job(name: str = "") -> bytes:
    """A Job whose body, as it is sent, has 1 KiB; of a name that the server makes unless one is given."""
    container = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "true"]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    meta: dict[str, Any] = {**({"name": name} if name else {"generateName": "bench-"}), "labels": {"app": "bench"}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": {"spec": pod}}}
    meta["annotations"] = {"pad": ""}
    meta["annotations"]["pad"] = "x" * (OBJECT_BYTES - len(msgspec.json.encode(body)))
    return msgspec.json.encode(body)


def config_map(number: int, change: int) -> bytes:
    """A ConfigMap that has about 1 KiB as it is served."""
    data = {"change": str(change), "pad": "x" * (OBJECT_BYTES - 420)}
    meta = {"name": f"bench-{number}", "namespace": "default"}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


ROWS = (
    ("with all controllers: ready after, s", "whole_ready_seconds"),
    ("with all controllers: RSS idle, MiB", "whole_idle_mib"),
    ("ready after, s", "ready_seconds"),
    ("RSS idle, MiB", "idle_mib"),
    ("creates/s", "creates_per_second"),
    ("create p99, ms", "create_p99_ms"),
    ("server CPU per create, µs", "create_cpu_us"),
    ("gets/s", "gets_per_second"),
    ("get p99, ms", "get_p99_ms"),
    ("server CPU per get, µs", "get_cpu_us"),
    ("KiB per stored Job beside its JSON", "kib_per_job_beside_json"),
    ("changes/s that every watcher sees", "changes_seen_per_second"),
    ("change p99, ms", "change_p99_ms"),
    ("server cores meanwhile", "watch_cores"),
    ("RSS meanwhile, MiB", "watch_rss_mib"),
)


def show(found: dict[str, list[Figures]]) -> None:
    """A table of medians."""
    runs = max(map(len, found.values()))
    print(f"\nmedian of {runs} alternating runs\n\n| | {' | '.join(found)} |")
    print("|---" * (1 + len(found)) + "|")
    for name, field in ROWS:
        values = [_median(figures, field) for figures in found.values()]
        print(f"| {name} | {' | '.join(values)} |")
    print(flush=True)


def _median(figures: list[Figures], field: str) -> str:
    values = [one[field] for one in figures if field in one]
    return f"{statistics.median(values):g}" if values else "–"


def _status(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def run(options: argparse.Namespace) -> None:
    targets: dict[str, Target] = {}
    if options.only in ("", "embedded"):
        targets[EMBEDDED] = embedded("none")
    if options.only in ("", "upstream"):
        targets["kube-apiserver + etcd"] = upstream
    found: dict[str, list[Figures]] = {name: [] for name in targets}
    for _ in range(options.runs):
        for name, target in targets.items():
            figures = await measure(target, options)
            if name == EMBEDDED:
                figures |= await measure_whole()
            found[name].append(figures)
            print(json.dumps({"name": name, **figures}), flush=True)
    show(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each")
    parser.add_argument("--only", choices=("embedded", "upstream"), default="", help="one of the two alone")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--requests", type=int, default=5000, help="creates, and gets")
    parser.add_argument("--watchers", type=int, default=50)
    parser.add_argument("--changes", type=float, default=1000, help="a second, while there are watchers")
    parser.add_argument("--seconds", type=float, default=5, help="how long there are changes")
    options = parser.parse_args()
    try:
        import uvloop
    except ImportError:
        asyncio.run(run(options))
    else:
        uvloop.run(run(options))


if __name__ == "__main__":
    main()
