"""How much of what a server sends is read: bytes and values, judged before anything is decoded (D29). Pure.

Used by ``transport``, ``client``, ``answers``, ``watch`` and ``objects``. An API server stores objects of 1.5 MiB at
most; nothing here is ever met by one that is what it says it is, but for objects made to be large.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror.kube.errors import TooLarge

MOST_OBJECT_BYTES = 4 * 2**20
"""Of one object, alone or as one line of a watch; of what is larger only the metadata is read."""
MOST_VALUES = 50_000
"""Lists, members and items of one object, its managed fields included: each costs a hundred bytes of memory and more,
however short it is, and whoever walks through them all keeps everybody else waiting."""
MOST_LINE_BYTES = 16 * 2**20
"""Of one line of a watch; what is longer ends the watch: no server sends it."""
MOST_PAGE_BYTES = 32 * 2**20
"""Of one page of a list; of more a shorter page is requested."""
MOST_PAGE_VALUES = 1_000_000
MOST_ERROR_BYTES = 4 * 2**20
"""A refusal may quote an object."""
MOST_SMALL_BYTES = 2**20
"""Of answers that are short by their nature: a version, a namespace."""
MOST_IN_FLIGHT_BYTES = 64 * 2**20
"""Of all answers of one cluster that are being read at a time, and again of all lines of its watches."""

_SHORT_BYTES = 64 * 1024
"""What is shorter can hold no amount of values that matters, and is not counted."""
_HEAD_BYTES = 64 * 1024
"""Where the metadata of an object is that is too large to be read: at its beginning."""
_MOST_LABELS = 64
_LONGEST_TEXT = 320
"""Of a label's name or value; the API allows 317 and 63 characters."""


def exceeds(data: bytes, most: int = MOST_VALUES) -> bool:
    """Whether JSON has more than so many lists, members and items; told without decoding it, in a few ms per MiB."""
    if len(data) <= _SHORT_BYTES or _count(data) <= most:
        return False
    # Most of it may stand in texts: those are taken out, unless there are so many that they are too many themselves.
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * most:
        return True
    return _count(b"".join(plain.split(b'"')[::2])) > most


def amount(value: object) -> int:
    """How many lists, members and items a decoded part has: as ``exceeds`` counts, but for those in texts."""
    if isinstance(value, Mapping):
        return 1 + len(value) + sum(map(amount, value.values()))
    if isinstance(value, list):
        return 1 + len(value) + sum(map(amount, value))
    return 0


def most_amount(data: bytes) -> int:
    """What ``amount`` may be at most of this JSON, which is not decoded."""
    return 2 * _count(data)  # of n items n - 1 have a comma, and the last one has the bracket's place


def _count(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


class InFlight:
    """Bytes of one cluster that were received and not handed on yet. Invariant: at most ``most`` at a time."""

    def __init__(self, most: int = MOST_IN_FLIGHT_BYTES) -> None:
        self._most = most
        self.held = 0

    def share(self) -> Share:
        """For one answer or watch: a context at whose end what it holds is given back."""
        return Share(self)

    def change(self, by: int) -> None:
        """Raises TooLarge: it would be more than may be held."""
        if by > 0 and self.held + by > self._most:
            raise TooLarge(f"more than {self._most} bytes at once")
        self.held += by


class Share:
    """What one answer or watch holds."""

    __slots__ = ("_among", "held")

    def __init__(self, among: InFlight) -> None:
        self._among = among
        self.held = 0

    def __enter__(self) -> Share:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold(0)

    def hold(self, size: int) -> None:
        """Hold so many bytes from now on. Raises TooLarge."""
        self._among.change(size - self.held)
        self.held = size


class Head(bytes):
    """The beginning of a line that is too long."""


@dataclass(slots=True)
class Skimmed:
    """What identifies an object that is too large to be read."""

    texts: dict[str, str] = field(default_factory=dict)
    """Of its metadata: name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp."""
    labels: dict[str, str] = field(default_factory=dict)
    event_type: str = ""
    """Of a watch's line."""


_WANTED = frozenset(("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"))
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*+)("(\s*+:)?)?|[{}\[\]]')
"""A text that does not end is a match, too: each escaped quote in it would be tried as a beginning otherwise."""


def skim(data: bytes, *, is_event: bool) -> Skimmed:
    """The metadata of an object, or of the object of an event, out of the beginning of its JSON.

    What stands behind the first 64 KiB, or is longer than the API allows, is left out.
    """
    found, path, key = Skimmed(), list[str](), ""
    metadata = ["", "object", "metadata"] if is_event else ["", "metadata"]
    for token in _TOKEN.finditer(data, 0, _HEAD_BYTES):
        mark = token.group()
        if mark in (b"{", b"["):
            path.append(key)
            key = ""
        elif mark in (b"}", b"]"):
            if path == metadata:
                break
            path[-1:] = []
        elif token.group(2) is None:
            break  # cut in the middle of a text
        elif token.group(3) is not None:
            key = _text(token.group(1))
        else:
            _take(found, path, key, _text(token.group(1)), metadata)
    return found


def _take(found: Skimmed, path: list[str], key: str, value: str, metadata: list[str]) -> None:
    if path == metadata and key in _WANTED and value:
        found.texts[key] = value
    elif path == [*metadata, "labels"] and key and len(found.labels) < _MOST_LABELS:
        found.labels[key] = value
    elif path == [""] and key == "type":
        found.event_type = value


def _text(raw: bytes) -> str:
    """A short text without escapes, as all names are; empty for another."""
    return raw.decode("ascii") if len(raw) <= _LONGEST_TEXT and raw.isascii() and b"\\" not in raw else ""
