"""Jobs and pods as the caches keep them."""

from __future__ import annotations

from typing import Any

import msgspec

from mirror.jobcontroller.decide.values import TRACKING_FINALIZER
from mirror.jobcontroller.jobview import CachedJob, keep_job
from mirror.jobcontroller.podview import CachedPod, keep_pod
from mirror.kube.objects import decode_object

GENERATED = "batch.kubernetes.io/controller-uid"
AT = "2026-01-01T00:00:00Z"


def cached_job(
    name: str = "train", *, uid: str = "job-1", status: Any = None, version: int = 1, **spec: Any
) -> CachedJob:
    """A Job; ``meta`` among the spec's fields goes to its metadata."""
    more = spec.pop("meta", {})
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version), "generation": 1}
    labels = {GENERATED: uid}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main"}]}}
    whole = {"template": template, "selector": {"matchLabels": labels}, "completionMode": "NonIndexed"} | spec
    body = {"metadata": metadata | more, "spec": whole, "status": status or {}}
    return keep_job(decode_object(msgspec.json.encode(body)))


def finished(verdict: str = "Complete") -> dict[str, Any]:
    return {"conditions": [{"type": verdict, "status": "True"}]}


def owned_by(job: CachedJob, **changes: Any) -> dict[str, Any]:
    """An owner reference to that Job."""
    plain = {"apiVersion": "batch/v1", "kind": "Job", "name": job.metadata.name, "uid": job.metadata.uid}
    return {**plain, "controller": True, **changes}


def cached_pod(
    name: str = "pod",
    *,
    owner: dict[str, Any] | None = None,
    phase: str = "Pending",
    tracked: bool = True,
    version: int = 1,
    labels: dict[str, str] | None = None,
    **metadata: Any,
) -> CachedPod:
    """A pod; its uid is its name, unless told otherwise."""
    if labels is None:
        labels = {GENERATED: owner["uid"]} if owner else {"app": "x"}
    found: dict[str, Any] = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    found |= {"labels": labels, "creationTimestamp": AT} | metadata
    if owner:
        found["ownerReferences"] = [owner]
    if tracked:
        found["finalizers"] = [TRACKING_FINALIZER]
    body = {"metadata": found, "spec": {}, "status": {"phase": phase}}
    return keep_pod(decode_object(msgspec.json.encode(body)))
