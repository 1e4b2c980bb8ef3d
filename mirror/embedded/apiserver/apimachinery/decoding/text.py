"""JSON as it was written: members of objects in order and twice if they are there twice, numbers with their digits.

What is only needed to tell what is wrong with a body; plain decoding is msgspec's.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

DEEPEST = 200
"""Levels of what may come into an object. Deeper text is refused in the server's words for its own, higher limit."""

MOST_VALUES = 200_000
"""In one body: whoever looks at each of them keeps everybody else waiting."""

_SURROGATE = re.compile("[\ud800-\udfff]")


# Also one that does not end: or each quotation mark in it would be looked at as another beginning.
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


class Members(list[tuple[str, Any]]):
    """An object."""


class Number:
    """A number as it was written."""

    __slots__ = ("digits",)

    def __init__(self, digits: str) -> None:
        self.digits = digits

    @property
    def value(self) -> int | float:
        """Whole if it is written like that."""
        is_whole = self.digits.lstrip("-").isdigit()
        return int(self.digits) if is_whole and len(self.digits) <= 300 else float(self.digits)


class NotJson(ValueError):
    """The text is no JSON, or too deep."""


def parse(data: bytes) -> Any:
    """Members, lists, texts, Numbers, booleans and None.

    Raises:
        NotJson: it is none.
    """
    try:
        found = _DECODER.decode(data.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise NotJson from error
    if not is_shallow(found):
        raise NotJson
    return found


def exceeds_value_limit(data: bytes) -> bool:
    """Whether JSON has more than ``MOST_VALUES`` lists, members and items; told without decoding it."""
    if len(data) <= MOST_VALUES or data.lstrip()[:1] not in (b"{", b"["):
        return False
    return _count(data) > MOST_VALUES and _count(_TEXT.sub(b"", data)) > MOST_VALUES


def _count(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def is_shallow(value: Any) -> bool:
    """Whether it is nested no deeper than is safe to walk."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return True
    return False


def _inside(value: Any) -> list[Any]:
    """The lists and objects directly in this value."""
    if isinstance(value, Members):
        return [one for _, one in value if isinstance(one, list)]
    if isinstance(value, list):
        return [one for one in value if isinstance(one, list | dict)]
    if isinstance(value, dict):
        return [one for one in value.values() if isinstance(one, list | dict)]
    return []


def plain(value: Any) -> Any:
    """As ordinary dicts, lists and numbers; of members that are there twice the last one counts."""
    if isinstance(value, Members):
        return {clean(name): plain(one) for name, one in value}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, Number):
        return value.value
    return clean(value) if isinstance(value, str) else value


def clean(text: str) -> str:
    """Halves of characters become the replacement character."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=_refuse)
