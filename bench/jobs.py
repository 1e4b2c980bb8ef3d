"""Times a Job controller, whichever it is: so many Jobs on one cluster, until all have finished.

    python -m bench.jobs --cluster C.kubeconfig --jobs 20 --completions 50 --parallelism 10 --pid controller=1234

Something else ends the pods: kwok with e2e/controlplane's stages.yaml, or kubelets. Printed is one line of JSON: pods
per minute, writes of Jobs per pod, how long small Jobs took beside large ones, CPU and memory of the processes named by
--pid. The namespace stays, and what is in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import figures, outside
from bench.figures import Figures
from e2e.controlplane.client import Client, Json

FINISHED = ("Complete", "Failed")
SMALL = "small-"


def is_finished(job: Json) -> bool:
    """Whether its status says so."""
    conditions = job.get("status", {}).get("conditions") or ()
    return any(one["type"] in FINISHED and one["status"] == "True" for one in conditions)


class Run:
    """One load on one cluster."""

    def __init__(self, options: argparse.Namespace, client: Client, namespace: str) -> None:
        self._options = options
        self._client = client
        self._path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._total = options.jobs + options.small
        self.created: dict[str, float] = {}
        self.finished: dict[str, float] = {}
        self.writes = 0
        """Changes of Jobs that a watch has shown."""

    async def play(self) -> None:
        """Create all Jobs, the small ones one a second, and wait until each has finished."""
        version = await outside.newest(self._client, self._path)
        async with asyncio.TaskGroup() as scope:
            scope.create_task(self._watch(version))
            for number in range(self._options.jobs):
                scope.create_task(self._create(f"large-{number}", self._options.completions, self._options.parallelism))
            for number in range(self._options.small):
                scope.create_task(self._create(f"{SMALL}{number}", 1, 1, after_seconds=number + 1))

    async def _create(self, name: str, completions: int, parallelism: int, *, after_seconds: float = 0) -> None:
        await asyncio.sleep(after_seconds)
        self.created[name] = time.perf_counter()
        await self._client.create(self._path, self._job(name, completions, parallelism))

    def _job(self, name: str, completions: int, parallelism: int) -> Json:
        pod: Json = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "bench"}]}
        if self._options.node:
            pod["nodeName"] = self._options.node
        spec = {"completions": completions, "parallelism": parallelism, "template": {"spec": pod}}
        spec["completionMode"] = "Indexed" if self._options.indexed else "NonIndexed"
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}

    async def _watch(self, version: str) -> None:
        async for event in outside.follow(self._client, self._path, version):
            self.writes += event["type"] == "MODIFIED"
            name = event["object"]["metadata"]["name"]
            if name not in self.finished and is_finished(event["object"]):
                self.finished[name] = time.perf_counter()
                if len(self.finished) == self._total:
                    return


def small_seconds(created: dict[str, float], finished: dict[str, float]) -> Figures | None:
    """How long small Jobs took; None if there were none."""
    took = [end - created[name] for name, end in finished.items() if name.startswith(SMALL)]
    if not took:
        return None
    return {name: round(figures.percentile(took, share), 2) for name, share in (("p50", 0.5), ("p99", 0.99))}


async def measure(options: argparse.Namespace) -> Figures:
    """One run.

    Raises:
        TimeoutError: not all Jobs have finished in time.
    """
    namespace, pids = f"bench-{int(time.time())}", figures.pids(options.pid)
    async with Client(options.cluster, user_agent="bench") as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        run, cpu, started = Run(options, client, namespace), outside.cpu_seconds(pids), time.perf_counter()
        async with asyncio.timeout(options.timeout):
            await run.play()
        seconds, cpu_after = time.perf_counter() - started, outside.cpu_seconds(pids)
    pods = options.jobs * options.completions + options.small
    return {
        "controller": options.name,
        **{name: getattr(options, name) for name in ("jobs", "completions", "indexed")},
        "seconds": round(seconds, 1),
        "pods_per_minute": round(pods / seconds * 60),
        "job_writes_per_pod": round(run.writes / pods, 3),
        "small_job_seconds": small_seconds(run.created, run.finished),
        "cpu_ms_per_pod": {name: round((cpu_after[name] - cpu[name]) / pods * 1000, 2) for name in pids},
        "rss_mib": outside.rss_mib(pids),
    }


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--cluster", type=Path, required=True, help="kubeconfig")
    add("--jobs", type=int, default=20)
    add("--completions", type=int, default=50, help="of each Job")
    add("--parallelism", type=int, default=10, help="of each Job")
    add("--indexed", action="store_true")
    add("--node", default="node-0", help="the node that pods name; empty: a scheduler finds one")
    add("--small", type=int, default=0, help="so many Jobs of one pod besides, one a second: do they starve?")
    add("--pid", action="append", default=[], metavar="NAME=PID", help="a process whose CPU and memory count")
    add("--timeout", type=float, default=1800, help="seconds for all Jobs to finish")
    add("--name", default="controller", help="what the controller is called in the output")
    return parser.parse_args(given)


def main() -> int:
    """Measure and print; the exit code is 1 if a Job has not finished in time."""
    try:
        print(json.dumps(asyncio.run(measure(arguments()))))
    except TimeoutError:
        print("not all Jobs have finished in time", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
