"""``python -m e2e.bench_jobs [parts] --runs N``: our Job controller beside kube-controller-manager's, on one server.

The two take turns, each with a fresh process, on the same real control plane, whose pods kwok ends. ``bench.jobs``
makes the Jobs and looks from outside; the audit log says how many requests each made, and both tell how long their
syncs took. Printed are one JSON line a run and a table of medians; figures are for ``docs/performance.md``. Not here:
mirroring.

``python -m e2e.bench_jobs trace`` shows what one round of a Job takes, of both, from the audit log (``job_rounds``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import Figures, median, ratio
from e2e import job_rounds
from e2e.bench import ROOT
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import Shape
from e2e.job_controller import UNLIMITED, Flags, JobController, Kind
from e2e.jobs import until
from e2e.manager import Samples

# Nothing but what is measured, kwok and bench.jobs talks to it. Its audit log must not be cut: the requests are in it.
SHAPE = Shape(kwok=True, audit="Metadata", apiserver_args=("--audit-log-maxsize=0", "--delete-collection-workers=8"))
WRITES = ("create", "update", "patch", "delete", "deletecollection")
SYNC_SECONDS = "job_controller_job_sync_duration_seconds"
LEAST_TIMEOUT_SECONDS, SECONDS_PER_POD = 300, 0.05
LOG_SHOWN = 4000
IN_A_ROW = 10.0
"""Seconds in each of which, wherever they begin, the limit must hold."""


@dataclass(frozen=True, slots=True)
class Load:
    """What ``bench.jobs`` is asked for, and what the controllers are allowed."""

    title: str
    jobs: int
    completions: int
    parallelism: int
    qps: int = UNLIMITED
    indexed: bool = False
    small: int = 0

    @property
    def pods(self) -> int:
        return self.jobs * self.completions + self.small

    @property
    def is_limited(self) -> bool:
        return self.qps != UNLIMITED

    def shrunk(self, divisor: int) -> Load:
        """The same with fewer of everything, to try the script."""
        small = -(-self.small // divisor)
        return replace(
            self,
            title=self.title if divisor == 1 else f"{self.title}; all divided by {divisor}",
            jobs=max(min(self.jobs, 2), self.jobs // divisor),
            completions=max(10, self.completions // divisor),
            parallelism=max(5, self.parallelism // divisor),
            small=small,
        )

    def arguments(self) -> list[str]:
        """For ``bench.jobs``."""
        numbers = {"jobs": self.jobs, "completions": self.completions, "parallelism": self.parallelism}
        numbers |= {"small": self.small, "timeout": int(LEAST_TIMEOUT_SECONDS + self.pods * SECONDS_PER_POD)}
        words = [f"--{name}={number}" for name, number in numbers.items()]
        return [*words, *(["--indexed"] if self.indexed else [])]


LOADS = {
    "limited50": [Load("20 Jobs × 50, parallelism 10, 50 QPS", 20, 50, 10, qps=50)],
    "limited100": [Load("20 Jobs × 50, parallelism 10, 100 QPS", 20, 50, 10, qps=100)],
    "unlimited": [Load("20 Jobs × 50, parallelism 10, no limit", 20, 50, 10)],
    "big": [Load("1 Job × 10,000, parallelism 500", 1, 10_000, 500)],
    "big-indexed": [Load("1 Indexed Job × 10,000, parallelism 500", 1, 10_000, 500, indexed=True)],
    "twice": [
        Load("1 Job × 20,000, parallelism 500", 1, 20_000, 500),
        Load("1 Indexed Job × 20,000, parallelism 500", 1, 20_000, 500, indexed=True),
    ],
    "starved": [Load("2 Jobs × 5,000, parallelism 500, and a small Job a second", 2, 5_000, 500, small=60)],
    "hundred-thousand": [Load("1 Job × 100,000, parallelism 500", 1, 100_000, 500)],
}
ONCE = "hundred-thousand"
"""Shown once, by ours alone."""
TRACE = "trace"
"""Not measured: a log that holds what is sent costs the API server more."""
TRACED = ("unlimited", "big")


class _User(msgspec.Struct, frozen=True):
    username: str


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the audit log, as far as it is counted."""

    user: _User
    verb: str
    stage: str
    request_received_timestamp: datetime


_DECODER = msgspec.json.Decoder(_Request)


async def measure(cluster: Cluster, kind: Kind, load: Load) -> Figures:
    """One run of ``bench.jobs``, with all that is to be known about it."""
    log = cluster.directory / "audit.log"
    offset = log.stat().st_size
    # The burst is a second's worth: it says how long the limit may be overdrawn at the start, and nothing else.
    controller = JobController(cluster, kind, Flags(qps=load.qps, burst=load.qps))
    try:
        controller.launch()
        await controller.wait_until_ready()
        named = ("--name", str(kind), "--pid", f"controller={controller.pid}")
        figures = await run_once(cluster, *load.arguments(), *named)
        figures["sync_p99_seconds"] = quantile(0.99, buckets(await controller.metrics()))
        await controller.stop()
    except BaseException:
        print(controller.log[-LOG_SHOWN:], file=sys.stderr)
        raise
    finally:
        await controller.close()
    figures |= await asyncio.to_thread(requests, log, offset, controller.user, load)
    await clean_up(cluster)
    print(json.dumps(figures), flush=True)
    return figures


