"""The state that pages show, kept up to date while a page is open; without one it costs nothing.

One follower for all who look: it reads everything once, in slices that let others run, and after that only what
changed. ``streams`` and ``serving`` ask. Not here: what is shown of it (``listing``, ``detail``).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from datetime import datetime
from itertools import islice

from mirror.model.keys import SourceKey
from mirror.model.views import Known, WorkerView
from mirror.page import detail, listing
from mirror.page.activity import Activity, Bar, bars_of
from mirror.page.health import judged, outlined
from mirror.page.query import Query
from mirror.page.scope import Scope, seen_workers
from mirror.page.table import PAGE_JOBS, Table
from mirror.page.view import View
from mirror.runtime.clock import Clock

GATHER_SECONDS = 0.15
"""Changes of this time are taken together."""
LOOK_SECONDS = 2.0
"""How often it is looked at what nobody tells of: whether we lead, who follows which worker, how late a status is."""
LINGER_SECONDS = 30.0
"""How long all is kept when the last one has gone: he may only have turned a page."""
MOST_LATE = 200
CHART_SECONDS = 10.0
"""How often the chart is drawn anew, and with it what depends on time alone."""
MOST_VIEWS = 32
"""Kept while nothing changes, so that many who look at the same cost as one."""
MOST_SCOPES = 16
_SLICE = 250
"""Jobs read between two chances for others."""
_WAITING = ""
"""The worker of Jobs that have none: who assigns knows more of them than others."""


class NotReady(Exception):
    """Nothing is known yet."""


class Board:
    """What everybody who looks sees. ``run`` fills it; invariant: ``_table`` is set exactly while it follows."""

    def __init__(self, known: Known, *, is_leading: Callable[[], bool], clock: Clock, is_shared: bool = False) -> None:
        """``is_shared``: several managers work at once; who leads assigns workers."""
        self._known = known
        self._is_leading = is_leading
        self._clock = clock
        self._is_shared = is_shared
        self._table: Table | None = None
        self._workers: dict[str, WorkerView] = {}
        self._leads = False
        self._owners: Hashable = None
        self._activity = Activity()
        self._bars: tuple[Bar, ...] = ()
        self._charted_at = float("-inf")
        self._views: OrderedDict[tuple[Query, Scope | None], View] = OrderedDict()
        """Invariant: as a view made now would be; emptied when anything changes."""
        self._tables: OrderedDict[Scope, tuple[int, Table]] = OrderedDict()
        """What may be seen by those who may not see all, and of which version it is."""
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
    def is_ready(self) -> bool:
        """Whether everything has been read."""
        return self._ready.is_set()

    @property
    def next_change(self) -> asyncio.Event:
        """Set when something changes after now."""
        return self._changed

    def list_view(self, query: Query, scope: Scope | None = None) -> View:
        """The list as it is now, of what may be seen.

        Raises:
            NotReady: nothing has been read.
        """
        if self._table is None or not self._ready.is_set():
            raise NotReady
        view = self._views.get((query, scope))
        if view is None:
            view = self._views[query, scope] = self._draw(self._table, query, scope)
            if len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        return view

    def first_view(self) -> View:
        """The newest Jobs at once, before all have been read and counted; for who may see all."""
        workers = self._known.workers()
        by_name = {worker.name: worker for worker in workers}
        rows = tuple(judged(job, by_name.get(job.worker)) for job in self._known.jobs(most=PAGE_JOBS))
        seen = listing.first_state(workers, rows, is_leading=self._is_leading(), is_shared=self._is_shared)
        return listing.view(seen, Query(), self._clock.now())

    def places(self) -> tuple[tuple[str, str], ...]:
        """In which namespaces there are Jobs of which kinds, those with most first.

        Raises:
            NotReady: nothing has been read.
        """
        if self._table is None or not self._ready.is_set():
            raise NotReady
        return self._table.places()

    def job_view(self, key: SourceKey, *, is_outlined: bool = False) -> View:
        """One Job as it is now; its story is read only here.

        Args:
            key: of the Job.
            is_outlined: what only operators should know is left out.
        """
        found = self._known.job(key)
        worker = self._worker(found.worker) if found is not None else None
        job = judged(found, worker) if found is not None else None
        if job is not None and is_outlined:
            job = outlined(job)
        seen = detail.JobState(
            is_leading=self._is_leading(),
            is_shared=self._is_shared,
            key=key,
            job=job,
            timeline=self._known.timeline(key) if job else (),
            obstacles=self._known.placement_obstacles(key) if job and job.state == "Waiting" else {},
            elsewhere=self._known.kept_elsewhere(key) if job else "",
        )
        return detail.view(seen, self._clock.now())

    def _worker(self, name: str) -> WorkerView | None:
        """Who looks at one Job only need not have read everything."""
        if self._ready.is_set():
            return self._workers.get(name)
        return next((worker for worker in self._known.workers() if worker.name == name), None)

    def _draw(self, table: Table, query: Query, scope: Scope | None) -> View:
        now, workers, bars = self._clock.now(), tuple(self._workers.values()), self._bars
        if scope is not None:
            table = self._within(table, scope)
            workers, bars = seen_workers(workers, table.workers()), bars_of(table.jobs(), now)
        seen = listing.ListState(
            is_leading=self._leads,
            is_shared=self._is_shared,
            workers=workers,
            lags=table.lags(),
            selection=table.select(query, now),
            triage=table.triage(),
            namespaces=table.namespaces(listing.MOST_NAMESPACES),
            kinds=table.kinds(),
            bars=bars,
        )
        return listing.view(seen, query, now)

    def _within(self, table: Table, scope: Scope) -> Table:
        """All that is shown to some is made of this, so that nothing else can shine through."""
        version, found = self._tables.get(scope, (-1, table))
        if version != table.version:
            found = Table(outlined(job) for job in table.jobs() if scope.has(job))
            self._tables[scope] = (table.version, found)
            if len(self._tables) > MOST_SCOPES:
                self._tables.popitem(last=False)
        return found

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
        """Follow whenever a page is open, until cancelled."""
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
        self._owners = self._known.ownership()
        self._take_workers()
        self._leads = self._is_leading()
        await self._read(self._known.keys())
        self._activity.begin(self._table.jobs(), self._clock.now())
        self._chart()
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
        """Look for changes without an event (lag, leadership, slots) while a page is open."""
        while self._lookers or self._clock.monotonic() - self._looked_at < LINGER_SECONDS:
            await asyncio.sleep(LOOK_SECONDS)
            table = self._table
            late, leads = list(islice(table.outstanding(), MOST_LATE)) if table else [], self._is_leading()
            owners = self._known.ownership()
            has_moved = owners != self._owners
            if late or has_moved or leads != self._leads:
                self._leads, self._owners = leads, owners
                await self._read(late)
                if has_moved:
                    await self._read_workers({_WAITING})
                self._tell()
            if self._chart():
                self._tell()

    async def _read(self, keys: Iterable[SourceKey]) -> None:
        """Take over how these Jobs are now."""
        table = self._table
        for number, key in enumerate(keys, 1):
            if table is None:
                return
            job = self._known.job(key)
            if job is not None:
                job = judged(job, self._workers.get(job.worker))
            if self._ready.is_set():
                self._activity.note(table.get(key), job)
            table.put(key, job)
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    async def _read_workers(self, also: Set[str] = frozenset()) -> None:
        """Workers as they are now; what is said of a worker's Jobs changes with it. ``also``: read theirs anyway."""
        before = _what_jobs_show(self._workers)
        self._take_workers()
        now = _what_jobs_show(self._workers)
        others = also | {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
        if others and self._table is not None:
            await self._read(self._table.keys_on(others))

    def _take_workers(self) -> None:
        self._workers = {worker.name: worker for worker in self._known.workers()}

    def _chart(self) -> bool:
        """Count, and redraw now and then; returns whether it did."""
        if self._table is None:
            return False
        now, since = self._clock.now(), self._clock.monotonic() - self._charted_at
        self._activity.count(self._table.states(), now)
        if since < CHART_SECONDS:
            return False
        self._charted_at = self._clock.monotonic()
        self._bars = self._activity.bars(now)
        self._views.clear()
        return True

    def _tell(self) -> None:
        self._views.clear()
        told, self._changed = self._changed, asyncio.Event()
        told.set()

    def _forget(self) -> None:
        self._ready.clear()
        self._views.clear()
        self._tables.clear()
        self._table, self._workers, self._bars = None, {}, ()
        self._charted_at = float("-inf")
        if not self._lookers:
            self._wanted.clear()


def _what_jobs_show(workers: Mapping[str, WorkerView]) -> dict[str, tuple[object, ...]]:
    """What of each worker changes what is shown of its Jobs."""
    return {name: (worker.state, worker.because, worker.is_elsewhere) for name, worker in workers.items()}
