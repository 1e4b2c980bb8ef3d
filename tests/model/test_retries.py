"""How a source says that it is tried on another worker (D31)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.model.retries import MOST_TRIED, Retries, RetryState, Tried, parse_retries

AT = "2026-03-01T12:00:00Z"
EAST = Tried("east", AT)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(Retries().draining("u-1"), id="draining"),
        pytest.param(Retries(tried=(EAST,)).draining("u-1"), id="draining again"),
        pytest.param(Retries().draining("u-1").proved(AT), id="proved"),
        pytest.param(Retries().draining("u-1").proved(""), id="proved without a start"),
        pytest.param(Retries().draining("u-1").proved(AT).left("east", AT), id="gone"),
        pytest.param(Retries().draining("u").given_up("pod x; y: given up: z", keeps_start=False), id="given up"),
        pytest.param(Retries(tried=(EAST,)).draining("u").given_up("it ran", keeps_start=False), id="later"),
        pytest.param(Retries(RetryState.OVER), id="nothing"),
    ],
)
def test_what_is_written_is_read_again(record: Retries) -> None:
    assert record.state is not None
    assert parse_retries(record.state.value, record.message) == record


def test_three_workers_are_kept() -> None:
    record = Retries()
    for number in range(5):
        record = record.draining("u").proved(AT).left(f"w-{number}", AT)
    assert [one.worker for one in record.tried] == ["w-2", "w-3", "w-4"]
    assert len(record.tried) == MOST_TRIED


def test_what_is_given_up_keeps_no_start_of_a_mirror_that_may_run() -> None:
    """Where its mirror is gone nothing of it ran, for good."""
    proved = Retries().draining("u").proved(AT)
    assert proved.given_up("why", keeps_start=False).start == ""
    assert proved.given_up("why", keeps_start=True).start == AT


@pytest.mark.parametrize(
    "message",
    [
        "",
        "mirror",
        "mirror u x",
        f"not started at {AT}",
        "mirror u; tried east",
        "mirror u; tried east at noon",
        "mirror u\n",
        "mirror ü",
        "mirror " + "u" * 65,
        "mirror u; tried " + ", ".join([f"east at {AT}"] * 1000),
        None,
        7,
    ],
)
@pytest.mark.parametrize("status", ["Unknown", "True"])
def test_what_is_not_ours_leads_to_nothing(status: str, message: Any) -> None:
    """Nothing is under way by it, so that nothing is deleted."""
    record = parse_retries(status, message)
    assert not record.is_under_way
    assert (record.uid, record.start) == ("", "")


@given(st.sampled_from(["Unknown", "True", "False", "x", "", None]), st.text(max_size=200))
def test_any_text_is_read(status: Any, message: str) -> None:
    """It never raises, and what is read means the same when it is written again."""
    record = parse_retries(status, message)
    if record.state is not None:
        assert parse_retries(record.state.value, record.message).is_under_way == record.is_under_way
