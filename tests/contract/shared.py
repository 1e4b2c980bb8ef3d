"""Custom resource definitions that many cases use: a real server takes seconds for each, so there is one of a kind.

Cases keep to their own namespaces, so they do not meet. ``run`` and ``record`` make them before the first case.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

from tests.contract.api import Api
from tests.contract.ruled import RULED
from tests.contract.server import Server

Json: TypeAlias = dict[str, Any]
GROUP = "contract.example.com"

THING: Json = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]+$", "default": "abc"},
                "mode": {"type": "string", "enum": ["A", "B"]},
                "list": {
                    "type": "array",
                    "maxItems": 2,
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "set",
                },
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "any": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "maybe": {"type": "string", "nullable": True},
                "when": {"type": "string", "format": "date-time"},
                "rules": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "required": ["key"],
                        "properties": {"key": {"type": "string"}, "v": {"type": "integer", "default": 7}},
                    },
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {"ready": {"type": "integer"}, "replicas": {"type": "integer"}},
        },
    },
}
"""One of each kind of rule."""
_FREE: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCALE = {
    "specReplicasPath": ".spec.size",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
_COLUMNS: list[Json] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1, "description": "which"},
    {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def definition(plural: str, kind: str, schema: Json, **version: object) -> Json:
    """A definition with one version of its kind."""
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": plural, "kind": kind}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [one]}
    return {"metadata": {"name": f"{plural}.{GROUP}"}, "spec": spec}


DEFINITIONS = (
    definition(
        "things",
        "Thing",
        THING,
        subresources={"status": {}, "scale": _SCALE},
        additionalPrinterColumns=_COLUMNS,
        selectableFields=[{"jsonPath": ".spec.mode"}, {"jsonPath": ".spec.size"}],
    ),
    definition("ruleds", "Ruled", RULED, subresources={"status": {}}),
    definition("plains", "Plain", {"type": "object", "properties": {"spec": _FREE, "status": _FREE}}),
)


async def prepare(server: Server) -> None:
    """Make what is shared, unless it is there, and wait until it is served."""
    api = Api(server, "default")
    for one in DEFINITIONS:
        answer = await api.post("customresourcedefinitions", one)
        if answer.status == 404:
            return  # it has no definitions at all: the cases that need them will say so
        if answer.status != 409:
            answer.ok(201)
    for one in DEFINITIONS:
        plural = one["spec"]["names"]["plural"]
        path = f"/apis/{GROUP}/v1/namespaces/OURS/{plural}"
        await api.repeat(partial(api.get, path), lambda answer: answer.status == 200)
