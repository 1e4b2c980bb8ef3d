"""What counts when a worker is chosen, and how much: filters that can be left out, and scores with weights. Pure.

A score of a worker is its share: of two workers that are alike but for one score, which is half as high on one of
them, that one gets half as many Jobs. Shares are multiplied, each to the power of its weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from mirror.placement.candidates import Candidate
from mirror.settings.schema import Placement

LEAST_SHARE = 0.01
"""A score never keeps a worker from being chosen, whatever is known of it: that is for filters."""
LARGEST_LOAD = 1e12
"""A load for its weight counts as this at most, so that no power of it overflows."""


class Score(StrEnum):
    """By what workers are compared."""

    LOAD = "load"
    """Its Jobs for its weight."""
    READINESS = "readiness"
    """The part of its Jobs that do not wait for their pods to become ready (``model.reasons.WORKERS_PODS``)."""
    QUOTA = "quota"
    """The part of the ResourceQuotas of the Job's namespace there that is free."""
    CLUSTER_QUEUE = "clusterQueue"
    """The part of the quota of its queue's ClusterQueue there that is free."""
    ALLOCATABLE = "allocatable"
    """The part of what its nodes can allocate that is free."""


OF_JOBS = frozenset((Score.QUOTA, Score.CLUSTER_QUEUE))
"""Of a Job's namespace or queue on a worker, not of the worker (``placement.facts``)."""


class Filter(StrEnum):
    """What may be left out of what speaks against a worker. What guards rights, or reaches a worker, may not."""

    CAPACITY = "capacity"


Weights = tuple[tuple[Score, float], ...]


class ScoreOfWorker(msgspec.Struct, frozen=True):
    """One score of one worker: its share, and how much that counts."""

    name: str
    share: float
    weight: float
    is_known: bool = True
    """Unknown is neutral: a share of 1."""


class PlacementPolicy(msgspec.Struct, frozen=True):
    """Settings ``placement``."""

    filters: tuple[Filter, ...] = (Filter.CAPACITY,)
    scores: Weights = ((Score.LOAD, 1.0),)

    @property
    def counts_load_only(self) -> bool:
        """Whether the cost of a worker is its load for its weight, and nothing else."""
        return self.scores == ((Score.LOAD, 1.0),)

    def uses(self, score: Score) -> bool:
        return any(name is score for name, _ in self.scores)

    def scores_of(self, candidate: Candidate, known: Mapping[Score, float]) -> tuple[ScoreOfWorker, ...]:
        """Each score of a worker, in the order of the settings.

        ``known``: what is free there for the Job, from 0 to 1, as far as that is known.
        """
        found = []
        for name, weight in self.scores:
            is_known = name not in OF_JOBS or name in known
            if name is Score.ALLOCATABLE:
                is_known = candidate.allocatable is not None
            share = bounded(known.get(name)) if name in OF_JOBS else _share(name, candidate)
            found.append(ScoreOfWorker(str(name), share, weight, is_known))
        return tuple(found)

    def cost(self, candidate: Candidate) -> float:
        """The lower, the sooner it is chosen; without what depends on the Job (``factor``)."""
        cost = 1.0
        for name, weight in self.scores:
            if name not in OF_JOBS:
                cost /= _share(name, candidate) ** weight
        return cost

    def factor(self, known: Mapping[Score, float]) -> float:
        """By what the cost of a worker is multiplied for a Job for which so much is free there."""
        factor = 1.0
        for name, weight in self.scores:
            if name in known:
                factor *= bounded(known[name]) ** -weight
        return factor


def policy_of(chosen: Placement) -> PlacementPolicy:
    """As the settings have it."""
    return PlacementPolicy(
        filters=tuple(map(Filter, chosen.filters)),
        scores=tuple((Score(one.name), one.weight) for one in chosen.scores),
    )


DEFAULT = PlacementPolicy()


def bounded(share: float | None) -> float:
    """A share that keeps no worker from being chosen; unknown is neutral."""
    return 1.0 if share is None else min(1.0, max(LEAST_SHARE, share))


def _share(score: Score, candidate: Candidate) -> float:
    match score:
        case Score.LOAD:
            return 1 / min((candidate.load + 1) / candidate.weight, LARGEST_LOAD)
        case Score.READINESS:
            stalled = min(candidate.stalled, candidate.load)
            return bounded((candidate.load - stalled + 1) / (candidate.load + 1))
        case Score.ALLOCATABLE:
            return bounded(candidate.allocatable)
        case Score.QUOTA | Score.CLUSTER_QUEUE:
            return 1.0  # ``OF_JOBS``
