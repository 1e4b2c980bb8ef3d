"""Times a controller that runs Jobs of a management cluster on workers, whichever it is.

    python -m bench.mirroring --management M.kubeconfig --worker W.kubeconfig --jobs 40 --rate 10 --pid manager=1234
    python -m bench.mirroring … --queue user-queue                 # MultiKueue

It creates Jobs on the management cluster and plays the Job controller of the workers, where none may run: each copy
that is not suspended gets a start, some changes and a completion, each written once the one before is seen on the
management cluster. Printed is one line of JSON:

    create_to_copy         from sending the Job's create until its unsuspended copy is seen on a worker
    status_to_management   from sending a status to a worker until the Job on the management cluster shows it
    jobs_per_second        from the first create to the last completion
    requests_per_job       what the API servers answered meanwhile, without our own; settled first (--settle)
    cpu_ms_per_job, rss_mib    of the processes named by --pid
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench import figures, outside
from bench.figures import Figures
from bench.forms import FORMS, Form
from e2e.controlplane.client import Client, Json, StatusError

OURS, MULTIKUEUE = "jobmirror.io/controller", "kueue.x-k8s.io/multikueue"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Load:
    """What Jobs are created, and how the controller under test knows them."""

    jobs: int
    updates: int = 3
    """Changes of status between a Job's start and its completion."""
    rate: float = 0.0
    """Jobs created per second; 0: as fast as it goes, 64 at a time."""
    managed_by: str = OURS
    labels: Mapping[str, str] = field(default_factory=dict)
    is_suspended: bool = False
    namespace: str = "default"
    form: Form = FORMS["Job"]

    @property
    def path(self) -> str:
        """The collection of Jobs."""
        return self.form.collection(self.namespace)

    @property
    def pods(self) -> int:
        """Of each Job: one more than its updates, each of which makes one more ready."""
        return self.updates + 1

    def job(self, name: str) -> Json:
        """The Job of this name."""
        metadata = {"name": name, "labels": dict(self.labels)}
        return self.form.body(metadata, pods=self.pods, managed_by=self.managed_by, is_suspended=self.is_suspended)


@dataclass(slots=True)
class Course:
    """What happened to one Job, and when, by ``time.perf_counter``."""

    created: float = 0.0
    copied: float = 0.0
    written: dict[str, float] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    awaited: tuple[str, asyncio.Event] | None = None
    """The step that its worker waits for."""

    async def until_seen(self, step: str) -> None:
        """Until the management cluster shows it."""
        if step not in self.seen:
            self.awaited = step, asyncio.Event()
            await self.awaited[1].wait()

    def mark(self, step: str) -> None:
        """The management cluster shows a step; one that was not written by us is nobody's."""
        if step in self.written and step not in self.seen:
            self.seen[step] = time.perf_counter()
            if self.awaited and self.awaited[0] == step:
                self.awaited[1].set()


