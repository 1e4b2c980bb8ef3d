"""Jobs for the tests of this room: the smallest that is right, and changes of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.registry.object_meta import SYSTEM_FIELDS, keep_system_fields
from mirror.embedded.apiserver.registry.resources.jobs import Jobs

Json = dict[str, Any]
JOBS = Jobs()

UID = "0f7f3b1e-3a57-4a5e-9f0b-0d5c1c2d3e4f"
NOW = "2026-03-01T12:00:00Z"


def job(spec: Json | None = None, pod: Json | None = None, meta: Json | None = None, main: Json | None = None) -> Json:
    """A request: a Job of one container, with fields of its spec, pod, metadata and container set."""
    container = {"name": "main", "image": "none", **(main or {})}
    template: Json = {"spec": {"restartPolicy": "Never", "containers": [container], **(pod or {})}}
    return {
        "metadata": {"name": "train", "namespace": "team", **(meta or {})},
        "spec": {"template": template, **deepcopy(spec or {})},
    }


def decoded(request: Json, *, gates: FeatureGates = DEFAULT_GATES) -> Json:
    """As the server reads a request, or what was stored: with defaults."""
    made = JOBS.decode(request)
    JOBS.default(made, context(gates))
    return made


def created(request: Json, *, gates: FeatureGates = DEFAULT_GATES, uid: str = UID, now: str = NOW) -> Json:
    """As the server prepares the request of a new Job."""
    made = decoded(request, gates=gates)
    for name in SYSTEM_FIELDS:
        made["metadata"].pop(name, None)
    made["metadata"] |= {"uid": uid, "creationTimestamp": now}
    return JOBS.prepare_create(made, context(gates))


def updated(request: Json, old: Json, *, gates: FeatureGates = DEFAULT_GATES) -> Json:
    """As the server prepares the request of an update."""
    return JOBS.prepare_update(_replacing(request, old, gates), old, context(gates))


def status_updated(request: Json, old: Json, *, gates: FeatureGates = DEFAULT_GATES) -> Json:
    """As the server prepares the request of an update of the status."""
    return JOBS.subresources["status"].prepare(_replacing(request, old, gates), old, context(gates))


def stored(request: Json, status: Json | None = None, **more: Any) -> Json:
    """A Job that was created and has got this status."""
    made = created(request, **more)
    made["metadata"]["resourceVersion"] = "7"
    return {**made, "status": status or {}}


def changed(old: Json, spec: Json | None = None, pod: Json | None = None, **more: Any) -> Json:
    """As the server prepares an update of these fields."""
    request = deepcopy(old)
    request["spec"].update(deepcopy(spec or {}))
    request["spec"]["template"]["spec"].update(deepcopy(pod or {}))
    return updated(request, old, **more)


def context(gates: FeatureGates) -> Context:
    return Context(now=NOW, uid=UID, gates=gates)


def _replacing(request: Json, old: Json, gates: FeatureGates) -> Json:
    made = decoded(request, gates=gates)
    if version := old["metadata"].get("resourceVersion"):
        made["metadata"].setdefault("resourceVersion", version)
    keep_system_fields(made["metadata"], old["metadata"])
    return made
