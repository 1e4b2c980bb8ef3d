"""Durations as people write them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.model.durations import BadDuration, format_duration, human_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("15m", 900.0, id="minutes"),
        pytest.param("1h30m", 5400.0, id="hours and minutes"),
        pytest.param("1h0m5s", 3605.0, id="an empty part in between"),
        pytest.param("0s", 0.0, id="nothing, with a unit"),
        pytest.param("0", 0.0, id="nothing needs no unit"),
        pytest.param("250ms", 0.25, id="milliseconds"),
        pytest.param("2.5s", 2.5, id="a fraction"),
        pytest.param(".5h", 1800.0, id="a fraction without its zero"),
        pytest.param("1.s", 1.0, id="a point without digits behind it"),
        pytest.param("3us", 3e-6, id="microseconds in ASCII"),
        pytest.param("3\u00b5s", 3e-6, id="microseconds with the micro sign"),
        pytest.param("3\u03bcs", 3e-6, id="microseconds with the Greek letter"),
        pytest.param("7ns", 7e-9, id="nanoseconds"),
        pytest.param("5s1h", 3605.0, id="parts in any order"),
        pytest.param("1s1s", 2.0, id="the same unit twice"),
    ],
)
def test_what_go_accepts_is_accepted(text: str, seconds: float) -> None:
    """The grammar is that of Go's time.ParseDuration without signs."""
    assert seconds == parse_duration(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "expected a duration", id="empty"),
        pytest.param("15", "needs a unit, such as 15s", id="no unit"),
        pytest.param("1.5", "needs a unit", id="a fraction without unit"),
        pytest.param("-5s", "no sign", id="negative"),
        pytest.param("+5s", "no sign", id="a plus"),
        pytest.param("5d", "units: h, m", id="days, which Go does not know"),
        pytest.param("5S", "units: h, m", id="a unit in upper case"),
        pytest.param("1h 30m", "expected a duration", id="a space"),
        pytest.param("h", "expected a duration", id="a unit alone"),
        pytest.param(".s", "expected a duration", id="a point alone"),
        pytest.param("1e3s", "expected a duration", id="an exponent"),
        pytest.param("\u0661s", "expected a duration", id="digits of another script"),
        pytest.param("2562048h", "292 years", id="more than 63 bits of nanoseconds"),
        pytest.param("9" * 5000 + "s", "expected a duration", id="absurdly long"),
    ],
)
def test_what_is_not_a_duration_is_refused_with_a_reason(text: str, told: str) -> None:
    """The message says in one line what was expected."""
    with pytest.raises(BadDuration, match=told) as caught:
        parse_duration(text)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (5400.0, "1h30m"),
        (0.25, "250ms"),
        (1.5, "1.5s"),
        (3605.0, "1h5s"),
        (90.0, "1m30s"),
        (1.5e-6, "1.5us"),
    ],
)
def test_durations_are_written_as_short_as_possible(seconds: float, text: str) -> None:
    """Formatting leaves out parts that are zero and trailing zeros."""
    assert text == format_duration(seconds)


AGES = {
    -5: "0s",
    0.4: "0s",
    119: "119s",
    120: "2m",
    303: "5m3s",
    599: "9m59s",
    10_799: "179m",
    3 * 3600: "3h",
    3 * 3600 + 300: "3h5m",
    30 * 3600: "30h",
    2 * 86_400: "2d",
    3 * 86_400 + 7200: "3d2h",
    100 * 86_400: "100d",
    3 * 365 * 86_400 + 86_400: "3y1d",
    9 * 365 * 86_400 + 86_400: "9y",
}


@pytest.mark.parametrize(("seconds", "text"), AGES.items())
def test_ages_read_as_kubectl_prints_them(seconds: float, text: str) -> None:
    """Exact while young, coarse later."""
    assert human_duration(seconds) == text


@given(st.integers(min_value=0, max_value=10**15))
def test_a_written_duration_means_the_same_when_read(nanoseconds: int) -> None:
    """Formatting and parsing are inverse, to the nanosecond, up to eleven days."""
    seconds = nanoseconds / 10**9

    assert seconds == pytest.approx(parse_duration(format_duration(seconds)), abs=1e-9, rel=0)


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_is_refused(text: str) -> None:
    """No text raises anything but BadDuration or gives a negative time."""
    with suppress(BadDuration):
        assert parse_duration(text) >= 0
