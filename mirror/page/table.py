"""All Jobs, in order and counted, so that a look costs little at 20,000 of them. Pure; ``board`` keeps one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from mirror.model.keys import SourceKey
from mirror.model.views import JobView
from mirror.page.query import Query

PAGE_JOBS = 100
"""On one page of the list."""

_Place = tuple[str, str, str, str]


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
        self._jobs: dict[SourceKey, JobView] = {_key(job): job for job in jobs}
        self._order: list[_Place] = sorted(map(_place, self._jobs.values()))
        self._states = Counter(job.state for job in self._jobs.values())
        self._namespaces = Counter(job.namespace for job in self._jobs.values())

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, key: SourceKey) -> JobView | None:
        """The Job of this key, as it was put last."""
        return self._jobs.get(key)

    def put(self, key: SourceKey, job: JobView | None) -> None:
        """A Job as it is now; None: it is gone."""
        old = self._jobs.get(key)
        if job is None:
            if old is not None:
                del self._jobs[key]
                self._uncount(old)
                self._unplace(old)
            return
        self._jobs[key] = job
        if old is not None:
            self._uncount(old)
        self._states[job.state] += 1
        self._namespaces[job.namespace] += 1
        if old is None or old.created != job.created:
            if old is not None:
                self._unplace(old)
            insort(self._order, _place(job))

    def keys_on(self, workers: Container[str]) -> list[SourceKey]:
        """The Jobs of these workers that have not ended."""
        return [key for key, job in self._jobs.items() if job.worker in workers and not job.is_finished]

    def namespaces(self, most: int) -> tuple[str, ...]:
        """Those with most Jobs, by name."""
        return tuple(sorted(name for name, _ in self._namespaces.most_common(most)))

    def select(self, query: Query) -> Selection:
        """One page of the Jobs that a query means, newest first."""
        if query.is_narrow:
            found = [job for job in self._newest_first() if query.matches(job)]
            counts: Mapping[str, int] = Counter(job.state for job in found)
            chosen: Iterable[JobView] = (job for job in found if query.state in ("", job.state))
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

    def _newest_first(self) -> Iterator[JobView]:
        jobs = self._jobs
        return (jobs[SourceKey(place[3], place[1], place[2])] for place in reversed(self._order))

    def _uncount(self, job: JobView) -> None:
        for counter, name in ((self._states, job.state), (self._namespaces, job.namespace)):
            counter[name] -= 1
            if not counter[name]:
                del counter[name]

    def _unplace(self, job: JobView) -> None:
        del self._order[bisect_left(self._order, _place(job))]


def _place(job: JobView) -> _Place:
    return job.created, job.namespace, job.name, job.kind


def _key(job: JobView) -> SourceKey:
    return SourceKey(job.kind, job.namespace, job.name)
