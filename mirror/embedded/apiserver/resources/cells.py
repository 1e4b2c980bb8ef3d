"""Cells of kubectl's tables, and the columns that many kinds have. Pure; ``now`` is an aware time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from mirror.batch import times
from mirror.embedded.apiserver.apimachinery.strategy import Column
from mirror.embedded.apiserver.resources.texts import TEXTS

UNKNOWN, NONE, UNSET = "<unknown>", "<none>", "<unset>"

NAME = Column("Name", format="name", description=TEXTS["NAME"])
AGE = Column("Age", description=TEXTS["CREATED"])

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_YEAR = 365 * _DAY


def age(body: Mapping[str, Any], now: datetime) -> str:
    """How long ago an object was created."""
    return since(body["metadata"].get("creationTimestamp"), now)


def since(moment: object, now: datetime) -> str:
    """How long ago a stored time was."""
    at = _nanoseconds(moment)
    return UNKNOWN if at is None else duration(nanoseconds(now) - at)


def between(first: object, last: object) -> str:
    """How long it is from one stored time to another; nothing if one is no time."""
    begin, end = _nanoseconds(first), _nanoseconds(last)
    return "" if begin is None or end is None else duration(end - begin)


def nanoseconds(moment: datetime) -> int:
    """Nanoseconds since 1970."""
    return times.instant(times.of(moment)) + moment.microsecond * 1_000


def duration(length: int) -> str:
    """A length of time in nanoseconds as people read it: two units where they matter, one otherwise."""
    # Cut towards zero, as integers of the server are.
    seconds = length // times.NANOSECONDS if length >= 0 else -(-length // times.NANOSECONDS)
    if seconds < 0:
        return "0s" if seconds >= -1 else "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def containers(listed: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Names and images of containers."""
    return ",".join(one.get("name", "") for one in listed), ",".join(one.get("image", "") for one in listed)


def selector(value: Mapping[str, Any] | None) -> str:
    """A label selector in one line."""
    if value is None:
        return NONE
    parts = [(key, f"{key}={one}") for key, one in value.get("matchLabels", {}).items()]
    for expression in value.get("matchExpressions", ()):
        key, operator = expression.get("key", ""), expression.get("operator", "")
        values = ",".join(sorted(expression.get("values", ())))
        match operator:
            case "In":
                parts.append((key, f"{key} in ({values})"))
            case "NotIn":
                parts.append((key, f"{key} notin ({values})"))
            case "Exists":
                parts.append((key, key))
            case "DoesNotExist":
                parts.append((key, f"!{key}"))
            case _:
                return "<error>"
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0])) if parts else NONE


def _two(seconds: int, unit: int, name: str, less: int, less_name: str) -> str:
    whole, rest = divmod(seconds, unit)
    smaller = rest // less
    return f"{whole}{name}{smaller}{less_name}" if smaller else f"{whole}{name}"


def _nanoseconds(moment: object) -> int | None:
    if not isinstance(moment, str) or moment == times.ZERO:
        return None
    try:
        return times.instant(moment)
    except times.BadTime:
        return None
