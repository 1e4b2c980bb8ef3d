"""All Jobs, in order and counted, so that a look costs little at 20,000 of them. Pure; ``board`` keeps one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

import msgspec

from mirror.model.keys import SourceKey
from mirror.model.views import UNKNOWN, JobView
from mirror.page.health import STATES, is_late, is_stuck, reason_of
from mirror.page.query import Query
from mirror.page.times import moment

PAGE_JOBS = 100
"""On one page of the list."""
MOST_REASONS = 8
"""Told in one group of the triage."""
MOST_KEPT = 16
"""Selections that are kept until something changes: others turn the pages of the same."""
_MOST_KEPT_JOBS = 200_000

K = TypeVar("K")

_Place = tuple[str, str, str, str]


class Triage(msgspec.Struct, frozen=True, kw_only=True):
    """What deserves a look first, as numbers over all Jobs."""

    failed: int = 0
    unknown: int = 0
    late: int = 0
    waiting: tuple[tuple[str, int], ...] = ()
    """By reason, most first."""
    stuck: tuple[tuple[str, int], ...] = ()
    """Placed ones that make no progress, by reason, most first."""
    workers: tuple[str, ...] = ()
    """On which those of ``unknown`` are."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The Jobs to show, and how many there are of which kind."""

    rows: tuple[JobView, ...]
    counts: Mapping[str, int]
    """By state, for the query without its state."""
    found: int
    """For the whole query, over all pages."""
    page: int
    pages: int
    """At least one."""