class Run:
    """One load on one set of clusters."""

    def __init__(self, load: Load, management: Client, workers: Sequence[Client]) -> None:
        self._load = load
        self._management = management
        self._workers = workers
        prefix = f"bench-{time.time_ns() // 1_000_000 % 10**9}"
        self.courses = {f"{prefix}-{number}": Course() for number in range(load.jobs)}
        self._played: set[str] = set()
        self._open = load.jobs
        self._ended = asyncio.Event()
        self.own_writes = 0
        """Requests that we made on workers."""

    @property
    def completed(self) -> int:
        """Jobs that the management cluster shows as complete."""
        return self._load.jobs - self._open

    async def play(self, seconds: float) -> bool:
        """Create the Jobs and see them through; whether all completed in time."""
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as scope:
                begun = [(worker, await self._newest(worker)) for worker in self._workers]
                watches = [scope.create_task(self._watch_worker(*one, scope)) for one in begun]
                watches.append(scope.create_task(self._watch_management(await self._newest(self._management))))
                await self._create_all()
                await self._ended.wait()
                for watch in watches:
                    watch.cancel()
        except TimeoutError:
            return False
        return True

    async def clean_up(self) -> None:
        """Delete the Jobs, and the copies that the controller has left."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def delete(client: Client, name: str) -> None:
            async with gate:
                try:
                    await client.delete(f"{self._load.path}/{name}")
                except StatusError as error:
                    if error.status != 404:
                        raise

        for client in (self._management, *self._workers):
            found = {one["metadata"]["name"] for one in await client.list(self._load.path)}
            async with asyncio.TaskGroup() as scope:
                for name in found & self.courses.keys():
                    scope.create_task(delete(client, name))

    async def _newest(self, client: Client) -> str:
        return await outside.newest(client, self._load.path)

    async def _create_all(self) -> None:
        gate, started = asyncio.Semaphore(AT_ONCE), time.perf_counter()

        async def create(name: str) -> None:
            async with gate:
                self.courses[name].created = time.perf_counter()
                await self._management.create(self._load.path, self._load.job(name))

        async with asyncio.TaskGroup() as scope:
            for number, name in enumerate(self.courses):
                if self._load.rate:
                    await asyncio.sleep(started + number / self._load.rate - time.perf_counter())
                scope.create_task(create(name))

    async def _watch_worker(self, worker: Client, version: str, scope: asyncio.TaskGroup) -> None:
        async for event in outside.follow(worker, self._load.path, version):
            name, spec = event["object"]["metadata"]["name"], event["object"]["spec"]
            course = self.courses.get(name)
            if course is None or event["type"] == "DELETED" or name in self._played:
                continue
            if self._load.form.is_suspended(spec):
                continue
            course.copied = time.perf_counter()
            self._played.add(name)
            scope.create_task(self._play_worker(worker, name, course))

    async def _play_worker(self, worker: Client, name: str, course: Course) -> None:
        """Be the Job controller of one copy."""
        path, pods, form = f"{self._load.path}/{name}/status", self._load.pods, self._load.form

        async def write(step: str, status: Json) -> None:
            course.written[step] = time.perf_counter()
            self.own_writes += 1
            await worker.merge(path, {"status": status})

        for ready in range(pods):
            step = f"ready-{ready}" if ready else "start"
            await write(step, form.status(pods=pods, ready=ready))
            await course.until_seen(step)
        enough, complete = form.ends(pods=pods)
        await write("enough", enough)
        await write("complete", complete)

    async def _watch_management(self, version: str) -> None:
        async for event in outside.follow(self._management, self._load.path, version):
            course = self.courses.get(event["object"]["metadata"]["name"])
            if course is None:
                continue
            was_complete = "complete" in course.seen
            for step in self._load.form.shown_steps(event["object"].get("status") or {}):
                course.mark(step)
            if "complete" in course.seen and not was_complete:
                self._open -= 1
                if not self._open:
                    self._ended.set()


def summary(courses: Sequence[Course]) -> Figures:
    """The latencies of a run."""
    statuses = [seen - one.written[step] for one in courses for step, seen in one.seen.items()]
    copies = [one.copied - one.created for one in courses if one.copied]
    return {"create_to_copy": figures.spread(copies), "status_to_management": figures.spread(statuses)}


async def measure(options: argparse.Namespace) -> tuple[Figures, bool]:
    """One run; the figures, and whether all Jobs completed."""
    load, pids = load_of(options), figures.pids(options.pid)
    async with AsyncExitStack() as stack:
        management, *workers = [
            await stack.enter_async_context(Client(path, user_agent="bench"))
            for path in (options.management, *options.worker)
        ]
        run, clients = Run(load, management, workers), (management, *workers)
        requests = [await outside.requests_answered(client) for client in clients]
        cpu, started = outside.cpu_seconds(pids), time.perf_counter()
        is_done = await run.play(options.timeout)
        seconds = time.perf_counter() - started
        await asyncio.sleep(options.settle)  # what the controller puts off belongs to the Jobs, too
        used = [await outside.requests_answered(client) for client in clients]
        cpu_used = {name: after - cpu[name] for name, after in outside.cpu_seconds(pids).items()}
        memory = outside.rss_mib(pids)
        if not options.keep:
            await run.clean_up()
    found: Figures = {"system": options.name, "jobs": load.jobs, "done": run.completed, "seconds": round(seconds, 2)}
    found["jobs_per_second"] = round(run.completed / seconds, 2)
    found |= summary(list(run.courses.values()))
    found["requests_per_job"] = {
        "management": figures.per_job(requests[0], used[0], load.jobs, load.jobs),
        "workers": figures.per_job(sum(requests[1:]), sum(used[1:]), run.own_writes, load.jobs),
    }
    found["cpu_ms_per_job"] = {name: round(value / load.jobs * 1000, 2) for name, value in cpu_used.items()}
    return found | {"rss_mib": memory}, is_done


def load_of(options: argparse.Namespace) -> Load:
    """What the options say; a queue is MultiKueue's, whose Jobs begin suspended."""
    labels = dict(text.split("=", 1) for text in options.label)
    common = {"jobs": options.jobs, "updates": options.updates, "rate": options.rate, "namespace": options.namespace}
    if options.queue:
        labels[QUEUE_LABEL] = options.queue
    managed_by = options.managed_by or (MULTIKUEUE if options.queue else OURS)
    is_suspended = options.suspend or bool(options.queue)
    form = FORMS[options.kind]
    return Load(managed_by=managed_by, labels=labels, is_suspended=is_suspended, form=form, **common)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--management", type=Path, required=True, help="kubeconfig of the management cluster")
    add("--worker", type=Path, action="append", required=True, help="kubeconfig of a worker; may be repeated")
    add("--jobs", type=int, default=100)
    add("--updates", type=int, default=3, help="changes of status between start and completion of each Job")
    add("--rate", type=float, default=0, help="Jobs created per second; 0: as fast as it goes")
    add("--kind", choices=list(FORMS), default="Job", help="what is created; its definition has to be there")
    add("--managed-by", help=f"spec.managedBy; default {OURS}, or {MULTIKUEUE} with --queue")
    add("--queue", help="Kueue's LocalQueue: the Jobs get its label and begin suspended")
    add("--suspend", action="store_true", help="the Jobs begin suspended")
    add("--label", action="append", default=[], metavar="KEY=VALUE")
    add("--namespace", default="default")
    add("--pid", action="append", default=[], metavar="NAME=PID", help="a process whose CPU and memory count")
    add("--timeout", type=float, default=300, help="seconds for all Jobs to complete")
    add("--settle", type=float, default=2, help="seconds to wait before requests and CPU are read")
    add("--keep", action="store_true", help="do not delete the Jobs afterwards")
    add("--name", default="mirror", help="what the system is called in the output")
    return parser.parse_args(given)


def main() -> int:
    """Measure and print; the exit code is 1 if a Job did not complete."""
    options = arguments()
    found, is_done = asyncio.run(measure(options))
    print(json.dumps(found))
    if not is_done:
        print(f"not all Jobs completed: {found['done']} of {options.jobs}", file=sys.stderr)
    return int(not is_done)


if __name__ == "__main__":
    raise SystemExit(main())
