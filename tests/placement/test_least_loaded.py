"""What speaks against a worker, and which one is chosen."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mirror.placement.candidates import Candidate, Obstacle, Wish, obstacle
from mirror.placement.least_loaded import choose
from mirror.placement.selector import parse_selector

EAST = Candidate("east", labels={"name": "east"})
WISH = Wish("team-a")


@pytest.mark.parametrize(
    ("wish", "changes", "reason"),
    [
        pytest.param(WISH, {}, None, id="nothing speaks against it"),
        pytest.param(Wish("team-a", parse_selector("name=west")), {}, Obstacle.NOT_SELECTED, id="another is asked for"),
        pytest.param(WISH, {"namespaces": ("ml-*", "x")}, Obstacle.NAMESPACE, id="its owner lets others in"),
        pytest.param(Wish("ml-1"), {"namespaces": ("ml-*",)}, None, id="a glob lets it in"),
        pytest.param(Wish("kube-system"), {}, Obstacle.NAMESPACE, id="system namespaces are closed by default"),
        pytest.param(Wish("kube-system"), {"namespaces": ("kube-system",)}, None, id="unless they are named"),
        pytest.param(WISH, {"closed_namespaces": ("team-a",)}, Obstacle.NAMESPACE, id="our own namespace is closed"),
        pytest.param(WISH, {"misconfigured": True}, Obstacle.MISCONFIGURED, id="its Secret has mistakes"),
        pytest.param(Wish("team-a", refused_by=frozenset({"east"})), {}, Obstacle.REFUSED, id="it refused this Job"),
        pytest.param(WISH, {"cordoned": True}, Obstacle.CORDONED, id="cordoned"),
        pytest.param(WISH, {"reachable": False}, Obstacle.UNREACHABLE, id="out of reach"),
        pytest.param(WISH, {"capacity": 3, "load": 2}, None, id="room for one more"),
        pytest.param(WISH, {"capacity": 3, "load": 3}, Obstacle.FULL, id="at capacity"),
        pytest.param(WISH, {"capacity": 3, "load": 9}, Obstacle.FULL, id="the capacity was lowered"),
        pytest.param(WISH, {"capacity": 0}, Obstacle.FULL, id="no capacity at all"),
        pytest.param(WISH, {"reachable": False, "cordoned": True}, Obstacle.CORDONED, id="lasting reasons come first"),
    ],
)
def test_what_speaks_against_a_worker(wish: Wish, changes: dict[str, Any], reason: Obstacle | None) -> None:
    """D18, D21: one kind of reason, without counts or times."""
    assert obstacle(wish, replace(EAST, **changes)) is reason


@pytest.mark.parametrize(
    ("workers", "chosen"),
    [
        pytest.param([("b", 0, 1.0), ("a", 0, 1.0)], "a", id="equal loads go by name"),
        pytest.param([("a", 1, 1.0), ("b", 0, 1.0)], "b", id="the emptier one"),
        pytest.param([("a", 5, 3.0), ("b", 2, 1.0)], "a", id="a heavier one takes more"),
        pytest.param([("a", 0, 0.1), ("b", 3, 1.0)], "b", id="a light one gets its first late"),
        pytest.param([], None, id="there is none"),
    ],
)
def test_the_least_loaded_for_its_weight_is_chosen(workers: list[tuple[str, int, float]], chosen: str | None) -> None:
    """Load counts relative to weight, this Job included."""
    candidates = [Candidate(name, load=load, weight=weight) for name, load, weight in workers]
    assert choose(WISH, candidates).worker == chosen


def test_weights_share_the_load() -> None:
    """Of 100 Jobs, a worker of weight 3 gets three times what one of weight 1 gets."""
    loads = {"heavy": 0, "light": 0}
    for _ in range(100):
        candidates = [Candidate(name, load=loads[name], weight=3 if name == "heavy" else 1) for name in loads]
        loads[choose(WISH, candidates).worker or ""] += 1
    assert loads == {"heavy": 75, "light": 25}


def test_the_reason_to_wait_names_each_worker_once_in_order() -> None:
    """D21: it is the same text as long as the set of (worker, reason) is."""
    full, cordoned = Candidate("b", capacity=0), Candidate("a", cordoned=True)
    assert choose(WISH, [full, cordoned]).waiting_because == "a: cordoned; b: at capacity"
    assert choose(WISH, [cordoned, full]).waiting_because == "a: cordoned; b: at capacity"
    assert choose(WISH, []).waiting_because == "no worker is registered"
