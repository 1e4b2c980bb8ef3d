"""Macros: calls that become loops, tests and choices before anything is checked. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from mirror.embedded.apiserver.cel.tree import (
    BadExpression,
    Call,
    Constant,
    Fold,
    Junction,
    ListOf,
    MapOf,
    Name,
    Node,
    Select,
)

RESULT = "@result"


class Complaining(Protocol):
    """Who reads the text."""

    def wrong(self, at: int, words: str) -> BadExpression: ...


Macro: TypeAlias = Callable[[Complaining, Call], Node]


def expand(reader: Complaining, call: Call) -> Node:
    """What a call becomes, itself if it is no macro.

    Raises:
        BadExpression: arguments that the macro cannot have.
    """
    known = _METHODS if call.target is not None else _GLOBAL
    macro = known.get((call.function, len(call.arguments)))
    return call if macro is None else macro(reader, call)


def _has(reader: Complaining, call: Call) -> Node:
    argument = call.arguments[0]
    if not isinstance(argument, Select) or argument.is_test:
        raise reader.wrong(argument.at, "invalid argument to has() macro")
    return Select(call.at, argument.operand, argument.field, is_test=True, is_optional=argument.is_optional)


def _target(call: Call) -> Node:
    assert call.target is not None
    return call.target


_NO_NAME = "argument must be a simple name"


def _variable(reader: Complaining, node: Node, words: str = _NO_NAME) -> str:
    if not isinstance(node, Name):
        raise reader.wrong(node.at, words)
    if node.name in (RESULT, "__result__"):
        raise reader.wrong(node.at, "iteration variable overwrites accumulator variable")
    return node.name


def _loop(call: Call, variables: tuple[str, ...], start: object, parts: tuple[Node, Node, Node]) -> Fold:
    first = start if isinstance(start, ListOf | MapOf) else Constant(call.at, start)
    condition, step, result = parts
    return Fold(call.at, _target(call), variables, RESULT, first, condition, step, result)


def _variables(reader: Complaining, call: Call) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    """The variables, and the arguments that follow them: the last one, or two."""
    count = _COUNTS[call.function] if call.function in _COUNTS else len(call.arguments) - 1
    words = "argument is not an identifier" if call.function == "map" else _NO_NAME
    return tuple(_variable(reader, one, words) for one in call.arguments[:count]), call.arguments[count:]


_COUNTS: Mapping[str, int] = {"map": 1, "transformList": 2, "transformMap": 2, "transformMapEntry": 2}


def _all(reader: Complaining, call: Call) -> Node:
    variables, (predicate,) = _variables(reader, call)
    at, result = call.at, Name(call.at, RESULT)
    going = Call(at, "@not_strictly_false", (result,))
    return _loop(call, variables, True, (going, Junction(at, True, (result, predicate)), result))


def _exists(reader: Complaining, call: Call) -> Node:
    variables, (predicate,) = _variables(reader, call)
    at, result = call.at, Name(call.at, RESULT)
    going = Call(at, "@not_strictly_false", (Call(at, "!_", (result,)),))
    return _loop(call, variables, False, (going, Junction(at, False, (result, predicate)), result))


def _exists_one(reader: Complaining, call: Call) -> Node:
    variables, (predicate,) = _variables(reader, call)
    at, result, one = call.at, Name(call.at, RESULT), Constant(call.at, 1)
    step = Call(at, "_?_:_", (predicate, Call(at, "_+_", (result, one)), result))
    return _loop(call, variables, 0, (Constant(at, True), step, Call(at, "_==_", (result, one))))


def _collect(reader: Complaining, call: Call) -> Node:
    """``map``, ``filter`` and ``transformList``."""
    at, result = call.at, Name(call.at, RESULT)
    if call.function == "filter":
        variables: tuple[str, ...] = (_variable(reader, call.arguments[0], "argument is not an identifier"),)
        predicate: Node | None = call.arguments[1]
        item: Node = call.arguments[0]
    else:
        variables, rest = _variables(reader, call)
        predicate, item = (rest[0], rest[1]) if len(rest) == 2 else (None, rest[0])
    step: Node = Call(at, "_+_", (result, ListOf(at, (item,))))
    if predicate is not None:
        step = Call(at, "_?_:_", (predicate, step, result))
    return _loop(call, variables, ListOf(at, ()), (Constant(at, True), step, result))


def _transform_map(reader: Complaining, call: Call) -> Node:
    """``transformMap``, and ``transformMapEntry``, whose last argument is a map of its own."""
    at, result = call.at, Name(call.at, RESULT)
    variables, rest = _variables(reader, call)
    predicate, value = (rest[0], rest[1]) if len(rest) == 2 else (None, rest[0])
    key = Name(at, variables[0])
    arguments = (result, value) if call.function == "transformMapEntry" else (result, key, value)
    step: Node = Call(at, "cel.@mapInsert", arguments)
    if predicate is not None:
        step = Call(at, "_?_:_", (predicate, step, result))
    return _loop(call, variables, MapOf(at, ()), (Constant(at, True), step, result))


def _opt_map(reader: Complaining, call: Call) -> Node:
    """``optMap`` and ``optFlatMap``: the value of the optional is a variable of the expression."""
    at, target = call.at, _target(call)
    variable = _variable(reader, call.arguments[0], f"{call.function}() variable name must be a simple identifier")
    value = Call(at, "value", (), target)
    body = call.arguments[1]
    bound = Fold(at, ListOf(at, ()), ("#unused",), variable, value, Constant(at, False), Name(at, variable), body)
    wrapped: Node = bound if call.function == "optFlatMap" else Call(at, "optional.of", (bound,))
    return Call(at, "_?_:_", (Call(at, "hasValue", (), target), wrapped, Call(at, "optional.none", ())))


def _sort_by(reader: Complaining, call: Call) -> Node:
    """A list, sorted by the keys that the expression gives for its items."""
    keys = _collect(reader, Call(call.at, "map", call.arguments, call.target))
    return Call(call.at, "@sortByAssociatedKeys", (keys,), call.target)


_GLOBAL: Mapping[tuple[str, int], Macro] = {("has", 1): _has}
_METHODS: Mapping[tuple[str, int], Macro] = {
    ("all", 2): _all,
    ("all", 3): _all,
    ("exists", 2): _exists,
    ("exists", 3): _exists,
    ("exists_one", 2): _exists_one,
    ("existsOne", 2): _exists_one,
    ("existsOne", 3): _exists_one,
    ("map", 2): _collect,
    ("map", 3): _collect,
    ("filter", 2): _collect,
    ("transformList", 3): _collect,
    ("transformList", 4): _collect,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map,
    ("transformMapEntry", 4): _transform_map,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_map,
    ("sortBy", 2): _sort_by,
}