async def run_once(cluster: Cluster, *more: str) -> Figures:
    """One run of ``bench.jobs``, in a process of its own."""
    command = [sys.executable, "-m", "bench.jobs", "--cluster", str(cluster.kubeconfig)]
    process = await asyncio.create_subprocess_exec(*command, *more, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        text, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise SystemExit(f"not all Jobs ended: {text.decode()}")
    figures: Figures = json.loads(text.decode().splitlines()[0])
    return figures


def requests(log: Path, offset: int, user: str, load: Load) -> Figures:
    """How many requests this user has made since, and whether they kept to the limit.

    The stages of a watch are two lines and one request. What comes before the first write is a start, with its lists.
    """
    times, writes = [], 0
    with log.open("rb") as lines:
        lines.seek(offset)
        for line in lines:
            request = _DECODER.decode(line)
            if request.user.username != user or (request.verb == "watch" and request.stage != "ResponseStarted"):
                continue
            times.append(request.request_received_timestamp.timestamp())
            writes += request.verb in WRITES
    times.sort()
    seconds = times[-1] - times[0]
    found: Figures = {"requests": len(times), "writes": writes, "writes_per_pod": round(writes / load.pods, 3)}
    found["requests_per_second"] = round(len(times) / seconds, 1) if seconds else 0.0
    if load.is_limited:
        found["over_limit"] = max(0.0, round(most_above(times, load.qps), 1))
    return found


def most_above(times: list[float], qps: int) -> float:
    """By how many requests the limit was exceeded at worst: over all of them, and in any ten seconds.

    Args:
        times: when the server had read each request, ascending.
        qps: so many a second are allowed, and a second's worth at once.
    """
    worst = len(times) - (times[-1] - times[0]) * qps - qps
    first = 0
    for last, time in enumerate(times):
        while time - times[first] > IN_A_ROW:
            first += 1
        worst = max(worst, last - first + 1 - IN_A_ROW * qps - qps)
    return worst


def buckets(samples: Samples) -> list[tuple[float, float]]:
    """The histogram of sync durations over all labels: upper bounds, ascending, and how many were at most that."""
    counts: dict[float, float] = {}
    for (name, labels), value in samples.values.items():
        if name == f"{SYNC_SECONDS}_bucket":
            bound = float(dict(labels)["le"])
            counts[bound] = counts.get(bound, 0.0) + value
    return sorted(counts.items())


def quantile(share: float, histogram: list[tuple[float, float]]) -> float:
    """As Prometheus computes it: evenly spread within a bucket; the last bound if it is beyond all of them."""
    rank = share * histogram[-1][1]
    below, lower = 0.0, 0.0
    for bound, count in histogram:
        if count >= rank:
            if bound == float("inf"):
                return lower
            return round(lower + (bound - lower) * (rank - below) / ((count - below) or 1), 3)
        below, lower = count, bound
    return float("nan")


async def clean_up(cluster: Cluster) -> None:
    """Remove the Jobs and pods of the last run, so that the next controller finds a cluster like the last one did."""
    background = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
    async with cluster.client() as client:
        found = await client.list("/api/v1/namespaces")
        for name in (one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith("bench")):
            jobs, pods = f"/apis/batch/v1/namespaces/{name}/jobs", f"/api/v1/namespaces/{name}/pods"
            for path in (jobs, pods):
                # A collection may be too large to go within one request's time.
                await until(partial(_deleted, client, path, background), seconds=600)


async def _deleted(client: Client, path: str, options: Figures) -> bool:
    """Delete what is in a collection, and say whether nothing is left."""
    with suppress(TimeoutError):  # the server goes on nevertheless
        await client.call("DELETE", path, options)
    found = await client.get(f"{path}?limit=1")
    return not found["items"]


ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pods/min", ("pods_per_minute",)),
    ("CPU per pod, ms", ("cpu_ms_per_pod", "controller")),
    ("RSS, MiB", ("rss_mib", "controller")),
    ("job_sync_duration p99, s", ("sync_p99_seconds",)),
    ("writes per pod", ("writes_per_pod",)),
    ("requests per second", ("requests_per_second",)),
    ("requests over the limit, at worst", ("over_limit",)),
    ("small Jobs p50, s", ("small_job_seconds", "p50")),
    ("small Jobs p99, s", ("small_job_seconds", "p99")),
)


def show(title: str, found: dict[Kind, list[Figures]]) -> None:
    """A table of medians with ratios; rows that a load does not have are left out."""
    runs = max(map(len, found.values()))
    print(f"\n{title} (median of {runs} alternating runs)\n")
    print("| | " + " | ".join([*_names(found), *(["ratio"] if len(found) > 1 else [])]) + " |")
    print("|---" * (1 + len(found) + (len(found) > 1)) + "|")
    for name, path in ROWS:
        if all(_has(figures, path) for runs_of_one in found.values() for figures in runs_of_one):
            values = [median(figures, *path) for figures in found.values()]
            print(f"| {name} | " + " | ".join([f"{value:g}" for value in values] + _ratio(values)) + " |")
    print(flush=True)