class Table:
    """Jobs by key. Invariant: ``_order`` has exactly one place for each, and the counters count exactly them."""

    def __init__(self, jobs: Iterable[JobView] = ()) -> None:
        self._jobs: dict[SourceKey, JobView] = {}
        self._states: Counter[str] = Counter()
        self._places: Counter[tuple[str, str]] = Counter()
        """By kind and namespace."""
        self._waiting: Counter[str] = Counter()
        self._stuck: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._late: dict[SourceKey, JobView] = {}
        """Whose status is outstanding, late or not."""
        for job in jobs:
            self._jobs[_key(job)] = job
            self._count(job, 1)
        self._order: list[_Place] = sorted(map(_place, self._jobs.values()))
        self._kept: OrderedDict[Query, tuple[JobView, ...]] = OrderedDict()
        self.version = 0
        """Differs when anything has changed."""

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, key: SourceKey) -> JobView | None:
        """The Job of this key, as it was put last."""
        return self._jobs.get(key)

    def put(self, key: SourceKey, job: JobView | None) -> None:
        """A Job as it is now; None: it is gone."""
        old = self._jobs.get(key)
        if old is job or old == job:
            return
        self.version += 1
        self._kept.clear()
        if old is not None:
            self._count(old, -1)
        if job is None:
            if old is not None:
                del self._jobs[key]
                self._unplace(old)
            return
        self._jobs[key] = job
        self._count(job, 1)
        if old is None or old.created != job.created:
            if old is not None:
                self._unplace(old)
            insort(self._order, _place(job))

    def keys_on(self, workers: Container[str]) -> list[SourceKey]:
        """The Jobs of these workers that have not ended."""
        return [key for key, job in self._jobs.items() if job.worker in workers and not job.is_finished]

    def outstanding(self) -> Collection[SourceKey]:
        """The Jobs whose newest status is not stored yet."""
        return self._late.keys()

    def lags(self) -> dict[str, float]:
        """How late the latest status of each worker is, in seconds."""
        found: dict[str, float] = {}
        for job in self._late.values():
            if job.lag_seconds is not None and job.lag_seconds > found.get(job.worker, 0.0):
                found[job.worker] = job.lag_seconds
        return found

    def jobs(self) -> Collection[JobView]:
        """All, in any order."""
        return self._jobs.values()

    def workers(self) -> frozenset[str]:
        """Those that Jobs which go on are placed on."""
        return frozenset(job.worker for job in self._jobs.values() if job.worker and not job.is_finished)

    def places(self) -> tuple[tuple[str, str], ...]:
        """Kinds and namespaces in which there are Jobs, those with most first."""
        return tuple(place for place, _ in self._places.most_common())

    def states(self) -> Mapping[str, int]:
        """How many there are in each state."""
        return self._states

    def namespaces(self, most: int) -> tuple[str, ...]:
        """Those with most Jobs, by name."""
        namespaces: Counter[str] = Counter()
        for (_, namespace), many in self._places.items():
            namespaces[namespace] += many
        return tuple(sorted(name for name, _ in namespaces.most_common(most)))

    def kinds(self) -> tuple[str, ...]:
        """Those that there are, by name."""
        return tuple(sorted({kind for kind, _ in self._places}))

    def triage(self) -> Triage:
        """What deserves a look."""
        return Triage(
            failed=self._states["Failed"],
            unknown=sum(self._unknown.values()),
            late=sum(map(is_late, self._late.values())),
            waiting=tuple(self._waiting.most_common(MOST_REASONS)),
            stuck=tuple(self._stuck.most_common(MOST_REASONS)),
            workers=tuple(name for name, _ in self._unknown.most_common(3)),
        )

    def select(self, query: Query, now: datetime | None = None) -> Selection:
        """One page of the Jobs that a query selects, newest first by default.

        Args:
            query: which, and which page of them.
            now: what the duration of those that run is counted to, where they are sorted by it.
        """
        chosen: Iterable[JobView]
        if query.is_narrow or query.sort:
            found = self._found(msgspec.structs.replace(query, state="", page=1), now)
            counts: Mapping[str, int] = Counter(job.state for job in found) if query.is_narrow else dict(self._states)
            chosen = found
        else:
            counts = dict(self._states)
            chosen = self._newest_first()
        if query.state:
            chosen = (job for job in chosen if job.state == query.state)
        total = counts.get(query.state, 0) if query.state else sum(counts.values())
        pages = max(1, -(-total // PAGE_JOBS))
        page = min(query.page, pages)
        start = (page - 1) * PAGE_JOBS
        rows = tuple(islice(chosen, start, start + PAGE_JOBS))
        return Selection(rows=rows, counts=counts, found=total, page=page, pages=pages)

    def _found(self, query: Query, now: datetime | None) -> tuple[JobView, ...]:
        kept = self._kept.get(query)
        if kept is not None:
            self._kept.move_to_end(query)
            return kept
        jobs = self._newest_first()
        if query.is_narrow:
            jobs = filter(query.test(), jobs)
        column = query.sort.removeprefix("-")
        if column:
            # Sorting is stable: equal ones stay newest first.
            found = tuple(sorted(jobs, key=_sort_key(column, now), reverse=query.sort.startswith("-")))
        else:
            found = tuple(jobs)
        self._kept[query] = found
        while len(self._kept) > MOST_KEPT or sum(map(len, self._kept.values())) > _MOST_KEPT_JOBS:
            self._kept.popitem(last=False)
        return found

    def _newest_first(self) -> Iterator[JobView]:
        jobs = self._jobs
        return (jobs[SourceKey(place[3], place[1], place[2])] for place in reversed(self._order))

    def _count(self, job: JobView, by: int) -> None:
        _add(self._states, job.state, by)
        _add(self._places, (job.kind, job.namespace), by)
        if job.state == "Waiting":
            _add(self._waiting, reason_of(job), by)
        elif job.state == UNKNOWN:
            _add(self._unknown, job.worker, by)
        elif is_stuck(job):
            _add(self._stuck, reason_of(job), by)
        if by < 0:
            self._late.pop(_key(job), None)
        elif job.lag_seconds is not None:
            self._late[_key(job)] = job

    def _unplace(self, job: JobView) -> None:
        del self._order[bisect_left(self._order, _place(job))]


def _add(counter: Counter[K], name: K, by: int) -> None:
    counter[name] += by
    if not counter[name]:
        del counter[name]


def _place(job: JobView) -> _Place:
    return job.created, job.namespace, job.name, job.kind


def _key(job: JobView) -> SourceKey:
    return SourceKey(job.kind, job.namespace, job.name)


_ORDER = {state: number for number, state in enumerate(STATES)}


def _sort_key(column: str, now: datetime | None) -> Callable[[JobView], Any]:
    match column:
        case "state":
            return lambda job: (_ORDER.get(job.state, len(STATES)), job.state)
        case "worker":
            return lambda job: job.worker
        case "pods":
            return lambda job: (job.succeeded / job.completions if job.completions else -1.0, job.succeeded)
        case "created":
            return lambda job: job.created
        case "took":
            return lambda job: _lasted(job, now)
        case "why":
            return lambda job: (reason_of(job) == "", reason_of(job), job.because)
    return lambda job: (job.namespace, job.name)


def _lasted(job: JobView, now: datetime | None) -> float:
    """Seconds that it has run; those that have not begun come before all others."""
    began = moment(job.started)
    if began is None:
        return -1.0
    ended = moment(job.finished) or now
    return (ended - began).total_seconds() if ended is not None else 0.0
