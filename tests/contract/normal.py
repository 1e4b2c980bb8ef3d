"""What one server says, without what only that server can know: uids, versions, times, generated names, tokens.

What is equal stays equal: the first uid of a case is ``<uid 1>`` wherever it comes again, and so on. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z")
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_VERSIONS_IN_TEXT = (
    re.compile(r"(?<=current: )\d+"),
    re.compile(r"(?<=resource version: )\d+ \(\d+\)"),
    re.compile(r"(?<=ResourceVersion in object meta: )\d+"),
    re.compile(r"(?<=ResourceVersion in the precondition )\(\d{2,}\)"),
    re.compile(r"(?<=ResourceVersion in record )\(\d+\)"),
    re.compile(r"(?<=ResourceVersion in precondition: )\d+(?=, ResourceVersion)"),
)
# The server shows the bytes that a patch made, in the order of Go's fields.
_PATCHED = re.compile(r'(?<=Invalid value: ")(?:\{\\".*\}|map\[.*\])(?=": )', re.DOTALL)
_AGE = re.compile(r"\d+m?s")
_NUMBER = re.compile(r"[1-9]\d*")
OWN_UIDS = tuple(f"11111111-1111-4111-8111-11111111111{number}" for number in range(1, 4))
"""Those that cases make up themselves stay as they are."""
_NEAR = timedelta(hours=2)


@dataclass(slots=True)
class Normal:
    """One case's eyes; ``keeps_managers``: whether managedFields count."""

    keeps_managers: bool = False
    _seen: dict[str, dict[str, str]] = field(default_factory=dict)
    _generated: dict[str, str] = field(default_factory=dict)

    def of(self, value: Any, key: str = "") -> Any:
        """The value as any server would say it."""
        if isinstance(value, dict):
            self._remember_generated(value)
            if key == "metadata" and not value.get("uid") and not value.get("name"):
                value = {**value, "resourceVersion": "<version of a list>"} if value.get("resourceVersion") else value
            return {
                name: self.of(inner, name)
                for name, inner in sorted(value.items())
                if self.keeps_managers or name != "managedFields"
            }
        if isinstance(value, list):
            items = sorted(value, key=_entry) if key == "managedFields" else value
            return [self.of(inner, key) for inner in items]
        return self._text(value, key) if isinstance(value, str) else value

    def _text(self, text: str, key: str) -> str:
        if key == "continue" and text:
            return "<continue>"
        if key == "resourceVersion" and _NUMBER.fullmatch(text):
            return self._name("version", text)
        if key == "storageVersionHash":
            return "<hash>"
        if key == "cells" and _AGE.fullmatch(text):
            return "<age>"
        for one, name in self._generated.items():
            text = text.replace(one, name)
        text = _UID.sub(lambda found: found[0] if found[0] in OWN_UIDS else self._name("uid", found[0]), text)
        text = _TOKEN.sub("<token>", text)
        for pattern in _VERSIONS_IN_TEXT:
            text = pattern.sub("<version>", text)
        text = _PATCHED.sub("<object>", text)
        return _TIME.sub(_time, text)

    def _name(self, what: str, text: str) -> str:
        seen = self._seen.setdefault(what, {})
        return seen.setdefault(text, f"<{what} {len(seen) + 1}>")

    def _remember_generated(self, value: dict[str, Any]) -> None:
        prefix, name = value.get("generateName"), value.get("name")
        if isinstance(prefix, str) and isinstance(name, str) and prefix and len(name) >= 5:
            base = name[:-5]
            if prefix.startswith(base) and name != prefix:
                self._generated.setdefault(name, f"{base}<generated>")


def _entry(entry: Any) -> tuple[str, ...]:
    """A server sorts by time before name, which would make a difference when a second begins between two writes."""
    names = ("operation", "manager", "subresource", "apiVersion")
    return tuple(str(entry.get(name, "")) for name in names) if isinstance(entry, dict) else ()


def _time(found: re.Match[str]) -> str:
    """Only a time of now is the server's; others were sent by the case."""
    try:
        when = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError:
        return found[0]
    if abs(when - datetime.now(UTC)) > _NEAR:
        return found[0]
    return "<micro time>" if found[2] else "<time>"
