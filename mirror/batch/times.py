"""Times as the API reads, compares and prints them: RFC 3339, stored in whole seconds, compared exactly (V2, M2).

Used by the status rules and by everything that writes a status. Reads no clock.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache

NANOSECONDS = 1_000_000_000
ZERO = "0001-01-01T00:00:00Z"
"""Go's zero time: the API takes it for a time, prints it as ``null``, and then holds it different from any time."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_SECOND = (date.min.toordinal() - _EPOCH_DAY) * 86_400
_LAST_SECOND = (date.max.toordinal() - _EPOCH_DAY + 1) * 86_400 - 1
_SHAPE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,](\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)


# The same few times are read again with each status; longer texts than any time are not worth remembering.
_LONGEST_REMEMBERED = 40


class BadTime(ValueError):
    """The text is no RFC 3339 time of the years 1 to 9999 in UTC."""


def instant(text: str) -> int:
    """Nanoseconds since 1970 in UTC. Digits beyond a nanosecond are ignored, as the API does.

    Raises:
        BadTime: it is not a time.
    """
    return _remembered_instant(text) if len(text) <= _LONGEST_REMEMBERED else _instant(text)


def _instant(text: str) -> int:
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise BadTime(text[:64])
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError as error:
        raise BadTime(text[:64]) from error
    seconds = days * 86_400 + int(hour) * 3_600 + int(minute) * 60 + int(second)
    if sign is not None:
        offset = int(offset_hour) * 3_600 + int(offset_minute) * 60
        seconds += offset if sign == "-" else -offset
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise BadTime(text[:64])
    return seconds * NANOSECONDS + (int(fraction[:9].ljust(9, "0")) if fraction else 0)


_remembered_instant = lru_cache(maxsize=8192)(_instant)


def seconds(text: str) -> int:
    """Whole seconds since 1970, cut off as storage does.

    Raises:
        BadTime: it is not a time.
    """
    return instant(text) // NANOSECONDS


def text(whole_seconds: int) -> str:
    """``2026-01-31T23:59:59Z`` for seconds since 1970. Of such texts the earlier is the lesser string."""
    days, rest = divmod(whole_seconds, 86_400)
    day = date.fromordinal(days + _EPOCH_DAY)
    return f"{day.isoformat()}T{rest // 3_600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"


def stored(value: str) -> str:
    """The text as storage gives it back: UTC, whole seconds.

    Raises:
        BadTime: it is not a time.
    """
    return _remembered_stored(value) if len(value) <= _LONGEST_REMEMBERED else text(seconds(value))


@lru_cache(maxsize=8192)
def _remembered_stored(value: str) -> str:
    return text(seconds(value))


def micro(value: str) -> str | None:
    """The text of a time that is kept to the microsecond: ``2026-01-31T23:59:59.000001Z``; None for Go's zero time.

    Raises:
        BadTime: it is not a time.
    """
    whole, rest = divmod(instant(value), NANOSECONDS)
    found = text(whole)
    return None if found == ZERO and not rest else f"{found[:-1]}.{rest // 1000:06}Z"


def of(moment: datetime) -> str:
    """The text of an aware datetime; a fraction of a second is cut off (M2)."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
