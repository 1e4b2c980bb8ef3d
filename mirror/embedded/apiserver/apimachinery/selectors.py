"""Label and field selectors as they come in a query: parsing with the words of kube-apiserver, and matching. Pure.

Selectors inside of objects are in ``label_selectors``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from mirror.batch.quoting import quoted
from mirror.batch.syntax import label_value_problems, qualified_name_problems
from mirror.embedded.apiserver.apimachinery.errors import bad_request

Fields: TypeAlias = Callable[[str], str]
"""The value of a field of an object, by the field's name."""


class Requirement(NamedTuple):
    """One condition on one label."""

    key: str
    operator: str
    """``in``, ``notin``, ``exists``, ``absent``, ``>`` or ``<``."""
    values: tuple[str, ...] | frozenset[str] = ()
    """Of ``>`` and ``<`` it is one."""


class Term(NamedTuple):
    """One condition on one field."""

    field: str
    value: str
    is_equal: bool


Labels: TypeAlias = tuple[Requirement, ...]

MOST_CONDITIONS = 1000
"""Different ones in a selector. Each is held against every object of a collection, and against every event."""


def matches_labels(selector: Labels, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is meant."""
    return all(_meets(one, labels) for one in selector)


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
        found = tuple(dict.fromkeys(_Parser(text).all()))
    except _Malformed as error:
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


def _meets(one: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(one.key)
    match one.operator:
        case "in":
            return value in one.values
        case "notin":
            return value not in one.values
        case "exists":
            return value is not None
        case "absent":
            return value is None
    try:
        number, limit = int(value or "none"), int(*one.values)
    except ValueError:
        return False
    return number > limit if one.operator == ">" else number < limit


_OPERATOR = re.compile("!=|==?")
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n]+)|$)")
_END = ("end", "")


_SET_OPERATORS = {"=": "in", "==": "in", "!=": "notin"}


class _Malformed(ValueError):
    """The selector cannot be read; says why."""


class _Parser:
    """The grammar of upstream's label selectors, with its complaints."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def all(self) -> Labels:
        found: list[Requirement] = []
        while True:
            kind, literal = self._look(is_value=True)
            if kind == "id" or literal == "!":
                found.append(self._whole_requirement())
                kind, literal = self._take()
                if kind == "end":
                    break
                if literal != ",":
                    raise _Malformed(f"found '{literal}', expected: ',' or 'end of string'")
                kind, literal = self._look(is_value=True)
                if kind != "id" and literal != "!":
                    raise _Malformed(f"found '{literal}', expected: identifier after ','")
            elif kind == "end":
                break
            else:
                raise _Malformed(f"found '{literal}', expected: !, identifier, or 'end of string'")
        return tuple(sorted(found, key=lambda one: one.key))

    def _look(self, *, is_value: bool = False) -> tuple[str, str]:
        kind, literal = self._tokens[self._position]
        return ("id", literal) if is_value and kind == "word" else (kind, literal)

    def _take(self, *, is_value: bool = False) -> tuple[str, str]:
        found = self._look(is_value=is_value)
        self._position += 1
        return found

    def _whole_requirement(self) -> Requirement:
        try:
            return self._requirement()
        except _Malformed as error:
            raise _Malformed(f"unable to parse requirement: {error}") from error

    def _requirement(self) -> Requirement:
        kind, key = self._take(is_value=True)
        is_absence = key == "!"
        if is_absence:
            kind, key = self._take(is_value=True)
        if kind != "id":
            raise _Malformed(f"found '{key}', expected: identifier")
        problems = qualified_name_problems(key)
        if problems:
            raise _Malformed(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(problems)}")
        kind, literal = self._look()
        if is_absence or kind == "end" or literal == ",":
            return Requirement(key, "absent" if is_absence else "exists")
        operator = self._operator()
        values = self._set() if operator in ("in", "notin") else (self._exact_value(),)
        return _checked(key, operator, values)

    def _operator(self) -> str:
        _, literal = self._take()
        if literal not in ("=", "==", "!=", ">", "<", "in", "notin"):
            raise _Malformed(f"found '{literal}', expected: in, notin, =, ==, !=, gt, lt")
        return literal

    def _exact_value(self) -> str:
        kind, literal = self._look(is_value=True)
        if kind == "end" or literal == ",":
            return ""
        kind, literal = self._take(is_value=True)
        if kind != "id":
            raise _Malformed(f"found '{literal}', expected: identifier")
        return literal

    def _set(self) -> tuple[str, ...]:
        _, literal = self._take(is_value=True)
        if literal != "(":
            raise _Malformed(f"found '{literal}' expected: '('")
        found: set[str] = set()
        kind, literal = self._look(is_value=True)
        if literal == ")":
            self._take(is_value=True)
            return ("",)
        if kind != "id" and literal != ",":
            raise _Malformed(f"found '{literal}', expected: ',', ')' or identifier")
        found |= self._identifiers()
        _, literal = self._take()
        if literal != ")":
            raise _Malformed(f"found '{literal}', expected: ')'")
        return tuple(sorted(found))

    def _identifiers(self) -> set[str]:
        found: set[str] = set()
        while True:
            kind, literal = self._take(is_value=True)
            if kind == "id":
                found.add(literal)
                _, after = self._look(is_value=True)
                if after == ",":
                    continue
                if after == ")":
                    return found
                raise _Malformed(f"found '{after}', expected: ',' or ')'")
            if literal != ",":
                raise _Malformed(f"found '{literal}', expected: ',', or identifier")
            if not found:
                found.add("")
            kind, after = self._look(is_value=True)
            if after == ")":
                found.add("")
                return found
            if after == ",":
                self._take(is_value=True)
                found.add("")


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if operator in "><":
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        problems = [
            f"values[{position}]: Invalid value: {quoted(value)}: {detail}"
            for position, value in enumerate(values)
            if not _is_int64(value)
        ]
    else:
        problems = []
    for position, value in enumerate(values):
        wrong = label_value_problems(value)
        if wrong:
            problems.append(f"values[{position}][{key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}")
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
        raise _Malformed(text)
    if operator in "><":
        return Requirement(key, operator, values)
    return Requirement(key, _SET_OPERATORS.get(operator, operator), frozenset(values))


def _is_int64(text: str) -> bool:
    return re.fullmatch("[+-]?[0-9]{1,40}", text) is not None and -(2**63) <= int(text) < 2**63


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position = 0
    # A zero byte ends the text for upstream's lexer.
    text = text.split("\0", 1)[0]
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            break
        special, word = token.groups()
        if special is None and word is None:
            break
        if special is None:
            found.append(("word" if word in ("in", "notin") else "id", word))
        else:
            found.append(("special", special))
        position = token.end()
    found.extend((_END, _END, _END))
    return found


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
