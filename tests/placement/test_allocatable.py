"""How much of a worker's nodes is free, and what that does to a choice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mirror.placement.allocatable import NOTHING, NodeRoom, free_share, request_of, room_of
from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.policy import PlacementPolicy, Score

GIBI = 2.0**30
READY = [{"type": "Ready", "status": "True"}]
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "1"}


def room(spec: Any, *, conditions: Any = READY, allocatable: Any = ROOM) -> NodeRoom | None:
    status = {"allocatable": allocatable, "conditions": conditions}
    return room_of(msgspec.json.encode(spec), msgspec.json.encode(status))


def taint(key: str, effect: str) -> dict[str, Any]:
    return {"taints": [{"key": key, "effect": effect}]}


@pytest.mark.parametrize(
    ("spec", "conditions", "takes_pods"),
    [
        pytest.param({}, READY, True, id="ready"),
        pytest.param({}, [{"type": "Ready", "status": "Unknown"}], False, id="not ready"),
        pytest.param({}, None, False, id="new"),
        pytest.param({"unschedulable": True}, READY, False, id="cordoned"),
        pytest.param(taint("node.kubernetes.io/memory-pressure", "NoSchedule"), READY, False, id="under pressure"),
        pytest.param(taint("prefer", "PreferNoSchedule"), READY, True, id="others are preferred"),
    ],
)
def test_a_node_takes_pods_when_it_is_ready(spec: Any, conditions: Any, takes_pods: bool) -> None:
    """One that does not now still counts for how large the worker is."""
    assert room(spec, conditions=conditions) == NodeRoom((4.0, 8 * GIBI, 110.0), takes_pods)


@pytest.mark.parametrize(
    ("spec", "allocatable"),
    [
        pytest.param(taint("node-role.kubernetes.io/control-plane", "NoSchedule"), ROOM, id="kept for others"),
        pytest.param({}, None, id="tells nothing"),
        pytest.param({}, [1], id="junk"),
        pytest.param({"taints": 7}, ROOM, id="more junk"),
    ],
)
def test_a_node_that_is_none_for_jobs_does_not_count(spec: Any, allocatable: Any) -> None:
    assert room(spec, allocatable=allocatable) is None


def container(cpu: str = "", memory: str = "", **more: Any) -> dict[str, Any]:
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"name": "c", "resources": {"requests": requests}, **more}


@pytest.mark.parametrize(
    ("spec", "amounts"),
    [
        pytest.param({"containers": [container("500m", "1Gi"), container("1")]}, (1.5, GIBI, 1.0), id="added up"),
        pytest.param({"containers": [{"name": "c"}]}, (0.0, 0.0, 1.0), id="nothing but a pod"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3"), container("2", "1Gi")]},
            (3.0, GIBI, 1.0),
            id="one init container after the other",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("1", restartPolicy="Always"), container("3")],
            },
            (4.0, 0.0, 1.0),
            id="a sidecar goes on",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("1", restartPolicy="Always")]},
            (2.0, 0.0, 1.0),
            id="beside the containers, too",
        ),
        pytest.param(
            {"containers": [container("1", "1Gi")], "overhead": {"cpu": "250m", "memory": "1Gi"}},
            (1.25, 2 * GIBI, 1.0),
            id="overhead",
        ),
        pytest.param(
            {"containers": [container("1", "1Gi")], "resources": {"requests": {"cpu": "2"}}},
            (2.0, GIBI, 1.0),
            id="the pod as a whole",
        ),
    ],
)
def test_a_pod_requests_what_kube_scheduler_counts(spec: dict[str, Any], amounts: Any) -> None:
    assert request_of(msgspec.json.encode({"nodeName": "n", **spec})) == ("n", amounts)


@pytest.mark.parametrize("junk", [b"", b"null", b"[]", b"{", b'{"nodeName":7}', b'{"nodeName":"n","containers":{}}'])
def test_what_is_no_pod_requests_nothing(junk: bytes) -> None:
    """A worker may answer anything."""
    assert request_of(junk) == ("", NOTHING)


def node(cpu: float, memory: float = 0.0, *, takes_pods: bool = True) -> NodeRoom:
    return NodeRoom((cpu, memory, 110.0), takes_pods)


@pytest.mark.parametrize(
    ("nodes", "requested", "share"),
    [
        pytest.param({}, {}, None, id="no nodes"),
        pytest.param({"a": node(4)}, {}, 1.0, id="nothing is requested"),
        pytest.param({"a": node(4), "b": node(4)}, {"a": (4.0, 0.0, 1.0)}, 0.5, id="all nodes together"),
        pytest.param({"a": node(4, 8)}, {"a": (1.0, 6.0, 1.0)}, 0.25, id="the scarcest"),
        pytest.param({"a": node(4)}, {"a": (0.0, 0.0, 110.0)}, 0.0, id="no room for one more pod"),
        pytest.param({"a": node(4), "b": node(4, takes_pods=False)}, {}, 0.5, id="one is cordoned"),
        pytest.param({"a": node(4), "b": node(4)}, {"a": (9.0, 0.0, 1.0)}, 0.5, id="a node cannot lend"),
        pytest.param({"a": node(4)}, {"gone": (9.0, 0.0, 1.0)}, 1.0, id="of a node that is not there"),
    ],
)
def test_what_is_free_is_what_is_not_requested(nodes: Any, requested: Any, share: float | None) -> None:
    found = free_share(nodes, requested)
    assert found is share if share is None else found == pytest.approx(share)


def test_jobs_go_where_nodes_have_room() -> None:
    """As long as it is known; what is not known is neutral, and a full worker is chosen where there is no other."""
    index = WorkerIndex(PlacementPolicy(scores=((Score.LOAD, 1.0), (Score.ALLOCATABLE, 1.0))))
    index.put(Candidate("east"))
    index.put(Candidate("west", load=1))
    request = PlacementRequest("a")

    def chosen() -> str | None:
        return index.best(index.fitting(request), request)

    assert chosen() == "east"
    index.set_allocatable("east", 0.3)
    assert chosen() == "west"
    index.put(Candidate("east"))  # something else of it was news
    assert chosen() == "west"
    index.set_assigned("west", 3)
    assert chosen() == "east"
    index.set_allocatable("east", 0.0)
    assert chosen() == "west"
    index.remove("west")
    assert chosen() == "east"
    index.set_allocatable("east", None)
    (score,) = [one for one in index.policy.scores_of(index.candidate("east"), {}) if one.name == "allocatable"]
    assert (score.share, score.is_known) == (1.0, False)
