"""Expectations of JSON: what must be there, what must not, and values of which only the form is known. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator


class _Absent:
    """The value of a field that must not be there."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class Form:
    """Any text of this form."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern, re.DOTALL)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self._pattern.fullmatch(other) is not None

    def __hash__(self) -> int:
        return hash(self._pattern)

    def __repr__(self) -> str:
        return f"Form({self._pattern.pattern!r})"


class _Anything:
    """Whatever is there."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "ANYTHING"


ANYTHING = _Anything()
UID = Form(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = Form(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
VERSION = Form(r"[1-9]\d*")
TEXT = Form(r".+")


class Exactly:
    """An object with these fields and no others (inside a pattern, where others are allowed otherwise)."""

    def __init__(self, **fields: object) -> None:
        self.fields = fields


def differences(expected: object, found: object, path: str = "") -> Iterator[str]:
    """What is not as expected, a line each. Of objects, only the named fields count; lists must be as long."""
    if isinstance(expected, Exactly):
        expected = expected.fields
        if isinstance(found, dict):
            for name in found.keys() - expected.keys():
                yield f"{path}.{name}: unexpected {short(found[name])}"
    if isinstance(expected, dict) and isinstance(found, dict):
        for name, value in expected.items():
            if value is ABSENT:
                if name in found:
                    yield f"{path}.{name}: must not be there: {short(found[name])}"
            elif name not in found:
                yield f"{path}.{name}: missing"
            else:
                yield from differences(value, found[name], f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{path}: {len(found)} items, not {len(expected)}: {short(found)}"
            return
        for position, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{path}[{position}]")
    elif expected != found or (isinstance(found, bool) and not isinstance(expected, bool | _Anything)):
        yield f"{path}: {short(found)}, expected {expected!r}"


def short(value: object) -> str:
    """A value for people."""
    text = json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= 600 else f"{text[:600]}…"
