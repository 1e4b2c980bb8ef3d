"""What speaks against a worker, and which one is chosen."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.placement import choose, obstacle
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mirror.placement.candidates import Candidate, NamespaceRules, Obstacle, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.selector import parse_selector

EAST = Candidate("east", labels={"name": "east"})
PLAIN = PlacementRequest("team-a")


def rules(**fields: Any) -> dict[str, Any]:
    return {"namespace_rules": NamespaceRules(**fields)}


def index_of(*candidates: Candidate) -> WorkerIndex:
    index = WorkerIndex()
    for one in candidates:
        index.put(one)
    return index


def chosen(index: WorkerIndex, wanted: PlacementRequest = PLAIN) -> str | None:
    return index.best(index.fitting(wanted), wanted)


@pytest.mark.parametrize(
    ("wanted", "changes", "reason"),
    [
        pytest.param(PLAIN, {}, None, id="nothing speaks against it"),
        pytest.param(
            PlacementRequest("team-a", parse_selector("name=west")),
            {},
            Obstacle.LABELS_DO_NOT_MATCH,
            id="another is asked for",
        ),
        pytest.param(PLAIN, rules(globs=("ml-*", "x")), Obstacle.NAMESPACE, id="its owner lets others in"),
        pytest.param(PlacementRequest("ml-1"), rules(globs=("ml-*",)), None, id="a glob lets it in"),
        pytest.param(
            PlacementRequest("kube-system"), {}, Obstacle.NAMESPACE, id="system namespaces are closed by default"
        ),
        pytest.param(PlacementRequest("kube-system"), rules(globs=("kube-system",)), None, id="unless they are named"),
        pytest.param(PLAIN, rules(closed=("team-a",)), Obstacle.NAMESPACE, id="our own namespace is closed"),
        pytest.param(
            PlacementRequest("system"), rules(prefix="kube-"), Obstacle.NAMESPACE, id="a prefix leads to a closed one"
        ),
        pytest.param(
            PlacementRequest("system"),
            rules(globs=("*",), prefix="kube-"),
            Obstacle.NAMESPACE,
            id="whatever the globs say",
        ),
        pytest.param(PlacementRequest("system"), rules(prefix="x-"), None, id="a prefix leads to an open one"),
        pytest.param(
            PlacementRequest("own"),
            rules(globs=("own",), reserved=("own",)),
            Obstacle.NAMESPACE,
            id="our account lives there",
        ),
        pytest.param(PLAIN, {"misconfigured": True}, Obstacle.MISCONFIGURED, id="its Secret has mistakes"),
        pytest.param(
            PlacementRequest("team-a", refused_by=frozenset({"east"})), {}, Obstacle.REFUSED, id="it refused this Job"
        ),
        pytest.param(
            PlacementRequest("team-a", kind="JobSet"),
            {"unserved": frozenset({"JobSet"})},
            Obstacle.KIND,
            id="it does not serve the kind",
        ),
        pytest.param(
            PlacementRequest("team-a", kind="Job"), {"unserved": frozenset({"JobSet"})}, None, id="it serves this one"
        ),
        pytest.param(
            PlacementRequest("team-a", kind="JobSet"),
            {"incomplete": {"JobSet": "spec.suspend"}},
            Obstacle.KIND_INCOMPLETE,
            id="its definition of the kind lacks a field",
        ),
        pytest.param(
            PlacementRequest("team-a", kind="Job"),
            {"incomplete": {"JobSet": "spec.suspend"}},
            None,
            id="not of this one",
        ),
        pytest.param(PLAIN, {"cordoned": True}, Obstacle.CORDONED, id="cordoned"),
        pytest.param(PLAIN, {"reachable": False}, Obstacle.UNREACHABLE, id="unreachable"),
        pytest.param(PLAIN, {"capacity": 3, "load": 2}, None, id="room for one more"),
        pytest.param(PLAIN, {"capacity": 3, "load": 3}, Obstacle.FULL, id="at capacity"),
        pytest.param(PLAIN, {"capacity": 3, "load": 9}, Obstacle.FULL, id="the capacity was lowered"),
        pytest.param(PLAIN, {"capacity": 0}, Obstacle.FULL, id="no capacity at all"),
        pytest.param(PLAIN, {"reachable": False, "cordoned": True}, Obstacle.CORDONED, id="lasting reasons come first"),
    ],
)
def test_what_speaks_against_a_worker(
    wanted: PlacementRequest, changes: dict[str, Any], reason: Obstacle | None
) -> None:
    """D18, D21: one kind of reason, without counts or times."""
    index = index_of(replace(EAST, **changes))
    assert index.obstacles(wanted).of(index.bit("east")) is reason
    assert chosen(index, wanted) == ("east" if reason is None else None)


@pytest.mark.parametrize(
    ("workers", "best"),
    [
        pytest.param([("b", 0, 1.0), ("a", 0, 1.0)], "a", id="equal loads go by name"),
        pytest.param([("a", 1, 1.0), ("b", 0, 1.0)], "b", id="the emptier one"),
        pytest.param([("a", 5, 3.0), ("b", 2, 1.0)], "a", id="a heavier one takes more"),
        pytest.param([("a", 0, 0.1), ("b", 3, 1.0)], "b", id="a light one gets its first late"),
        pytest.param([], None, id="there is none"),
    ],
)
def test_the_least_loaded_for_its_weight_is_chosen(workers: list[tuple[str, int, float]], best: str | None) -> None:
    """Load counts relative to weight, this Job included."""
    assert chosen(index_of(*(Candidate(name, load=load, weight=weight) for name, load, weight in workers))) == best


def test_weights_share_the_load() -> None:
    """Of 100 Jobs, a worker of weight 3 gets three times what one of weight 1 gets."""
    index = index_of(Candidate("heavy", weight=3), Candidate("light"))
    loads = {"heavy": 0, "light": 0}
    for _ in range(100):
        worker = chosen(index) or ""
        loads[worker] += 1
        index.set_assigned(worker, loads[worker])
    assert loads == {"heavy": 75, "light": 25}


def test_a_long_selector_is_matched_in_one_step_for_all_workers() -> None:
    """D29: 1,000 workers and 800 requirements are 800 steps, not 800,000."""
    index = index_of(*(Candidate(f"w{n}", labels={"name": f"w{n}", "n": str(n % 7)}) for n in range(1000)))
    text = ",".join(f"!x{n}" for n in range(600))
    assert index.fitting(PlacementRequest("a", parse_selector(text))) == index.fitting(PlacementRequest("a"))
    assert index.fitting(PlacementRequest("a", parse_selector(f"{text},n=3"))).bit_count() == 143


LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))
WORKERS = st.builds(
    Candidate,
    name=st.sampled_from(["u", "v", "w", "x"]),
    labels=LABELS,
    reachable=st.booleans(),
    cordoned=st.booleans(),
    misconfigured=st.sampled_from([False, False, True]),
    capacity=st.sampled_from([None, 0, 1, 2]),
    weight=st.sampled_from([0.5, 1.0, 2.0]),
    load=st.integers(0, 2),
    namespace_rules=st.builds(
        NamespaceRules,
        globs=st.sampled_from([(), ("a",), ("a", "b*")]),
        prefix=st.sampled_from(["", "", "kube-"]),
        reserved=st.sampled_from([(), ("a",)]),
    ),
)
SELECTORS = ["", "a", "!a", "a=1", "b in (1,2)", "a notin (1)", "a!=2,b"]
REQUESTS = st.builds(
    PlacementRequest,
    namespace=st.sampled_from(["a", "b", "kube-x"]),
    selector=st.sampled_from(SELECTORS).map(parse_selector),
    refused_by=st.sampled_from([frozenset[str](), frozenset({"u"}), frozenset({"v", "gone"})]),
    order=st.sampled_from([(), (), ("w", "u"), ("gone", "[vx]"), ("x*", "*")]),
    spread_by=st.sampled_from(["", "", "a", "b"]),
    queue=st.sampled_from(["", "gpu", "none"]),
)
CHANGES = st.one_of(
    WORKERS, st.sampled_from(["u", "v", "w", "x"]), st.tuples(st.sampled_from("uvwx"), st.integers(0, 3))
)


@given(st.lists(CHANGES, max_size=20), REQUESTS)
def test_an_index_that_followed_changes_answers_as_one_look_at_all_workers(
    changes: list[Any], wanted: PlacementRequest
) -> None:
    """Workers come, change, fill up and go: what is kept is what there is."""
    index, workers = WorkerIndex(), dict[str, Candidate]()
    for change in changes:
        match change:
            case Candidate():
                index.put(change)
                workers[change.name] = change
            case str():
                index.remove(change)
                workers.pop(change, None)
            case (name, load):
                index.set_load(name, load)
                if name in workers:
                    workers[name] = replace(workers[name], load=load)
    found = index.obstacles(wanted)
    assert {name: found.of(index.bit(name)) for name in workers} == {
        name: obstacle(wanted, one) for name, one in workers.items()
    }
    assert chosen(index, wanted) == choose(wanted, workers.values())
    assert index.names() == tuple(sorted(workers))
