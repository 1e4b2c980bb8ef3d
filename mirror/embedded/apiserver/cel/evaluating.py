"""Runs checked expressions: each becomes a function once, and is called with variables and a meter. Pure.

What a call costs is counted as cel-go counts it, so that the same rules stop at the same place.
"""

from __future__ import annotations

from typing import Any

from mirror.embedded.apiserver.cel.checker import Checked
from mirror.embedded.apiserver.cel.macros import RESULT
from mirror.embedded.apiserver.cel.members import field, fresh, has, items, optionally
from mirror.embedded.apiserver.cel.metering import Meter, Step, Variables
from mirror.embedded.apiserver.cel.steps import (
    Failed,
    alternative,
    append,
    certain,
    choice,
    constant_step,
    index_step,
    insert,
    is_true,
    junction,
    not_strictly_false,
    of_constants,
    uncertain,
    variable,
)
from mirror.embedded.apiserver.cel.times import EvaluationError, Optional, TypeName
from mirror.embedded.apiserver.cel.tree import Call, Constant, Fold, Junction, ListOf, MapOf, Name, Node, Select
from mirror.embedded.apiserver.cel.types import CONSTANTS
from mirror.embedded.apiserver.cel.values import type_name

_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))
_LIST_COST, _MAP_COST = 10, 30
CALL_LIMIT = 1_000_000
"""Cost units of one evaluation, as upstream."""


class Program:
    """An expression, ready to run."""

    __slots__ = ("_run", "names")

    def __init__(self, checked: Checked) -> None:
        """Raises EvaluationError: a part that is always the same has no value."""
        self._run = _Compiler(checked).step(checked.tree)
        self.names = checked.names

    def run(self, variables: Variables, meter: Meter) -> Any:
        """The value of the expression.

        Raises:
            EvaluationError: it has none.
            CostExceeded: it costs more than it may.
            NotEvaluated: it needs patterns, in which nothing runs here.
        """
        found = self._run(variables, meter)
        meter.check()
        return found


