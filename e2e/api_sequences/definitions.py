"""Custom resource definitions, drawn at random and only tried: what is wrong with them must be told the same.

They are not created, since a real server needs seconds for each and settles their status when it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, TypeAlias

from e2e.api_sequences.kind import metadata, spoil

Json: TypeAlias = dict[str, Any]
_FEWEST, _MOST = 3, 8
_DEEPEST = 3
_PATTERNS = ("^a+$", "(", "a**", "[b-a]", "(?=x)", r"\d{1,3}")
_FORMATS = ("date-time", "int32", "uuid", "odd", "")
_NAMES: Mapping[str, tuple[object, ...]] = {
    "singular": ("thing", "Thing", "a b"),
    "shortNames": (["th"], ["TH"], ["a b"], []),
    "listKind": ("ThingList", "Thing", "x"),
    "categories": (["all"], ["A B"]),
}
_PATHS = (".spec.a", ".status.b", "spec.a", ".spec", ".spec.a[0]", "odd path", ".spec.a.b")


def steps(random: Random) -> list[Json]:
    """Some definitions that are created, dry."""
    return [
        {"ask": "POST customresourcedefinitions?dryRun=All", "body": _definition(random)}
        for _ in range(random.randint(_FEWEST, _MOST))
    ]


def _definition(random: Random) -> Json:
    names: Json = {"plural": "things", "kind": "Thing"}
    if random.random() < 0.2:
        names["kind"] = random.choice(("thing", "T_x", ""))
    for name, values in _NAMES.items():
        if random.random() < 0.15:
            names[name] = random.choice(values)
    spec: Json = {"group": "OURS.example.com", "scope": random.choice(("Namespaced", "Cluster", "Namespaced", "Odd"))}
    spec |= {"names": names, "versions": [_version(random, name) for name in random.choice((("v1",), ("v1", "v2")))]}
    if random.random() < 0.1:
        spec["conversion"] = {"strategy": random.choice(("None", "Odd", ""))}
    if random.random() < 0.1:
        spec["preserveUnknownFields"] = random.choice((True, False))
    body: Json = {"metadata": {"name": random.choice(("things.OURS.example.com",) * 9 + ("x",)), **metadata(random)}}
    body |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    if random.random() < 0.1:
        spoil(random, body)
    return body


def _version(random: Random, name: str) -> Json:
    found: Json = {"name": name, "served": random.random() < 0.9, "storage": (name == "v1") == (random.random() < 0.95)}
    if random.random() < 0.95:
        spec = _schema(random, 0)
        root: Json = {"type": "object", "properties": {"spec": spec}}
        if random.random() < 0.1:
            root |= random.choice(({"nullable": True}, {"type": "array"}, {"required": ["spec"]}, {"default": {}}))
        if random.random() < 0.1:
            top = _schema(random, _DEEPEST)
            top.pop("default", None)
            root["properties"][random.choice(("metadata", "kind"))] = top
        found["schema"] = {"openAPIV3Schema": root}
    if random.random() < 0.3:
        found["subresources"] = {"status": {}}
    if random.random() < 0.15:
        scale = {"specReplicasPath": random.choice(_PATHS), "statusReplicasPath": random.choice(_PATHS)}
        found.setdefault("subresources", {})["scale"] = scale
    if random.random() < 0.15:
        kinds = ("string", "integer", "date", "odd", "")
        column = {"name": random.choice(("A", "")), "type": random.choice(kinds), "jsonPath": random.choice(_PATHS)}
        found["additionalPrinterColumns"] = [column]
    # Of a schema that is none, to select a field may crash a real server.
    if random.random() < 0.1 and not any(word in str(found) for word in ("$ref", "fields': False")):
        found["selectableFields"] = [{"jsonPath": random.choice(_PATHS)}]
    if random.random() < 0.1:
        found["deprecated"] = True
        if random.random() < 0.5:
            found["deprecationWarning"] = random.choice(("soon", "", "x" * 300))
    return found


def _schema(random: Random, depth: int) -> Json:
    kinds = ("string", "integer", "boolean", "number", "string", "integer")
    kind = random.choice(kinds if depth >= _DEEPEST else (*kinds, "object", "object", "object", "array", "array"))
    if random.random() < 0.03:
        kind = random.choice(("null", "odd", ""))
    found: Json = {"type": kind} if kind else {}
    if random.random() < 0.15:
        found |= random.choice(_MORE)
    match kind:
        case "object":
            found |= _object(random, depth)
        case "array":
            found |= _array(random, depth)
        case "string":
            found |= _text(random)
        case "integer" | "number":
            found |= _number(random)
    if random.random() < 0.08:
        word = random.choice(("anyOf", "oneOf", "allOf"))
        inner = random.choice(({"required": ["a"]}, {"minLength": 1}, {"type": "string"}, {"default": 1}, {}))
        found[word] = [inner]
    return found


_MORE: tuple[Json, ...] = (
    {"nullable": True},
    {"description": "d"},
    {"default": "x"},
    {"default": 5},
    {"default": None},
    {"default": {"a": 1}},
    {"enum": ["a", "b"]},
    {"enum": [1, 2]},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"x-kubernetes-preserve-unknown-fields": False},
    {"x-kubernetes-embedded-resource": True},
    {"x-kubernetes-int-or-string": True},
    {"uniqueItems": True},
    {"$ref": "x"},
    {"not": {"type": "string"}},
    {"title": "t", "example": {"a": 1}},
    {"x-kubernetes-map-type": "atomic"},
)


def _object(random: Random, depth: int) -> Json:
    found: Json = {}
    if random.random() < 0.8:
        found["properties"] = {name: _schema(random, depth + 1) for name in random.sample(("a", "b", "c"), 2)}
    if random.random() < 0.3:
        found["additionalProperties"] = random.choice((True, _schema(random, depth + 1)))
    if random.random() < 0.2:
        found["required"] = random.choice((["a"], ["x"], []))
    if random.random() < 0.1:
        found |= random.choice(({"minProperties": 1}, {"maxProperties": 0}, {"maxProperties": -1}))
    return found


def _array(random: Random, depth: int) -> Json:
    found: Json = {}
    if random.random() < 0.95:
        found["items"] = _schema(random, depth + 1)
    if random.random() < 0.4:
        found["x-kubernetes-list-type"] = random.choice(("map", "map", "set", "atomic", "odd"))
    if found.get("x-kubernetes-list-type") == "map" or random.random() < 0.05:
        found["x-kubernetes-list-map-keys"] = random.choice((["a"], ["a", "b"], ["x"], [], ["a", "a"]))
    if random.random() < 0.1:
        found |= random.choice(({"minItems": 1}, {"maxItems": 3}, {"maxItems": -1}))
    return found


def _text(random: Random) -> Json:
    found: Json = {}
    if random.random() < 0.2:
        found["pattern"] = random.choice(_PATTERNS)
    if random.random() < 0.2:
        found["format"] = random.choice(_FORMATS)
    if random.random() < 0.2:
        found |= random.choice(({"minLength": 2}, {"maxLength": 3}, {"maxLength": -1}))
    return found


def _number(random: Random) -> Json:
    if random.random() > 0.3:
        return {}
    return random.choice(
        (
            {"minimum": 1},
            {"maximum": 9.5},
            {"minimum": 0, "exclusiveMinimum": True},
            {"multipleOf": 2},
            {"format": "int32"},
        )
    )
