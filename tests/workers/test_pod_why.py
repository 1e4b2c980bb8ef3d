"""What a table of pods says of one that does not run: trouble first, init containers included."""

from typing import Any

import pytest

from mirror.workers.pod_why import why_of

INITIALIZING = {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
CRASHED: dict[str, Any] = {
    "name": "fetch",
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
    "lastState": {"terminated": {"reason": "Error", "exitCode": 7}},
}
NO_NODE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
}


def pod(**status: Any) -> dict[str, Any]:
    """A pod with this status."""
    return {"spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending", **status}}


def test_an_init_container_that_fails_is_told_before_those_that_wait_for_it() -> None:
    """``PodInitializing`` of the others says nothing."""
    found = why_of(pod(initContainerStatuses=[CRASHED], containerStatuses=[INITIALIZING]))

    assert found == "CrashLoopBackOff: container fetch: exit code 7"


def test_a_container_in_trouble_is_told_before_one_that_is_only_being_created() -> None:
    """Whatever their order."""
    creating = {"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}
    pulling = {
        "name": "b",
        "image": "tool:7",
        "state": {"waiting": {"reason": "ErrImagePull", "message": "manifest unknown"}},
    }

    found = why_of(pod(containerStatuses=[creating, pulling]))

    assert found == "ImagePullBackOff: container b: image tool:7: manifest unknown"


def test_a_pod_that_no_node_takes_says_why() -> None:
    """It has no containers yet."""
    assert why_of(pod(conditions=[NO_NODE])) == f"Unschedulable: {NO_NODE['message']}"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"containerStatuses": [INITIALIZING]}, "PodInitializing"),
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"name": "main", "state": {"terminated": {"reason": "Error", "exitCode": 3}}}],
            },
            "container main: Error (exit code 3)",
        ),
        (
            {
                "phase": "Running",
                "initContainerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}],
                "containerStatuses": [{"name": "main", "state": {"running": {}}}],
            },
            "",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "node is low on memory"},
            "Evicted: node is low on memory",
        ),
        (
            {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active too long"},
            "DeadlineExceeded: Pod was active too long",
        ),
        ({"phase": 7, "containerStatuses": 7, "conditions": "x"}, ""),
    ],
    ids=["on-its-way", "failed", "runs", "evicted", "too-long", "junk"],
)
def test_what_else_is_said(status: dict[str, Any], text: str) -> None:
    """One that runs says nothing, and types are not trusted."""
    assert why_of(pod(**status)) == text


def test_a_pod_that_is_nested_too_deeply_says_what_it_can() -> None:
    """What a worker sends never breaks a table."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    assert why_of(pod(containerStatuses=[INITIALIZING], waiting=deep)) == "PodInitializing"
    while deep:  # what is nested so deeply is taken apart by hand: the interpreter's own way is recursive
        deep = deep[0]
