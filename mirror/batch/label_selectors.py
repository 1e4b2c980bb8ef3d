"""Label selectors, in both forms that Kubernetes has: the object of a spec and the text of a query or an annotation.

The API server, its scheduler, the Job controller and placement use it. Pure. Not here: bounds on the length of a text
and on the number of its conditions (each reader has its own), and whether an object is well formed
(``embedded.apiserver.apimachinery.selectors``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mirror.batch import views
from mirror.batch.quoting import quoted
from mirror.batch.syntax import label_value_problems, qualified_name_problems


class MalformedSelector(ValueError):
    """The text is not a label selector; says why, in the words of kube-apiserver."""


class Requirement(NamedTuple):
    """One condition on one label: an entry of ``matchExpressions``, or a part of a text."""

    key: str
    operator: str
    """``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``; no label meets any other."""
    values: frozenset[str] = frozenset()
    """Of ``Gt`` and ``Lt`` it is one."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet it."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                number, limit = _int64(value or ""), _int64(next(iter(self.values), ""))
                if number is None or limit is None:
                    return False
                return number > limit if self.operator == "Gt" else number < limit
            case _:
                return False

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        match self.operator:
            case "In" | "NotIn":
                return f"{self.key} {self.operator.lower()} ({values})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
        return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{values}"


def matches(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether labels meet all requirements."""
    return all(one.matches(labels) for one in requirements)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """The object of a spec. A missing one matches nothing, an empty one everything."""

    labels: tuple[tuple[str, str], ...] = ()
    """Of ``matchLabels``, sorted."""
    expressions: tuple[Requirement, ...] = ()
    is_missing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self.labels:  # a loop, since each sync of a Job matches each of its pods
            if labels.get(key) != value:
                return False
        return not self.is_missing and (not self.expressions or matches(self.expressions, labels))

    @property
    def pivot(self) -> tuple[str, str] | None:
        """One label that every matching object has; None when the selector names none."""
        return self.labels[0] if self.labels else None

    def __str__(self) -> str:
        """The form of a text, sorted by key."""
        parts = [(key, f"{key}={value}") for key, value in self.labels]
        parts += [(one.key, str(one)) for one in self.expressions]
        return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


MISSING = LabelSelector(is_missing=True)


def selector_of(value: object) -> LabelSelector:
    """Read the object of a spec; None is a missing one. What has another type than it should counts as absent."""
    if value is None:
        return MISSING
    found = views.mapping(value)
    labels = tuple(sorted((key, views.text(text)) for key, text in views.mapping(found.get("matchLabels")).items()))
    return LabelSelector(labels, tuple(map(requirement_of, views.items(found.get("matchExpressions")))))


def requirement_of(value: object) -> Requirement:
    """Read one entry of ``matchExpressions``."""
    found = views.mapping(value)
    values = frozenset(map(views.text, views.items(found.get("values"))))
    return Requirement(views.text(found.get("key")), views.text(found.get("operator")), values)


def parse(text: str) -> tuple[Requirement, ...]:
    """The conditions of ``a=b,c in (d,e),!f``, sorted by key; what is there twice stays there twice.

    Raises:
        MalformedSelector: it cannot be read.
    """
    return _Parser(text).all()


_OPERATORS = {"=": "In", "==": "In", "in": "In", "!=": "NotIn", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n]+)|$)")
_END = ("end", "")
_WORDS = frozenset(("in", "notin"))
_is_number = re.compile("[+-]?[0-9]{1,40}").fullmatch


class _Parser:
    """The grammar of upstream's label selectors, with its complaints."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def all(self) -> tuple[Requirement, ...]:
        found: list[Requirement] = []
        while True:
            kind, literal = self._look(is_value=True)
            if kind == "id" or literal == "!":
                found.append(self._whole_requirement())
                kind, literal = self._take()
                if kind == "end":
                    break
                if literal != ",":
                    raise MalformedSelector(f"found '{literal}', expected: ',' or 'end of string'")
                kind, literal = self._look(is_value=True)
                if kind != "id" and literal != "!":
                    raise MalformedSelector(f"found '{literal}', expected: identifier after ','")
            elif kind == "end":
                break
            else:
                raise MalformedSelector(f"found '{literal}', expected: !, identifier, or 'end of string'")
        return tuple(sorted(found, key=lambda one: one.key))

    def _look(self, *, is_value: bool = False) -> tuple[str, str]:
        found = self._tokens[self._position]
        return ("id", found[1]) if is_value and found[0] == "word" else found

    def _take(self, *, is_value: bool = False) -> tuple[str, str]:
        found = self._tokens[self._position]
        self._position += 1
        return ("id", found[1]) if is_value and found[0] == "word" else found

    def _whole_requirement(self) -> Requirement:
        try:
            return self._requirement()
        except MalformedSelector as error:
            raise MalformedSelector(f"unable to parse requirement: {error}") from error

    def _requirement(self) -> Requirement:
        kind, key = self._take(is_value=True)
        is_absence = key == "!"
        if is_absence:
            kind, key = self._take(is_value=True)
        if kind != "id":
            raise MalformedSelector(f"found '{key}', expected: identifier")
        problems = qualified_name_problems(key)
        if problems:
            raise MalformedSelector(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(problems)}")
        kind, literal = self._look()
        if is_absence or kind == "end" or literal == ",":
            return Requirement(key, "DoesNotExist" if is_absence else "Exists")
        operator = self._operator()
        values = self._set() if operator in ("in", "notin") else (self._exact_value(),)
        return _checked(key, operator, values)

    def _operator(self) -> str:
        _, literal = self._take()
        if literal not in _OPERATORS:
            raise MalformedSelector(f"found '{literal}', expected: in, notin, =, ==, !=, gt, lt")
        return literal

    def _exact_value(self) -> str:
        kind, literal = self._look(is_value=True)
        if kind == "end" or literal == ",":
            return ""
        kind, literal = self._take(is_value=True)
        if kind != "id":
            raise MalformedSelector(f"found '{literal}', expected: identifier")
        return literal

    def _set(self) -> tuple[str, ...]:
        _, literal = self._take(is_value=True)
        if literal != "(":
            raise MalformedSelector(f"found '{literal}' expected: '('")
        found: set[str] = set()
        kind, literal = self._look(is_value=True)
        if literal == ")":
            self._take(is_value=True)
            return ("",)
        if kind != "id" and literal != ",":
            raise MalformedSelector(f"found '{literal}', expected: ',', ')' or identifier")
        found |= self._identifiers()
        _, literal = self._take()
        if literal != ")":
            raise MalformedSelector(f"found '{literal}', expected: ')'")
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
                raise MalformedSelector(f"found '{after}', expected: ',' or ')'")
            if literal != ",":
                raise MalformedSelector(f"found '{literal}', expected: ',', or identifier")
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
            if _int64(value) is None
        ]
    else:
        problems = []
    for position, value in enumerate(values):
        wrong = label_value_problems(value)
        if wrong:
            problems.append(f"values[{position}][{key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}")
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
        raise MalformedSelector(text)
    return Requirement(key, _OPERATORS[operator], frozenset(values))


def _int64(text: str) -> int | None:
    number = int(text) if _is_number(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    # A zero byte ends the text for upstream's lexer.
    for special, word in _TOKEN.findall(text.partition("\0")[0]):
        if special:
            found.append(("special", special))
        elif word:
            found.append(("word" if word in _WORDS else "id", word))
    found.extend((_END, _END, _END))
    return found
