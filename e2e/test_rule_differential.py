"""Rules of definitions in CEL: a real API server and ours accept the same rules, and refuse the same objects."""

from __future__ import annotations

import pytest

from e2e.rule_differential.__main__ import run
from e2e.rule_differential.answers import Report

pytestmark = pytest.mark.usefixtures("binaries")


async def test_random_rules_are_judged_alike() -> None:
    """In the same words; ``python -m e2e.rule_differential --seed N`` asks for others."""
    report = Report()
    await run(1, range(3), report)
    assert report.differences == []
    looked_at = (
        "refused rules",
        "accepted rules",
        "refused values",
        "refused changes of values",
        "eased changes of values",
    )
    assert min(report.asked[what] for what in looked_at) > 5
