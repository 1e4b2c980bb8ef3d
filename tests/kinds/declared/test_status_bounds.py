"""What is left out of a status that is too large (D29), and that a hostile one costs no more than its size (D12)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mirror.kinds.declared.status_bounds import MOST_VALUES, bounded, managed_bytes
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


def test_values_count_whatever_they_are_called() -> None:
    status = {"items": list(range(MOST_VALUES + 1)), "phase": "Running"}
    assert bounded(status, 2**20, None) == ({"phase": "Running"}, 1)
