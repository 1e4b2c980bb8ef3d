"""Gives each part of an expression its type, and finds what cannot be evaluated. Pure; the words are cel-go's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mirror.embedded.apiserver.apimachinery import patterns
from mirror.embedded.apiserver.cel import format_literals, times, types
from mirror.embedded.apiserver.cel.functions.declared import Overload
from mirror.embedded.apiserver.cel.functions.table import functions
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
    complaint,
)
from mirror.embedded.apiserver.cel.types import BOOL, DYN, ERROR, INT, Type
from mirror.embedded.apiserver.cel.values import type_name


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression that can be evaluated."""

    tree: Node
    result: Type
    resolved: Mapping[int, Resolved]
    """By the identity of a call, which the tree keeps."""
    constants: Mapping[int, str]
    """Names that are types, by the identity of their node."""
    names: frozenset[str]
    """Variables that are used."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a call may turn out to be."""

    overloads: Sequence[Overload]
    has_target: bool
    is_certain: bool
    """Whether there is one overload only, and its arguments are of the right types for sure."""
    reads_whole: bool
    """Whether an argument may be a list, a map or an object."""


def check(text: str, tree: Node, variables: Mapping[str, Type]) -> Checked:
    """The types of an expression over these variables.

    Raises:
        BadExpression: it cannot be evaluated; says all that is wrong.
    """
    checker = _Checker()
    result = checker.type_of(tree, dict(variables))
    wrong = checker.wrong or checker.odd
    if wrong:
        found = sorted(dict.fromkeys(wrong))[:_MOST_TOLD]
        raise BadExpression("\n".join(complaint(text, at, words) for at, words in found))
    names = frozenset(checker.names)
    return Checked(tree, types.bound(result, checker.bindings, frees=True), checker.resolved, checker.constants, names)


_MOST_TOLD = 100


