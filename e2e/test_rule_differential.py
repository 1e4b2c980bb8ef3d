"""Rules of definitions in CEL: a real API server and ours accept the same rules, and refuse the same objects."""

from __future__ import annotations

import pytest

from e2e.rule_differential.__main__ import run

pytestmark = pytest.mark.usefixtures("binaries")


async def test_random_rules_are_judged_alike() -> None:
    """In the same words; ``python -m e2e.rule_differential --seed N`` asks for others."""
    report = await run(seed=1, rounds=3)
    assert report.differences == []
    assert min(report.asked[what] for what in ("refused rules", "accepted rules", "refused values")) > 5
