"""Placement as simple and slow as it can be: what `mirror.placement` must be equal to, whatever happens.

Everything is looked at anew for each question: all workers, and all who wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from msgspec.structs import replace

from mirror.model.keys import SourceKey
from mirror.placement.candidates import Candidate, Obstacle, PlacementRequest
from mirror.placement.waiting import Waiter


def obstacle(request: PlacementRequest, candidate: Candidate) -> Obstacle | None:
    """The first thing that speaks against this worker, the lasting ones first."""
    if not request.selector.matches(candidate.labels):
        return Obstacle.LABELS_DO_NOT_MATCH
    if not candidate.namespace_rules.accepts(request.namespace):
        return Obstacle.NAMESPACE
    if request.kind in candidate.unserved:
        return Obstacle.KIND
    if request.kind in candidate.incomplete:
        return Obstacle.KIND_INCOMPLETE
    if candidate.misconfigured:
        return Obstacle.MISCONFIGURED
    if candidate.name in request.refused_by:
        return Obstacle.REFUSED
    if candidate.cordoned:
        return Obstacle.CORDONED
    if not candidate.reachable:
        return Obstacle.UNREACHABLE
    return Obstacle.FULL if candidate.is_full else None


def choose(
    request: PlacementRequest, candidates: Iterable[Candidate], spread: Mapping[str, int] | None = None
) -> str | None:
    """Of the workers that nothing speaks against, the one least loaded for its weight; equal ones go by name.

    Before that: the first that its order names, and those with the value of a label that the fewest are on.
    """
    candidates = list(candidates)
    free = [one for one in candidates if obstacle(request, one) is None]
    for glob in request.order:
        if named := [one for one in free if fnmatchcase(one.name, glob)]:
            free = named
            break
    label = request.spread_by
    if labelled := [one for one in free if label and label in one.labels]:
        counts: Counter[str] = Counter()
        for one in candidates:
            if label in one.labels:
                counts[one.labels[label]] += (spread or {}).get(one.name, 0)
        fewest = min(counts[one.labels[label]] for one in labelled)
        free = [one for one in labelled if counts[one.labels[label]] == fewest]
    return min(free, key=lambda one: ((one.load + 1) / one.weight, one.name)).name if free else None


@dataclass
class Reference:
    """Who waits, what is given, and the workers with what is recorded."""

    workers: dict[str, Candidate] = field(default_factory=dict)
    waiting: dict[SourceKey, Waiter] = field(default_factory=dict)
    given: dict[SourceKey, str] = field(default_factory=dict)
    requests: dict[SourceKey, PlacementRequest] = field(default_factory=dict)
    """Of those that were given something."""
    last_served: str = ""

    def loaded(self) -> list[Candidate]:
        """The workers, with places that are given and not recorded yet."""
        extra = Counter(self.given.values())
        return [replace(one, load=one.load + extra[one.name]) for one in self.workers.values()]

    def serve(self) -> None:
        """Give out places, one by one, as long as anybody can have one."""
        while (waiter := self._next()) is not None:
            worker = choose(waiter.request, self.loaded(), self.spread(waiter.request))
            assert worker is not None
            del self.waiting[waiter.key]
            self.given[waiter.key] = worker
            self.requests[waiter.key] = waiter.request
            self.last_served = waiter.key.namespace

    def spread(self, wanted: PlacementRequest) -> Mapping[str, int]:
        """By worker: what is given to those of the namespace that ask for the same spread."""
        alike = (wanted.namespace, wanted.spread_by)
        requests = {key: self.requests[key] for key in self.given}
        return Counter(self.given[key] for key, one in requests.items() if (one.namespace, one.spread_by) == alike)

    def _next(self) -> Waiter | None:
        """Round robin over namespaces; in each by priority, then the oldest first (D21)."""
        able = [one for one in self.waiting.values() if choose(one.request, self.loaded()) is not None]

        def order(waiter: Waiter) -> tuple[bool, str, int, str, str]:
            namespace = waiter.key.namespace
            return namespace <= self.last_served, namespace, -waiter.priority, waiter.since, waiter.key.name

        return min(able, key=order, default=None)

    def given_to(self, key: SourceKey) -> str | None:
        """What is given, unless its worker is of no use any more: then it is given back."""
        worker = self.given.get(key)
        now = self.workers.get(worker) if worker is not None else None
        if worker is None or (now is not None and now.reachable and not now.cordoned and not now.misconfigured):
            return worker
        del self.given[key]
        self.serve()
        return None
