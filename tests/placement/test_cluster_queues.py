"""How much of a ClusterQueue's quota is free, and what that does to a choice."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.cluster_queues import free_quota
from mirror.placement.facts import OTHERS
from mirror.placement.index import WorkerIndex
from mirror.placement.policy import PlacementPolicy, Score


def spec(*groups: dict[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """By flavor and resource: the nominal quota."""
    listed = [
        {
            "flavors": [
                {"name": flavor, "resources": [{"name": name, "nominalQuota": value} for name, value in of.items()]}
                for flavor, of in group.items()
            ]
        }
        for group in groups
    ]
    return {"resourceGroups": listed, **more}


def taken(where: str = "flavorsReservation", **flavors: dict[str, Any]) -> dict[str, Any]:
    return {
        where: [
            {"name": flavor, "resources": [{"name": name, "total": total} for name, total in of.items()]}
            for flavor, of in flavors.items()
        ]
    }


CPU = spec({"spot": {"cpu": "10"}, "reserved": {"cpu": 30}})


@pytest.mark.parametrize(
    ("queue", "status", "share"),
    [
        pytest.param(CPU, {}, 1.0, id="nothing is reserved"),
        pytest.param(CPU, taken(spot={"cpu": "10"}), 0.75, id="flavors are added up"),
        pytest.param(CPU, taken(spot={"cpu": "50"}), 0.0, id="more than its own is borrowed"),
        pytest.param(CPU, taken("flavorsUsage", spot={"cpu": "20"}), 0.5, id="usage where no reservation is told"),
        pytest.param(
            CPU,
            taken(spot={"cpu": "10"}) | taken("flavorsUsage", spot={"cpu": "0"}),
            0.75,
            id="reserved and not admitted yet",
        ),
        pytest.param(
            spec({"a": {"cpu": "4", "memory": "8Gi"}}, {"b": {"nvidia.com/gpu": "8"}}),
            taken(a={"cpu": "1", "memory": "6Gi"}, b={"nvidia.com/gpu": "4"}),
            0.25,
            id="the scarcest resource",
        ),
        pytest.param(spec({"a": {"cpu": "0"}}), {}, 0.0, id="it only borrows"),
        pytest.param({**CPU, "stopPolicy": "Hold"}, {}, 0.0, id="stopped"),
        pytest.param({**CPU, "stopPolicy": "None"}, {}, 1.0, id="not stopped"),
        pytest.param({}, {}, 0.0, id="without quota nothing is admitted"),
        pytest.param(
            {"resourceGroups": [7, {"flavors": "x"}, {"flavors": [{"resources": [{"name": 1}]}]}]},
            {"flavorsReservation": [None]},
            0.0,
            id="junk",
        ),
    ],
)
def test_what_is_free_is_what_is_not_reserved(queue: dict[str, Any], status: dict[str, Any], share: float) -> None:
    """Of what is its own: what a cohort lends is there for others, too."""
    assert free_quota(queue, status) == pytest.approx(share)


def test_jobs_go_where_their_queue_has_room() -> None:
    """Those without a queue go anywhere, and so do those with one where no Kueue is."""
    index = WorkerIndex(PlacementPolicy(scores=((Score.LOAD, 1.0), (Score.CLUSTER_QUEUE, 1.0))))
    for name in ("east", "north", "west"):
        index.put(Candidate(name))
    index.facts.put(Score.CLUSTER_QUEUE, "east", {OTHERS: 0.0, ("a", "gpu"): 0.2})
    index.facts.put(Score.CLUSTER_QUEUE, "north", {OTHERS: 0.0, ("a", "gpu"): 0.6, ("a", "cpu"): 1.0})

    def chosen(queue: str, *, without: str = "") -> str | None:
        request = PlacementRequest("a", queue=queue)
        return index.best(index.fitting(request) & ~index.bit(without), request)

    assert chosen("") == "east"
    assert chosen("gpu") == "west"
    assert chosen("gpu", without="west") == "north"
    assert chosen("cpu", without="west") == "north"
    assert chosen("cpu", without="north") == "west"
    index.remove("west")
    index.remove("north")
    assert chosen("unknown") == "east"
    index.remove("east")
    assert not index.facts.concern(PlacementRequest("a", queue="gpu"))
