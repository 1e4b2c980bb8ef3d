"""Values that JSON has not: unsigned numbers, durations, instants, optionals, types; and errors. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SECOND = 10**9
"""Nanoseconds."""
_MOST_DURATION = 2**63
_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_DURATION = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_NO_DURATION, _NO_INSTANT = (
    f"type conversion error from 'string' to 'google.protobuf.{kind}'" for kind in ("Duration", "Timestamp")
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62135596800, 253402300799


class EvaluationError(Exception):
    """An expression has no value; the words are cel-go's."""


class CostExceeded(Exception):
    """An expression was stopped, since it cost more than it may."""


class UInt(int):
    """An unsigned number: adding it to a signed one is an error."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time, in nanoseconds."""

    nanoseconds: int

    def __str__(self) -> str:
        seconds, rest = divmod(abs(self.nanoseconds), SECOND)
        sign = "-" if self.nanoseconds < 0 else ""
        return f"{sign}{seconds}{f'.{rest:09d}'.rstrip('0') if rest else ''}s"


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A timestamp, in nanoseconds since 1970."""

    nanoseconds: int
    offset_seconds: int = field(default=0, compare=False)
    """East of UTC, as it was written; it is shown so, while its parts are those of UTC."""

    def __str__(self) -> str:
        when, rest, offset = self.at(), self.nanoseconds % SECOND, self.offset_seconds
        try:
            when += timedelta(seconds=offset)
        except OverflowError:  # a year before 1 or after 9999
            offset = 0
        shown = f"{when:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + (f".{rest:09d}".rstrip("0") if rest else "")
        hours, minutes = divmod(abs(offset) // 60, 60)
        return f"{shown}{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}" if offset else f"{shown}Z"

    def at(self, zone: str = "") -> datetime:
        """The moment in a zone, UTC if none is named.

        Raises:
            EvaluationError: there is no such zone.
        """
        when = _EPOCH + timedelta(seconds=self.nanoseconds // SECOND)
        if not zone or zone == "UTC":
            return when
        if offset := _OFFSET.fullmatch(zone):
            shift = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
            return (when - shift if offset[1] == "-" else when + shift).replace(tzinfo=UTC)
        try:
            return when.astimezone(ZoneInfo(zone))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise EvaluationError(f"unknown time zone {zone}") from None


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing."""

    has_value: bool
    value: Any = None


NONE = Optional(False)


@dataclass(frozen=True, slots=True)
class TypeName:
    """What ``type()`` gives."""

    name: str


def duration(text: str) -> Duration:
    """A duration in Go's form.

    Raises:
        EvaluationError: it is none.
    """
    if text in ("0", "+0", "-0"):
        return Duration(0)
    if not _DURATION.fullmatch(text):
        raise EvaluationError(_NO_DURATION)
    total = 0
    for number, unit in _PART.findall(text):
        whole, _, part = number.partition(".")
        size = _UNITS[unit]
        total += int(whole or 0) * size
        if part:
            total += int(part[:18]) * size // 10 ** len(part[:18])
    if total >= _MOST_DURATION:
        raise EvaluationError(_NO_DURATION)
    return Duration(-total if text[0] == "-" else total)


def instant(text: str) -> Instant:
    """A timestamp as RFC 3339 has it.

    Raises:
        EvaluationError: it is none.
    """
    found = _INSTANT.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        when = datetime.fromisoformat(f"{found[1]}T{found[2]}{'+00:00' if found[4] == 'Z' else found[4]}")
        seconds = (when - _EPOCH) // timedelta(seconds=1)
        offset = when.utcoffset() or timedelta()
    except (ValueError, OverflowError):
        raise EvaluationError(_NO_INSTANT) from None
    nanoseconds = seconds * SECOND + int((found[3] or "0")[:9].ljust(9, "0"))
    return checked_instant(nanoseconds, int(offset.total_seconds()))


def checked_instant(nanoseconds: int, offset_seconds: int = 0) -> Instant:
    """Raises EvaluationError: outside of the years 1 to 9999."""
    if not _FIRST <= nanoseconds // SECOND <= _LAST:
        raise EvaluationError("timestamp overflow")
    return Instant(nanoseconds, offset_seconds)


def checked_duration(nanoseconds: int) -> Duration:
    """Raises EvaluationError: more than 290 years."""
    if not -(2**63) <= nanoseconds < 2**63:
        raise EvaluationError("integer overflow")
    return Duration(nanoseconds)
