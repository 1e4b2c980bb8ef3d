"""Bodies of Jobs and pods as scenarios need them, and what a kubelet would say of a pod. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from e2e.controlplane.client import Json

NODE = "node-that-nobody-plays"
"""Pods bound to it are deleted gracefully: they stay until a script says that they are gone."""
HELD = {"finalizers": ["example.com/hold"]}
"""Metadata of a Job that somebody else keeps from going."""
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


def job(
    name: str = "job",
    *,
    node: str | None = NODE,
    restart: str = "Never",
    metadata: Json | None = None,
    template: Json | None = None,
    pod: Json | None = None,
    **spec: Any,
) -> Json:
    """A Job; keywords are fields of its spec under their API names.

    Args:
        name: its name.
        node: where its pods are bound from the start; None leaves them unscheduled.
        restart: ``restartPolicy`` of the pods.
        metadata: more of the Job's metadata.
        template: metadata of the pod template.
        pod: more of the pod template's spec.
    """
    pod_spec: Json = {"restartPolicy": restart, "containers": [{"name": "c", "image": "i"}], **(pod or {})}
    if node is not None:
        pod_spec["nodeName"] = node
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **(metadata or {})}}
    return body | {"spec": {"template": {"metadata": template or {}, "spec": pod_spec}, **spec}}


def indexed(completions: int, parallelism: int | None = None, **more: Any) -> Json:
    """An Indexed Job; ``parallelism`` is as many as completions unless given."""
    wanted = completions if parallelism is None else parallelism
    return job(completionMode="Indexed", completions=completions, parallelism=wanted, **more)


def manual(**more: Any) -> Json:
    """A Job that selects pods with the label ``app=manual``, and makes such pods."""
    selector: dict[str, Any] = {"manualSelector": True, "selector": {"matchLabels": {"app": "manual"}}}
    return job(template={"labels": {"app": "manual"}}, **selector, **more)


def lone_pod(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    owner: Json | None = None,
) -> Json:
    """A pod that a user makes; ``owner`` becomes its only owner reference."""
    metadata: Json = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    metadata["finalizers"] = list(finalizers)
    metadata["ownerReferences"] = [owner] if owner else []
    spec = {"nodeName": NODE, "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def controlled_by(owner: Json, *, api_version: str = "batch/v1", kind: str = "Job") -> Json:
    """An owner reference to an object that says: it controls this."""
    reference = {"apiVersion": api_version, "kind": kind, "controller": True, "blockOwnerDeletion": True}
    return reference | {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}


def exit_code_rule(action: str, *codes: int, operator: str = "In", container: str | None = None) -> Json:
    """A rule of a pod failure policy about exit codes."""
    requirement: Json = {"operator": operator, "values": list(codes)}
    if container is not None:
        requirement["containerName"] = container
    return {"action": action, "onExitCodes": requirement}


def condition_rule(action: str, kind: str, status: str = "True") -> Json:
    """A rule of a pod failure policy about a condition of pods."""
    return {"action": action, "onPodConditions": [{"type": kind, "status": status}]}


def rules(*rules: Json) -> Json:
    """A policy of these rules."""
    return {"rules": list(rules)}


# -- what a kubelet would say -----------------------------------------------------------------------------------------


def running(pod: Json, *, is_ready: bool = True) -> Json:
    """The status of a pod that runs."""
    return {
        "phase": "Running",
        "conditions": [_condition("Ready", "True" if is_ready else "False")],
        "containerStatuses": [_container(name, {"running": {"startedAt": _now()}}) for name in _containers(pod)],
    }


def ended(
    pod: Json,
    phase: str,
    *,
    exit_code: int,
    container: str | None = None,
    conditions: Mapping[str, str] | None = None,
    seconds_ago: float = 0.0,
) -> Json:
    """The status of a pod that has ended.

    Args:
        pod: the pod.
        phase: ``Succeeded`` or ``Failed``.
        exit_code: of its containers.
        container: the only one with this code, be it an init container; others ended with 0.
        conditions: more conditions, type → status.
        seconds_ago: since it ended.
    """
    at = _now(seconds_ago)

    def entry(name: str) -> Json:
        code = exit_code if container in (None, name) else 0
        return _container(name, {"terminated": {"exitCode": code, "startedAt": at, "finishedAt": at}})

    more = [_condition(kind, status) for kind, status in (conditions or {}).items()]
    status: Json = {"phase": phase, "conditions": [_condition("Ready", "False"), *more]}
    status["containerStatuses"] = [entry(name) for name in _containers(pod)]
    if init := [one["name"] for one in pod["spec"].get("initContainers", [])]:
        status["initContainerStatuses"] = [entry(name) for name in init]
    return status


def restarted(pod: Json, count: int, *, phase: str = "Running") -> Json:
    """The status of a pod whose containers have been started again so often, in total."""
    first, *others = _containers(pod)
    state = {"running": {"startedAt": _now()}} if phase == "Running" else {"waiting": {"reason": "CrashLoopBackOff"}}
    statuses = [_container(first, state, restarts=count), *(_container(name, state) for name in others)]
    return {"phase": phase, "containerStatuses": statuses}


def _containers(pod: Json) -> list[str]:
    return [one["name"] for one in pod["spec"]["containers"]]


def _container(name: str, state: Json, *, restarts: int = 0) -> Json:
    is_running = "running" in state
    return {"name": name, "image": "i", "imageID": "", "ready": is_running, "restartCount": restarts, "state": state}


def _condition(kind: str, status: str) -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": _now()}


def _now(seconds_ago: float = 0.0) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
