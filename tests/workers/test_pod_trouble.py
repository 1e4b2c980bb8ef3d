"""What keeps one pod from running, told from what kubelets and controllers write (D22)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.workers.pod_trouble import LONGEST_TEXT, Trouble, condensed, stored_source, stored_trouble, trouble_of

BACK_OFF = 'Back-off pulling image "nope:1"'
UNSCHEDULABLE = "0/3 nodes are available: 3 Insufficient cpu."


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "nope:1", "state": {"waiting": {"reason": reason, "message": message}}}
    return {"phase": "Pending", "containerStatuses": [container | more]}


def ended(code: int, reason: str = "Error", phase: str = "Failed") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}


def of(status: Any) -> Trouble | None:
    return trouble_of(json.dumps(status, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("status", "reason", "text"),
    [
        (
            waiting("ErrImagePull", "failed to pull image: not found"),
            "ImagePullBackOff",
            "container main: image nope:1: failed to pull image: not found",
        ),
        (
            waiting(
                "ImagePullBackOff", 'Back-off pulling image "nope:1": ErrImagePull: failed to pull image: not found'
            ),
            "ImagePullBackOff",
            "container main: image nope:1: failed to pull image: not found",
        ),
        (
            waiting("ImagePullBackOff", 'Back-off pulling image "nope:1"'),
            "ImagePullBackOff",
            "container main: image nope:1",
        ),
        (waiting("InvalidImageName", "bad"), "InvalidImage", "container main: image nope:1: bad"),
        (
            waiting("CreateContainerConfigError", 'configmap "cfg" not found'),
            "CreateContainerConfigError",
            'container main: configmap "cfg" not found',
        ),
        (waiting("RunContainerError", "no such file"), "CreateContainerError", "container main: no such file"),
        (
            waiting(
                "CrashLoopBackOff",
                "back-off 5m0s",
                lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}},
            ),
            "CrashLoopBackOff",
            "container main: OOMKilled, exit code 137",
        ),
        (
            {
                "phase": "Pending",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": UNSCHEDULABLE}
                ],
            },
            "Unschedulable",
            UNSCHEDULABLE,
        ),
        (
            {
                "phase": "Pending",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gates"}
                ],
            },
            "SchedulingGated",
            "gates",
        ),
        (ended(137, "OOMKilled"), "OOMKilled", "container main: OOMKilled, exit code 137"),
        (ended(3), "PodsFailing", "container main: exit code 3"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Evicted", "low on memory"),
        ({"phase": "Failed", "reason": "OutOfcpu", "message": "no room"}, "PodRejected", "no room"),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    {"name": "init", "image": "a", "state": {"waiting": {"reason": "ErrImagePull"}}}
                ],
                "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}],
            },
            "ImagePullBackOff",
            "container init: image a",
        ),
    ],
)
def test_trouble_is_told(status: Any, reason: str, text: str) -> None:
    trouble = of(status)
    assert trouble is not None
    assert (trouble.reason, trouble.text) == (reason, text)
    assert trouble.has_failed == (status["phase"] == "Failed")


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]},
        waiting("ContainerCreating"),
        waiting("PodInitializing"),
        ended(0, "Completed", "Succeeded"),
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]},
        {"phase": "Succeeded", "message": "Failed Unschedulable"},
        {"phase": "Failed" * 1000, "containerStatuses": {"waiting": 1}},
        {"phase": 7, "waiting": "Failed"},
        [],
        "Failed",
        None,
    ],
)
def test_what_runs_or_is_on_its_way_is_none(status: Any) -> None:
    """Nor is what makes no sense."""
    assert of(status) is None


def test_a_few_hundred_bytes_are_kept() -> None:
    """D29: of whatever a worker sends."""
    status = waiting("CreateContainerError", "x\x1b[2J" * 100_000)
    labels = {names.SOURCE_UID: "u", **{f"l{n}": "v" * 60 for n in range(100)}}
    metadata = {"name": "p", "namespace": "n", "uid": "1", "labels": labels, "annotations": {"a": "b" * 10_000}}
    kept = condensed(decode_object(msgspec.json.encode({"metadata": metadata, "status": status})))
    assert kept is not None
    assert kept.labels == {}
    assert stored_source(kept) == "u"
    assert len(msgspec.json.encode(kept)) < 1200
    trouble = stored_trouble(kept)
    assert len(trouble.text) <= LONGEST_TEXT + 1
    assert trouble.text.isprintable()


def test_pods_of_others_and_pods_that_go_are_not_kept() -> None:
    body = {"metadata": {"name": "p", "labels": {"a": "b"}}, "status": ended(1)}
    assert condensed(decode_object(msgspec.json.encode(body))) is None
    body["metadata"] = {"name": "p", "labels": {names.SOURCE_UID: "u"}, "deletionTimestamp": "2026-03-01T12:00:00Z"}
    assert condensed(decode_object(msgspec.json.encode(body))) is None
