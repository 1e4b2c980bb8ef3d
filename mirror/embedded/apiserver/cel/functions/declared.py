"""What a function is: its types, what it does, and what a call of it costs. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeAlias

from mirror.embedded.apiserver.cel import types
from mirror.embedded.apiserver.cel.types import Type
from mirror.embedded.apiserver.cel.values import size_of, type_name

Cost: TypeAlias = Callable[[Sequence[Any], Any], int]
"""Of a call with these arguments and this result."""
_WORD = re.compile(r"[a-zA-Z_]+")
_COMPLEX = {"list": 1, "map": 2, "optional": 1, "type": 1}


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function; of a method, the target is the first parameter."""

    name: str
    is_method: bool
    parameters: tuple[Type, ...]
    result: Type
    work: Callable[..., Any]
    cost: Cost | None = None
    """None: one."""

    def suits(self, arguments: Sequence[Any]) -> bool:
        """Whether values are of the types that it takes."""
        return all(map(_is, self.parameters, arguments))


def _is(wanted: Type, value: Any) -> bool:
    if wanted.is_parameter or wanted.name == "dyn":
        return True
    if wanted.name == "list" and isinstance(value, list):
        item = wanted.parameters[0]
        return item.is_parameter or item.name == "dyn" or all(_is(item, one) for one in value)
    return type_name(value) == wanted.name


def overload(signature: str, work: Callable[..., Any], cost: Cost | None = None) -> Overload:
    """``.split(string,string)list(string)`` is a method of texts, ``quantity(string)quantity`` a function of its own.

    Capital letters are types that the arguments say.
    """
    is_method = signature.startswith(".")
    name, _, rest = signature.removeprefix(".").partition("(")
    reader = _Types(rest)
    parameters = reader.until_closed()
    return Overload(name, is_method, parameters, reader.one(), work, cost)


class _Types:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def until_closed(self) -> tuple[Type, ...]:
        found = []
        while self._text[self._at] != ")":
            found.append(self.one())
            if self._text[self._at] == ",":
                self._at += 1
        self._at += 1
        return tuple(found)

    def one(self) -> Type:
        match = _WORD.match(self._text, self._at)
        assert match is not None, self._text
        word, self._at = match.group(), match.end()
        if word in _COMPLEX and self._text[self._at : self._at + 1] == "(":
            self._at += 1
            return Type("optional_type" if word == "optional" else word, self.until_closed())
        return types.parameter(word) if len(word) == 1 else types.NAMED[word]


def traversal(factor: float = 0.1) -> Cost:
    """Of reading the first argument once."""
    return lambda arguments, _: ceil(size_of(arguments[0]) * factor)


def of_pattern(arguments: Sequence[Any], result: Any) -> int:
    """Of trying a pattern, the second argument, on a text."""
    return ceil((1 + size_of(arguments[0])) * 0.1) * ceil(size_of(arguments[1]) * 0.25)
