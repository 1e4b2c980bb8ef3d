"""What a rule about a setting's value is, and how it says what is wrong. The rules themselves: ``rules``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mirror.model.text import nearest


class Wrong(Exception):
    """A value breaks its rule: one pair per problem, where below the field (such as ``[1]`` or ``.http``) and what."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(*problems)
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Rule:
    """``expected`` completes the sentence "expected …"; ``read`` returns what the field holds or raises ``Wrong``."""

    expected: str
    read: Callable[[object], object]

    def apply(self, value: object) -> object:
        """The field's value.

        Raises:
            Wrong: with what was expected and what was found.
        """
        try:
            return self.read(value)
        except Unexpected as unexpected:
            hint = f" ({unexpected})" if unexpected.args else ""
            raise Wrong(("", f"expected {self.expected}, got {shown(value)}{hint}")) from None


class Unexpected(Exception):
    """The value as a whole is not what the rule expects; the argument, if any, is a hint."""


def shown(value: object) -> str:
    """A value as it may stand in a message: JSON, bounded."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=True, default=lambda other: type(other).__name__)
    return text if len(text) <= 80 else text[:79] + "…"


def suggestion(word: str, known: tuple[str, ...]) -> str:
    """`` (did you mean qps?)`` when a known word is near, else the known words."""
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else f" (known: {', '.join(known)})"
