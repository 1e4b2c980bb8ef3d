"""Label and field selectors as the API server takes them: in queries, and in objects whether they are well formed.

Pure. What a label selector means is in ``batch.label_selectors``; here are bounds, kube-apiserver's refusals, and field
selectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from mirror.batch import label_selectors
from mirror.batch.label_selectors import MalformedSelector, Requirement
from mirror.batch.quoting import json_text
from mirror.batch.syntax import label_value_problems, qualified_name_problems
from mirror.batch.violations import Violation, forbidden, invalid, invalid_texts, required
from mirror.embedded.apiserver.apimachinery.errors import Json, bad_request

Fields: TypeAlias = Callable[[str], str]
"""The value of a field of an object, by the field's name."""
Labels: TypeAlias = tuple[Requirement, ...]
_SETS, _PRESENCES = ("In", "NotIn"), ("Exists", "DoesNotExist")


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


def check_labels(field: str, labels: Mapping[str, str] | None) -> Iterator[Violation]:
    """Keys and values of labels. A server takes them in any order; ours is that of the keys."""
    for key in sorted(labels or ()):
        yield from invalid_texts(field, key, qualified_name_problems(key))
        yield from invalid_texts(field, (labels or {})[key], label_value_problems((labels or {})[key]))


def check_selector(field: str, selector: Json | None, *, allow_bad_values: bool = False) -> Iterator[Violation]:
    """Whether a selector is well formed; one that is not there is."""
    if selector is None:
        return
    yield from check_labels(f"{field}.matchLabels", selector.get("matchLabels"))
    for position, requirement in enumerate(selector.get("matchExpressions", ())):
        yield from _check_requirement(
            f"{field}.matchExpressions[{position}]", requirement, allow_bad_values=allow_bad_values
        )


def has_bad_values(selector: Json | None) -> bool:
    """C9: a stored selector with such values may keep them."""
    expressions = (selector or {}).get("matchExpressions", ())
    return any(label_value_problems(value) for one in expressions for value in one.get("values", ()))


def matches(selector: Json | None, labels: Mapping[str, str]) -> bool | None:
    """Whether the selector of an object takes these labels; None if it is malformed. No selector takes nothing."""
    if next(check_selector("", selector), None) is not None:
        return None
    return label_selectors.selector_of(selector).matches(labels)


def _check_requirement(field: str, requirement: Json, *, allow_bad_values: bool) -> Iterator[Violation]:
    operator, values = requirement["operator"], requirement.get("values", ())
    if operator in _SETS:
        if not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _PRESENCES:
        if values:
            yield forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{field}.operator", json_text(operator), "not a valid selector operator")
    key = requirement["key"]
    yield from invalid_texts(f"{field}.key", key, qualified_name_problems(key))
    for position, value in () if allow_bad_values else enumerate(values):
        yield from invalid_texts(f"{field}.values[{position}]", value, label_value_problems(value))


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
