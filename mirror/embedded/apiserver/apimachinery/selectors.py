"""Label and field selectors of queries: bounds, kube-apiserver's refusals, and what field selectors mean. Pure.

What a label selector means is in ``batch.label_selectors``; those in objects are judged in ``validation.metadata``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from mirror.batch import label_selectors
from mirror.batch.label_selectors import MalformedSelector, Requirement
from mirror.embedded.apiserver.apimachinery.errors import bad_request

Fields: TypeAlias = Callable[[str], str]
"""The value of a field of an object, by the field's name."""
Labels: TypeAlias = tuple[Requirement, ...]


class Term(NamedTuple):
    """One condition on one field."""

    field: str
    value: str
    is_equal: bool


MOST_CONDITIONS = 1000
"""Different ones in a selector. Each is held against every object of a collection, and against every event."""


def matches_fields(selector: tuple[Term, ...], field: Fields) -> bool:
    """Whether an object with these fields is meant."""
    return all((field(one.field) == one.value) == one.is_equal for one in selector)


def exact(selector: tuple[Term, ...], field: str) -> str | None:
    """The value that the field must have, if the selector names one."""
    return next((one.value for one in selector if one.field == field and one.is_equal), None)


def label_selector(text: str) -> Labels:
    """The conditions of ``a=b,c in (d,e),!f``.

    Raises:
        StatusError: 400.
    """
    return _remembered_labels(text) if len(text) <= _LONGEST_REMEMBERED else _labels(text)


def field_terms(text: str) -> tuple[Term, ...]:
    """The conditions of ``metadata.name=a,status.phase!=b``.

    Raises:
        StatusError: 400.
    """
    return _remembered_terms(text) if len(text) <= _LONGEST_REMEMBERED else _terms(text)


def _labels(text: str) -> Labels:
    try:
        found = tuple(dict.fromkeys(label_selectors.parse(text)))
    except MalformedSelector as error:
        raise bad_request(str(error)) from error
    if len(found) > MOST_CONDITIONS:
        raise bad_request(f"the label selector has more than {MOST_CONDITIONS} conditions; this server takes no more")
    return found


def _terms(text: str) -> tuple[Term, ...]:
    # Sorted as upstream sorts them: of two conditions on a name the first counts, for rules, too.
    terms = (_term(piece, text) for piece in sorted(set(_pieces(text))) if piece)
    # An operator alone is no condition for upstream.
    found = tuple(one for one in terms if one.field or one.value)
    if len(found) > MOST_CONDITIONS:
        raise bad_request(f"the field selector has more than {MOST_CONDITIONS} conditions; this server takes no more")
    return found


_LONGEST_REMEMBERED = 1024
_remembered_labels, _remembered_terms = lru_cache(maxsize=512)(_labels), lru_cache(maxsize=512)(_terms)


_OPERATOR = re.compile("!=|==?")


def _pieces(text: str) -> list[str]:
    """Cut at commas that are not escaped."""
    pieces, start, is_escaped = [], 0, False
    for position, one in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif one == "\\":
            is_escaped = True
        elif one == ",":
            pieces.append(text[start:position])
            start = position + 1
    return [*pieces, text[start:]]


def _term(piece: str, text: str) -> Term:
    found = _OPERATOR.search(piece)
    if found is not None:
        return Term(piece[: found.start()], _unescaped(piece[found.end() :]), found[0] != "!=")
    raise bad_request(f"invalid selector: '{text}'; can't understand '{piece}'")


def _unescaped(value: str) -> str:
    if not re.search(r"[\\,=]", value):
        return value
    found, is_escaped = [], False
    for one in value:
        if is_escaped:
            if one not in "\\,=":
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{one}")
            found.append(one)
            is_escaped = False
        elif one == "\\":
            is_escaped = True
        elif one in ",=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(one)}")
        else:
            found.append(one)
    if is_escaped:
        raise bad_request("invalid field selector: unterminated escape sequence: \\")
    return "".join(found)
