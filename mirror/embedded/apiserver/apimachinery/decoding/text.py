"""JSON read in two forms: as it was written, and at once into the types of a kind.

As it was written, members of objects stay in order, and twice if they are there twice, numbers keep their digits: only
needed to report what is wrong with a body. Bodies with nothing wrong are decoded by msgspec, by types.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Annotated, Any, NoReturn, TypedDict

import msgspec

from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS, gotypes

DEEPEST = 200
"""Levels of what may come into an object. Deeper text is refused in the server's words for its own, higher limit."""

MOST_VALUES = 200_000
"""In one body: looking at each of them blocks all other requests."""

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


def json_type(value: Any) -> str:
    """What Go's decoder calls what was parsed, or a plain value, that does not fit a type; null fits all."""
    if isinstance(value, Members | dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, bool):
        return "bool"
    return "string" if isinstance(value, str) else "number"


def exceeds_value_limit(data: bytes) -> bool:
    """Whether JSON has more than ``MOST_VALUES`` lists, members and items; told without decoding it."""
    if data.lstrip()[:1] not in (b"{", b"["):
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


# Decoding by types made of the tables: quick, and only for bodies with nothing wrong. Others go through ``typed``.

_QUOTE, _ESCAPED_QUOTE = b'"', b"\\u0022"

_DAY = (
    r"[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_CLOCK = r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_ZONE = r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_TIME = rf"^{_DAY}{_CLOCK}(?:\.[0-9]+)?{_ZONE}\Z"
_MICRO_TIME = rf"^{_DAY}{_CLOCK}\.[0-9]{{6}}{_ZONE}\Z"
_QUANTITY = r"^[0-9]{1,15}(?:\.[0-9]{1,9})?(?:[numkMGTPE]|[KMGTPE]i)?\Z"
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"


def decode(data: bytes, struct: str) -> dict[str, Any] | None:
    """The object; None if something is wrong with it, or could be."""
    decoder = _decoder(struct)
    if decoder is None or _ESCAPED_QUOTE in data:
        return None
    try:
        found: dict[str, Any] = decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    is_whole = data.count(_QUOTE) == _ENCODER.encode(found).count(_QUOTE)
    return found if is_whole else None


def decode_untyped(data: bytes) -> dict[str, Any] | None:
    """An object whose fields nobody knows; None if it is none, or something is in it twice, or could be."""
    if _ESCAPED_QUOTE in data:
        return None
    try:
        found = _UNTYPED.decode(data)
        is_whole = data.count(_QUOTE) == _ENCODER.encode(found).count(_QUOTE)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found if is_whole and isinstance(found, dict) else None


_ENCODER = msgspec.json.Encoder()
_UNTYPED = msgspec.json.Decoder()


@cache
def _decoder(struct: str) -> msgspec.json.Decoder[Any] | None:
    if _is_recursive(struct, ()):
        return None
    return msgspec.json.Decoder(_struct(struct))


@cache
def _struct(name: str) -> Any:
    fields = {field: _field(name, field, kind) for field, kind in STRUCTS[name].items()}
    return TypedDict(name, fields, total=False)  # type: ignore[operator]  # made at run time


def _field(struct: str, name: str, kind: str) -> Any:
    return _type(kind.strip("*!"), is_wide=gotypes.is_wide(struct, name))


def _type(kind: str, *, is_wide: bool) -> Any:
    if kind in STRUCTS:
        return _struct(kind) | None
    if kind.startswith("["):
        return list[_type(kind[1:-1], is_wide=is_wide)] | None  # type: ignore[misc]  # made at run time
    if kind.startswith("{"):
        return dict[str, _type(kind[1:-1], is_wide=is_wide)] | None  # type: ignore[misc]  # made at run time
    limit = 2**63 if is_wide else 2**31
    match kind:
        case "s":
            return str | None
        case "i":
            return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)] | None
        case "x":
            return Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | str | None
        case "b":
            return bool | None
        case "f":
            return int | float | None
        case "t" | "m":
            return Annotated[str, msgspec.Meta(pattern=_TIME if kind == "t" else _MICRO_TIME)] | None
        case "q":
            return Annotated[str, msgspec.Meta(pattern=_QUANTITY)] | int | None
        case "y":
            return Annotated[str, msgspec.Meta(pattern=_BASE64)] | None
        case _:
            return Any


def _is_recursive(struct: str, inside: tuple[str, ...]) -> bool:
    if struct in inside:
        return True
    parts = {part for kind in STRUCTS[struct].values() for part in kind.strip("*!").strip("[]{}").split("|")}
    return any(_is_recursive(part, (*inside, struct)) for part in parts if part in STRUCTS)
