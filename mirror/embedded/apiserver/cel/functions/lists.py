"""Functions of lists, Kubernetes' and cel-go's (version 3), and of sets. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from mirror.embedded.apiserver.cel import values
from mirror.embedded.apiserver.cel.functions.declared import Overload, overload
from mirror.embedded.apiserver.cel.times import Duration, EvaluationError, UInt

_SUMS: dict[str, Any] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}
_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_LONGEST_RANGE = 1_000_000
"""The cost of a longer one is above every limit."""


def overloads() -> Iterator[Overload]:
    """All of them."""
    for kind in _ORDERED:
        yield overload(f".isSorted(list({kind}))bool", _is_sorted, _traversal)
        yield overload(f".max(list({kind})){kind}", lambda items: _outermost(items, 1), _traversal)
        yield overload(f".min(list({kind})){kind}", lambda items: _outermost(items, -1), _traversal)
        yield overload(f".sort(list({kind}))list({kind})", lambda items: sorted(items, key=_KEY), _of_sorting)
        signature = f".@sortByAssociatedKeys(list(A),list({kind}))list(A)"
        yield overload(signature, _sorted_by, _of_sorting)
    for kind, nothing in _SUMS.items():
        yield overload(f".sum(list({kind})){kind}", _summing(nothing), _traversal)
    yield overload(".indexOf(list(A),A)int", _index_of, _traversal)
    yield overload(".lastIndexOf(list(A),A)int", _last_index_of, _traversal)
    yield overload(".slice(list(A),int,int)list(A)", _slice, _of_result)
    yield overload(".flatten(list(list(A)))list(A)", lambda items: _flat(items, 1), _of_result)
    yield overload(".flatten(list(dyn),int)list(dyn)", _flatten, _of_result)
    yield overload("lists.range(int)list(int)", _range, _of_result)
    yield overload(".reverse(list(A))list(A)", lambda items: list(reversed(items)), _of_result)
    yield overload(".distinct(list(A))list(A)", _distinct, _of_pairs)
    yield overload("sets.contains(list(A),list(A))bool", _has_all, _of_both)
    yield overload(
        "sets.intersects(list(A),list(A))bool", lambda one, other: any(_has(one, item) for item in other), _of_both
    )
    yield overload(
        "sets.equivalent(list(A),list(A))bool",
        lambda one, other: _has_all(one, other) and _has_all(other, one),
        lambda arguments, _: 1 + 2 * len(arguments[0]) * len(arguments[1]),
    )


def _traversal(arguments: Sequence[Any], result: Any) -> int:
    return _reading(arguments[0])


def _reading(value: Any) -> int:
    match value:
        case str():
            return int(len(value.encode("utf-8", "surrogatepass")) * 0.1)
        case bytes():
            return int(len(value) * 0.1)
        case list():
            return sum(map(_reading, value))
        case dict():
            return sum(_reading(key) + _reading(one) for key, one in value.items())
    return 1


def _of_result(arguments: Sequence[Any], result: Any) -> int:
    return 1 + len(result)


def _of_pairs(arguments: Sequence[Any], result: Any) -> int:
    return 1 + len(arguments[0]) ** 2


def _of_sorting(arguments: Sequence[Any], result: Any) -> int:
    return 10 + len(arguments[0]) ** 2


def _of_both(arguments: Sequence[Any], result: Any) -> int:
    return 1 + len(arguments[0]) * len(arguments[1])


_KEY = cmp_to_key(values.compare)


def _is_sorted(items: list[Any]) -> bool:
    return all(values.compare(one, other) <= 0 for one, other in pairwise(items))


def _outermost(items: list[Any], sign: int) -> Any:
    if not items:
        raise EvaluationError(f"{'max' if sign > 0 else 'min'} called on empty list")
    found = items[0]
    for one in items[1:]:
        if values.compare(one, found) * sign > 0:
            found = one
    return found


def _summing(nothing: Any) -> Any:
    def total(items: list[Any]) -> Any:
        found = nothing
        for one in items:
            found = values.add(found, one)
        return found

    return total


def _index_of(items: list[Any], one: Any) -> int:
    return next((position for position, item in enumerate(items) if values.equal(item, one)), -1)


def _last_index_of(items: list[Any], one: Any) -> int:
    return next((position for position in range(len(items) - 1, -1, -1) if values.equal(items[position], one)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    return _flat(items, min(depth, 64))


def _flat(items: list[Any], depth: int) -> list[Any]:
    found = list(items)
    for _ in range(depth):
        if not any(isinstance(one, list) for one in found):
            break
        found = [inner for one in found for inner in (one if isinstance(one, list) else (one,))]
    return found


def _range(count: int) -> list[int]:
    if count > _LONGEST_RANGE:
        raise EvaluationError(f"lists.range({count}) is too long for this server")
    return list(range(max(count, 0)))


def _sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    order = sorted(range(len(items)), key=lambda position: _KEY(keys[position]))
    return [items[position] for position in order]


def _distinct(items: list[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for one in items:
        found.setdefault(values.key_of(one), one)
    return list(found.values())


def _has(items: list[Any], one: Any) -> bool:
    return any(values.equal(item, one) for item in items)


def _has_all(items: list[Any], wanted: list[Any]) -> bool:
    return all(_has(items, one) for one in wanted)
