"""What holds for values of all types: equality, order, size, arithmetic with overflow. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mirror.embedded.apiserver.cel.times import (
    Duration,
    EvaluationError,
    Instant,
    Optional,
    TypeName,
    UInt,
    checked_duration,
    checked_instant,
)

NO_OVERLOAD = "no such overload"


UNSEEN = "\0"
"""Before names of members that no rule can say, or that are null; they count when objects are compared."""


class Typed(dict[str, Any]):
    """An object, or a map, in the type that its schema gives; nothing but a text can be looked up in it."""


class Native(dict[str, Any]):
    """A map as JSON has it: without a schema, so that all its members are seen."""


class SetList(list[Any]):
    """A list of the type ``set``: equal in any order."""


class MapList(list[Any]):
    """A list of the type ``map``: equal in any order, items told apart by keys."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


def type_name(value: Any) -> str:
    """The name of the type of a value."""
    match value:
        case None:
            return "null_type"
        case bool():
            return "bool"
        case UInt():
            return "uint"
        case int():
            return "int"
        case float():
            return "double"
        case str():
            return "string"
        case bytes():
            return "bytes"
        case list():
            return "list"
        case dict():
            return "map"
        case Duration():
            return "google.protobuf.Duration"
        case Instant():
            return "google.protobuf.Timestamp"
        case Optional():
            return "optional_type"
        case TypeName():
            return "type"
    return str(getattr(value, "TYPE", type(value).__name__))


_IN_GO = {
    "null_type": "types.Null",
    "bool": "types.Bool",
    "uint": "types.Uint",
    "int": "types.Int",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "optional_type": "*types.Optional",
}


def go_type(value: Any) -> str:
    """The name of its type in cel-go, which some errors have."""
    name = type_name(value)
    return _IN_GO.get(name, name)


