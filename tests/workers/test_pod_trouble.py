"""What keeps one pod from running, told from what kubelets and controllers write (D22)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.model.reasons import Reason
from mirror.workers.pod_trouble import (
    LONGEST_TEXT,
    Trouble,
    condensed,
    first_explained,
    may_hold,
    most_said,
    refused_create,
    stored_source,
    stored_trouble,
    trouble_of,
    warned_of,
)

BACK_OFF = 'Back-off pulling image "nope:1"'
NOT_FOUND = 'exec: "trian": executable file not found in $PATH: unknown'
CONTAINERD = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    f"unable to start container process: {NOT_FOUND}"
)
PREEMPTED = "default-scheduler: preempting to accommodate a higher priority pod"
UNSCHEDULABLE = "0/3 nodes are available: 3 Insufficient cpu."


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "nope:1", "state": {"waiting": {"reason": reason, "message": message}}}
    return {"phase": "Pending", "containerStatuses": [container | more]}


def ended(code: int, reason: str = "Error", phase: str = "Failed", **more: Any) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason, **more}}
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
        (
            waiting(
                "CrashLoopBackOff",
                "back-off 5m0s",
                lastState={"terminated": {"reason": "Error", "exitCode": 3, "message": "began\nno such bucket\n"}},
            ),
            "CrashLoopBackOff",
            "container main: exit code 3: no such bucket",
        ),
        (
            waiting(
                "CrashLoopBackOff",
                "back-off 5m0s",
                lastState={"terminated": {"reason": "StartError", "exitCode": 128, "message": CONTAINERD}},
            ),
            "CreateContainerError",
            f"container main: {NOT_FOUND}",
        ),
        (waiting("RunContainerError", CONTAINERD), "CreateContainerError", f"container main: {NOT_FOUND}"),
        (ended(3), "PodsFailing", "container main: exit code 3"),
        (ended(128, "StartError", message=CONTAINERD), "CreateContainerError", f"container main: {NOT_FOUND}"),
        (
            ended(127, "ContainerCannotRun", message=f"Error response from daemon: {NOT_FOUND}"),
            "CreateContainerError",
            f"container main: Error response from daemon: {NOT_FOUND}",
        ),
        (ended(128, "StartError"), "CreateContainerError", "container main: StartError, exit code 128"),
        (
            ended(127, message="sh: 1: trian: not found\n"),
            "PodsFailing",
            "container main: exit code 127: sh: 1: trian: not found",
        ),
        (
            ended(1, message="Traceback (most recent call last):\n  File train.py\nKeyError: 'lr'\n\n"),
            "PodsFailing",
            "container main: exit code 1: KeyError: 'lr'",
        ),
        (
            ended(137, "OOMKilled", message="epoch 3"),
            "OOMKilled",
            "container main: OOMKilled, exit code 137: epoch 3",
        ),
        (ended(1, message=" \n "), "PodsFailing", "container main: exit code 1"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Evicted", "low on memory"),
        ({"phase": "Failed", "reason": "OutOfcpu", "message": "no room"}, "PodRejected", "OutOfcpu: no room"),
        (
            {"phase": "Failed", "reason": "OutOfexample.com/gpu", "message": "no device"},
            "PodRejected",
            "OutOfexample.com/gpu: no device",
        ),
        (
            ended(143) | {"conditions": [{"type": "DisruptionTarget", "status": "True", "message": PREEMPTED}]},
            "Evicted",
            PREEMPTED,
        ),
        (
            {"phase": "Failed", "reason": "DeadlineExceeded", "message": "too long on the node"},
            "PodsFailing",
            "too long on the node",
        ),
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


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"schedulerName": "volcano"}, "scheduler volcano has not reported anything about it"),
        (
            {"schedulerName": "default-scheduler", "resourceClaims": [{"name": "gpu"}, {"name": "net"}]},
            "scheduler default-scheduler has not reported anything about it; it needs the resource claims gpu, net",
        ),
        ({"schedulerName": "default-scheduler", "nodeName": "n1"}, "the kubelet of node n1 has not taken it"),
        ({}, None),
        ([], None),
        ("junk", None),
    ],
)
def test_a_pod_of_which_nobody_has_said_a_word_is_told_by_whom_it_waits_for(spec: Any, text: str | None) -> None:
    found = trouble_of(b'{"phase":"Pending","qosClass":"BestEffort"}', json.dumps(spec).encode())
    assert found == (None if text is None else Trouble(Reason.PODS_NOT_READY, text))


@pytest.mark.parametrize(
    ("reason", "status", "holds"),
    [
        ("Unhealthy", {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, True),
        ("NodeNotReady", {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, True),
        ("Unhealthy", {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, False),
        ("Unhealthy", {"phase": "Succeeded"}, False),
        ("Unhealthy", {"phase": 7}, False),
        ("FailedMount", {"phase": "Pending"}, True),
        ("NetworkNotReady", {"phase": "Pending"}, True),
        ("FailedMount", {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, False),
    ],
)
def test_a_warning_holds_for_as_long_as_the_pod_can_be_so(reason: str, status: Any, holds: bool) -> None:
    trouble = warned_of(reason, "it says so")
    assert trouble is not None
    assert may_hold(trouble, json.dumps(status, separators=(",", ":")).encode()) == holds


@pytest.mark.parametrize(
    "status",
    [
        waiting("CreateContainerError", "x\x1b[2J" * 100_000),
        ended(128, "StartError", message="x\x1b[2J" * 100_000),
        ended(1, "E\x1b[2J" * 100_000, message="x\x1b[2J\u202e\n" * 100_000),
    ],
)
def test_a_few_hundred_bytes_are_kept(status: Any) -> None:
    """D29: of whatever a worker sends."""
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


def disrupted(status: str = "True", **more: Any) -> dict[str, Any]:
    condition = {"type": "DisruptionTarget", "status": status, "reason": "PreemptionByScheduler", "message": PREEMPTED}
    return {"conditions": [{"type": "Ready", "status": "False"}, condition], **more}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        pytest.param(disrupted(phase="Running"), PREEMPTED, id="its containers still end"),
        pytest.param(disrupted(phase="Pending"), PREEMPTED, id="it had not started"),
        pytest.param(disrupted() | ended(143), PREEMPTED, id="they have ended"),
        pytest.param(
            disrupted(phase="Failed", reason="NodeShutdown", message="the node shuts down"),
            "the node shuts down",
            id="its kubelet has said why",
        ),
        pytest.param(disrupted("False", phase="Running"), None, id="not after all"),
        pytest.param(disrupted() | ended(0, "Completed", "Succeeded"), None, id="it has succeeded all the same"),
        pytest.param(ended(143), None, id="its controller deletes it"),
        pytest.param(waiting("ErrImagePull"), None, id="its controller deletes one that waits"),
        pytest.param({"phase": "DisruptionTarget", "conditions": 7}, None, id="nonsense"),
    ],
)
def test_a_pod_that_is_disrupted_is_evicted_while_it_is_deleted(status: Any, text: str | None) -> None:
    """Drains, preemptions, taints and the node's end delete the pod, other than a kubelet's evictions (KEP-3329)."""
    metadata = {"name": "p", "labels": {names.SOURCE_UID: "u"}, "deletionTimestamp": "2026-03-01T12:00:00Z"}
    kept = condensed(decode_object(msgspec.json.encode({"metadata": metadata, "status": status})))
    found = stored_trouble(kept) if kept is not None else None
    assert found == (None if text is None else Trouble(Reason.EVICTED, text, has_failed=True))


def test_a_pod_that_is_to_be_disrupted_runs_until_it_is_deleted() -> None:
    """The condition is written first; where no deletion follows, it is taken back."""
    assert of(disrupted(phase="Running")) is None


def test_pods_of_others_and_pods_that_go_are_not_kept() -> None:
    body = {"metadata": {"name": "p", "labels": {"a": "b"}}, "status": ended(1)}
    assert condensed(decode_object(msgspec.json.encode(body))) is None
    body["metadata"] = {"name": "p", "labels": {names.SOURCE_UID: "u"}, "deletionTimestamp": "2026-03-01T12:00:00Z"}
    assert condensed(decode_object(msgspec.json.encode(body))) is None


NO_ROOM = 'pods "train-head-x7k2p" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3'


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(f"Error creating: {NO_ROOM}", Reason.QUOTA_EXCEEDED, id="the Job controller, training-operator"),
        pytest.param(
            f"Failed to create head Pod team/train-head-x7k2p, {NO_ROOM}", Reason.QUOTA_EXCEEDED, id="KubeRay"
        ),
        pytest.param(
            f"Failed to create worker Pod for the cluster team/train, {NO_ROOM}",
            Reason.QUOTA_EXCEEDED,
            id="its workers",
        ),
        pytest.param(
            'Error creating: admission webhook "x.example.com" denied the request: no', Reason.PODS_FORBIDDEN, id="none"
        ),
    ],
)
def test_why_pods_cannot_be_created_is_without_what_changes_with_each_attempt(message: str, reason: Reason) -> None:
    """The name that the pod would have had, and what its controller puts before it."""
    found = refused_create(message)
    assert found.reason == reason
    assert "x7k2p" not in found.text
    assert not found.text.startswith(("Error", "Failed"))


@pytest.mark.parametrize(
    ("trouble", "warned", "text"),
    [
        pytest.param(
            Trouble("CrashLoopBackOff", "container main: exit code 137"),
            ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503"),
            "container main: exit code 137; Liveness probe failed: HTTP probe failed with statuscode: 503",
            id="a kubelet that ends the container",
        ),
        pytest.param(
            Trouble("CrashLoopBackOff", "container main: exit code 1"),
            ("Unhealthy", "Readiness probe failed: connection refused"),
            "container main: exit code 1",
            id="a probe that ends nothing",
        ),
        pytest.param(
            Trouble("ImagePullBackOff", "container main: image any"),
            (
                "FailedToRetrieveImagePullSecret",
                "Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed.",
            ),
            "container main: image any; Unable to retrieve some image pull secrets (regcred)",
            id="a secret that is not there",
        ),
        pytest.param(
            Trouble("Unschedulable", "no node"), ("Unhealthy", "Liveness probe failed"), "no node", id="another trouble"
        ),
    ],
)
def test_a_warning_that_says_why_is_added(trouble: Trouble, warned: tuple[str, str], text: str) -> None:
    """An exit code of 137 alone is no explanation, and neither is an image that cannot be pulled."""
    found = warned_of(*warned)
    assert found is not None
    assert first_explained([("a", trouble), ("b", trouble), ("a", found)]) == ("a", Trouble(trouble.reason, text))
    assert first_explained([("a", trouble), ("b", found)]) == ("a", trouble)


def test_a_probe_that_ends_containers_is_not_forgotten_for_one_that_does_not() -> None:
    """Both are warned of in turn; the text would change with each."""
    ends, other = (Trouble(Reason.PODS_NOT_READY, f"{probe} probe failed: 500") for probe in ("Liveness", "Readiness"))
    assert most_said(ends, other) == ends
    assert most_said(other, ends) == ends
    assert most_said(other, other) == other
    mount = Trouble(Reason.FAILED_MOUNT, "no such secret")
    assert most_said(ends, mount) == mount
