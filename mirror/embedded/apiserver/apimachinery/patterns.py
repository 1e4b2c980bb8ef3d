"""Regular expressions of definitions: Go's syntax, and time that grows with the text alone. Used by schemas and CEL.

They run in RE2, whose syntax Go has; it comes with the extra ``embedded`` (decision 0004). Without it, patterns are
accepted and not evaluated, of which ``kind`` warns. Python's own ``re`` goes back and forth, so whoever
may write a definition could have it think for years.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from types import ModuleType
from typing import Any


def _engine() -> ModuleType | None:
    try:
        import re2
    except ImportError:
        return None
    return re2  # type: ignore[no-any-return]  # it has no types


_RE2 = _engine()
_MOST_STEPS = 2**26
"""Instructions of a pattern times bytes of a text, each some nanoseconds at worst: about a second."""
_LARGEST_BYTES = 2**20
"""Of a pattern in memory, twice: ready to run, and with what it remembers of texts. Some ten thousand instructions."""
_LONGEST_REMEMBERED = 4096
_OF_GO = {
    "invalid character class": "invalid character class",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
"""What Go says for what RE2 says; the rest is the same in both."""
_SINGLE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""RE2 knows it, Go does not."""


def are_evaluated() -> bool:
    """Whether patterns are more than words here."""
    return _RE2 is not None


class BadPattern(Exception):
    """It is no regular expression; the text is Go's."""


class TooCostly(Exception):
    """A pattern of this size cannot be tried on a text of this length."""


class Pattern:
    """One expression, ready to be tried."""

    __slots__ = ("_found",)

    def __init__(self, text: str) -> None:
        """Raises BadPattern."""
        self._found = _compiled(text) if _RE2 is not None else None

    def check_cost(self, text: str) -> None:
        """Raises TooCostly: trying it on the text would take more than about a second."""
        if self._found is not None and len(_utf8(text)) * self._found.programsize > _MOST_STEPS:
            raise TooCostly

    def fits(self, text: str) -> bool:
        """Whether it is found anywhere in the text.

        Raises:
            TooCostly: that would take more than about a second.
        """
        if self._found is None:
            return True
        self.check_cost(text)
        return self._found.search(_utf8(text)) is not None

    def all_in(self, text: str, most: int) -> list[str]:
        """Where it is found in the text, without overlaps; at most so many, all if ``most`` is below zero.

        Raises:
            TooCostly: that would take more than about a second.
        """
        if self._found is None:
            return []
        self.check_cost(text)
        matches = self._found.finditer(_utf8(text))
        return [match.group(0).decode() for match in islice(matches, most if most >= 0 else None)]


def pattern_of(text: str) -> Pattern:
    """The same for equal texts, as long as it is remembered.

    Raises:
        BadPattern: it is no regular expression.
    """
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else Pattern(text)


_remembered = lru_cache(maxsize=256)(Pattern)


def _compiled(text: str) -> Any:
    assert _RE2 is not None
    if _SINGLE_BYTE.search(text):
        raise BadPattern(r"error parsing regexp: invalid escape sequence: `\C`")
    options = _RE2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _LARGEST_BYTES
    try:
        return _RE2.compile(_utf8(text), options)
    except _RE2.error as error:
        raise BadPattern(_described(error.args[0].decode("utf-8", "replace"))) from None


def _described(said: str) -> str:
    """An error of RE2 in the words of Go."""
    what, _, where = said.partition(": ")
    code = _OF_GO.get(what, what)
    if code == "trailing backslash at end of expression":
        where = ""
    return f"error parsing regexp: {code}: `{where}`"


def _utf8(text: str) -> bytes:
    """Half characters become what Go's decoder makes of them."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
