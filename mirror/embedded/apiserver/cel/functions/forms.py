"""Formats of names and semantic versions, as Kubernetes' libraries have them. Pure."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import total_ordering
from typing import Any, ClassVar

from mirror.batch import syntax
from mirror.embedded.apiserver.cel import times
from mirror.embedded.apiserver.cel.functions.declared import Overload, overload, traversal
from mirror.embedded.apiserver.cel.functions.kubernetes import can, url
from mirror.embedded.apiserver.cel.times import EvaluationError, Optional
from mirror.embedded.apiserver.validation.webhooks import dns_1035_problems


def overloads() -> Iterator[Overload]:
    """All of them."""
    yield from _formats()
    yield from _versions()


# -- formats ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Format:
    """A form that texts may have."""

    TYPE: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    pattern_size: int
    """What trying it costs goes by it."""

    def problems(self, text: str) -> list[str]:
        return list(_PROBLEMS[self.name](text))


_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def _uri_problems(text: str) -> list[str]:
    try:
        url(text)
    except EvaluationError:
        return [f'parse "{text}": invalid URI for request']
    return []


def _when(does: Callable[[str], object], words: str) -> Callable[[str], Sequence[str]]:
    def problems(text: str) -> Sequence[str]:
        try:
            return () if does(text) else (words,)
        except (ValueError, NotBase64):
            return (words,)

    return problems


def _is_datetime(text: str) -> bool:
    return "T" in text.upper() and datetime.fromisoformat(text.upper().replace("Z", "+00:00")).tzinfo is not None


def _label_1035(text: str) -> list[str]:
    return list(dns_1035_problems(text))


def _prefix(problems: Callable[[str], Sequence[str]]) -> Callable[[str], Sequence[str]]:
    """A name that something follows: it may end with a dash."""
    return lambda text: problems(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)


_PROBLEMS: Mapping[str, Callable[[str], Sequence[str]]] = {
    "dns1123Label": syntax.label_problems,
    "dns1123Subdomain": syntax.subdomain_problems,
    "dns1035Label": _label_1035,
    "qualifiedName": syntax.qualified_name_problems,
    "dns1123LabelPrefix": _prefix(syntax.label_problems),
    "dns1123SubdomainPrefix": _prefix(syntax.subdomain_problems),
    "dns1035LabelPrefix": _prefix(_label_1035),
    "labelValue": syntax.label_value_problems,
    "uri": _uri_problems,
    "uuid": _when(_UUID.fullmatch, "does not match the UUID format"),
    "byte": _when(lambda text: bool(text) and b64decode(text, validate=True) is not None, "invalid base64"),
    "date": _when(lambda text: len(text) == 10 and date.fromisoformat(text), "invalid date"),
    "datetime": _when(_is_datetime, "invalid datetime"),
}
_SIZES = {
    "dns1123Label": 30,
    "dns1123Subdomain": 60,
    "dns1035Label": 30,
    "qualifiedName": 60,
    "dns1123LabelPrefix": 30,
    "dns1123SubdomainPrefix": 60,
    "dns1035LabelPrefix": 30,
    "labelValue": 40,
    "uri": 2083,
    "uuid": 109,
    "byte": 96,
    "date": 10,
    "datetime": 150,
}


def _formats() -> Iterator[Overload]:
    for name, size in _SIZES.items():
        yield overload(f"format.{name}()format", _constant(Format(name, size)))
    yield overload("format.named(string)optional(format)", _named)
    yield overload(".validate(format,string)optional(list(string))", _validated, _of_validating)


def _constant(one: Format) -> Callable[[], Format]:
    return lambda: one


def _named(name: str) -> Optional:
    return Optional(True, Format(name, _SIZES[name])) if name in _SIZES else times.NONE


def _validated(one: Format, text: str) -> Optional:
    found = one.problems(text)
    return Optional(True, found) if found else times.NONE


def _of_validating(arguments: Sequence[Any], result: Any) -> int:
    size = int(arguments[0].pattern_size)
    return -(-(1 + len(arguments[1])) // 10) * -(-size // 4)


# -- versions ---------------------------------------------------------------------------------------------------------


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version, without what it was built from."""

    TYPE: ClassVar[str] = "kubernetes.Semver"
    major: int
    minor: int
    patch: int
    before: tuple[str, ...] = ()

    def __lt__(self, other: Semver) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[Any, ...]:
        parts = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in self.before)
        return self.major, self.minor, self.patch, not self.before, parts


_NUMBER = r"(0|[1-9]\d*)"
_PART = r"[0-9A-Za-z-]+"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}(?:\.{_PART})*))?(?:\+{_PART}(?:\.{_PART})*)?", re.ASCII
)


def _semver(text: str, is_normalized: bool = False) -> Semver:
    if is_normalized:
        text = text.removeprefix("v")
        head = re.split("[-+]", text, maxsplit=1)[0]
        numbers = [one.lstrip("0") or "0" if one.isdigit() else one for one in head.split(".")]
        text = ".".join([*numbers, "0", "0"][: max(3, len(numbers))]) + text[len(head) :]
    found = _SEMVER.fullmatch(text)
    if found is None or any(one.isdigit() and one[0] == "0" and one != "0" for one in (found[4] or "").split(".")):
        raise EvaluationError(
            "No Major.Minor.Patch elements found" if text.count(".") < 2 else f'Invalid version "{text}"'
        )
    before = tuple(found[4].split(".")) if found[4] else ()
    return Semver(int(found[1]), int(found[2]), int(found[3]), before)


def _is_semver(text: str, is_normalized: bool = False) -> bool:
    return can(lambda one: _semver(one, is_normalized))(text)


def _versions() -> Iterator[Overload]:
    yield overload("semver(string)semver", _semver, traversal())
    yield overload("semver(string,bool)semver", _semver, traversal())
    yield overload("isSemver(string)bool", _is_semver, traversal())
    yield overload("isSemver(string,bool)bool", _is_semver, traversal())
    yield overload(".isGreaterThan(semver,semver)bool", lambda one, other: one > other)
    yield overload(".isLessThan(semver,semver)bool", lambda one, other: one < other)
    yield overload(".compareTo(semver,semver)int", lambda one, other: (one > other) - (one < other))
    yield overload(".major(semver)int", lambda one: one.major)
    yield overload(".minor(semver)int", lambda one: one.minor)
    yield overload(".patch(semver)int", lambda one: one.patch)
