"""What is known, kept at hand while somebody looks; when nobody does, nothing here costs anything.

One follower for all who look: it reads everything once, in slices that let others run, and after that only what
changed. ``streams`` and ``serving`` ask. Not here: what is shown of it (``listing``, ``detail``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice

from mirror.model.keys import SourceKey
from mirror.model.views import Known, WorkerView
from mirror.page import detail, listing
from mirror.page.query import Query
from mirror.page.table import Table
from mirror.page.view import View
from mirror.runtime.clock import Clock

GATHER_SECONDS = 0.25
"""Changes of this time are taken together."""
LOOK_SECONDS = 2.0
"""How often it is looked at what nobody tells of: whether we lead, and how late a status is."""
LINGER_SECONDS = 30.0
"""How long all is kept when the last one has gone: he may only have turned a page."""
MOST_LATE = 200
_SLICE = 250
"""Jobs read between two chances for others."""


class NotReady(Exception):
    """Nothing is known yet."""


class Board:
    """What everybody who looks sees. ``run`` fills it; invariant: ``_table`` is set exactly while it follows."""

    def __init__(self, known: Known, *, is_leading: Callable[[], bool], clock: Clock) -> None:
        self._known = known
        self._is_leading = is_leading
        self._clock = clock
        self._table: Table | None = None
        self._workers: tuple[WorkerView, ...] = ()
        self._leads = False
        self._late: set[SourceKey] = set()
        self._lookers = 0
        self._looked_at = float("-inf")
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        self._ready = asyncio.Event()

    # -- for who looks -----------------------------------------------------------------------------------------------

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Keep it up to date during the block, and for a while after it."""
        self._lookers += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._lookers -= 1
            self._looked_at = self._clock.monotonic()

    async def wait_until_ready(self) -> None:
        """Wait until everything has been read."""
        await self._ready.wait()

    @property
    def next_change(self) -> asyncio.Event:
        """Set when something changes after now."""
        return self._changed

    def list_view(self, query: Query) -> View:
        """The list as it is now.

        Raises:
            NotReady: nothing has been read.
        """
        if self._table is None:
            raise NotReady
        seen = listing.ListState(
            is_leading=self._leads,
            workers=self._workers,
            selection=self._table.select(query),
            namespaces=self._table.namespaces(listing.MOST_NAMESPACES),
        )
        return listing.view(seen, query, self._clock.now())

    def job_view(self, key: SourceKey) -> View:
        """One Job as it is now; its story is read only here."""
        job = self._known.job(key)
        seen = detail.JobState(
            is_leading=self._is_leading(),
            key=key,
            job=job,
            timeline=self._known.timeline(key) if job else (),
            obstacles=self._known.placement_obstacles(key) if job and job.state == "Waiting" else {},
        )
        return detail.view(seen, self._clock.now())

    def now(self) -> datetime:
        """What all times are relative to."""
        return self._clock.now()

    def has(self, key: SourceKey) -> bool:
        """Whether there is such a Job."""
        return self._known.job(key) is not None

    def release(self) -> None:
        """Wake everybody, for the end."""
        self._tell()

    # -- the follower ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow whenever somebody looks, for ever."""
        while True:
            await self._wanted.wait()
            try:
                await self._follow()
            finally:
                self._forget()

    async def _follow(self) -> None:
        # Before anything is read, so that nothing falls between.
        changes = aiter(self._known.changes())
        self._table = Table()
        await self._read(self._known.keys())
        self._workers, self._leads = self._known.workers(), self._is_leading()
        self._ready.set()
        self._tell()
        async with asyncio.TaskGroup() as scope:
            taking = scope.create_task(self._take(changes), name="page: take changes")
            await self._look_again()
            taking.cancel()

    async def _take(self, changes: AsyncIterator[frozenset[SourceKey]]) -> None:
        """Follow the changes that are reported."""
        async for changed in changes:
            await self._read(changed)
            await self._read_workers()
            self._tell()
            await asyncio.sleep(GATHER_SECONDS)

    async def _look_again(self) -> None:
        """Look for changes that nobody reports (lag, leadership) while somebody has the page open."""
        while self._lookers or self._clock.monotonic() - self._looked_at < LINGER_SECONDS:
            await asyncio.sleep(LOOK_SECONDS)
            late, leads = list(islice(self._late, MOST_LATE)), self._is_leading()
            if late or leads != self._leads:
                self._leads = leads
                await self._read(late)
                self._tell()

    async def _read(self, keys: Iterable[SourceKey]) -> None:
        """Take over how these Jobs are now."""
        table = self._table
        for number, key in enumerate(keys, 1):
            if table is None:
                return
            job = self._known.job(key)
            table.put(key, job)
            if job is not None and job.lag_seconds is not None:
                self._late.add(key)
            else:
                self._late.discard(key)
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    async def _read_workers(self) -> None:
        """Workers as they are now; what a worker's state says about its Jobs changes with it."""
        before = {worker.name: (worker.state, worker.because) for worker in self._workers}
        self._workers = self._known.workers()
        now = {worker.name: (worker.state, worker.because) for worker in self._workers}
        others = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
        if others and self._table is not None:
            await self._read(self._table.keys_on(others))

    def _tell(self) -> None:
        told, self._changed = self._changed, asyncio.Event()
        told.set()

    def _forget(self) -> None:
        self._ready.clear()
        self._table, self._workers, self._late = None, (), set()
        if not self._lookers:
            self._wanted.clear()
