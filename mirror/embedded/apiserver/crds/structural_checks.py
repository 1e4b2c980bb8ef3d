"""What a structural schema wants beyond OpenAPI: items that are there once, objects that name their kind. Pure.

The words are kube-apiserver's; ``checking`` has the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mirror.batch.violations import Violation, duplicate, invalid, required
from mirror.embedded.apiserver.apimachinery.objects import encode
from mirror.embedded.apiserver.crds.checking import shown
from mirror.embedded.apiserver.crds.values import IS_OBJECT, Schema

_OF_OBJECTS = ("apiVersion", "kind")


def check_lists(value: Any, schema: Schema, field: str = "") -> Iterator[Violation]:
    """Items that may be there only once, in lists that are sets or maps."""
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, one in value.items():
            inner = properties.get(name, additional)
            if isinstance(inner, Mapping):
                yield from check_lists(one, inner, f"{field}.{name}" if field else name)
    elif isinstance(value, list):
        yield from _check_repeated(value, schema, field)
        items = schema.get("items")
        if isinstance(items, Mapping):
            for position, one in enumerate(value):
                yield from check_lists(one, items, f"{field}[{position}]")


def _check_repeated(value: list[Any], schema: Schema, field: str) -> Iterator[Violation]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            yield from _repeated(enumerate(value), field)
        case "map":
            for position, one in enumerate(value):
                if one is not None and not isinstance(one, dict):
                    why = "must be an object for an array of list-type map"
                    yield invalid(f"{field}[{position}]", shown(one), why)
                    return
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            items = (schema.get("items") or {}).get("properties") or {}
            found = ((position, _key(one, keys, items)) for position, one in enumerate(value) if one is not None)
            yield from _repeated(found, field)


def _repeated(keys: Iterable[tuple[int, Any]], field: str) -> Iterator[Violation]:
    """Each that is there more than once, where it is for the second time."""
    seen: dict[bytes, int] = {}
    for position, key in keys:
        raw = encode(key)
        seen[raw] = seen.get(raw, 0) + 1
        if seen[raw] == 2:
            yield duplicate(f"{field}[{position}]", shown(key))


def _key(item: Mapping[str, Any], keys: Sequence[str], properties: Mapping[str, Schema]) -> Any:
    return {name: item.get(name, properties.get(name, {}).get("default")) for name in keys if name in item}


def check_embedded(value: Any, schema: Schema, field: str = "") -> Iterator[Violation]:
    """Objects within objects name their kind and version."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for position, one in enumerate(value):
                yield from check_embedded(one, items, f"{field}[{position}]")
        return
    if not isinstance(value, dict):
        return
    if schema.get(IS_OBJECT):
        for name in _OF_OBJECTS:
            if not value.get(name):
                yield required(f"{field}.{name}", "must not be empty")
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, one in value.items():
        inner = properties.get(name, additional)
        if isinstance(inner, Mapping):
            yield from check_embedded(one, inner, f"{field}.{name}" if field else name)
