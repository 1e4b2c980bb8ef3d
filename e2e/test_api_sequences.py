"""Random sequences of requests: a real API server and the embedded one say the same to each, and tell the same events.

``python -m e2e.api_sequences --seed N --count N --shrink`` looks further. What it finds becomes a contract case.
"""

from __future__ import annotations

import asyncio

import pytest

from e2e.api_sequences.run import pair
from e2e.api_sequences.shrink import Shrinking

SEED = 5
COUNT = 400
_SHOWN = 3

pytestmark = pytest.mark.usefixtures("binaries")


async def test_a_real_server_and_the_embedded_one_say_the_same() -> None:
    """Codes, reasons, causes, objects with their managers, warnings, and the events of watches."""
    async with pair() as both:
        report = await both.run(seed=SEED, count=COUNT)
        print(report)
        shown = await asyncio.gather(*(Shrinking(both, one).run() for one in report.differences[:_SHOWN]))
    if report.differences:
        pytest.fail("\n\n".join([f"{len(report.differences)} sequences differ", *map(str, shown)]), pytrace=False)
    # Sequences in which everything is refused would prove little.
    assert report.accepted > report.requests / 2
