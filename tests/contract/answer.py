"""An answer held against what it should be; what is not so ends the case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import msgspec

from tests.contract.like import differences, short
from tests.contract.wire import Reply

Json: TypeAlias = dict[str, Any]
Cause: TypeAlias = tuple[str, str, str]
"""Reason, field and message."""

_WARNING = re.compile(r'299 - "((?:\\.|[^"\\])*)"')


class Wrong(AssertionError):
    """The server did not say what it should."""


@dataclass(frozen=True)
class Answer:
    """What came back. The case's namespace in it is called ``OURS``."""

    request: str
    reply: Reply
    namespace: str

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.reply.status

    @cached_property
    def text(self) -> str:
        """The body."""
        return self.reply.body.decode(errors="replace").replace(self.namespace, "OURS")

    @cached_property
    def body(self) -> Json:
        """The body, decoded."""
        try:
            decoded: Json = msgspec.json.decode(self.text)
        except msgspec.DecodeError:
            raise Wrong(f"{self.request}: not JSON: {self.text[:300]!r}") from None
        return decoded

    def header(self, name: str) -> str:
        """The first header of this name, or nothing."""
        return next((value for one, value in self.reply.headers if one == name), "")

    @property
    def warnings(self) -> list[str]:
        """The texts of all warnings."""
        headers = [value for name, value in self.reply.headers if name == "warning"]
        texts = [text for header in headers for text in _WARNING.findall(header)]
        return [re.sub(r"\\(.)", r"\1", text).replace(self.namespace, "OURS") for text in texts]

    def ok(self, status: int = 200, like: object = None, *, warnings: Sequence[str] | None = None) -> Json:
        """The body, of an answer with this status, in which everything is as in ``like``."""
        if self.status != status:
            self._wrong([f"status {self.status}, expected {status}"])
        if warnings is not None and self.warnings != list(warnings):
            self._wrong([f"warnings {self.warnings}, expected {list(warnings)}"])
        if like is not None:
            self._wrong(list(differences(like, self.body)))
        return self.body

    def refused(
        self,
        status: int,
        reason: str,
        message: str,
        causes: Sequence[Cause] | None = None,
        *,
        details: object = None,
    ) -> Json:
        """The Status, which says exactly this."""
        wrong = []
        if self.status != status:
            wrong.append(f"status {self.status}, expected {status}")
        envelope = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": status}
        wrong += differences({**envelope, "message": message}, self.body)
        if self.body.get("reason", "") != reason:
            wrong.append(f".reason: {self.body.get('reason')!r}, expected {reason!r}")
        if causes is not None:
            given = (self.body.get("details") or {}).get("causes") or []
            found = [(one.get("reason", ""), one.get("field", ""), one.get("message", "")) for one in given]
            if found != list(causes):
                wrong.append(f"causes {found}, expected {list(causes)}")
        if details is not None:
            wrong += differences({"details": details}, self.body)
        self._wrong(wrong)
        return self.body

    def _wrong(self, what: list[str]) -> None:
        if what:
            raise Wrong("\n    ".join([f"{self.request}: {self.status}", *what, f"answer: {short(self.text)}"]))
