"""What mirrors of other kinds say by chance, against a real API server with their definitions (``kind_statuses``)."""

from __future__ import annotations

import pytest

from e2e.controlplane.plane import ControlPlane
from e2e.kind_statuses.run import play


@pytest.mark.parametrize("name", ["TrainJob", "AppWrapper"])
async def test_no_status_that_we_write_is_refused(management: ControlPlane, name: str) -> None:
    """Valid and hostile ones in random sequences (D7); the command sees thousands of every kind."""
    async with management.client(user_agent="e2e-statuses") as client:
        outcome = await play(client, name, 60)
    assert not outcome.wrong, outcome.wrong[:3]
    assert outcome.seen["followed"]
