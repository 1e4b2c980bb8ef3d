"""A choice of worker in full, for people: each filter and each score of each worker. Asks the index that decides."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mirror.model.text import clean
from mirror.placement.candidates import Obstacle, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.obstacles import IN_TROUBLE, Workers
from mirror.placement.policy import ScoreOfWorker
from mirror.placement.reasons import LONGEST_DETAIL, fields_lacking, mismatch

FILTERS: Mapping[Obstacle, str] = {
    Obstacle.LABELS_DO_NOT_MATCH: "worker-selector",
    Obstacle.NAMESPACE: "namespaces",
    Obstacle.KIND: "kinds",
    Obstacle.KIND_INCOMPLETE: "kind-fields",
    Obstacle.MISCONFIGURED: "configuration",
    Obstacle.REFUSED: "refusals",
    Obstacle.CORDONED: "cordoned",
    Obstacle.UNREACHABLE: "reachable",
    Obstacle.FULL: "capacity",
}
"""What each is called, in the order in which the first one that does not let a worker pass is reported."""


class FilterResult(msgspec.Struct, frozen=True, rename="camel"):
    """Whether one filter lets a worker pass."""

    name: str
    passed: bool
    because: str = ""
    """Why not."""


class WorkerChoice(msgspec.Struct, frozen=True, rename="camel"):
    """One worker; ``rank`` 1 is the one that is chosen."""

    worker: str
    eligible: bool
    rank: int | None
    """Among the eligible ones; None for the others."""
    filters: tuple[FilterResult, ...]
    order: int | None = None
    """Where the Job's ``worker-order`` names it, from 1; None where it does not."""
    spread: int | None = None
    """How many Jobs count for the value of the label that the Job is spread by; None without the label."""
    scores: tuple[ScoreOfWorker, ...] = ()
    total: float = 0.0
    """The product of its scores, each to the power of its weight: the largest is chosen."""


class Choice(msgspec.Struct, frozen=True, rename="camel"):
    """Where a Job would be placed now, and why there."""

    worker: str = ""
    """Empty: nowhere."""
    reason: str = ""
    """Why nowhere (``model.reasons``)."""
    because: str = ""
    order: tuple[str, ...] = ()
    """What the Job asks for."""
    spread_by: str = ""
    workers: tuple[WorkerChoice, ...] = ()
    """The best first; those that are not eligible last, by name."""


def explain(index: WorkerIndex, request: PlacementRequest, details: Mapping[str, str]) -> Choice:
    """Every worker, with all that is looked at to choose one.

    Args:
        index: the workers as they are now.
        request: what the source asks for.
        details: by worker, what it refused.
    """
    against = tuple(index.against(request))
    stopped = 0
    for _, workers in against:
        stopped |= workers
    spread = _spread(index, request)
    ranked = sorted(_key(index, request, name, spread) for name in index.names() if not index.bit(name) & stopped)
    ranks = {key[-1]: number for number, key in enumerate(ranked, start=1)}
    found = [
        WorkerChoice(
            worker=name,
            eligible=name in ranks,
            rank=ranks.get(name),
            filters=tuple(_filter(index, request, name, one, details) for one in against),
            order=_position(index, request, name),
            spread=spread.get(name),
            scores=index.policy.scores_of(index.candidate(name), index.facts.of(name, request)),
            total=1 / index.cost(name, request),
        )
        for name in sorted(index.names(), key=lambda name: (ranks.get(name, len(ranks) + 1), name))
    ]
    chosen = found[0].worker if ranks else ""
    return Choice(worker=chosen, order=request.order, spread_by=request.spread_by, workers=tuple(found))


def _filter(
    index: WorkerIndex,
    request: PlacementRequest,
    name: str,
    against: tuple[Obstacle, Workers],
    details: Mapping[str, str],
) -> FilterResult:
    obstacle, workers = against
    if not workers & index.bit(name):
        return FilterResult(FILTERS[obstacle], passed=True)
    why = str(obstacle)
    if obstacle is Obstacle.LABELS_DO_NOT_MATCH:
        why += mismatch(request, index.labels_of(name))
    elif obstacle is Obstacle.KIND_INCOMPLETE:
        why += fields_lacking(request, index, name)
    elif obstacle is Obstacle.REFUSED and name in details:
        why = clean(details[name], longest=LONGEST_DETAIL)
    elif obstacle in IN_TROUBLE and (trouble := index.troubles.text_of(index.bit(name))):
        why += f" ({clean(trouble, longest=LONGEST_DETAIL)})"
    elif obstacle is Obstacle.FULL:
        candidate = index.candidate(name)
        why += f" ({candidate.load} of {candidate.capacity})"
    return FilterResult(FILTERS[obstacle], passed=False, because=why)


def _spread(index: WorkerIndex, request: PlacementRequest) -> dict[str, int]:
    """By worker that has the label: how many Jobs count for its value."""
    if not request.spread_by:
        return {}
    by_value = index.spread_over(index.all, request)
    return {name: count for count, workers in by_value.values() for name, _ in index.named(workers)}


def _position(index: WorkerIndex, request: PlacementRequest, name: str) -> int | None:
    positions = (at for at, one in enumerate(request.order, start=1) if index.called(one) & index.bit(name))
    return next(positions, None)


def _key(
    index: WorkerIndex, request: PlacementRequest, name: str, spread: Mapping[str, int]
) -> tuple[int, bool, int, float, str]:
    """By what ``WorkerIndex.best`` chooses, as a key; property-tested against it."""
    position = _position(index, request, name) or len(request.order) + 1
    is_unlabelled = bool(request.spread_by) and name not in spread
    return position, is_unlabelled, spread.get(name, 0), index.cost(name, request), name
