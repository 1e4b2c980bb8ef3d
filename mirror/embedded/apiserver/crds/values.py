"""What a structural schema makes of a value: unknown fields go, defaults come. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_OF_OBJECTS = ("apiVersion", "kind", "metadata")
KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
IS_OBJECT = "x-kubernetes-embedded-resource"


def prune(value: Any, schema: Schema, *, is_root: bool = False, path: str = "") -> list[str]:
    """Take out, in place, what the schema does not know; the paths of what went."""
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, Mapping):
            items = {KEEPS_UNKNOWN: schema.get(KEEPS_UNKNOWN)}
        return [gone for number, one in enumerate(value) for gone in prune(one, items, path=f"{path}[{number}]")]
    if not isinstance(value, dict):
        return []
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    is_object = is_root or bool(schema.get(IS_OBJECT))
    keeps = bool(schema.get(KEEPS_UNKNOWN)) or additional is True
    gone: list[str] = []
    for name in list(value):
        at = f"{path}.{name}" if path else name
        if is_object and name in _OF_OBJECTS:
            continue
        inner = properties.get(name)
        if inner is None and isinstance(additional, Mapping):
            inner = additional
        if inner is not None:
            gone += prune(value[name], inner, path=at)
        elif not keeps:
            del value[name]
            gone.append(at)
    return gone


def drop_nulls(value: Any, schema: Schema) -> None:
    """Take out, in place, nulls where none may be: they mean that the field is not there."""
    for name, one, inner in _members(value, schema):
        if one is None and inner is not None and not inner.get("nullable") and isinstance(value, dict):
            del value[name]
        elif inner is not None:
            drop_nulls(one, inner)


def drop_defaulted(value: Any, schema: Schema) -> None:
    """Take out, in place, nulls where none may be but a default is; others stay."""
    for name, one, inner in _members(value, schema):
        if inner is None:
            continue
        if one is None and "default" in inner and not inner.get("nullable") and isinstance(value, dict):
            del value[name]
        else:
            drop_defaulted(one, inner)


def default(value: Any, schema: Schema) -> None:
    """Fill in, in place, what is not there."""
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if "default" in inner and name not in value:
                value[name] = deepcopy(inner["default"])
    for _, one, inner in _members(value, schema):
        if inner is not None:
            default(one, inner)


def _members(value: Any, schema: Schema) -> list[tuple[Any, Any, Schema | None]]:
    """Members of an object, or items of a list, with their schemas."""
    if isinstance(value, list):
        items = schema.get("items")
        return [(number, one, items) for number, one in enumerate(value)] if isinstance(items, Mapping) else []
    if not isinstance(value, dict):
        return []
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    other = additional if isinstance(additional, Mapping) else None
    return [(name, one, properties.get(name, other)) for name, one in value.items()]
