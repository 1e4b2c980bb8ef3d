"""Every reason that programs may meet is explained, and none that does not exist (D22)."""

from __future__ import annotations

import re
from pathlib import Path

from mirror.model.reasons import SHOWN, UNKNOWN, UNWRITABLE, Reason

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reasons.md"
ROW = re.compile(r"^\| (`.+?`) \|", re.MULTILINE)


def test_reasons_are_listed_once_each() -> None:
    """In the first column of the tables."""
    listed = [name for cell in ROW.findall(DOCUMENT.read_text()) for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(listed) == sorted(reason.value for reason in Reason)


def test_every_reason_is_shown_somewhere() -> None:
    """By a condition, or by annotation and event only; an unknown state is a condition's."""
    assert set(SHOWN).isdisjoint(UNWRITABLE)
    assert set(SHOWN) >= UNKNOWN
