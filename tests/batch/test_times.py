"""Times: what is one, when two are equal, and how they are printed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.batch import times


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("2026-01-02T05:04:05+02:00", id="another zone"),
        pytest.param("2026-01-01T22:34:05-04:30", id="a zone with minutes"),
        pytest.param("2026-01-02T03:04:05.000Z", id="a fraction of zeros"),
        pytest.param("2026-01-02T03:04:05,0Z", id="a comma"),
    ],
)
def test_the_same_instant_is_equal(other: str) -> None:
    """V2: instants are compared, not texts."""
    assert times.instant("2026-01-02T03:04:05Z") == times.instant(other)
    assert times.stored(other) == "2026-01-02T03:04:05Z"


def test_a_fraction_is_a_change_that_storage_forgets() -> None:
    """V2: half a second differs, and is cut off when stored."""
    assert times.instant("2026-01-02T03:04:05.500Z") - times.instant("2026-01-02T03:04:05Z") == times.NANOSECONDS // 2
    assert times.stored("2026-01-02T03:04:05.999999999999Z") == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-02",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05",
        "2026-02-30T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T23:59:60Z",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05.Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "99999-01-01T00:00:00Z",
        "２０２６-01-02T03:04:05Z",
        "2026-01-02T03:04:05Z\n",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    """Anything but RFC 3339 within the years 1 to 9999 in UTC is no time."""
    with pytest.raises(times.BadTime):
        times.instant(text)


@given(st.datetimes(), st.integers(-23 * 60, 23 * 60))
def test_our_own_times_are_whole_seconds_in_utc(moment: datetime, offset_minutes: int) -> None:
    """M2: what we write is what storage keeps, whatever the clock's zone; earlier is lesser."""
    moment = moment.replace(
        year=max(moment.year, 2) % 9998 + 1, day=1, tzinfo=timezone(timedelta(minutes=offset_minutes))
    )
    text = times.of(moment)

    assert text == times.stored(text) == times.text(times.seconds(text))
    assert moment.astimezone(UTC).replace(microsecond=0) == datetime.fromisoformat(text)
    assert text < times.text(times.seconds(text) + 1)
