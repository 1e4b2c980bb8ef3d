"""The states of a connection."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mirror.workers.connection import SILENT_SECONDS, STEADY_TIMES, Connection, Silence, State

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_the_loss_counts_from_its_first_moment() -> None:
    """D13: failed reconnects and other causes do not prolong the grace."""
    connection = Connection().lost(at(0), "network").lost(at(60), "TLS").lost(at(120), "401")
    assert (connection.state, connection.because, connection.attempts) == (State.LOST, "401", 3)
    assert (connection.lost_since, connection.lost_for_seconds(at(130))) == (at(0), 130)


def test_the_same_loss_in_other_words_is_no_news_until_it_stays() -> None:
    """D21: what flaps is told once; a server that comes back with another trouble has that after some attempts."""
    connection = Connection().lost(at(0), "refused")
    for second in range(1, 40, 2):
        connection = connection.lost(at(second), "timed out", is_news=False)
        connection = connection.lost(at(second + 1), "refused", is_news=False)
    assert (connection.because, connection.attempts) == ("refused", 41)
    for second in range(STEADY_TIMES - 1):
        connection = connection.lost(at(50 + second), "certificate has expired", is_news=False)
    assert connection.because == "refused"
    assert connection.lost(at(60), "certificate has expired", is_news=False).because == "certificate has expired"


def test_a_loss_that_was_recorded_goes_on_over_a_restart() -> None:
    """D13: the record gives the time back, although the new process has only begun to connect."""
    connection = Connection(lost_since=at(-500)).lost(at(0), "network")
    assert connection.lost_for_seconds(at(100)) == 600


def test_connecting_ends_a_loss() -> None:
    """The next one counts anew."""
    connection = Connection().lost(at(0), "network").connected(at(10)).lost(at(20), "network")
    assert connection.lost_since == at(20)


def test_staying_connected_is_no_change() -> None:
    """A heartbeat keeps the time of the transition."""
    connection = Connection().connected(at(0))
    assert connection.connected(at(100)) is connection
    assert connection.lost_for_seconds(at(100)) == 0


def test_a_new_connection_is_neither_connected_nor_lost() -> None:
    """Nothing has been tried yet: waiting is not to be blamed on it."""
    assert Connection().state is State.CONNECTING
    assert Connection().lost(at(0), "x").state is State.LOST
    assert Connection().connected(at(0)).state is State.CONNECTED


@pytest.mark.parametrize(
    ("lost_for", "delay"),
    [(0, 0.9), (299, 0.9), (310, 1.4), (600, 15.0), (86_400, 15.0)],
    ids=["at once", "five minutes of every second", "then slower", "and slower", "up to 15 seconds"],
)
def test_probes_go_on_about_once_a_second_then_slower(lost_for: float, delay: float) -> None:
    """D13."""
    assert Connection().lost(at(0), "x").probe_delay_seconds(at(lost_for)) == pytest.approx(delay)


def test_silence_counts_from_when_it_could_tell() -> None:
    """D13: it was away for an hour, and has as long from its return; then it is lost until it tells something."""
    silence = Silence()
    assert not silence.is_too_long(3600, 3600, was_connected=False)
    assert not silence.is_too_long(3600 + SILENT_SECONDS - 1, 3600 + SILENT_SECONDS - 1, was_connected=True)
    assert silence.is_too_long(3600 + SILENT_SECONDS, 3600 + SILENT_SECONDS, was_connected=True)
    assert silence.is_too_long(9000, 9000, was_connected=False)
    assert not silence.is_too_long(1, 9001, was_connected=False)
    assert not silence.is_too_long(30, 9031, was_connected=True)


def test_silence_is_no_matter_while_a_watch_may_be_silent() -> None:
    """A watch that hangs has 150 seconds, and is asked for again before its worker is lost."""
    silence = Silence()
    assert not any(silence.is_too_long(left, 1000 + left, was_connected=True) for left in range(0, 209, 10))
