"""Times as people read them; ``page.js`` says the same words, which the browser test compares."""

from datetime import UTC, datetime, timedelta

import pytest

from mirror.page.times import lasting, moment, relative, span, when

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.9, "0 s"), (59, "59 s"), (60, "1 min"), (80, "1 min 20 s"), (299, "4 min 59 s"), (300, "5 min"),
        (359, "5 min"), (3600, "1 h"), (3900, "1 h 5 min"), (36_000, "10 h"), (86_399, "23 h"), (90_000, "1 d 1 h"),
        (864_000, "10 d"), (-5, "0 s"),
    ],
)  # fmt: skip
def test_a_span_has_one_or_two_units(seconds: float, text: str) -> None:
    """The second unit only where it says something."""
    assert span(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(-65, "1 min 5 s ago"), (0.5, "now"), (7200, "in 2 h")])
def test_before_and_after_now(seconds: float, text: str) -> None:
    """A token's end is still to come."""
    assert relative(NOW + timedelta(seconds=seconds), NOW) == text


@pytest.mark.parametrize("text", ["", "yesterday", "<b>", "2026-99-99T00:00:00Z"])
def test_what_is_no_time_is_none(text: str) -> None:
    """A worker's nonsense is shown as nothing."""
    assert moment(text) is None
    assert when(text, NOW) == "–"
    assert lasting(text, "", NOW) == "–"


def test_a_time_tells_exactly_in_its_title() -> None:
    """Relative for people, exact for who needs it, and the machine's for the script."""
    assert when("2026-11-21T13:57:00+02:00", NOW) == (
        '<time datetime="2026-11-21T11:57:00Z" title="2026-11-21 11:57:00 UTC" data-as="ago">3 min ago</time>'
    )


def test_what_has_ended_no_longer_moves() -> None:
    """A finished Job's duration is no ``time`` that the browser would keep going."""
    assert lasting("2026-11-21T11:00:00Z", "2026-11-21T11:30:00Z", NOW).startswith("<span")
    assert 'data-as="for"' in lasting("2026-11-21T11:00:00Z", "", NOW)