class _Checker:
    def __init__(self) -> None:
        self.wrong: list[tuple[int, str]] = []
        self.odd: list[tuple[int, str]] = []
        """What could be evaluated, and is refused all the same."""
        self._may_mix = False
        """Within ``format``, which takes values of all types."""
        self._formatted: dict[int, Type] = {}
        """Types of what is formatted, by the identity of the part."""
        self.bindings: types.Bindings = {}
        self.resolved: dict[int, Resolved] = {}
        self.constants: dict[int, str] = {}
        self.names: set[str] = set()
        self._fresh = 0

    def type_of(self, node: Node, scope: Mapping[str, Type]) -> Type:
        """The type of a part; what is wrong is noted."""
        found = types.bound(self._type_of(node, scope), self.bindings)
        if self._may_mix:
            self._formatted[id(node)] = found
        return found

    def _type_of(self, node: Node, scope: Mapping[str, Type]) -> Type:
        match node:
            case Constant():
                return Type(type_name(node.value))
            case Name():
                return self._name(node, scope)
            case Select():
                return self._select(node, scope)
            case Call():
                return self._call(node, scope)
            case Junction():
                for term in node.terms:
                    self._expect(BOOL, term, self.type_of(term, scope))
                return BOOL
            case ListOf():
                return types.list_of(self._items(node, scope))
            case MapOf():
                return self._map(node, scope)
            case Fold():
                return self._fold(node, scope)

    def _complain(self, at: int, words: str) -> Type:
        self.wrong.append((at, words))
        return ERROR

    def _expect(self, wanted: Type, node: Node, given: Type) -> None:
        found = types.assign((wanted,), (given,), self.bindings)
        if found is None:
            self._complain(node.at, f"expected type '{wanted}' but found '{given}'")
        else:
            self.bindings = found

    def _parameter(self) -> Type:
        self._fresh += 1
        return types.parameter(f"_var{self._fresh}")

    def _name(self, node: Name, scope: Mapping[str, Type]) -> Type:
        if node.name in scope:
            self.names.add(node.name)
            return scope[node.name]
        if node.name in types.CONSTANTS:
            self.constants[id(node)] = node.name
            return types.type_of(types.CONSTANTS[node.name])
        return self._complain(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _select(self, node: Select, scope: Mapping[str, Type]) -> Type:
        name = qualified(node)
        if name in types.CONSTANTS and not node.is_test:
            self.constants[id(node)] = str(name)
            return types.type_of(types.CONSTANTS[str(name)])
        operand = self.type_of(node.operand, scope)
        inner = operand.parameters[0] if operand.name == "optional_type" else operand
        found = self._field(node, inner)
        if node.is_test:
            return BOOL
        return types.optional_of(found) if node.is_optional or inner is not operand else found

    def _field(self, node: Select, operand: Type) -> Type:
        if operand.name == "map":
            return operand.parameters[1]
        if operand.fields is not None:
            if node.field in operand.fields:
                return operand.fields[node.field]
            return self._complain(node.at, f"undefined field '{node.field}'")
        if operand.is_parameter:
            self.bindings[operand.name] = DYN
            return DYN
        if not types.is_dyn(operand):
            self._complain(node.at, f"type '{operand}' does not support field selection")
        return DYN

    def _call(self, node: Call, scope: Mapping[str, Type]) -> Type:
        may_mix, self._may_mix = self._may_mix, self._may_mix or node.function == "format"
        arguments = [self.type_of(one, scope) for one in node.arguments]
        self._may_mix = may_mix
        if node.function in _SPECIAL:
            return self._special(node, arguments)
        known = functions()
        name, has_target = node.function, False
        if node.target is not None:
            prefix = qualified(node.target)
            if prefix and f"{prefix}.{node.function}" in known:
                name = f"{prefix}.{node.function}"
            else:
                arguments.insert(0, self.type_of(node.target, scope))
                has_target = True
        if name not in known:
            return self._complain(node.at, f"undeclared reference to '{name}' (in container '')")
        self._check_literal(node)
        suiting = [one for one in known[name] if one.is_method == has_target]
        return self._resolve(node, name, suiting, arguments)

    def _resolve(self, node: Call, name: str, suiting: Sequence[Overload], arguments: list[Type]) -> Type:
        has_target = node.target is not None and bool(suiting) and suiting[0].is_method
        possible: list[Overload] = []
        result: Type | None = None
        for one in suiting:
            wanted, given = self._instance(one)
            found = types.assign(wanted, arguments, self.bindings)
            if found is None:
                continue
            possible.append(one)
            self.bindings = found
            this = types.bound(given, found)
            result = this if result is None or result == this else DYN
        if result is None:
            shown = self._signature(node, arguments, is_method=has_target or (node.target is not None and not suiting))
            return self._complain(node.at, f"found no matching overload for '{name}' applied to '{shown}'")
        is_certain = len(possible) == 1 and not any(map(_is_open, possible[0].parameters, arguments))
        reads_whole = any(one.name in _LONG or one.fields is not None or types.is_dyn(one) for one in arguments)
        self.resolved[id(node)] = Resolved(possible, has_target, is_certain, reads_whole)
        return result

    def _signature(self, node: Call, arguments: Sequence[Type], *, is_method: bool) -> str:
        shown = [str(types.bound(one, self.bindings, frees=True)) for one in arguments]
        if is_method and shown:
            return f"{shown[0]}.({', '.join(shown[1:])})"
        return f"({', '.join(shown)})"

    def _instance(self, one: Overload) -> tuple[Sequence[Type], Type]:
        """The overload's types, with parameters of their own."""
        names: dict[str, Type] = {}
        return [self._own(each, names) for each in one.parameters], self._own(one.result, names)

    def _own(self, one: Type, names: dict[str, Type]) -> Type:
        if one.is_parameter:
            if one.name not in names:
                names[one.name] = self._parameter()
            return names[one.name]
        if not one.parameters:
            return one
        return Type(one.name, tuple(self._own(each, names) for each in one.parameters))

    def _special(self, node: Call, arguments: list[Type]) -> Type:
        """What is not called: choices, items, and what macros need."""
        match node.function:
            case "_?_:_":
                return self._choice(node, arguments)
            case "cel.@mapInsert":
                return arguments[0] if len(arguments) == 2 else types.map_of(arguments[1], arguments[2])
        whole, index = arguments
        inner = whole.parameters[0] if whole.name == "optional_type" else whole
        wanted, found = (inner.parameters[0], inner.parameters[1]) if inner.name == "map" else (INT, DYN)
        if inner.name == "list":
            found = inner.parameters[0]
        elif inner.name != "map" and not types.is_dyn(inner) and not inner.is_parameter:
            return self._no_overload(node, arguments)
        if inner.name in ("map", "list"):
            bindings = types.assign((wanted,), (index,), self.bindings)
            if bindings is None:
                return self._no_overload(node, arguments)
            self.bindings = bindings
        is_optional = node.function == "_[?_]" or inner is not whole
        return types.optional_of(found) if is_optional else found

    def _no_overload(self, node: Call, arguments: Sequence[Type]) -> Type:
        shown = self._signature(node, arguments, is_method=False)
        return self._complain(node.at, f"found no matching overload for '{node.function}' applied to '{shown}'")

    def _choice(self, node: Call, arguments: Sequence[Type]) -> Type:
        which = self._parameter()
        found = types.assign((BOOL, which, which), arguments, self.bindings)
        if found is None:
            return self._no_overload(node, arguments)
        self.bindings = found
        return types.bound(which, found)

    def _check_literal(self, node: Call) -> None:
        """Constants that a function cannot take are found here."""
        text, whole = node.target, node.arguments[0] if node.arguments else None
        if node.function == "format" and isinstance(text, Constant) and isinstance(whole, ListOf):
            wrong = format_literals.complain(str(text.value), whole, node.at, lambda part: self._formatted[id(part)])
            if wrong is not None:
                self.odd.append(wrong)
        for one in node.arguments[-1:]:
            if isinstance(one, Constant) and isinstance(one.value, str):
                if node.function in ("duration", "timestamp") and node.target is None:
                    read: Any = times.duration if node.function == "duration" else times.instant
                    try:
                        read(one.value)
                    except times.EvaluationError:
                        self.odd.append((one.at, f"invalid {node.function} argument"))
                elif node.function == "matches":
                    try:
                        patterns.pattern_of(one.value)
                    except patterns.BadPattern:
                        self.odd.append((one.at, "invalid matches argument"))

    def _joined(self, node: Node, before: Type | None, given: Type) -> Type:
        if before is None:
            return given
        if before != given and not self._may_mix:
            self.odd.append((node.at, f"expected type '{before}' but found '{given}'"))
        found = types.assign((before,), (given,), self.bindings)
        if found is None:
            return DYN
        self.bindings = found
        return before if types.is_dyn(before) or not types.is_dyn(given) else given

    def _items(self, node: ListOf, scope: Mapping[str, Type]) -> Type:
        joined: Type | None = None
        for position, item in enumerate(node.items):
            found = self.type_of(item, scope)
            if position in node.optional:
                found = self._unwrapped(item, found)
            joined = self._joined(item, joined, found)
        return self._parameter() if joined is None else joined

    def _map(self, node: MapOf, scope: Mapping[str, Type]) -> Type:
        keys: Type | None = None
        joined: Type | None = None
        for key, value, is_optional in node.entries:
            keys = self._joined(key, keys, self.type_of(key, scope))
            found = self.type_of(value, scope)
            joined = self._joined(value, joined, self._unwrapped(value, found) if is_optional else found)
        return types.map_of(keys or self._parameter(), joined or self._parameter())

    def _unwrapped(self, node: Node, given: Type) -> Type:
        if given.name == "optional_type":
            return given.parameters[0]
        if not types.is_dyn(given):
            self._expect(types.optional_of(given), node, given)
        return DYN

    def _fold(self, node: Fold, scope: Mapping[str, Type]) -> Type:
        over = self.type_of(node.over, scope)
        start = self.type_of(node.start, scope)
        first, second = DYN, DYN
        if over.name == "list":
            first, second = (over.parameters[0], DYN) if len(node.variables) == 1 else (INT, over.parameters[0])
        elif over.name == "map":
            first, second = over.parameters
        elif not types.is_dyn(over) and not over.is_parameter:
            words = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._complain(node.over.at, f"expression of type '{over}' {words}")
            first = second = ERROR
        known = {**scope, node.accumulator: start}
        inside = {**known, **dict(zip(node.variables, (first, second), strict=False))}
        self._expect(BOOL, node.condition, self.type_of(node.condition, inside))
        step = self.type_of(node.step, inside)
        self._expect(types.bound(start, self.bindings), node.step, step)
        return self.type_of(node.result, known)


_LONG = frozenset(("list", "map", "optional_type"))
_SPECIAL = frozenset(("_?_:_", "_[_]", "_[?_]", "cel.@mapInsert"))


def _is_open(wanted: Type, given: Type) -> bool:
    """Whether a value of this type may turn out to be of another than is wanted."""
    if wanted.is_parameter or wanted == types.DYN:
        return False
    if types.is_dyn(given) or given.is_parameter:
        return True
    return any(map(_is_open, wanted.parameters, given.parameters))


def qualified(node: Node) -> str | None:
    """The name that names with dots between them make."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.is_test and not node.is_optional:
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Name) else None
