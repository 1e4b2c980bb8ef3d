"""Label selectors in Kubernetes' text form: ``region=eu,name in (a,b),!gpu``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_DNS = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_KEY = re.compile(rf"(?:{_DNS}/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^=!\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^=!\s]*)")

LONGEST_CHARACTERS = 4096
SHORT_CHARACTERS = 256
"""The parts of selectors up to this length are kept for a while: most Jobs of a user have the same one."""


MOST_PARTS = 100
"""Each is compared with each worker's labels, again and again while the Job waits."""


class BadSelector(ValueError):
    """The text is not a label selector; the message says which part."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a selector: a key, what is asked of it, and the values."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "exists":
                return self.key in labels
            case "absent":
                return self.key not in labels
            case "in":
                return labels.get(self.key) in self.values
            case _:  # notin: an absent key is not in, as in Kubernetes
                return labels.get(self.key) not in self.values


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must match; none matches everything. Made by ``parse_selector``.

    Only the text is kept: thousands of waiting Jobs may have selectors of 4 KiB, whose parts would take a hundred times
    that (D29).
    """

    text: str = ""

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        return _short_requirements(self.text) if len(self.text) <= SHORT_CHARACTERS else _requirements(self.text)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


EVERY = Selector()
"""Matches every worker."""


def parse_selector(text: str) -> Selector:
    """Read a selector.

    Raises:
        BadSelector: a part is malformed.
    """
    if len(text) > LONGEST_CHARACTERS:
        raise BadSelector(f"it is longer than {LONGEST_CHARACTERS} characters")
    if not text.strip():
        return EVERY
    selector = Selector(text)
    _ = selector.requirements  # read once, so that a malformed part is reported here
    return selector


@lru_cache(maxsize=1024)
def _short_requirements(text: str) -> tuple[Requirement, ...]:
    return _requirements(text)


def _requirements(text: str) -> tuple[Requirement, ...]:
    return tuple(_requirement(part) for part in _parts(text)) if text else ()


def _parts(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in (*parts, text[start:])]


def _requirement(part: str) -> Requirement:
    if found := _SET.fullmatch(part):
        values = [value.strip() for value in found["values"].split(",")]
        return Requirement(_key(found["key"], part), found["operator"], frozenset(_value(v, part) for v in values))
    if found := _EQUAL.fullmatch(part):
        operator = "notin" if found["operator"] == "!=" else "in"
        return Requirement(_key(found["key"], part), operator, frozenset((_value(found["value"], part),)))
    if part.startswith("!"):
        return Requirement(_key(part[1:].strip(), part), "absent")
    return Requirement(_key(part, part), "exists")


def _key(text: str, part: str) -> str:
    if not _KEY.fullmatch(text) or len(text) > 317:
        raise BadSelector(f"{_shown(part)}: not a label key")
    return text


def _value(text: str, part: str) -> str:
    if not _VALUE.fullmatch(text):
        raise BadSelector(f"{_shown(part)}: not a label value")
    return text


def _shown(part: str) -> str:
    return repr(part[:80])
