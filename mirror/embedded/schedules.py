"""Cron schedules as CronJobs have them: reading one, and finding its next time. Pure.

Grammar, times and messages are those of the library that Kubernetes uses (robfig/cron v3, ``ParseStandard``), daylight
saving included. Used by the rules of CronJobs and by their controller.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from mirror.batch.quoting import quoted
from mirror.embedded import durations

_STAR = 1 << 63
"""Set in a field that was written as ``*`` or ``?``: it does not restrict, so the other field of days decides alone."""
_YEARS = 5
"""A schedule that does not come within so many years never does."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = 2**63 - 1


_MOST_STEPS = 20_000
_Step: TypeAlias = tuple[int, bool]
"""A later moment, and whether a larger field has changed by it."""


class BadSchedule(ValueError):
    """It is no schedule; the text is what the library says."""


class BadZone(ValueError):
    """There is no such time zone; the text is Go's."""


class _Field(NamedTuple):
    least: int
    most: int
    names: tuple[str, ...] = ()
    """Names of values from ``least`` on."""

    @property
    def whole(self) -> int:
        return _bits(self.least, self.most, 1) | _STAR


_MINUTES = _Field(0, 59)
_HOURS = _Field(0, 23)
_DAYS = _Field(1, 31)
_MONTHS = _Field(1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
_WEEKDAYS = _Field(0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))


@dataclass(frozen=True, slots=True)
class Every:
    """``@every``: a fixed time apart, in whole seconds."""

    seconds: int

    def next(self, after: datetime) -> datetime | None:
        """The next time, with the fraction of a second cut off."""
        try:
            return after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=self.seconds)
        except OverflowError:
            return None