def show_growth(single: dict[Kind, list[Figures]], double: dict[Kind, list[Figures]], title: str) -> None:
    """What a pod costs in a Job of twice the size, as a ratio."""
    path = ("cpu_ms_per_pod", "controller")
    print(f"{title}: CPU per pod, as a ratio to half of it")
    for kind, figures in double.items():
        half, whole = median(single[kind], *path), median(figures, *path)
        print(f"- {_name(kind)}: {whole:g} / {half:g} ms = {ratio(whole, half):.2f}")
    print(flush=True)


def _names(kinds: Iterable[Kind]) -> list[str]:
    return [_name(kind) for kind in kinds]


def _name(kind: Kind) -> str:
    return {Kind.OURS: "ours", Kind.UPSTREAM: "kube-controller-manager"}[kind]


def _ratio(values: list[float]) -> list[str]:
    if len(values) < 2:
        return []
    ours, theirs = values
    return [f"{ours / theirs:.2f}" if theirs else "–"]


def _has(figures: Figures, path: tuple[str, ...]) -> bool:
    value: Any = figures
    for step in path:
        value = (value or {}).get(step)
    return value is not None


async def trace(options: argparse.Namespace) -> None:
    """Show a round of each controller, with either shape of load."""
    async with Cluster.start("bench", replace(SHAPE, audit="Request")) as cluster:
        for load in (load.shrunk(options.shrink) for part in TRACED for load in LOADS[part]):
            found: dict[Kind, job_rounds.Trace] = {}
            for kind in (Kind.UPSTREAM, Kind.OURS):
                log = cluster.directory / "audit.log"
                offset = log.stat().st_size
                await measure(cluster, kind, load)
                found[kind] = await asyncio.to_thread(job_rounds.read, log, offset, f"job-controller-{kind}")
            show_trace(load.title, found)


def show_trace(title: str, found: dict[Kind, job_rounds.Trace]) -> None:
    """A table of medians over all rounds, and each controller's round of median length, drawn to one scale."""
    figures = {kind: job_rounds.figures(trace) for kind, trace in found.items()}
    print(f"\n{title}: medians of its rounds, ms\n")
    print("| of a round | " + " | ".join(_names(found)) + " |")
    print("|---" * (1 + len(found)) + "|")
    for name in figures[Kind.OURS]:
        print(f"| {name} | " + " | ".join(f"{of_one[name]:g}" for of_one in figures.values()) + " |")
    rounds = {kind: job_rounds.rounds(trace.sent) for kind, trace in found.items()}
    typical = {kind: job_rounds.typical(listed) for kind, listed in rounds.items() if listed}
    for kind, one in typical.items():
        print(f"\n{_name(kind)}")
        print("\n".join(job_rounds.timeline(one, max(other.seconds for other in typical.values()))))
    print(flush=True)


async def run(options: argparse.Namespace) -> None:
    kinds = [Kind.OURS, Kind.UPSTREAM] if options.only is None else [Kind(options.only)]
    over = 0.0
    measured: dict[Load, dict[Kind, list[Figures]]] = {}

    async def compare(load: Load, kinds: list[Kind], runs: int) -> dict[Kind, list[Figures]]:
        """Each in turn; what was measured already is not measured again."""
        if load not in measured:
            found: dict[Kind, list[Figures]] = {kind: [] for kind in kinds}
            measured[load] = found
            for _ in range(runs):
                for kind in reversed(kinds):
                    found[kind].append(await measure(cluster, kind, load))
            show(load.title, found)
        return measured[load]

    async with Cluster.start("bench", SHAPE) as cluster:
        for part in options.parts:
            for load in (load.shrunk(options.shrink) for load in LOADS[part]):
                if part == ONCE:
                    await compare(load, kinds[:1], 1)
                    continue
                found = await compare(load, kinds, options.runs)
                if load.is_limited and Kind.OURS in found:
                    over = max([over, *(figures["over_limit"] for figures in found[Kind.OURS])])
                if part == "twice":
                    halves = LOADS["big-indexed" if load.indexed else "big"]
                    half = await compare(halves[0].shrunk(options.shrink), kinds, options.runs)
                    show_growth(half, found, load.title)
    if over:
        raise SystemExit(f"ours made {over} requests more than it was allowed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts",
        nargs="*",
        choices=[*LOADS, TRACE],
        default=list(LOADS),
        help="what to measure, default all; or trace alone, to see what a round takes",
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each controller")
    parser.add_argument("--only", choices=list(Kind), help="one of the two controllers alone")
    parser.add_argument("--shrink", type=int, default=1, metavar="N", help="an N-th of the load, to try the script")
    options = parser.parse_args()
    options.parts = options.parts or list(LOADS)
    if TRACE in options.parts and len(options.parts) > 1:
        parser.error("trace goes alone")
    asyncio.run(trace(options) if options.parts == [TRACE] else run(options))


if __name__ == "__main__":
    main()
