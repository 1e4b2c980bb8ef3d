"""What is left out of a status that is too large (D29), and that a hostile one costs no more than its size (D12)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mirror.kinds.declared.status_bounds import BRIEF_CHARACTERS, MOST_VALUES, bounded, managed_bytes
from mirror.kube.amounts import amount

Json = Any
MANY = 45_000
"""A little less than an object may have to be read whole."""


def test_what_fits_stays_whole() -> None:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert bounded(status, 1_000, None) == (status, 0)
    assert bounded(status, 1_000, 10_000) == (status, 0)


@pytest.mark.parametrize("room", [None, 100_000])
def test_many_fields_are_gone_through_once(room: int | None) -> None:
    """It took eleven seconds of 17,000 fields when each one that was left out had all others looked at again."""
    kept, dropped = bounded({f"k{number}": 1 for number in range(MANY)}, 2**20, room)
    assert len(kept) + dropped == MANY
    assert 0 < amount(kept) <= MOST_VALUES
    assert room is None or len(msgspec.json.encode(kept)) + managed_bytes(kept) <= room


def test_the_largest_goes_first_and_conditions_last() -> None:
    status: dict[str, Json] = {"large": "x" * 900, "small": "x" * 90, "conditions": [{"type": "y" * 950}]}
    assert bounded(status, 1_100, None) == ({name: status[name] for name in ("small", "conditions")}, 1)
    assert bounded(status, 1_000, None) == ({"conditions": status["conditions"]}, 2)
    assert bounded(status, 100, None) == ({}, 3)


def test_what_tells_of_the_end_outlives_conditions() -> None:
    """An AppWrapper's phase does, whose conditions may have 64 messages of 4 KiB."""
    listed = [{"type": f"T{number}", "status": "True", "message": "m" * 2_000} for number in range(64)]
    status: dict[str, Json] = {"conditions": listed, "phase": "Succeeded", "other": 1}
    assert bounded(status, 1_000, None, telling={"phase"}) == ({"phase": "Succeeded"}, 2)
    assert bounded(status, 1_000, None, telling={"conditions"})[0] == {}


def test_messages_of_conditions_are_shortened_before_conditions_are_left_out() -> None:
    listed = [{"type": "Failed", "status": "True", "reason": "BackoffLimit", "message": "m" * 2_000}]
    kept, dropped = bounded({"conditions": listed, "restarts": 1}, 1_000, None, telling={"conditions"})
    assert kept == {"conditions": [{**listed[0], "message": "m" * BRIEF_CHARACTERS}], "restarts": 1}
    assert dropped == 0


def test_values_count_whatever_they_are_called() -> None:
    status = {"items": list(range(MOST_VALUES + 1)), "phase": "Running"}
    assert bounded(status, 2**20, None) == ({"phase": "Running"}, 1)
