"""Whatever mirrors say, valid or hostile: no status that we write of them is refused, and none is written twice (D7).

On the embedded server, with definitions as strict as those of the kinds; ``e2e.kind_statuses`` does it on a real one
with the kinds' own definitions, and thousands of statuses.
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import Any

import pytest

from mirror.embedded import virtual
from mirror.embedded.clocks import LoopClock
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.planes.api import Api
from mirror.planes.plane import control_plane
from mirror.planes.shape import Shape
from mirror.settings.kinds import KindEntry
from tests.kinds.declared.status_histories import History, schema_of_status

Json = Any

STATUSES = int(os.environ.get("MIRROR_PROPERTY_EXAMPLES", "120"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT, TIME = {"type": "string"}, {"type": "string", "format": "date-time"}
WHOLE = {"type": "integer", "format": "int32"}
CONDITION: Json = {
    "type": "object",
    "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    "properties": {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {
            "type": "string",
            "maxLength": 1024,
            "minLength": 1,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {"type": "string", "maxLength": 32768},
        "lastTransitionTime": TIME,
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    },
}
CONDITIONS: Json = {
    "type": "array",
    "items": CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
COUNTS: Json = {
    "type": "object",
    "required": ["name", "active", "ready"],
    "properties": {"name": TEXT, "active": WHOLE, "ready": {**WHOLE, "maximum": 1024}, "since": TIME},
}
LISTED: Json = {
    "type": "array",
    "items": COUNTS,
    "maxItems": 3,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
STATUSES_OF: dict[str, Json] = {
    "JobSet": {"conditions": CONDITIONS, "replicatedJobsStatus": LISTED, "restarts": WHOLE, "terminalState": TEXT},
    "TrainJob": {"conditions": {**CONDITIONS, "maxItems": 8}, "jobsStatus": {**LISTED, "maxItems": 100}},
    "TaskRun": {
        "conditions": CONDITIONS,
        "podName": TEXT,
        "startTime": TIME,
        "completionTime": TIME,
        "results": {"type": "object", "additionalProperties": WHOLE},
        "provenance": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    "RayJob": {
        "jobStatus": TEXT,
        "jobDeploymentStatus": {"type": "string", "enum": ["", "Running", "Complete", "Failed", "Suspended"]},
        "reason": TEXT,
        "message": TEXT,
        "endTime": TIME,
        "startTime": {**TIME, "nullable": True},
        "succeeded": {**WHOLE, "default": 0},
        "rayClusterStatus": {
            "type": "object",
            "properties": {"conditions": CONDITIONS, "desiredCPU": {"x-kubernetes-int-or-string": True}},
        },
    },
}


def definition_of(kind: DeclaredKind) -> Json:
    resource = kind.resource
    status: Json = {"type": "object", "properties": STATUSES_OF[kind.name]}
    if kind.name == "TaskRun":
        status["required"] = ["podName"]
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {"status": {}},
    }
    names = {"plural": resource.plural, "kind": resource.kind}
    return {
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", STATUSES_OF)
def test_no_status_is_refused_or_written_twice(name: str) -> None:
    """CR5: in random sequences, with ends, losses, suspensions and reasons to wait between them."""
    kind = kinds_of([KindEntry(kind=name)])[name]
    assert isinstance(kind, DeclaredKind)
    definition = definition_of(kind)
    schema = schema_of_status(definition, kind.resource.version)
    kind.learn_status(schema)

    async def main() -> History:
        async with control_plane(Shape(), clock=LoopClock(), chance=Random(1)) as plane:
            await plane.api.create(DEFINITIONS, definition)
            await asyncio.sleep(5)  # until it is served
            return await _play(plane.api, kind, schema)

    history = virtual.run(main())
    assert not history.wrong, history.wrong[:3]
    assert history.seen["seen"] > STATUSES / 2
    assert history.seen["followed"] > STATUSES / 4
    assert history.seen["ended"]


async def _play(api: Api, kind: DeclaredKind, schema: Json) -> History:
    path = kind.resource.path("default")
    body = {"apiVersion": kind.resource.api_version, "kind": kind.name, "metadata": {"name": "a"}, "spec": {}}
    created = await api.create(path, body)

    async def write(subresource: str, operations: list[Json]) -> Json:
        whole = f"{path}/a/{subresource}" if subresource else f"{path}/a"
        return await api.call("PATCH", whole, operations, content_type="application/json-patch+json")

    history = History(kind, schema, created, write, seed=7)
    await history.run(STATUSES)
    return history
