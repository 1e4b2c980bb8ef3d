"""What rules see of objects: the types that a structural schema gives, and values in them. Pure.

Fields without a type, as those whose contents a schema leaves open, are not seen at all.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from mirror.embedded.apiserver.cel import times, types
from mirror.embedded.apiserver.cel.types import Type
from mirror.embedded.apiserver.cel.values import UNSEEN, MapList, Native, SetList, Typed
from mirror.embedded.apiserver.crds.values import IS_OBJECT, Schema

_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPED = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME = re.compile(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*", re.ASCII)
_SPECIAL = re.compile(r"__|[.\-/]")
_TEXT = {"type": "string"}
INT_OR_STRING = "x-kubernetes-int-or-string"
_FORMATS = {
    "byte": types.BYTES,
    "duration": types.DURATION,
    "date": types.TIMESTAMP,
    "date-time": types.TIMESTAMP,
}
_SIMPLE = {"boolean": types.BOOL, "number": types.DOUBLE, "integer": types.INT}


@lru_cache(maxsize=4096)
def escaped(name: str) -> str | None:
    """A field's name as rules write it, None if they cannot."""
    if not _NAME.fullmatch(name):
        return None
    if name in _RESERVED:
        return f"__{name}__"
    return _SPECIAL.sub(lambda found: _ESCAPED[found.group()], name)


def rooted(schema: Schema) -> Schema:
    """The schema of a whole object, with the parts of its metadata that rules see."""
    properties = schema.get("properties") or {}
    meta = properties.get("metadata") or {}
    named = meta.get("properties") or {}
    texts = [properties.get("kind"), properties.get("apiVersion"), named.get("name"), named.get("generateName")]
    if meta.get("type") == "object" and all((one or {}).get("type") == "string" for one in texts):
        return schema
    own = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
    return {**schema, "properties": {**properties, "kind": _TEXT, "apiVersion": _TEXT, "metadata": own}}


class Types:
    """The types of one schema; each part has one, by which objects are told apart."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Schema, Type | None]] = {}

    def of(self, schema: Schema, *, is_root: bool = False) -> Type | None:
        """The type that rules see, None if they see none."""
        found = self._known.get(id(schema))
        if found is None:
            found = self._known[id(schema)] = (
                schema,
                self._made(schema, is_root=is_root or bool(schema.get(IS_OBJECT))),
            )
        return found[1]

    def _made(self, schema: Schema, *, is_root: bool) -> Type | None:
        if schema.get(INT_OR_STRING):
            return types.DYN
        if is_root:
            schema = rooted(schema)
        match schema.get("type"):
            case "array":
                item = self.of(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
                return None if item is None else types.list_of(item)
            case "object":
                return self._object(schema)
            case "string":
                return _FORMATS.get(schema.get("format", ""), types.STRING)
            case kind:
                return _SIMPLE.get(str(kind))

    def _object(self, schema: Schema) -> Type | None:
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            value = self.of(additional)
            return None if value is None else types.map_of(types.STRING, value)
        fields: dict[str, Type] = {}
        for name, inner in (schema.get("properties") or {}).items():
            found, word = self.of(inner), escaped(name)
            if found is not None and word is not None:
                fields[word] = found
                if name in _RESERVED:  # may also be written as it is
                    fields.setdefault(name, found)
        return Type(f"object{len(self._known)}", fields=fields)


class Values:
    """Values of one object, as rules see them; each is made once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Any] = {}

    def of(self, value: Any, schema: Schema, *, is_root: bool = False) -> Any:
        """A value in the type of its schema."""
        if value is None or isinstance(value, bool) or schema.get(INT_OR_STRING):
            return value
        if isinstance(value, str):
            return _text(value, schema.get("format")) if schema.get("type") == "string" else value
        if isinstance(value, int | float):
            return float(value) if schema.get("type") == "number" else value
        key = (id(value), id(schema))
        if key not in self._known:
            made = (
                self._list(value, schema) if isinstance(value, list) else self._object(value, schema, is_root=is_root)
            )
            self._known[key] = made
        return self._known[key]

    def _list(self, value: list[Any], schema: Schema) -> list[Any]:
        items = schema.get("items")
        found = [self.of(one, items) for one in value] if isinstance(items, Mapping) else value
        match schema.get("x-kubernetes-list-type"):
            case "set":
                return SetList(found)
            case "map":
                return MapList(
                    found, tuple(escaped(one) or one for one in schema.get("x-kubernetes-list-map-keys") or ())
                )
        return found

    def _object(self, value: dict[str, Any], schema: Schema, *, is_root: bool) -> dict[str, Any]:
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            return Typed({name: self.of(one, additional) for name, one in value.items()})
        if is_root or schema.get(IS_OBJECT):
            schema = rooted(schema)
        properties = schema.get("properties") or {}
        found = Typed()
        for name, one in value.items():
            inner, word = properties.get(name), escaped(name)
            if inner is None or one is None:  # a null is as good as no field
                found[UNSEEN + (word or name)] = one
            else:
                found[UNSEEN + name if word is None else word] = self.of(one, inner)
                if name in _RESERVED:
                    found[name] = found[f"__{name}__"]
        return found


def untyped(value: Any, seen: Any) -> Any:
    """A stored value as an optional of it has it.

    cel-go takes the value out of the optional in its native form and converts it anew, without its schema: times in an
    object are texts, sets and maps are lists.

    Args:
        value: as it is stored.
        seen: the same in its type, which scalars keep.
    """
    return _native(value) if isinstance(value, dict | list) else seen


def _native(value: Any) -> Any:
    if isinstance(value, dict):
        return Native({name: _native(one) for name, one in value.items()})
    if isinstance(value, list):
        return [_native(one) for one in value]
    return value


def _text(value: str, format_: str | None) -> Any:
    """A text in its format; what is not of the format is refused by the schema, and stays a text here."""
    try:
        match format_:
            case "byte":
                return b64decode(value, validate=True)
            case "duration":
                return times.duration(value)
            case "date":
                day = datetime.combine(date.fromisoformat(value), datetime.min.time(), UTC)
                return times.Instant(int(day.timestamp()) * times.SECOND)
            case "date-time":
                return times.instant(value)
    except (ValueError, NotBase64, times.EvaluationError):
        return value
    return value
