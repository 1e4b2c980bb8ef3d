"""What ``explain`` finds wrong with pods on demand: the manager's judgement, of what access gives the user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mirror.cli.user.pod_trouble import judge

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
BEFORE = "2026-11-23T11:59:00Z"


def pod(
    name: str, *, created: str = BEFORE, deleted: str | None = None, maker: str = "", **status: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": created}
    if deleted:
        metadata["deletionTimestamp"] = deleted
    if maker:
        metadata["ownerReferences"] = [
            {"kind": "Node", "name": "n1"},
            {"kind": "Job", "name": maker, "controller": True},
        ]
    return {"metadata": metadata, "status": {"phase": "Pending", **status}}


def event(kind: str, name: str, reason: str, message: str, *, seconds_ago: int = 5, **more: Any) -> dict[str, Any]:
    at = (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"kind": kind, "name": name}
    return {
        "involvedObject": about,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    } | more


UNSCHEDULABLE = [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
]
WAITING = [
    {
        "name": "main",
        "image": "nope:1",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope:1"'}},
    }
]
DISRUPTED = [
    {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
]
FAILED = [{"name": "main", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]
QUOTA = 'Error creating: pods "train-x" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0'


@pytest.mark.parametrize(
    ("pods", "events", "told"),
    [
        pytest.param([pod("a", phase="Running")], [], [], id="all is well"),
        pytest.param([pod("a")], [], [], id="on its way"),
        pytest.param(
            [pod("a", conditions=UNSCHEDULABLE)], [], [("a", "Unschedulable", "0/1 nodes are available")], id="no node"
        ),
        pytest.param(
            [pod("b", phase="Failed", containerStatuses=FAILED), pod("c", containerStatuses=WAITING)],
            [],
            [
                ("c", "ImagePullBackOff", "container main: image nope:1"),
                ("b", "OOMKilled", "container main: OOMKilled, exit code 137"),
            ],
            id="those that wait before those that have failed",
        ),
        pytest.param([pod("a", deleted=BEFORE, conditions=UNSCHEDULABLE)], [], [], id="deleted"),
        pytest.param(
            [pod("a", deleted=BEFORE, phase="Running", conditions=DISRUPTED), pod("b", phase="Running")],
            [],
            [("a", "Evicted", "Eviction API: evicting")],
            id="deleted, since its node is drained",
        ),
        pytest.param(
            [pod("a")],
            [event("Pod", "a", "FailedMount", 'configmap "settings" not found')],
            [("a", "FailedMount", 'configmap "settings" not found')],
            id="an event about a pod that waits",
        ),
        pytest.param(
            [pod("a", phase="Running")], [event("Pod", "a", "FailedMount", "x")], [], id="an event about one that runs"
        ),
        pytest.param(
            [pod("a")], [event("Pod", "a", "FailedMount", "x", seconds_ago=700)], [], id="an event that is over"
        ),
        pytest.param([pod("a")], [event("Pod", "a", "Killing", "x")], [], id="an event that tells nothing"),
        pytest.param(
            [pod("a", phase="Running")],
            [event("Pod", "a", "Unhealthy", "Readiness probe failed")],
            [("a", "PodsNotReady", "Readiness probe failed")],
            id="an event about one that runs and is not ready",
        ),
        pytest.param(
            [pod("a", phase="Running", conditions=[{"type": "Ready", "status": "True"}])],
            [event("Pod", "a", "Unhealthy", "Liveness probe failed")],
            [],
            id="an event about one that is ready",
        ),
        pytest.param(
            [],
            [event("Job", "train", "FailedCreate", QUOTA)],
            [("", "QuotaExceeded", "exceeded quota: none, requested: pods=1, used: pods=0")],
            id="pods that cannot be created",
        ),
        pytest.param(
            [pod("a", created="2026-11-23T11:59:58Z", phase="Running")],
            [event("Job", "train", "FailedCreate", QUOTA)],
            [],
            id="one could be created since",
        ),
        pytest.param(
            [pod("a", created="2026-11-23T11:59:58Z", phase="Running", maker="train-main-1")],
            [event("Job", "train-main-0", "FailedCreate", QUOTA)],
            [("", "QuotaExceeded", "exceeded quota: none, requested: pods=1, used: pods=0")],
            id="one of another child Job could be created since",
        ),
        pytest.param(
            [pod("a", created="2026-11-23T11:59:58Z", phase="Running", maker="train-main-0")],
            [event("Job", "train-main-0", "FailedCreate", QUOTA)],
            [],
            id="one of this child Job could be created since",
        ),
        pytest.param([{}], [{}, {"involvedObject": 3, "type": "Warning"}], [], id="nonsense"),
    ],
)
def test_what_is_wrong_is_what_the_manager_would_say(
    pods: list[dict[str, Any]], events: list[dict[str, Any]], told: list[tuple[str, str, str]]
) -> None:
    """By the same rules (``workers.pod_trouble``)."""
    assert [(one.pod, one.reason, one.message) for one in judge(pods, events, NOW)] == told
