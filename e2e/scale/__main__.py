"""``python -m e2e.scale``: how much one manager holds, or several, and how they do it.

A crowd of Jobs runs on embedded workers, and managers are started among them: when they are ready, what they write for
it, what they hold, how long their loop was blocked, what they use while nothing happens. Then a wave of Jobs is created
and ends; in a second one the manager that works on most workers is killed, in a third one stopped. Printed are one line
of JSON and a table; the exit code is 1 where a Job ran twice. Clusters and managers share the machine, so times are
longer than they need be; ``--pin`` gives the managers a core of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from bench import outside
from bench.figures import Figures
from e2e.controlplane.scratch import Scratch
from e2e.scale.clusters import Clusters, clusters
from e2e.scale.copies import multiply, originals, unchanged, versions
from e2e.scale.managers import IDENTITY, Managers, managers
from e2e.scale.wave import Wave

LOSSES = {"killed": signal.SIGKILL, "stopped": signal.SIGTERM}
START_SECONDS = 300.0
WAVE_SECONDS = 1200.0
_READS = ("GET", "WATCH")
_ALWAYS = "leases"
"""Written whether there are Jobs or not."""


class Simulation:
    """One run; ``found`` is what it has shown so far."""

    def __init__(self, options: argparse.Namespace, running: Clusters, managed: Managers) -> None:
        self._options = options
        self._clusters = running
        self._managers = managed
        self._crowd_versions: dict[str, int] = {}
        self.found: Figures = {name: getattr(options, name) for name in ("jobs", "workers", "managers", "slots")}

    async def play(self) -> None:
        """All of it."""
        await self._fill()
        await self._start()
        await self._idle()
        await self._wave()
        for how in self._options.lose:
            await self._lose(how)
        self.found["crowd_changed"] = 2 * self._options.jobs - unchanged(self._clusters, self._crowd_versions)
        await self._managers.stop()

    async def _fill(self) -> None:
        began = time.perf_counter()
        self._managers.launch()
        await self._managers.wait_until_ready(START_SECONDS)
        await self._managers.wait_until_connected(START_SECONDS)
        made = await originals(
            self._clusters,
            IDENTITY.managed_by,
            seed=self._options.seed,
            seconds=START_SECONDS + len(self._clusters.workers),
        )
        await self._managers.wait_until_idle(START_SECONDS)
        self.found["base_rss_mib"] = self._managers.rss_mib()
        await self._managers.stop()
        multiply(self._clusters, made, self._options.jobs)
        self._crowd_versions = versions(self._clusters)
        self.found["fill_seconds"] = round(time.perf_counter() - began, 1)
        self.found["clusters_rss_mib"] = outside.rss_mib({"clusters": os.getpid()})["clusters"]

    async def _start(self) -> None:
        before = Counter(self._clusters.requests), Counter(self._clusters.worker_requests)
        began = time.perf_counter()
        self._managers.launch()
        await self._managers.wait_until_ready(START_SECONDS)
        self.found["start_to_ready_seconds"] = round(time.perf_counter() - began, 1)
        await self._managers.wait_until_connected(START_SECONDS)
        self.found["start_to_connected_seconds"] = round(time.perf_counter() - began, 1)
        await self._managers.wait_until_idle(START_SECONDS)
        self.found["start_to_idle_seconds"] = round(time.perf_counter() - began, 1)
        lag = await self._managers.loop_lag_ms()
        if len(self._managers.processes) > 1:
            await self._managers.wait_until_shared_out(START_SECONDS)
            await self._managers.wait_until_idle(START_SECONDS)
        await asyncio.sleep(self._options.idle)  # what a start leaves behind is given back by then
        self.found["start_loop_lag_ms"] = max(lag, await self._managers.loop_lag_ms())
        self.found["start_writes"] = _writes(self._clusters.requests - before[0])
        self.found["start_writes_to_workers"] = _writes(self._clusters.worker_requests - before[1])
        self.found["rss_mib"] = self._managers.rss_mib()

    async def _idle(self) -> None:
        before = Counter(self._clusters.requests), Counter(self._clusters.worker_requests)
        cpu, seconds = self._managers.cpu_seconds(), self._options.idle
        await asyncio.sleep(seconds)
        used = self._managers.cpu_seconds() - cpu
        here, there = self._clusters.requests - before[0], self._clusters.worker_requests - before[1]
        self.found["idle"] = {
            "cpu_percent": round(used / seconds * 100, 1),
            "management_requests_per_second": round(here.total() / seconds, 1),
            "worker_requests_per_second": round(there.total() / seconds, 1),
        }

    async def _wave(self) -> None:
        wave = self._new_wave("wave")
        before = Counter(self._clusters.requests), Counter(self._clusters.worker_requests)
        cpu = self._managers.cpu_seconds()
        await wave.play(WAVE_SECONDS)
        lag = await self._managers.loop_lag_ms()
        await self._managers.wait_until_idle(START_SECONDS)
        used = self._managers.cpu_seconds() - cpu
        here, there = self._clusters.requests - before[0], self._clusters.worker_requests - before[1]
        ours = Counter({name: count for name, count in here.items() if "lease" not in name})
        probes = {name: count for name, count in there.items() if name.startswith("GET namespaces")}
        jobs = len(wave.courses)
        self.found["wave"] = wave.figures() | {
            "cpu_ms_per_job": round(used / jobs * 1000, 2),
            "jobs_per_second_of_a_core": round(jobs / used, 1) if used else 0.0,
            "management_requests_per_job": round(ours.total() / jobs, 2),
            "worker_requests_per_job": round((there.total() - sum(probes.values())) / jobs, 2),
            "loop_lag_ms": lag,
        }

    async def _lose(self, name: str) -> None:
        """During a wave, one manager; it is started again afterwards, or, where it is alone, at once."""
        if len(self._managers.processes) > 1:
            await self._managers.wait_until_shared_out(START_SECONDS)
        wave = self._new_wave(name)
        async with asyncio.TaskGroup() as scope:
            scope.create_task(wave.play(WAVE_SECONDS))
            await wave.until_done(len(wave.courses) // 4)
            process = self._managers.busiest()
            workers, since = self._managers.workers_of(process), time.perf_counter()
            await self._managers.end(process, LOSSES[name])
            if len(self._managers.processes) == 1:
                self._managers.launch_one(process)
        if not process.is_running:
            self._managers.launch_one(process)
        await self._managers.wait_until_ready(START_SECONDS)
        await self._managers.wait_until_idle(START_SECONDS)
        self.found[name] = wave.figures() | {"workers": len(workers)} | wave.waited(workers, since)

    def _new_wave(self, name: str) -> Wave:
        options = self._options
        return Wave(self._clusters, options.wave, name=name, managed_by=IDENTITY.managed_by, rate=options.rate)


def _writes(requests: Counter[str]) -> dict[str, int]:
    """Of these, what changes something that is there without Jobs, too, left out."""
    parts = {name: name.split(" ", 1) for name in requests}
    return {
        name: requests[name]
        for name, (method, resource) in sorted(parts.items())
        if method not in _READS and resource != _ALWAYS and not resource.startswith("selfsubject")
    }


def show(found: Figures) -> None:
    """A table, as ``docs/performance.md`` has them."""
    print("\n| | |\n|---|---|")
    for name, value in found.items():
        for label, one in value.items() if isinstance(value, dict) and value else [("", value)]:
            text = ", ".join(f"{key} {of}" for key, of in one.items()) if isinstance(one, dict) else str(one)
            print(f"| {' '.join(filter(None, (name, label))).replace('_', ' ')} | {text or '–'} |")
    print(flush=True)


async def simulate(options: argparse.Namespace) -> Figures:
    """One run."""
    with closing(Scratch("scale")) as scratch:
        async with (
            clusters(options.workers, scratch.path) as running,
            managers(running, options.managers, options.slots, options.cores) as managed,
        ):
            simulation = Simulation(options, running, managed)
            await simulation.play()
            return simulation.found


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--jobs", type=int, default=20_000, help="that run all the time, one for each worker at least")
    add("--workers", type=int, default=100)
    add("--managers", type=int, default=1, help="with more than one, with slots")
    add("--slots", type=int, default=16)
    add("--wave", type=int, default=1000, help="Jobs of each wave")
    add("--rate", type=float, default=0.0, help="Jobs created a second; 0: as fast as it goes")
    add("--idle", type=float, default=20.0, help="seconds in which nothing happens: after the start, and then measured")
    add("--seed", type=int, default=1, help="of the Jobs' contents")
    add(
        "--lose", choices=list(LOSSES), action="append", help="how a manager goes; by default both, one after the other"
    )
    add("--pin", action="store_true", help="managers on the last core, clusters on the others")
    options = parser.parse_args(given)
    options.lose = options.lose or list(LOSSES)
    if options.jobs < options.workers:
        parser.error(f"--jobs {options.jobs}: there is one for each of {options.workers} workers at least")
    return options


def main() -> int:
    """Simulate and print; the exit code is 1 if a Job had two copies, or one of the crowd was changed."""
    options = arguments()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    options.cores = ()
    if options.pin:
        *others, last = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, others)
        options.cores = (last,)
    try:
        import uvloop
    except ImportError:
        found = asyncio.run(simulate(options))
    else:
        found = uvloop.run(simulate(options))
    print(json.dumps(found))
    show(found)
    is_wrong = found["crowd_changed"] or any(
        found.get(one, {}).get("made_twice") for one in ("wave", "killed", "stopped")
    )
    return int(bool(is_wrong))


if __name__ == "__main__":
    sys.exit(main())
