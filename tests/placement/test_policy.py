"""How scores are put together, and what they change."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.policy import DEFAULT, PlacementPolicy, Score, Weights

PLAIN = PlacementRequest("team-a")
BOTH: Weights = ((Score.LOAD, 1.0), (Score.READINESS, 1.0))


def shared_out(policy: PlacementPolicy, *candidates: Candidate, jobs: int) -> Counter[str]:
    """So many Jobs, one after the other, none of which ends; those that are stalled stay so."""
    index = WorkerIndex(policy)
    for one in candidates:
        index.put(one)
    loads = Counter({one.name: one.load for one in candidates})
    given_to: Counter[str] = Counter()
    for _ in range(jobs):
        worker = index.best(index.fitting(PLAIN)) or ""
        given_to[worker] += 1
        index.set_load(worker, loads[worker] + given_to[worker])
    return given_to


@given(st.integers(0, 10_000), st.floats(0.001, 1000), st.integers(0, 10_000))
def test_the_default_is_the_load_for_the_weight(load: int, weight: float, stalled: int) -> None:
    """What is not listed is not counted; the index' own arithmetic is the policy's."""
    one = Candidate("east", load=load, weight=weight, stalled=stalled)
    assert DEFAULT.cost(one) == pytest.approx((load + 1) / weight)
    assert DEFAULT.counts_load_only


@pytest.mark.parametrize(
    ("load", "stalled", "share"),
    [(0, 0, 1.0), (9, 0, 1.0), (9, 5, 0.5), (9, 9, 0.1), (999_999, 999_999, 0.01), (0, 3, 1.0)],
)
def test_readiness_is_the_part_of_its_jobs_that_do_not_wait(load: int, stalled: int, share: float) -> None:
    """It never reaches 0: a score keeps no worker from being chosen."""
    (found,) = PlacementPolicy(scores=((Score.READINESS, 1.0),)).scores_of(
        Candidate("east", load=load, stalled=stalled), {}
    )
    assert found.share == pytest.approx(share)


def test_a_worker_whose_pods_do_not_get_ready_ranks_behind() -> None:
    """East has ten Jobs of which none runs, west ten that do: the next ones go west first."""
    east, west = Candidate("east", load=10, stalled=10), Candidate("west", load=10)
    assert shared_out(DEFAULT, east, west, jobs=10) == {"east": 5, "west": 5}
    assert shared_out(PlacementPolicy(scores=BOTH), east, west, jobs=10) == {"west": 10}


def test_a_worker_that_got_its_pods_ready_counts_as_before() -> None:
    """Its count goes back to none: nothing is remembered."""
    index = WorkerIndex(PlacementPolicy(scores=BOTH))
    index.put(Candidate("east", load=4))
    index.put(Candidate("west", load=5))
    for stalled, chosen in ((4, "west"), (0, "east")):
        index.set_stalled("east", stalled)
        assert index.best(index.fitting(PLAIN)) == chosen


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_weight_is_a_power(load: int, stalled: int) -> None:
    """Weight 0 leaves a score out, and each step up makes a bad worker cost more."""
    one = Candidate("east", load=load, stalled=stalled)
    costs = [PlacementPolicy(scores=((Score.READINESS, weight),)).cost(one) for weight in (0.0, 1.0, 2.0, 10.0)]
    assert costs[0] == 1.0
    assert all(less <= more for less, more in pairwise(costs))


def test_the_largest_numbers_overflow_nothing() -> None:
    """A weight of an annotation may be as small as a float, and a power as large as ten."""
    policy = PlacementPolicy(scores=((Score.LOAD, 10.0), (Score.READINESS, 10.0)))
    worst = Candidate("east", load=10**6, weight=1e-300, stalled=10**6)
    assert policy.cost(worst) > policy.cost(replace(worst, weight=1.0))


def test_a_scarce_quota_of_the_namespace_sends_jobs_elsewhere() -> None:
    """Of this namespace, and no other; what is not known is neutral, and what is gone is known no more."""
    index = WorkerIndex(PlacementPolicy(scores=((Score.LOAD, 1.0), (Score.QUOTA, 1.0))))
    index.put(Candidate("east"))
    index.put(Candidate("west", load=2))

    def chosen(namespace: str) -> str | None:
        request = PlacementRequest(namespace)
        return index.best(index.fitting(request), request)

    index.facts.put(Score.QUOTA, "east", {("a", ""): 0.3, ("b", ""): 0.34, ("full", ""): 0.0})
    assert [chosen(one) for one in ("a", "b", "full", "unknown")] == ["west", "east", "west", "east"]
    index.facts.put(Score.QUOTA, "east", {("b", ""): 0.1})
    assert [chosen(one) for one in ("a", "b")] == ["east", "west"]
    index.remove("east")
    index.put(Candidate("east"))
    assert chosen("b") == "east"
    assert not index.facts.concern(PlacementRequest("b"))


def test_a_full_quota_keeps_no_worker_from_being_chosen() -> None:
    """It is soft: the quota may be free again before a pod is made."""
    index = WorkerIndex(PlacementPolicy(scores=((Score.QUOTA, 10.0),)))
    index.put(Candidate("east"))
    index.facts.put(Score.QUOTA, "east", {("a", ""): 0.0})
    request = PlacementRequest("a")
    assert index.best(index.fitting(request), request) == "east"
