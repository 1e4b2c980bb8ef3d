"""How often one key may make requests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from mirror.runtime.keyrate import KeyRate


@dataclass
class HandClock:
    """A clock that is moved by hand."""

    at: float = 100.0

    def monotonic(self) -> float:
        return self.at

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    """Each key has its own."""
    clock = HandClock()
    rate: KeyRate[str] = KeyRate(clock, per_second=2, burst=4)
    assert [rate.wait_seconds("a", 1) for _ in range(5)] == [0, 0, 0, 0, 0.5]
    assert rate.wait_seconds("b", 1) == 0
    clock.at += 0.5
    assert rate.wait_seconds("a", 1) == 0
    assert rate.wait_seconds("a", 1) > 0


def test_more_at_once_than_a_burst_wait_for_a_full_bucket_only() -> None:
    """Nothing waits for ever."""
    clock = HandClock()
    rate: KeyRate[str] = KeyRate(clock, per_second=2, burst=4)
    assert rate.wait_seconds("a", 9) == 0
    assert rate.wait_seconds("a", 9) > 0
    clock.at += 5
    assert rate.wait_seconds("a", 9) == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.sampled_from([0.0, 0.1, 1.0, 7.0]))))
def test_no_key_makes_more_requests_than_the_rate_allows(asked: list[tuple[str, int, float]]) -> None:
    """Whatever is asked: at most the burst and the rate; after the wait that is returned, it may."""
    clock = HandClock()
    rate: KeyRate[str] = KeyRate(clock, per_second=2, burst=4)
    sent: dict[str, list[float]] = {}
    for key, requests, pause in asked:
        wait = rate.wait_seconds(key, requests)
        if wait:
            clock.at += wait
            assert rate.wait_seconds(key, requests) == 0
        sent.setdefault(key, []).extend([clock.at] * requests)
        clock.at += pause
    for times in sent.values():
        for first, since in enumerate(times):
            for count, until in enumerate(times[first:], 1):
                assert count <= 4 + 2 * (until - since) + 1e-6


def test_keys_that_have_nothing_to_wait_for_are_forgotten() -> None:
    """A hundred thousand Jobs that went by cost nothing."""
    clock = HandClock()
    rate: KeyRate[int] = KeyRate(clock)
    for key in range(20_000):
        assert rate.wait_seconds(key, 1) == 0
        clock.at += 0.01
    assert len(rate) <= 2048
