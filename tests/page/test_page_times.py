"""Times on the page; ``page.js`` prints the same, which the browser test compares."""

from datetime import UTC, datetime, timedelta

import pytest

from mirror.page.times import lasting, moment, relative, when

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(("seconds", "text"), [(-65, "65s ago"), (0.5, "now"), (7200, "in 120m")])
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
        '<time datetime="2026-11-21T11:57:00Z" title="2026-11-21 11:57:00 UTC" data-as="ago">3m ago</time>'
    )


def test_what_has_ended_no_longer_moves() -> None:
    """A finished Job's duration is no ``time`` that the browser would keep going."""
    assert lasting("2026-11-21T11:00:00Z", "2026-11-21T11:30:00Z", NOW).startswith("<span")
    assert 'data-as="for"' in lasting("2026-11-21T11:00:00Z", "", NOW)