@dataclass(frozen=True, slots=True)
class Calendar:
    """Sets of minutes, hours, days, months and weekdays as bits, in a time zone."""

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """The first time after that one, in UTC; None if there is none within five years."""
        try:
            return self._next(int((after - _EPOCH) // timedelta(seconds=1)) + 1)
        except (OverflowError, ValueError):
            return None  # beyond the year 9999

    def _next(self, moment: int) -> datetime | None:
        """Field by field, as the library does it; where a field wraps around, all are looked at again.

        The library itself loops forever at certain changes of clocks; here it ends.
        """
        last_year = self._local(moment).year + _YEARS
        is_cut = False  # whether the smaller fields have been set to their beginnings
        advances = (self._to_month, self._to_day, self._to_hour, self._to_minute, self._to_second)
        field = 0
        for _ in range(_MOST_STEPS):
            if field == 0 and self._local(moment).year > last_year:
                return None
            if field == len(advances):
                return _EPOCH + timedelta(seconds=moment)
            step = advances[field](moment, is_cut)
            if step is None:
                field += 1
            else:
                moment, has_wrapped = step
                field, is_cut = (0 if has_wrapped else field), True
        return None

    def _to_month(self, moment: int, is_cut: bool) -> _Step | None:
        local = self._local(moment)
        if self.months >> local.month & 1:
            return None
        begin = local if is_cut else local.replace(day=1, hour=0, minute=0, second=0)
        year, month = divmod(begin.year * 12 + begin.month, 12)
        return self._moment(begin.replace(year=year, month=month + 1, day=1)), month == 0

    def _to_day(self, moment: int, is_cut: bool) -> _Step | None:
        local = self._local(moment)
        if self._is_day(local):
            return None
        begin = local if is_cut else local.replace(hour=0, minute=0, second=0)
        moment = self._moment(begin + timedelta(days=1))
        if hour := self._local(moment).hour:  # midnight does not exist on some days when clocks are changed
            moment += (24 - hour if hour > 12 else -hour) * 3600
        return moment, self._local(moment).day == 1

    def _to_hour(self, moment: int, is_cut: bool) -> _Step | None:
        local = self._local(moment)
        if self.hours >> local.hour & 1:
            return None
        begin = moment if is_cut else self._moment(local.replace(minute=0, second=0))
        return begin + 3600, self._local(begin + 3600).hour == 0

    def _to_minute(self, moment: int, is_cut: bool) -> _Step | None:
        if self.minutes >> self._local(moment).minute & 1:
            return None
        begin = moment if is_cut else moment - moment % 60
        return begin + 60, self._local(begin + 60).minute == 0

    def _to_second(self, moment: int, is_cut: bool) -> _Step | None:
        """There is no field for it: it is always 0."""
        second = self._local(moment).second
        return (moment + 60 - second, True) if second else None

    def _is_day(self, local: datetime) -> bool:
        """With both fields restricted, either is enough."""
        in_month = bool(self.days >> local.day & 1)
        in_week = bool(self.weekdays >> local.isoweekday() % 7 & 1)
        if (self.days | self.weekdays) & _STAR:
            return in_month and in_week
        return in_month or in_week

    def _local(self, moment: int) -> datetime:
        """The wall clock there, without a zone."""
        return (_EPOCH + timedelta(seconds=moment)).astimezone(self.zone).replace(tzinfo=None)

    def _offset(self, moment: int) -> int:
        there = (_EPOCH + timedelta(seconds=moment)).astimezone(self.zone)
        return round((there.utcoffset() or timedelta()).total_seconds())

    def _moment(self, local: datetime) -> int:
        """The instant of a wall clock's time, for times that come twice or never as Go's ``time.Date`` has it."""
        guess = round((local.replace(tzinfo=UTC) - _EPOCH).total_seconds())
        return guess - self._offset(guess - self._offset(guess))


Schedule: TypeAlias = Every | Calendar


def zone(name: str) -> tzinfo:
    """The time zone of a name, as Go's ``time.LoadLocation`` finds it; controllers' local time is UTC.

    Raises:
        BadZone: there is none.
    """
    if name in ("", "UTC", "Local"):
        return UTC
    if name.startswith(("/", "\\")) or "\\" in name or ".." in name:
        raise BadZone("time: invalid location name")
    return _zone(name)


@lru_cache(maxsize=128)
def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name.rstrip("/") if name.strip("/.") else name)
    except IsADirectoryError as error:
        raise BadZone("is a directory") from error
    except ValueError as error:
        raise BadZone("malformed time zone information") from error
    except (OSError, LookupError) as error:
        raise BadZone(f"unknown time zone {name}") from error


def parse(text: str) -> Schedule:
    """Read a schedule: five fields, or ``@hourly`` and its like; a time zone may stand before it (``TZ=Asia/Tokyo …``).

    Raises:
        BadSchedule: it is none.
    """
    if not text:
        raise BadSchedule("empty spec string")
    where: tzinfo = UTC
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, space, rest = text.partition("=")[2].partition(" ")
        if not space:
            raise BadSchedule("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        try:
            where = zone(name)
        except BadZone as error:
            raise BadSchedule(f"provided bad location {name}: {error}") from error
        text = rest.strip()
    if text.startswith("@"):
        return _described(text, where)
    parts = text.split()
    if len(parts) != 5:
        raise BadSchedule(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    minutes, hours, days, months, weekdays = map(_field, parts, (_MINUTES, _HOURS, _DAYS, _MONTHS, _WEEKDAYS))
    return Calendar(minutes, hours, days, months, weekdays, where)


def _described(text: str, where: tzinfo) -> Schedule:
    minute, hour, day, every_month, every_weekday = 1, 1, 1 << 1, _MONTHS.whole, _WEEKDAYS.whole
    match text:
        case "@yearly" | "@annually":
            return Calendar(minute, hour, day, 1 << 1, every_weekday, where)
        case "@monthly":
            return Calendar(minute, hour, day, every_month, every_weekday, where)
        case "@weekly":
            return Calendar(minute, hour, _DAYS.whole, every_month, 1, where)
        case "@daily" | "@midnight":
            return Calendar(minute, hour, _DAYS.whole, every_month, every_weekday, where)
        case "@hourly":
            return Calendar(minute, _HOURS.whole, _DAYS.whole, every_month, every_weekday, where)
    if not text.startswith("@every "):
        raise BadSchedule(f"unrecognized descriptor: {text}")
    span = text.removeprefix("@every ")
    try:
        nanoseconds = durations.parse(span)
    except ValueError as error:
        raise BadSchedule(f"failed to parse duration {text}: {error}") from error
    return Every(max(1, nanoseconds // 10**9))


def _field(text: str, field: _Field) -> int:
    found = 0
    for part in filter(None, text.split(",")):
        found |= _range(part, field)
    return found


def _range(text: str, field: _Field) -> int:
    span, *steps = text.split("/")
    ends = span.split("-")
    extra = 0
    if ends[0] in ("*", "?"):
        first, last, extra = field.least, field.most, _STAR
    else:
        first = last = _number(ends[0], field)
        if len(ends) == 2:
            last = _number(ends[1], field)
        elif len(ends) > 2:
            raise BadSchedule(f"too many hyphens: {text}")
    step = 1
    if len(steps) == 1:
        step = _whole_number(steps[0])
        if len(ends) == 1:
            last = field.most
        if step > 1:
            extra = 0
    elif steps:
        raise BadSchedule(f"too many slashes: {text}")
    if first < field.least:
        raise BadSchedule(f"beginning of range ({first}) below minimum ({field.least}): {text}")
    if last > field.most:
        raise BadSchedule(f"end of range ({last}) above maximum ({field.most}): {text}")
    if first > last:
        raise BadSchedule(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise BadSchedule(f"step of range should be a positive number: {text}")
    return _bits(first, last, step) | extra


def _number(text: str, field: _Field) -> int:
    name = text.lower()
    return field.least + field.names.index(name) if name in field.names else _whole_number(text)


def _whole_number(text: str) -> int:
    """Go's ``strconv.Atoi``, without negative ones."""
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        raise BadSchedule(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    if len(text) > 20 or not -(2**63) <= int(text) <= _MOST:
        raise BadSchedule(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: value out of range")
    if int(text) < 0:
        raise BadSchedule(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _bits(first: int, last: int, step: int) -> int:
    return sum(1 << value for value in range(first, last + 1, step))
