"""Jobs for the tests of this room: the smallest that is right, and changes of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from mirror.embedded.apiserver.registry.resources.job_strategy import prepare_create, prepare_update

Json = dict[str, Any]

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


def created(request: Json, **more: Any) -> Json:
    """As the server prepares the request of a new Job."""
    return prepare_create(request, uid=UID, now=NOW, **more)


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
    return prepare_update(request, old, **more)
