"""Operators and the functions of the language itself. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import Any

from mirror.embedded.apiserver.cel import times, values
from mirror.embedded.apiserver.cel.functions.declared import Cost, Overload, of_pattern, overload, traversal
from mirror.embedded.apiserver.cel.functions.patterns import fits
from mirror.embedded.apiserver.cel.times import SECOND, Duration, EvaluationError, Instant, Optional, TypeName, UInt

_NUMBERS = ("int", "uint", "double")
_ORDERED = ("bool", *_NUMBERS, "string", "bytes", "timestamp", "duration")


def overloads() -> Iterator[Overload]:
    """All of them."""
    yield from _operators()
    yield from _comparisons()
    yield from _conversions()
    yield from _texts()
    yield from _times()
    yield from _optionals()


def _operators() -> Iterator[Overload]:
    for kind in _NUMBERS:
        yield overload(f"_+_({kind},{kind}){kind}", values.add)
        yield overload(f"_-_({kind},{kind}){kind}", values.subtract)
        yield overload(f"_*_({kind},{kind}){kind}", values.multiply)
        yield overload(f"_/_({kind},{kind}){kind}", values.divide)
        if kind != "double":
            yield overload(f"_%_({kind},{kind}){kind}", values.remainder)
        if kind != "uint":
            yield overload(f"-_({kind}){kind}", values.negated)
    for kind in ("string", "bytes"):
        yield overload(f"_+_({kind},{kind}){kind}", values.add, _of_both)
    yield overload("_+_(list(A),list(A))list(A)", values.add)
    yield overload("_+_(duration,duration)duration", values.add)
    yield overload("_+_(duration,timestamp)timestamp", values.add)
    yield overload("_+_(timestamp,duration)timestamp", values.add)
    yield overload("_-_(duration,duration)duration", values.subtract)
    yield overload("_-_(timestamp,timestamp)duration", values.subtract)
    yield overload("_-_(timestamp,duration)timestamp", values.subtract)
    yield overload("!_(bool)bool", lambda one: not one)
    yield overload("@not_strictly_false(bool)bool", lambda one: one is not False)
    yield overload("@in(A,list(A))bool", _is_in_list, lambda arguments, _: values.size_of(arguments[1]))
    yield overload("@in(A,map(A,B))bool", lambda key, whole: _key(whole, key) is not None)


def _of_both(arguments: Sequence[Any], result: Any) -> int:
    return ceil((values.size_of(arguments[0]) + values.size_of(arguments[1])) * 0.1)


def _is_in_list(one: Any, items: list[Any]) -> bool:
    return any(values.equal(one, item) for item in items)


def _key(whole: dict[Any, Any], key: Any) -> tuple[Any] | None:
    """The key of a map that equals a value, if there is one. Raises: EvaluationError."""
    if isinstance(key, str):
        return (key,) if key in whole else None
    if isinstance(whole, values.Typed):
        raise EvaluationError(values.NO_OVERLOAD)
    if not isinstance(key, bool | int | float):
        return None
    return next(((one,) for one in whole if values.equal(one, key)), None)


def _comparisons() -> Iterator[Overload]:
    yield overload("_==_(A,A)bool", values.equal, of_smaller)
    yield overload("_!=_(A,A)bool", lambda one, other: not values.equal(one, other), of_smaller)
    for sign, holds in _ORDERS:
        for kind in _ORDERED:
            cost: Cost | None = of_smaller if kind in ("string", "bytes") else None
            yield overload(f"_{sign}_({kind},{kind})bool", holds, cost)
        for kind in _NUMBERS:
            for other in _NUMBERS:
                if kind != other:
                    yield overload(f"_{sign}_({kind},{other})bool", holds)


def of_smaller(arguments: Sequence[Any], result: Any) -> int:
    """Of comparing two values until the shorter ends; those of Kubernetes' own types cost one."""
    return ceil(min(values.size_of(arguments[0]), values.size_of(arguments[1])) * 0.1)


