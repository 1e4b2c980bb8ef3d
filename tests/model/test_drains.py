"""How many of a source's moves left drained workers, as it says (D15)."""

from __future__ import annotations

import pytest

from mirror.model.drains import drains_text, parse_drains


@pytest.mark.parametrize("count", [0, 1, 12, 999_999])
def test_what_is_written_is_read(count: int) -> None:
    assert parse_drains(drains_text(count)) == count


@pytest.mark.parametrize(
    "message", ["", "2", "two of its moves left a drained worker", f"{drains_text(2)}s", "-1" + drains_text(1)]
)
def test_what_is_none_of_ours_says_nothing(message: str) -> None:
    assert parse_drains(message) == 0
