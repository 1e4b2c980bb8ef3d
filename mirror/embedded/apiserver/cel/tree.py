"""Expressions as trees, and what is wrong with a text that is none. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


class BadExpression(Exception):
    """The text is no expression that can be evaluated; says where, as kube-apiserver does."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    at: int
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or the first part of a name with dots."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``operand.field``; a test when it is the argument of ``has``; ``operand.?field`` when it is optional."""

    at: int
    operand: Node
    field: str
    is_test: bool = False
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator (``_+_``) or, with a target, a method."""

    at: int
    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None


@dataclass(frozen=True, slots=True)
class Junction:
    """``&&`` or ``||`` of all of its terms."""

    at: int
    is_and: bool
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list literal, and the positions of items that are left out when they are empty optionals."""

    at: int
    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map literal: keys, values, and whether an entry is optional."""

    at: int
    entries: tuple[tuple[Node, Node, bool], ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """What macros become: a loop over a list or the keys of a map.

    With two variables, the first is the index or the key, the second the item or the value.
    """

    at: int
    over: Node
    variables: tuple[str, ...]
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = Constant | Name | Select | Call | Junction | ListOf | MapOf | Fold


def complaint(text: str, at: int, words: str) -> str:
    """One error in the form of cel-go: where, what, and the line with a mark below."""
    before = text[:at]
    line = before.count("\n") + 1
    column = at - (before.rfind("\n") + 1)
    shown = text.split("\n")[line - 1]
    mark = "".join("．" if _is_wide(one) else "." for one in shown[:column])
    last = "＾" if column < len(shown) and _is_wide(shown[column]) else "^"
    return f"ERROR: <input>:{line}:{column + 1}: {words}\n | {shown}\n | {mark}{last}"


def _is_wide(letter: str) -> bool:
    return len(letter.encode("utf-8", "surrogatepass")) > 1


def children(node: Node) -> tuple[Node, ...]:
    """The trees right below."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.arguments if node.target is None else (node.target, *node.arguments)
        case Junction():
            return node.terms
        case ListOf():
            return node.items
        case MapOf():
            return tuple(one for key, value, _ in node.entries for one in (key, value))
        case Fold():
            return (node.over, node.start, node.condition, node.step, node.result)
        case _:
            return ()
