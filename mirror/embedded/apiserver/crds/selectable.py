"""Fields of a definition that its objects are selected by, and what is wrong with them. Pure.

``definition_rules`` calls it. The words of kube-apiserver; how the fields are read is in ``custom``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, duplicate, invalid_text, required
from mirror.embedded.apiserver.apimachinery.errors import Json

_MOST = 8
_TYPES = ("string", "boolean", "integer")
_TOKEN = re.compile(r"'.*?(?<!\\)'|'.*|[.\[\]]|[^.\[\]]+", re.DOTALL)


class _NoField(ValueError):
    """The path leads to no field of the schema."""


def check_selectable(field: str, version: Json) -> Iterator[Violation]:
    """The fields that a version of a definition names."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    seen: set[str] = set()
    for position, selectable in enumerate(version.get("selectableFields") or ()):
        place, path = f"{field}[{position}].jsonPath", selectable.get("jsonPath", "")
        if not path:
            yield required(place)
            continue
        try:
            found = _schema_at(path, schema)
        except _NoField as error:
            yield invalid_text(place, path, f"is an invalid path: {error}")
            continue
        if _TOKEN.findall(path)[1] == "metadata":
            yield invalid_text(place, path, "must not point to fields in metadata")
        if found.get("type") not in _TYPES:
            why = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield invalid_text(place, path, why)
        if path in seen:
            yield duplicate(place, quoted(path))
        seen.add(path)
    if len(seen) > _MOST:
        yield Violation(field, "FieldValueTooMany", f"Too many: {len(seen)}: must have at most {_MOST} items")


def _schema_at(path: str, schema: Json) -> Json:
    """What the schema says of the field; it is walked until the first thing that is wrong."""
    tokens = iter(_TOKEN.findall(path))
    for token in tokens:
        if token == "[":
            raise _NoField("array notation is not allowed")
        if token != ".":
            raise _NoField(f"expected [ or . but got: {token}")
        name = next(tokens, None)
        if name is None:
            raise _NoField("unexpected end of JSON path")
        member = _member(schema, name)
        if member is None:
            raise _NoField("does not refer to a valid field")
        schema = member
    return schema


def _member(schema: Json, name: str) -> Any:
    """The schema of a field; others than those with a name are looked for only where none has one."""
    if properties := schema.get("properties"):
        return properties.get(name)
    additional = schema.get("additionalProperties")
    # What is only allowed, or forbidden, has no schema, which is not the same as no field.
    return additional if isinstance(additional, dict) else None if additional is None else {}
