"""Cron schedules: what is read, what is refused in which words, and when they come."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.embedded import schedules


def times(text: str, after: str, count: int) -> list[str]:
    """The next times, without seconds and zone."""
    found, moment = [], datetime.fromisoformat(after).replace(tzinfo=UTC)
    for _ in range(count):
        following = schedules.parse(text).next(moment)
        if following is None:
            return [*found, "never"]
        moment = following
        found.append(f"{moment:%Y-%m-%dT%H:%M}" + (f":{moment:%S}" if moment.second else ""))
    return found


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("* * * * *", "2026-03-01T12:00:30", ["2026-03-01T12:01", "2026-03-01T12:02", "2026-03-01T12:03"]),
        ("*/20 3 * * *", "2026-03-01T12:00", ["2026-03-02T03:00", "2026-03-02T03:20", "2026-03-02T03:40"]),
        ("0 0 29 2 *", "2026-03-01T12:00", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
        ("0 0 13 * fri", "2026-03-01T12:00", ["2026-03-06T00:00", "2026-03-13T00:00", "2026-03-20T00:00"]),
        ("0 0 13 * *", "2026-03-01T12:00", ["2026-03-13T00:00", "2026-04-13T00:00", "2026-05-13T00:00"]),
        ("0 12 ? dec MON-wed", "2026-03-01T12:00", ["2026-12-01T12:00", "2026-12-02T12:00", "2026-12-07T12:00"]),
        ("0 0 31 2 *", "2026-03-01T12:00", ["never"]),
        ("@hourly", "2026-03-01T12:00", ["2026-03-01T13:00", "2026-03-01T14:00", "2026-03-01T15:00"]),
        ("@yearly", "2026-03-01T12:00", ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01T00:00"]),
        ("@weekly", "2026-03-01T12:00", ["2026-03-08T00:00", "2026-03-15T00:00", "2026-03-22T00:00"]),
        ("@every 90s", "2026-03-01T12:00", ["2026-03-01T12:01:30", "2026-03-01T12:03", "2026-03-01T12:04:30"]),
        ("@every 100ms", "2026-03-01T12:00", ["2026-03-01T12:00:01", "2026-03-01T12:00:02", "2026-03-01T12:00:03"]),
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-03-01T12:00", ["2026-03-02T00:00", "2026-03-03T00:00", "2026-03-04T00:00"]),
        # The night in which an hour is missing, and the one in which it comes twice.
        (
            "TZ=Europe/Berlin 30 2 * * *",
            "2026-03-27T12:00",
            ["2026-03-28T01:30", "2026-03-30T00:30", "2026-03-31T00:30"],
        ),
        (
            "TZ=Europe/Berlin 30 2 * * *",
            "2026-10-23T12:00",
            ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-25T01:30"],
        ),
        # Midnight itself is missing there.
        (
            "TZ=America/Sao_Paulo 0 0 * * *",
            "2018-11-02T12:00",
            ["2018-11-03T03:00", "2018-11-05T02:00", "2018-11-06T02:00"],
        ),
    ],
)
def test_the_next_times(text: str, after: str, expected: list[str]) -> None:
    """As robfig/cron reckons them."""
    assert times(text, after, len(expected)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty spec string"),
        ("* *", "expected exactly 5 fields, found 2: [* *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("@never", "unrecognized descriptor: @never"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("@every 5", 'failed to parse duration @every 5: time: missing unit in duration "5"'),
        ("TZ=No/Where * * * * *", "provided bad location No/Where: unknown time zone No/Where"),
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
    ],
)
def test_what_is_no_schedule_is_refused_in_upstreams_words(text: str, message: str) -> None:
    """They are shown to users, in causes and in events."""
    with pytest.raises(schedules.BadSchedule) as refused:
        schedules.parse(text)
    assert str(refused.value) == message


def test_zones() -> None:
    """Names only: nothing outside the folder of zones is ever opened."""
    assert schedules.zone("") is UTC
    for name in ("../etc/passwd", "/etc/passwd", "a\\b"):
        with pytest.raises(schedules.BadZone, match="invalid location name"):
            schedules.zone(name)
    with pytest.raises(schedules.BadZone, match="unknown time zone Mars/Base"):
        schedules.zone("Mars/Base")


FIELD = st.text(alphabet="0123456789*/-,?", min_size=1, max_size=6)


@given(st.one_of(st.text(max_size=40), st.lists(FIELD, min_size=5, max_size=5).map(" ".join)))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    """And a schedule's next time is later than now, or there is none."""
    try:
        schedule = schedules.parse(text)
    except schedules.BadSchedule:
        return
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    following = schedule.next(now)
    assert following is None or following > now
    assert schedule.next(datetime.max.replace(tzinfo=UTC)) is None
