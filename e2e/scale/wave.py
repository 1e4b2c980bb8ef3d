"""A wave: Jobs that are created, run on whichever worker they get, and end; timed, and judged as they come.

Here is also who plays the workers' Job controllers. Each status is written once the one before is seen on the
management cluster, as ``bench.mirroring`` does from outside; here all is looked at in storage, a turn of the loop after
it is stored.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec

from bench import figures
from bench.figures import Figures
from bench.forms import FORMS
from bench.mirroring import Course, summary
from e2e.scale.clusters import JOBS, JOBS_STORED, Clusters
from e2e.scale.copies import PODS
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Event
from mirror.planes.plane import ControlPlane

_FORM = FORMS["Job"]


class _Shown(msgspec.Struct):
    status: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Shown).decode


class Wave:
    """So many Jobs, which nobody has created yet."""

    def __init__(self, clusters: Clusters, count: int, *, name: str, managed_by: str, rate: float = 0.0) -> None:
        """``rate``: created a second; 0: all at once."""
        self._clusters = clusters
        self._managed_by = managed_by
        self._rate = rate
        self._ended = asyncio.Event()
        self._some: list[tuple[int, asyncio.Event]] = []
        self.courses = {f"{name}-{number:06d}": Course() for number in range(count)}
        self.worker_of: dict[str, str] = {}
        self.copies: Counter[str] = Counter()
        """Copies that were ever made, by the Job's name: one each, or it ran twice."""
        self.done = 0
        self.seconds = 0.0

    @property
    def made_twice(self) -> list[str]:
        """Jobs with more than one copy."""
        return [name for name, count in self.copies.items() if count > 1]

    async def play(self, seconds: float) -> None:
        """Create them and see them through.

        Raises:
            TimeoutError: not all have ended in that time.
        """
        began = time.perf_counter()
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as scope:
            with ExitStack() as stack:
                management = self._clusters.management
                stack.callback(follow(management.storage, self._on_source))
                for name, worker in self._clusters.workers.items():
                    stack.callback(follow(worker.storage, partial(self._on_copy, scope, name, worker)))
                await self._create()
                await self._ended.wait()
        self.seconds = time.perf_counter() - began

    async def until_done(self, count: int) -> None:
        """Until so many have ended."""
        event = asyncio.Event()
        self._some.append((count, event))
        await event.wait()

    def figures(self) -> Figures:
        """What a wave that was played has shown."""
        found = {"jobs": len(self.courses), "done": self.done, "jobs_per_second": round(self.done / self.seconds, 1)}
        return found | summary(list(self.courses.values())) | {"made_twice": len(self.made_twice)}

    def waited(self, workers: set[str], since: float) -> Figures:
        """What was done on these workers after a time (of ``time.perf_counter``) and waited for: copies, statuses."""
        copies, statuses = [], []
        for name, course in self.courses.items():
            if self.worker_of.get(name) in workers:
                if course.copied > since:
                    copies.append(course.copied - max(course.created, since))
                pairs = ((course.written[step], seen) for step, seen in course.seen.items())
                statuses += [seen - max(written, since) for written, seen in pairs if seen > since]
        return {"copies": figures.spread(copies), "statuses": figures.spread(statuses)}

    async def _create(self) -> None:
        began = time.perf_counter()
        for number, (name, course) in enumerate(self.courses.items()):
            if self._rate:
                await asyncio.sleep(began + number / self._rate - time.perf_counter())
            course.created = time.perf_counter()
            body = _FORM.body({"name": name}, pods=PODS, managed_by=self._managed_by, is_suspended=False)
            await self._clusters.management.api.create(JOBS, body)
            await asyncio.sleep(0)  # the servers are in this loop

    def _on_copy(self, scope: asyncio.TaskGroup, name: str, worker: ControlPlane, event: Event) -> None:
        job = event.record.name
        course = self.courses.get(job)
        if course is None or event.previous is not None:
            return
        self.copies[job] += 1
        if self.copies[job] == 1:
            course.copied, self.worker_of[job] = time.perf_counter(), name
            scope.create_task(self._play(worker, job, course))

    async def _play(self, worker: ControlPlane, name: str, course: Course) -> None:
        """Be the Job controller of one copy."""

        async def write(step: str, status: dict[str, Any]) -> None:
            course.written[step] = time.perf_counter()
            await worker.api.merge(f"{JOBS}/{name}/status", {"status": status})

        for ready in range(PODS + 1):
            step = f"ready-{ready}" if ready else "start"
            await write(step, _FORM.status(pods=PODS, ready=ready))
            await course.until_seen(step)
        enough, complete = _FORM.ends(pods=PODS)
        await write("enough", enough)
        await write("complete", complete)

    def _on_source(self, event: Event) -> None:
        course = self.courses.get(event.record.name)
        if course is None or event.is_deletion or "complete" in course.seen:
            return
        for step in _FORM.shown_steps(_decode(event.record.raw).status):
            course.mark(step)
        if "complete" not in course.seen:
            return
        self.done += 1
        for count, reached in self._some:
            if self.done >= count:
                reached.set()
        if self.done == len(self.courses):
            self._ended.set()


def follow(storage: Storage, on_event: Callable[[Event], None]) -> Callable[[], None]:
    """Call for each write to Jobs from now on, in the loop's next turn; what comes back ends it."""
    cursor, loop, is_woken = storage.watch(JOBS_STORED, storage.version), asyncio.get_running_loop(), False

    def take() -> None:
        nonlocal is_woken
        is_woken = False
        for event in cursor.take():
            on_event(event)

    def wake() -> None:
        nonlocal is_woken
        if not is_woken:
            is_woken = True
            loop.call_soon(take)

    return storage.listen(JOBS_STORED, wake)
