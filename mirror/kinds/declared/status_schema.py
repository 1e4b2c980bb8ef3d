"""A status as the management cluster's definition of its kind takes it (D7): what it would refuse is left out. Pure.

One bad element refuses a whole status, and a worker may say anything; its definition may be that of another release. So
what does not fit is dropped, as little as possible: a field, else the element that requires it. Fields that the
definition does not know go as well: they would be pruned, and then seem to be missing for ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mirror.batch import views

Json = Any
Schema = Mapping[str, Any]

_DROPPED = object()
_MOST_DEPTH = 64
_TIME = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
)
_RANGES = {"int32": 2**31, "int64": 2**63}
_IS_OPEN = "x-kubernetes-preserve-unknown-fields"
_IS_BOTH = "x-kubernetes-int-or-string"
_LIST_TYPE, _LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_BELOW = ("items", "additionalProperties")
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("type", "format", "pattern", _LIST_TYPE), (str,)),
    **dict.fromkeys(("enum", "required", _LIST_KEYS), (list,)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "maxProperties"), (int,)),
    **dict.fromkeys(("minimum", "maximum"), (int, float)),
    "properties": (dict,),
    "items": (dict,),
    "additionalProperties": (dict, bool),
}
"""Of the keywords that are looked at."""


class StatusSchema:
    """What a definition says of ``status``."""

    def __init__(self, schema: Schema) -> None:
        """``schema``: of the status, as OpenAPI v3 has it. A keyword of another type than that has says nothing."""
        self._schema = _sound(schema, 0)

    def fitted(self, status: Mapping[str, Json]) -> tuple[dict[str, Json], int]:
        """What of a status fits, and how many values were dropped. What the status itself requires is not looked at."""
        fitting = _Fitting()
        found = fitting.mapping(dict(status), self._schema, 0, is_root=True)
        return found if isinstance(found, dict) else {}, fitting.cut


def _sound(schema: Schema, depth: int) -> dict[str, Json]:
    """Without keywords that are of another type than theirs, and without what no status is as deep as."""
    if depth > _MOST_DEPTH:
        return {}
    kept = {key: one for key, one in schema.items() if isinstance(one, _TYPES.get(key, object))}
    for key in _BELOW:
        if isinstance(below := kept.get(key), dict):
            kept[key] = _sound(below, depth + 1)
    if isinstance(fields := kept.get("properties"), dict):
        kept["properties"] = {name: _sound(views.mapping(one), depth + 1) for name, one in fields.items()}
    return kept


class _Fitting:
    """One status; counts what is dropped."""

    def __init__(self) -> None:
        self.cut = 0

    def _fit(self, value: Json, schema: Schema, depth: int) -> Json:
        found = self._fitted(value, schema, depth)
        self.cut += found is _DROPPED
        return found

    def _fitted(self, value: Json, schema: Schema, depth: int) -> Json:
        if depth > _MOST_DEPTH:
            return _DROPPED
        if value is None:
            return None if schema.get("nullable") else _DROPPED
        if "enum" in schema and not any(type(one) is type(value) and one == value for one in schema["enum"]):
            return _DROPPED
        if schema.get(_IS_BOTH):
            is_one = isinstance(value, str) or _is_whole(value)
            return value if is_one and (not isinstance(value, str) or _has_form(value, schema)) else _DROPPED
        match schema.get("type"):
            case "object":
                return self.mapping(value, schema, depth)
            case "array":
                return self._list(value, schema, depth)
            case "string":
                return value if isinstance(value, str) and _has_form(value, schema) else _DROPPED
            case "integer":
                return value if _is_whole(value) and _is_in_range(value, schema) else _DROPPED
            case "number":
                is_number = _is_whole(value) or (isinstance(value, float) and math.isfinite(value))
                return value if is_number and _is_in_range(value, schema) else _DROPPED
            case "boolean":
                return value if isinstance(value, bool) else _DROPPED
        return _finite(value)

    def mapping(self, value: Json, schema: Schema, depth: int, *, is_root: bool = False) -> Json:
        """What of a mapping fits; ``_DROPPED`` where it lacks what it has to have."""
        if not isinstance(value, dict):
            return _DROPPED
        known, others = views.mapping(schema.get("properties")), schema.get("additionalProperties")
        kept = {}
        for key, one in value.items():
            if key in known:
                found = self._fit(one, views.mapping(known[key]), depth + 1)
            elif isinstance(others, Mapping) and others:
                found = self._fit(one, others, depth + 1)
            elif others or schema.get(_IS_OPEN):
                found = _finite(one)
                self.cut += found != one
            else:
                self.cut += 1
                continue
            if found is not _DROPPED:
                kept[key] = found
        for key, one in known.items():
            below = views.mapping(one)
            if "default" in below and key not in kept:
                # As the server does, with what that lacks: what is stored is compared with this.
                found = self._fitted(below["default"], below, depth + 1)
                if found is not _DROPPED:
                    kept[key] = found
        if not is_root and any(name not in kept for name in views.items(schema.get("required"))):
            return _DROPPED
        most = schema.get("maxProperties")
        return kept if most is None or len(kept) <= most else _DROPPED

    def _list(self, value: Json, schema: Schema, depth: int) -> Json:
        if not isinstance(value, list):
            return _DROPPED
        items = views.mapping(schema.get("items"))
        found = [one for one in (self._fit(one, items, depth + 1) for one in value) if one is not _DROPPED]
        kept = _without_twins(found, schema)
        most = schema.get("maxItems")
        if most is not None:
            kept = kept[:most]
        self.cut += len(found) - len(kept)
        return kept if len(kept) >= schema.get("minItems", 0) else _DROPPED


def _without_twins(found: list[Json], schema: Schema) -> list[Json]:
    """Of a map or a set the first of each."""
    match schema.get(_LIST_TYPE):
        case "map":
            keys = schema.get(_LIST_KEYS) or ()
            names = [repr([views.mapping(one).get(key) for key in keys]) for one in found]
        case "set":
            names = list(map(repr, found))
        case _:
            return found
    firsts = {name: at_ for at_, name in reversed(list(enumerate(names)))}
    return [one for at_, one in enumerate(found) if firsts[names[at_]] == at_]


def _is_whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_in_range(value: float, schema: Schema) -> bool:
    bound = _RANGES.get(schema.get("format", ""))
    if bound is not None and not -bound <= value < bound:
        return False
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") is True and value == least)):
        return False
    return most is None or not (value > most or (schema.get("exclusiveMaximum") is True and value == most))


def _has_form(value: str, schema: Schema) -> bool:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf):
        return False
    if schema.get("format") == "date-time" and not _TIME.fullmatch(value):
        return False
    pattern = schema.get("pattern")
    return pattern is None or _matches(pattern, value)


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    # Where ``$`` ends a pattern, a newline may follow it in Python, and not in Go.
    return compiled is None or (compiled.search(value) is not None and not (value.endswith("\n") and "$" in pattern))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None  # in words that only Go knows: the API server judges


def _finite(value: Json) -> Json:
    """Without numbers that JSON has not, and such as the API server cannot read."""
    if isinstance(value, float) and not math.isfinite(value):
        return _DROPPED
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return _DROPPED
    if isinstance(value, Mapping):
        below = {key: _finite(one) for key, one in value.items()}
        return {key: one for key, one in below.items() if one is not _DROPPED}
    if isinstance(value, list):
        return [one for one in map(_finite, value) if one is not _DROPPED]
    return value
