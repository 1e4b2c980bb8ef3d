"""Jobs as users write them, and what a worker's Job controller says about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from doubles.transport import Wire
from mirror.batch import conditions
from mirror.kube.objects import Object, decode_object
from mirror.model import names

Body = dict[str, Any]


def job(
    name: str = "train",
    *,
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    managed_by: str | None = names.DEFAULT_MANAGED_BY,
    **spec: Any,
) -> Body:
    """A Job that asks to be mirrored."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    metadata: Body = {"name": name, "namespace": namespace}
    metadata |= {"annotations": dict(annotations or {}), "labels": dict(labels or {})}
    body: Body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template} | spec}
    if managed_by is not None:
        body["spec"]["managedBy"] = managed_by
    return body


def as_object(body: Mapping[str, Any]) -> Object:
    """A body as caches hold it."""
    return decode_object(msgspec.json.encode(body))


def condition(type_name: str, at: str, *, status: str = "True", reason: str = "", message: str = "") -> Body:
    return conditions.new(type_name, status, reason=reason, message=message, at=at)


class JobController:
    """Plays a worker's own Job controller, by hand."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def set(self, name: str, status: Mapping[str, Any], *, namespace: str = "default") -> None:
        """Whatever a worker may say, truly or not."""
        self._wire.server.edit("jobs", name, lambda body: body.update(status=dict(status)), namespace)

    def start(self, name: str, *, namespace: str = "default", active: int = 1) -> None:
        self.set(name, self._running(active), namespace=namespace)

    def suspend(self, name: str, *, namespace: str = "default") -> None:
        suspended = condition("Suspended", self._wire.clock.text(), reason="JobSuspended", message="Job suspended")
        self.set(name, {"conditions": [suspended]}, namespace=namespace)

    def resume(self, name: str, *, namespace: str = "default") -> None:
        at = self._wire.clock.text()
        resumed = condition("Suspended", at, status="False", reason="JobResumed", message="Job resumed")
        self.set(name, self._running(1) | {"conditions": [resumed]}, namespace=namespace)

    def complete(self, name: str, *, namespace: str = "default") -> None:
        at = self._wire.clock.text()
        before = self._wire.server.get("jobs", name, namespace)["status"]
        ends = [condition(kind, at, reason="CompletionsReached") for kind in ("SuccessCriteriaMet", "Complete")]
        status = {"succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
        start = before.get("startTime", at)
        self.set(name, status | {"startTime": start, "completionTime": at, "conditions": ends}, namespace=namespace)

    def _running(self, active: int) -> Body:
        return {
            "active": active,
            "ready": active,
            "terminating": 0,
            "uncountedTerminatedPods": {},
            "startTime": self._wire.clock.text(),
        }