def is_number(value: Any) -> bool:
    """Whether it is a number; a bool is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers of different types are compared by what they are."""
    kind = type(one)
    if kind is type(other) and kind in (str, int, bool, float, bytes):
        return bool(one == other)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if is_number(one) and is_number(other):
        one, other = _alike(one, other)
        return bool(one == other)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and _equal_lists(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and len(one) == len(other) and _equal_maps(one, other)
    if isinstance(one, Optional) and isinstance(other, Optional):
        return one.has_value == other.has_value and equal(one.value, other.value)
    return bool(kind is type(other) and one == other)


def _equal_maps(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    for name, value in one.items():
        if name in other:
            if not equal(value, other[name]):
                return False
        elif not isinstance(name, str) or name[:1] != UNSEEN or (name[1:] in other and value is None):
            return False
        elif value is not None and isinstance(other, Native):
            raise EvaluationError(NO_OVERLOAD)
    return True


def _equal_lists(one: list[Any], other: list[Any]) -> bool:
    """Of lists of one length. What is there twice in the other counts twice, as in Kubernetes."""
    if isinstance(one, MapList):
        known = {_key(item, one.keys): _frozen(item) for item in one}
        return all(known.get(_key(item, one.keys)) == _frozen(item) for item in other)
    if isinstance(one, SetList):
        return {_frozen(item) for item in one}.issuperset(map(_frozen, other))
    return all(map(equal, one, other))


def _key(item: Any, keys: tuple[str, ...]) -> Any:
    return tuple(_frozen(item.get(name)) for name in keys)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((name, _frozen(one)) for name, one in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return (type_name(value) if isinstance(value, bool) else "", value)


def key_of(value: Any) -> Any:
    """What a value is looked up by among others: equal for equal ones."""
    return _frozen(value)


def compare(one: Any, other: Any) -> int:
    """Below zero, zero, or above.

    Raises:
        EvaluationError: they have no order.
    """
    comparable = (is_number(one) and is_number(other)) or (
        type(one) is type(other) and isinstance(one, str | bytes | bool | Duration | Instant)
    )
    if not comparable:
        raise EvaluationError(NO_OVERLOAD)
    if (isinstance(one, float) and math.isnan(one)) or (isinstance(other, float) and math.isnan(other)):
        raise EvaluationError("NaN values cannot be ordered")
    if isinstance(one, str):
        one, other = one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    one, other = _alike(one, other)
    return -1 if one < other else int(one > other)


def _alike(one: Any, other: Any) -> tuple[Any, Any]:
    """As cel-go compares numbers: beside a float a whole number is one, too, which may round it."""
    if isinstance(one, float) and isinstance(other, int):
        return one, float(other)
    if isinstance(one, int) and isinstance(other, float):
        return float(one), other
    return one, other


def size_of(value: Any) -> int:
    """What costs are counted by: letters, items, or one."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if isinstance(value, Optional) and value.has_value:
        return size_of(value.value)
    return int(getattr(value, "SIZE", 1))


def whole(value: int, *, unsigned: bool = False) -> int:
    """Raises EvaluationError: it does not fit into 64 bits."""
    if unsigned:
        if not 0 <= value < 2**64:
            raise EvaluationError("unsigned integer overflow")
        return UInt(value)
    if not -(2**63) <= value < 2**63:
        raise EvaluationError("integer overflow")
    return value


def add(one: Any, other: Any) -> Any:
    """``+`` of numbers, texts, bytes, lists and times."""
    match one, other:
        case str(), str():
            return one + other
        case bytes(), bytes():
            return one + other
        case SetList(), list():
            known = {_frozen(item) for item in one}
            return SetList([*one, *(item for item in other if _frozen(item) not in known)])
        case MapList(), list():
            merged = {_key(item, one.keys): item for item in (*one, *other)}
            return MapList(list(merged.values()), one.keys)
        case list(), list():
            return [*one, *other]
        case Duration(), Duration():
            return checked_duration(one.nanoseconds + other.nanoseconds)
        case (Instant(), Duration()) | (Duration(), Instant()):
            offset = one.offset_seconds if isinstance(one, Instant) else other.offset_seconds
            return checked_instant(one.nanoseconds + other.nanoseconds, offset)
    return _arithmetic(one, other, lambda a, b: a + b)


def subtract(one: Any, other: Any) -> Any:
    """``-`` of numbers and times."""
    match one, other:
        case Duration(), Duration():
            return checked_duration(one.nanoseconds - other.nanoseconds)
        case Instant(), Instant():
            return checked_duration(one.nanoseconds - other.nanoseconds)
        case Instant(), Duration():
            return checked_instant(one.nanoseconds - other.nanoseconds, one.offset_seconds)
    return _arithmetic(one, other, lambda a, b: a - b)


def multiply(one: Any, other: Any) -> Any:
    """``*`` of numbers."""
    return _arithmetic(one, other, lambda a, b: a * b)


def divide(one: Any, other: Any) -> Any:
    """``/`` of numbers, towards zero."""
    if isinstance(one, float) and isinstance(other, float):
        if other == 0:
            return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
        return one / other
    if isinstance(other, int) and other == 0 and is_number(one) and is_number(other):
        raise EvaluationError("division by zero")
    return _arithmetic(one, other, _quotient)


def remainder(one: Any, other: Any) -> Any:
    """``%`` of whole numbers; it has the sign of the first."""
    if isinstance(one, float) or isinstance(other, float):
        raise EvaluationError(NO_OVERLOAD)
    if isinstance(other, int) and other == 0 and is_number(one) and is_number(other):
        raise EvaluationError("modulus by zero")
    return _arithmetic(one, other, lambda a, b: a - b * _quotient(a, b))


def negated(value: Any) -> Any:
    """``-`` of one number."""
    if isinstance(value, float):
        return -value
    if type(value) is int:
        return whole(-value)
    if isinstance(value, Duration):
        return checked_duration(-value.nanoseconds)
    raise EvaluationError(NO_OVERLOAD)


def _quotient(one: int, other: int) -> int:
    found = abs(one) // abs(other)
    return -found if (one < 0) != (other < 0) else found


def _arithmetic(one: Any, other: Any, work: Callable[[Any, Any], Any]) -> Any:
    if type(one) is not type(other) or not is_number(one):
        raise EvaluationError(NO_OVERLOAD)
    if isinstance(one, float):
        try:
            return work(one, other)
        except OverflowError:
            return math.inf
    return whole(work(int(one), int(other)), unsigned=isinstance(one, UInt))
