"""What a strategic merge patch made, turned into the fields of a struct: with the leniency and the words of that path.

A server does not decode JSON here but converts values: numbers that are too large wrap around, whole floats are
integers.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mirror.embedded.apiserver.apimachinery.decoding import scalars, text
from mirror.embedded.apiserver.apimachinery.decoding.goprint import type_of
from mirror.embedded.apiserver.apimachinery.schemas import gotypes
from mirror.embedded.apiserver.apimachinery.schemas.dropped import KNOWN, drop

_GO_KINDS = {"s": "string", "b": "bool", "i": "int32", "f": "float64"}


class Unconvertible(ValueError):
    """A value has a type that the field cannot take."""


def converted(body: dict[str, Any], struct: str) -> tuple[dict[str, Any], list[str]]:
    """The known fields, and complaints of the others, sorted.

    Raises:
        Unconvertible: a value does not fit.
    """
    quickly = text.decode(msgspec.json.encode(body), struct)
    if quickly is not None:
        return quickly, []
    unknown: list[str] = []
    found = _struct(body, struct, "", unknown)
    return found or {}, sorted(unknown)


def _struct(value: Any, struct: str, path: str, unknown: list[str]) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        raise Unconvertible(f"cannot restore struct from: {_kind(value)}")
    fields, found = KNOWN[struct], {}
    for name, kind in fields.items():
        if name in value:
            type_name = gotypes.of_field(struct, name, kind)
            below = f"{path}.{name}" if path else name
            found[name] = _value(value[name], kind.strip("*!"), type_name, below, unknown)
    others = [name for name in value if name not in fields]
    unknown.extend(f'unknown field "{path}.{name}"' if path else f'unknown field "{name}"' for name in others)
    return None if drop(found, struct) else {name: found[name] for name in value if name in found}


def _value(value: Any, kind: str, type_name: str, path: str, unknown: list[str]) -> Any:
    if value is None or kind == "?" or "|" in kind:
        return value
    if kind in KNOWN:
        return _struct(value, kind, path, unknown)
    if kind.startswith("["):
        if not isinstance(value, list):
            raise Unconvertible(f"cannot restore slice from {_kind(value)}")
        inner = gotypes.of_item(type_name)
        return [_value(one, kind[1:-1], inner, f"{path}[{position}]", unknown) for position, one in enumerate(value)]
    if kind.startswith("{"):
        if not isinstance(value, dict):
            raise Unconvertible(f"cannot restore map from {_kind(value)}")
        inner = gotypes.of_item(type_name)
        return {name: _value(one, kind[1:-1], inner, path, unknown) for name, one in value.items()}
    if kind in "tmqxy":
        return _special(value, kind)
    return _simple(value, kind, type_name)


def _simple(value: Any, kind: str, type_name: str) -> Any:
    found = type_of(value)
    match kind, found:
        case ("s", "string") | ("b", "bool"):
            return value
        case "f", ("int64" | "float64"):
            return value
        case "i", "int64":
            return _wrapped(value, type_name)
        case "i", "float64" if value == int(value):
            return _wrapped(int(value), type_name)
        case ("s", "int64") | ("i", "float64"):
            raise Unconvertible(f"cannot convert {found} to {type_name}")
    is_wide = kind == "i" and type_name == "int64"
    raise Unconvertible(f"unrecognized type: {'int64' if is_wide else _GO_KINDS[kind]}")


def _wrapped(value: int, type_name: str) -> int:
    bits = 64 if type_name == "int64" else 32
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _special(value: Any, kind: str) -> Any:
    problem = ""
    if kind == "q":
        problem = scalars.quantity_complaint(str(value) if type_of(value) in ("string", "int64", "float64") else "{")
    elif kind == "y":
        if isinstance(value, list) and any(type_of(one) != "int64" for one in value):
            raise Unconvertible("unrecognized type: uint8")
        if not isinstance(value, str):
            raise Unconvertible(f"cannot restore slice from {_kind(value)}")
        problem = scalars.base64_complaint(value)
        problem = problem and f"error decoding from json: {problem}"
    elif kind == "x":
        is_fine = isinstance(value, str) or (type_of(value) == "int64" and -(2**31) <= value < 2**31)
        problem = "" if is_fine else f"json: cannot unmarshal {_json_kind(value)} into Go value of type int32"
    elif isinstance(value, str):
        problem = scalars.time_complaint(value, is_micro=kind == "m")
    else:
        problem = f"json: cannot unmarshal {_json_kind(value)} into Go value of type string"
    if problem:
        raise Unconvertible(problem)
    return value


def _kind(value: Any) -> str:
    found = type_of(value)
    return {"map[string]interface {}": "map", "[]interface {}": "slice"}.get(found, found)


def _json_kind(value: Any) -> str:
    found = type_of(value)
    names = {"map[string]interface {}": "object", "[]interface {}": "array", "int64": "number", "float64": "number"}
    return names.get(found, found)
