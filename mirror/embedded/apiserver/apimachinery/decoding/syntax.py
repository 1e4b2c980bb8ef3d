"""Where bytes are no JSON, and how the server says so. Only for bytes that were refused already: it is slow.

It never recurses, so nothing is nested too deeply for it.
"""

from __future__ import annotations

import re

from mirror.batch.quoting import quoted

DEEPEST = 10_000

_SPACE = b" \t\r\n"
_STRING = re.compile(rb'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_DIGITS = re.compile(rb"[0-9]*")
_END = "unexpected end of JSON input"


class _Bad(Exception):
    """The words for what is wrong."""


def complaint(data: bytes) -> str:
    """What is wrong with this text, or nothing if it is JSON."""
    try:
        # As if a space followed, which the server's scanner tries at the end: then ``nul`` has a wrong letter.
        _Scan(data + b" ").document()
    except _Bad as bad:
        return str(bad)
    return ""


class _Scan:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._open: list[int] = []

    def document(self) -> None:
        """One value, and nothing behind it.

        Invariant: ``_open`` holds the opening bracket of every list and object around the current place.
        """
        self._value()
        while self._open:
            self._after_value()
        if self._next(_SPACE) is not None:
            raise self._bad("after top-level value")

    def _value(self) -> None:
        """A value, or the beginning of a list or object that has something in it."""
        while True:
            found = self._next(_SPACE)
            if found is None:
                raise _Bad(_END)
            if found not in b"{[":
                self._literal(found)
                return
            self._open.append(found)
            if len(self._open) > DEEPEST:
                raise self._bad("exceeded max depth")
            self._at += 1
            inner = self._next(_SPACE)
            if inner is None:
                raise _Bad(_END)
            if inner == found + 2:  # "}" follows "{" by two, "]" follows "["
                self._at += 1
                self._open.pop()
                return
            if found == ord("{"):
                self._key()

    def _key(self) -> None:
        found = self._next(_SPACE)
        if found is None:
            raise _Bad(_END)
        if found != ord('"'):
            raise self._bad("looking for beginning of object key string")
        self._literal(found)
        if self._next(_SPACE) is None:
            raise _Bad(_END)
        if self._data[self._at] != ord(":"):
            raise self._bad("after object key")
        self._at += 1

    def _after_value(self) -> None:
        found = self._next(_SPACE)
        if found is None:
            raise _Bad(_END)
        inside = self._open[-1]
        if found == ord(","):
            self._at += 1
            if inside == ord("{"):
                self._key()
            self._value()
        elif found == inside + 2:
            self._at += 1
            self._open.pop()
        else:
            raise self._bad("after object key:value pair" if inside == ord("{") else "after array element")

    def _literal(self, first: int) -> None:
        if first == ord('"'):
            self._string()
        elif first in b"-0123456789":
            self._number()
        elif first in b"tfn":
            word = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}[first]
            for letter in word[1:]:
                self._at += 1
                if self._here() != letter:
                    raise self._bad(f"in literal {word.decode()} (expecting '{chr(letter)}')")
            self._at += 1
        else:
            raise self._bad("looking for beginning of value")

    def _string(self) -> None:
        found = _STRING.match(self._data, self._at + 1)
        self._at = found.end() if found else self._at + 1
        here = self._here()
        if here == ord('"'):
            self._at += 1
        elif here == ord("\\"):
            self._at += 1
            if self._here() != ord("u"):
                raise self._bad("in string escape code")
            while True:
                self._at += 1
                if self._here() not in b"0123456789abcdefABCDEF":
                    raise self._bad("in \\u hexadecimal character escape")
        else:
            raise self._bad("in string literal")

    def _number(self) -> None:
        if self._data[self._at] == ord("-"):
            self._at += 1
            if self._here() not in b"0123456789":
                raise self._bad("in numeric literal")
        if self._data[self._at] == ord("0"):
            self._at += 1
        else:
            self._digits()
        if self._peek() == ord("."):
            self._at += 1
            if self._here() not in b"0123456789":
                raise self._bad("after decimal point in numeric literal")
            self._digits()
        if self._peek() in (ord("e"), ord("E")):
            self._at += 1
            if self._here() in b"+-":
                self._at += 1
            if self._here() not in b"0123456789":
                raise self._bad("in exponent of numeric literal")
            self._digits()

    def _digits(self) -> None:
        found = _DIGITS.match(self._data, self._at)
        self._at = found.end() if found else self._at

    def _peek(self) -> int | None:
        return self._data[self._at] if self._at < len(self._data) else None

    def _here(self) -> int:
        if self._at >= len(self._data):
            raise _Bad(_END)
        return self._data[self._at]

    def _next(self, skipped: bytes) -> int | None:
        data, at = self._data, self._at
        while at < len(data) and data[at] in skipped:
            at += 1
        self._at = at
        return data[at] if at < len(data) else None

    def _bad(self, where: str) -> _Bad:
        return _Bad(f"invalid character {_character(self._data[self._at])} {where}")


def _character(code: int) -> str:
    if code == ord("'"):
        return r"'\''"
    if code == ord('"'):
        return "'\"'"
    return "'" + quoted(chr(code))[1:-1] + "'"
