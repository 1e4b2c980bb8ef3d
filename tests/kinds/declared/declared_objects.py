"""Objects of kinds that are data, for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from mirror.kinds.base import Kind, MirrorTransform
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kube.objects import Object, decode_object
from mirror.settings.kinds import KindEntry

Json = dict[str, Any]
TRANSFORM = MirrorTransform(origin="home")
POD: Json = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}


def built_in_kind(name: str) -> DeclaredKind:
    """One of the table."""
    kind = kinds_of([KindEntry(kind=name)])[name]
    assert isinstance(kind, DeclaredKind)
    return kind


def job_set(*replicated: str, **spec: Any) -> Json:
    """The spec of a JobSet of ours, with these replicated jobs."""
    jobs = [{"name": one, "replicas": 1, "template": {"spec": {"template": POD}}} for one in replicated or ("main",)]
    return {"managedBy": "jobmirror.io/controller", "replicatedJobs": jobs, **spec}


def condition(type_name: str, status: str = "True", *, reason: str = "Because", **more: Any) -> Json:
    at = "2026-01-01T00:00:00Z"
    return {"type": type_name, "status": status, "reason": reason, "message": "", "lastTransitionTime": at, **more}


def source_of(kind: Kind, spec: Json, status: Json | None = None, **metadata: Any) -> Object:
    """A source as its API server has it."""
    meta = {"name": "train", "namespace": "team", "uid": "s-1", "generation": 3, "resourceVersion": "7", **metadata}
    return _object(kind, meta, spec, status)


def mirror_of(kind: Kind, source: Object, status: Json | None = None, **metadata: Any) -> Object:
    """Its mirror as it was created, with this status."""
    body = kind.mirror_body(source, namespace="team", transform=TRANSFORM)
    meta = {**body["metadata"], "uid": "m-1", "generation": 1, "resourceVersion": "9", **metadata}
    return _object(kind, meta, body["spec"], status)


def sent(operations: Any) -> dict[str, Any]:
    """What a patch writes, by path; the note aside."""
    return {one["path"]: one.get("value") for one in operations if one["path"] != "/metadata/annotations"}


def followed(kind: DeclaredKind, before: Json, after: Json, **metadata: Any) -> dict[str, Any]:
    """What a patch writes to the mirror of a source that was changed."""
    mirror = mirror_of(kind, source_of(kind, before))
    changes = kind.changes(source_of(kind, after, **metadata), mirror, transform=TRANSFORM)
    return sent(changes.operations) if changes is not None else {}


def _object(kind: Kind, metadata: Json, spec: Json, status: Json | None) -> Object:
    type_ = {"apiVersion": kind.resource.api_version, "kind": kind.name}
    body = {**type_, "metadata": metadata, "spec": spec, **({} if status is None else {"status": status})}
    return decode_object(msgspec.json.encode(body))
