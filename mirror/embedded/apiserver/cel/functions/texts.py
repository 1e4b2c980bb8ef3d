"""cel-go's extension for texts, version 2. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from mirror.embedded.apiserver.cel import values
from mirror.embedded.apiserver.cel.functions.declared import Overload, overload, traversal
from mirror.embedded.apiserver.cel.functions.formatting import format_text
from mirror.embedded.apiserver.cel.times import EvaluationError

_ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_ASCII_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED = re.compile(r'[\a\b\f\n\r\t\v\\"]')
_ESCAPES = dict(zip('\a\b\f\n\r\t\v\\"', ("\\a", "\\b", "\\f", "\\n", "\\r", "\\t", "\\v", "\\\\", '\\"'), strict=True))


def overloads() -> Iterator[Overload]:
    """All of them."""
    yield overload(".charAt(string,int)string", _char_at)
    yield overload(".indexOf(string,string)int", str.find, _traversal_of_list)
    yield overload(".indexOf(string,string,int)int", _index_of, _traversal_of_list)
    yield overload(".lastIndexOf(string,string)int", str.rfind, _traversal_of_list)
    yield overload(".lastIndexOf(string,string,int)int", _last_index_of, _traversal_of_list)
    yield overload(".lowerAscii(string)string", lambda text: text.translate(_ASCII_LOWER), traversal())
    yield overload(".upperAscii(string)string", lambda text: text.translate(_ASCII_UPPER), traversal())
    yield overload(".trim(string)string", lambda text: text.strip(_SPACE), traversal())
    yield overload(".replace(string,string,string)string", str.replace, traversal(0.2))
    yield overload(".replace(string,string,string,int)string", str.replace, traversal(0.2))
    yield overload(".split(string,string)list(string)", lambda text, at: _split(text, at, -1), traversal(0.2))
    yield overload(".split(string,string,int)list(string)", _split, traversal(0.2))
    yield overload(".substring(string,int)string", _rest, traversal())
    yield overload(".substring(string,int,int)string", _substring, traversal())
    yield overload(".join(list(string))string", "".join, _of_result)
    yield overload(".join(list(string),string)string", lambda parts, between: between.join(parts), _of_result)
    yield overload(".format(string,list(dyn))string", format_text, traversal())
    yield overload("strings.quote(string)string", _quoted, traversal())


def _of_result(arguments: Sequence[Any], result: Any) -> int:
    return ceil(values.size_of(result) * 0.2)


def _traversal_of_list(arguments: Sequence[Any], result: Any) -> int:
    """As upstream, where functions of lists and texts of the same name are told apart by their values only."""
    return int(len(arguments[0].encode("utf-8", "surrogatepass")) * 0.1)


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise EvaluationError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if not 0 <= start < len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, end: int) -> int:
    if not part:
        return end
    if not 0 <= end < len(text):
        raise EvaluationError(f"index out of range: {end}")
    return text.rfind(part, 0, end + len(part))


def _split(text: str, at: str, most: int) -> list[str]:
    if most == 0:
        return []
    if not at:
        letters = list(text)
        return letters if most < 0 or most >= len(letters) else [*letters[: most - 1], text[most - 1 :]]
    return text.split(at, most - 1 if most > 0 else -1)


def _rest(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text[start:]


def _substring(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise EvaluationError(f"index out of range: {end}")
    return text[start:end]


def _quoted(text: str) -> str:
    return '"' + _QUOTED.sub(lambda found: _ESCAPES[found.group()], text) + '"'