class _Compiler:
    def __init__(self, checked: Checked) -> None:
        self._resolved = checked.resolved
        self._constants = checked.constants

    def step(self, node: Node) -> Step:
        """A part as a function."""
        match node:
            case Constant():
                return constant_step(node.value)
            case Name() | Select() if id(node) in self._constants:
                return constant_step(TypeName(CONSTANTS[self._constants[id(node)]].name))
            case Name():
                return variable(node.name)
            case Select():
                return self._select(node)
            case Junction():
                return junction(node.is_and, [self.step(one) for one in node.terms])
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Fold():
                return self._fold(node)
            case Call():
                return self._call(node)

    def _is_attribute(self, node: Node) -> bool:
        """Whether it is a variable, or a part of one, whose steps are counted one by one."""
        if isinstance(node, Call):
            return node.function in ("_[_]", "_[?_]", "_?_:_") and id(node) not in self._resolved
        return isinstance(node, Name | Select)

    def _is_constant(self, node: Node) -> bool:
        """Whether its value is known before anything runs, as cel-go's optimizer finds it."""
        if isinstance(node, ListOf):
            return not node.optional and all(map(self._is_constant, node.items))
        if isinstance(node, Call):
            is_one = len(node.arguments) == 1 and self._is_constant(node.arguments[0])
            return is_one and node.target is None and node.function in _CONVERSIONS
        return isinstance(node, Constant)

    def _uncounted(self, node: Node, step: Step) -> Step:
        """Variables as an index, and as one of two ways, do not count in cel-go; their fields do."""
        if not isinstance(node, Name | Select) or id(node) in self._constants:
            return step

        def read(variables: Variables, meter: Meter) -> Any:
            meter.cost -= 1
            return step(variables, meter)

        return read

    def _base(self, node: Node) -> Step:
        """What a field or an item is taken of; anything but a variable is one for itself."""
        inner = self.step(node)
        if self._is_attribute(node):
            return inner

        def relative(variables: Variables, meter: Meter) -> Any:
            meter.cost += 1
            return inner(variables, meter)

        return relative

    def _select(self, node: Select) -> Step:
        operand, name = self._base(node.operand), node.field
        if node.is_test:

            def test(variables: Variables, meter: Meter) -> bool:
                found = operand(variables, meter)
                return has(found, name)

            return test
        if node.is_optional:

            def optional(variables: Variables, meter: Meter) -> Optional:
                found = operand(variables, meter)
                meter.cost += 1
                return optionally(found, name)

            return optional

        def select(variables: Variables, meter: Meter) -> Any:
            meter.cost += 1  # also of a field that is not there
            found = operand(variables, meter)
            if isinstance(found, dict) and name in found:
                return found[name]
            return field(found, name)

        return select

    def _list(self, node: ListOf) -> Step:
        steps, optional = [self.step(one) for one in node.items], node.optional
        if not optional and all(map(self._is_constant, node.items)):
            return constant_step([step({}, Meter(CALL_LIMIT)) for step in steps])

        def build(variables: Variables, meter: Meter) -> list[Any]:
            found = []
            for position, step in enumerate(steps):
                one = step(variables, meter)
                if position in optional:
                    if not one.has_value:
                        continue
                    one = one.value
                found.append(one)
            meter.cost += _LIST_COST
            return found

        return build

    def _map(self, node: MapOf) -> Step:
        entries = [(self.step(key), self.step(value), is_optional) for key, value, is_optional in node.entries]
        if not node.entries:
            return constant_step({})

        def build(variables: Variables, meter: Meter) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key, value, is_optional in entries:
                name, one = key(variables, meter), value(variables, meter)
                if is_optional:
                    if not one.has_value:
                        continue
                    one = one.value
                if not isinstance(name, str | bool | int):
                    raise EvaluationError(f"unsupported key type: {type_name(name)}")
                if name in found:
                    raise EvaluationError(f"Failed with repeated key {name}")
                found[name] = one
            meter.cost += _MAP_COST
            return found

        return build

    def _fold(self, node: Fold) -> Step:
        over, start = self.step(node.over), self.step(node.start)
        condition, step, result = self.step(node.condition), self.step(node.step), self.step(node.result)
        variables_of, accumulator = node.variables, node.accumulator

        def fold(variables: Variables, meter: Meter) -> Any:
            each = items(over(variables, meter), len(variables_of))
            inside = dict(variables)
            inside[accumulator] = fresh(start(variables, meter))
            for one in each:
                if len(variables_of) == 1:
                    inside[variables_of[0]] = one
                else:
                    inside[variables_of[0]], inside[variables_of[1]] = one
                if not is_true(condition, inside, meter):
                    break
                try:
                    inside[accumulator] = step(inside, meter)
                except EvaluationError as error:
                    inside[accumulator] = Failed(error)
                meter.check()
            return result(inside, meter)

        return fold

    def _call(self, node: Call) -> Step:
        arguments = [self.step(one) for one in node.arguments]
        match node.function:
            case "_?_:_":
                condition, *ways = arguments
                return choice(condition, *(self._uncounted(*one) for one in zip(node.arguments[1:], ways, strict=True)))
            case "_[_]" | "_[?_]":
                whole, index = self._base(node.arguments[0]), self._uncounted(node.arguments[1], arguments[1])
                return index_step(whole, index, is_optional=node.function == "_[?_]")
            case "cel.@mapInsert":
                return insert(arguments)
            case "@not_strictly_false":
                return not_strictly_false(arguments[0])
            case "_+_" if isinstance(node.arguments[0], Name) and node.arguments[0].name == RESULT:
                if isinstance(node.arguments[1], ListOf):
                    return append(arguments[0], arguments[1])
        resolved = self._resolved[id(node)]
        if resolved.has_target and node.target is not None:
            arguments.insert(0, self.step(node.target))
        if node.function == "@in" and (found := of_constants(node, arguments[0])):
            return found
        if resolved.has_target and node.function in ("or", "orValue"):
            return alternative(*arguments, is_value=node.function == "orValue")
        call = certain(resolved, arguments) if resolved.is_certain else uncertain(resolved, arguments)
        return constant_step(call({}, Meter(CALL_LIMIT))) if self._is_constant(node) else call
