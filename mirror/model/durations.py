"""Durations as people write them for Kubernetes (``15m``, ``1h30m``, ``250ms``), to and from seconds.

The grammar is that of Go's ``time.ParseDuration``, without signs: nothing here may last less than no time. Used by
settings and annotations. ``human_duration`` prints ages as kubectl does, for the page, commands and messages. Not here:
which durations make sense where (``settings/rules``).
"""

from __future__ import annotations

import re
from fractions import Fraction

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_MOST_NANOSECONDS = 2**63 - 1
_LONGEST_TEXT = 100


class BadDuration(ValueError):
    """The text is not a duration; the message says what was expected, in one line."""


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``1h30m`` or ``0s``; a lone ``0`` needs no unit.

    Raises:
        BadDuration: it is empty, negative, has no unit, has an unknown one, or exceeds 292 years.
    """
    if text == "0":
        return 0.0
    if text[:1] in ("-", "+"):
        raise BadDuration("a duration has no sign")
    if not text or len(text) > _LONGEST_TEXT:
        raise BadDuration("expected a duration like 15m, 1h30m or 250ms")
    total, position = Fraction(0), 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise BadDuration(_what_is_wrong(text))
        total += Fraction(part[1]) * _NANOSECONDS[part[2]]
        position = part.end()
    if total > _MOST_NANOSECONDS:
        raise BadDuration("a duration is at most 292 years")
    return float(total / 10**9)


def format_duration(seconds: float) -> str:
    """The shortest text that means these seconds, to the nanosecond: ``5400.0`` is ``1h30m``, ``0.25`` is ``250ms``."""
    nanoseconds = round(seconds * 10**9)
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < 10**9:
        unit = next(unit for unit in ("ms", "us", "ns") if nanoseconds >= _NANOSECONDS[unit])
        return f"{_decimal(nanoseconds, _NANOSECONDS[unit])}{unit}"
    hours, rest = divmod(nanoseconds, _NANOSECONDS["h"])
    minutes, rest = divmod(rest, _NANOSECONDS["m"])
    parts = [
        f"{hours}h" if hours else "",
        f"{minutes}m" if minutes else "",
        f"{_decimal(rest, 10**9)}s" if rest else "",
    ]
    return "".join(parts)


def human_duration(seconds: float) -> str:
    """An age as kubectl prints it (``duration.HumanDuration``): ``59s``, ``3m20s``, ``17m``, ``2h5m``, ``3d4h``.

    Less than no time, of clocks that differ, is ``0s``. The script of the page has the same rules.
    """
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if whole < 2 * 60:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    return _two(days // 365, "y", days % 365 if days < 8 * 365 else 0, "d")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{f'{small}{small_unit}' if small else ''}"


def _what_is_wrong(text: str) -> str:
    if re.fullmatch(r"[0-9.]+", text):
        return f"a duration needs a unit, such as {text}s"
    return "expected a duration like 15m, 1h30m or 250ms (units: h, m, s, ms, us, ns)"


def _decimal(nanoseconds: int, unit: int) -> str:
    """``nanoseconds / unit`` without exponent or trailing zeros; units are powers of ten here."""
    whole, rest = divmod(nanoseconds, unit)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
