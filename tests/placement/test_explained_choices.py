"""What is told of a choice is how it is made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from test_index import REQUESTS, WORKERS

from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.explaining import FILTERS, explain
from mirror.placement.facts import OTHERS
from mirror.placement.index import WorkerIndex
from mirror.placement.policy import DEFAULT, PlacementPolicy, Score
from mirror.placement.selector import parse_selector

POLICIES = (
    DEFAULT,
    PlacementPolicy(scores=((Score.READINESS, 2.0), (Score.LOAD, 0.5))),
    PlacementPolicy(scores=((Score.LOAD, 1.0), (Score.QUOTA, 3.0))),
    PlacementPolicy(scores=((Score.QUOTA, 1.0), (Score.LOAD, 1.0), (Score.CLUSTER_QUEUE, 0.5))),
)
QUOTAS = st.dictionaries(st.sampled_from("uvwx"), st.dictionaries(st.sampled_from("ab"), st.floats(0, 1)))
COUNTS = st.lists(st.tuples(st.sampled_from("uvwx"), st.integers(1, 3)), max_size=4)


@given(st.lists(WORKERS, max_size=6), REQUESTS, COUNTS, st.sampled_from(POLICIES), QUOTAS)
def test_the_first_is_the_one_that_is_chosen_and_so_on(
    workers: list[Candidate],
    wanted: PlacementRequest,
    counts: list[tuple[str, int]],
    policy: PlacementPolicy,
    quotas: dict[str, dict[str, float]],
) -> None:
    """Ranks are the order in which ``best`` chooses, each time without those before; filters are the obstacles."""
    index = WorkerIndex(policy)
    for one in workers:
        index.put(one)
    for name, count in counts:
        index.spread.set_recorded((wanted.namespace, wanted.spread_by), name, count)
    for name, free in quotas.items():
        index.facts.put(Score.QUOTA, name, {(namespace, ""): share for namespace, share in free.items()})
        index.facts.put(
            Score.CLUSTER_QUEUE, name, {OTHERS: 0.0} | {(namespace, "gpu"): share for namespace, share in free.items()}
        )
    found = explain(index, wanted, {})
    left, expected = index.fitting(wanted), []
    while (name := index.best(left, wanted)) is not None:
        expected.append(name)
        left &= ~index.bit(name)
    assert [one.worker for one in found.workers if one.eligible] == expected
    assert found.worker == (expected[0] if expected else "")
    assert [one.rank for one in found.workers[: len(expected)]] == list(range(1, len(expected) + 1))
    obstacles = index.obstacles(wanted)
    for one in found.workers:
        assert [result.name for result in one.filters] == list(FILTERS.values())
        first = next((result.name for result in one.filters if not result.passed), None)
        against = obstacles.of(index.bit(one.worker))
        assert first == (FILTERS[against] if against is not None else None)
        assert one.eligible is (first is None)


def test_everything_that_speaks_against_a_worker_is_told() -> None:
    """Not only the first; with what the Job asked for, and how full it is."""
    index = WorkerIndex()
    index.put(Candidate("east", {"region": "eu"}, cordoned=True, capacity=2, load=3))
    (east,) = explain(index, PlacementRequest("a", parse_selector("region=us")), {}).workers
    assert [(one.name, one.because) for one in east.filters if not one.passed] == [
        ("worker-selector", "labels do not match worker-selector (region is eu)"),
        ("cordoned", "cordoned"),
        ("capacity", "at capacity (3 of 2)"),
    ]


def test_what_was_refused_is_told() -> None:
    index = WorkerIndex()
    index.put(Candidate("east"))
    refused = PlacementRequest("a", refused_by=frozenset({"east"}))
    (east,) = explain(index, refused, {"east": "the namespace does not exist"}).workers
    assert [one.because for one in east.filters if not one.passed] == ["the namespace does not exist"]


def test_what_a_definition_lacks_is_told() -> None:
    """Of the kind that is asked for alone."""
    index = WorkerIndex()
    index.put(Candidate("east", incomplete={"JobSet": "spec.suspend"}))
    (east,) = explain(index, PlacementRequest("a", kind="JobSet"), {}).workers
    assert [(one.name, one.because) for one in east.filters if not one.passed] == [
        ("kind-fields", "its definition lacks required fields (spec.suspend)")
    ]
    (east,) = explain(index, PlacementRequest("a", kind="MPIJob"), {}).workers
    assert east.eligible