def _order(holds: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    return lambda one, other: holds(values.compare(one, other))


_ORDERS: Sequence[tuple[str, Callable[[Any, Any], bool]]] = (
    ("<", _order(lambda found: found < 0)),
    ("<=", _order(lambda found: found <= 0)),
    (">", _order(lambda found: found > 0)),
    (">=", _order(lambda found: found >= 0)),
)


def _conversions() -> Iterator[Overload]:
    yield overload("type(A)type(A)", lambda one: TypeName(values.type_name(one)))
    yield overload("dyn(A)dyn", lambda one: one)
    for kind in (*_NUMBERS, "string", "timestamp", "duration"):
        yield overload(f"int({kind})int", _to_int)
    for kind in (*_NUMBERS, "string"):
        yield overload(f"uint({kind})uint", _to_uint)
        yield overload(f"double({kind})double", _to_double)
    for kind in ("bool", *_NUMBERS, "string", "timestamp", "duration"):
        yield overload(f"string({kind})string", _to_string)
    yield overload("string(bytes)string", _to_string, traversal())
    yield overload("bytes(bytes)bytes", lambda one: one)
    yield overload("bytes(string)bytes", lambda one: one.encode("utf-8", "surrogatepass"), traversal())
    yield overload("bool(bool)bool", lambda one: one)
    yield overload("bool(string)bool", _to_bool)
    yield overload("duration(duration)duration", lambda one: one)
    yield overload("duration(string)duration", times.duration)
    yield overload("duration(int)duration", Duration)
    yield overload("timestamp(timestamp)timestamp", lambda one: one)
    yield overload("timestamp(string)timestamp", times.instant)
    yield overload("timestamp(int)timestamp", lambda one: times.checked_instant(one * SECOND))


def _to_int(one: Any) -> int:
    if isinstance(one, Instant):
        return one.nanoseconds // SECOND
    if isinstance(one, Duration):
        return one.nanoseconds
    if isinstance(one, str):
        return _parsed(one, "int")
    if isinstance(one, float) and not (math.isfinite(one) and -(2.0**63) < one < 2.0**63):
        raise EvaluationError("integer overflow")
    return values.whole(int(one))


def _parsed(text: str, kind: str) -> int:
    digits = text[1:] if kind == "int" and text[:1] in ("-", "+") else text
    found = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None
    low, high = (0, 2**64) if kind == "uint" else (-(2**63), 2**63)
    if found is None or not low <= found < high:
        raise _not_converted(kind)
    return UInt(found) if kind == "uint" else found


_MOST_DIGITS = 40


def _not_converted(kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{kind}'")


def _to_uint(one: Any) -> int:
    if isinstance(one, str):
        return _parsed(one, "uint")
    if isinstance(one, float) and not (math.isfinite(one) and 0 <= one < 2.0**64):
        raise EvaluationError("unsigned integer overflow")
    return values.whole(int(one), unsigned=True)


def _to_double(one: Any) -> float:
    try:
        return float(one)
    except ValueError:
        raise _not_converted("double") from None


def _to_string(one: Any) -> str:
    match one:
        case bool():
            return "true" if one else "false"
        case bytes():
            try:
                return one.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case float():
            return double_text(one)
    return str(one)


def double_text(one: float) -> str:
    """A number as Go writes it with ``%g``."""
    if math.isinf(one):
        return "+Inf" if one > 0 else "-Inf"
    if math.isnan(one):
        return "NaN"
    shortest = repr(one)
    sign, digits, scale = Decimal(shortest).normalize().as_tuple()
    exponent = len(digits) - 1 + int(scale)
    if -4 <= exponent < _FIRST_WITH_EXPONENT or not one:
        return shortest.removesuffix(".0")
    fraction = "".join(map(str, digits[1:]))
    return f"{'-' * sign}{digits[0]}{'.' * bool(fraction)}{fraction}e{exponent:+03d}"


_FIRST_WITH_EXPONENT = 6
"""The power of ten from which Go writes an exponent: a million is ``1e+06``."""


_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _to_bool(text: str) -> bool:
    if text not in _BOOLS:
        raise _not_converted("bool")
    return _BOOLS[text]


def _texts() -> Iterator[Overload]:
    for kind in ("string", "bytes", "list(A)", "map(A,B)"):
        yield overload(f"size({kind})int", len)
        yield overload(f".size({kind})int", len)
    yield overload(".startsWith(string,string)bool", str.startswith, traversal())
    yield overload(".endsWith(string,string)bool", str.endswith, traversal())
    yield overload(".contains(string,string)bool", str.__contains__, _of_search)
    yield overload(".matches(string,string)bool", fits, of_pattern)
    yield overload("matches(string,string)bool", fits, of_pattern)


def _of_search(arguments: Sequence[Any], result: Any) -> int:
    return ceil(values.size_of(arguments[0]) * 0.1) * ceil(values.size_of(arguments[1]) * 0.1)


def _times() -> Iterator[Overload]:
    for name, of_date in _GETTERS.items():
        yield overload(f".{name}(timestamp)int", _getter(of_date))
        yield overload(f".{name}(timestamp,string)int", _getter(of_date))
    for name, unit in (("Hours", 3600 * SECOND), ("Minutes", 60 * SECOND), ("Seconds", SECOND)):
        yield overload(f".get{name}(duration)int", _length(unit))
    yield overload(".getMilliseconds(duration)int", lambda one: int(math.fmod(one.nanoseconds, SECOND)) // 10**6)
    yield overload(".getMilliseconds(timestamp)int", lambda one: one.nanoseconds % SECOND // 10**6)
    yield overload(".getMilliseconds(timestamp,string)int", lambda one, _: one.nanoseconds % SECOND // 10**6)


def _length(unit: int) -> Callable[[Duration], int]:
    return lambda one: abs(one.nanoseconds) // unit * (-1 if one.nanoseconds < 0 else 1)


def _getter(of_date: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda one, zone="": of_date(one.at(zone))


_GETTERS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda when: when.year,
    "getMonth": lambda when: when.month - 1,
    "getDayOfYear": lambda when: when.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda when: when.day - 1,
    "getDate": lambda when: when.day,
    "getDayOfWeek": lambda when: (when.weekday() + 1) % 7,
    "getHours": lambda when: when.hour,
    "getMinutes": lambda when: when.minute,
    "getSeconds": lambda when: when.second,
}


def _optionals() -> Iterator[Overload]:
    yield overload("optional.of(A)optional(A)", lambda one: Optional(True, one))
    yield overload("optional.none()optional(A)", lambda: times.NONE)
    yield overload(
        "optional.ofNonZeroValue(A)optional(A)", lambda one: times.NONE if _is_zero(one) else Optional(True, one)
    )
    yield overload(".value(optional(A))A", _value)
    yield overload(".hasValue(optional(A))bool", lambda one: one.has_value)
    yield overload(".or(optional(A),optional(A))optional(A)", lambda one, other: one if one.has_value else other)
    yield overload(".orValue(optional(A),A)A", lambda one, other: one.value if one.has_value else other)


def _is_zero(one: Any) -> bool:
    if isinstance(one, Duration | Instant):
        return one.nanoseconds == 0
    return not one


def _value(one: Optional) -> Any:
    if not one.has_value:
        raise EvaluationError("optional.none() dereference")
    return one.value
