"""Our Job controller is killed at any moment, and nothing comes of it but a delay (issue 4: 200 kills by hand).

``python -m e2e.job_scenarios.kills --kills 200`` kills through every scenario; here are those that need no backoff.
"""

from __future__ import annotations

import pytest

from e2e.job_scenarios import groups
from e2e.job_scenarios.kills import campaign
from e2e.job_scenarios.scenario import SCENARIOS

KILLS = 25
QUICK_GROUPS = ("plain", "parallel", "indexed", "suspending", "success_policy", "deletion", "tracking")

assert groups.__all__  # they fill the list of scenarios


@pytest.mark.timeout(1200)
async def test_kills_change_no_state(binaries: None) -> None:
    """Every scenario goes through the states of the undisturbed run, and ends in the same one."""
    chosen = [one for one in SCENARIOS.values() if one.group in QUICK_GROUPS and one.is_for_kills]

    outcome = await campaign(chosen, kills=KILLS, seed=7)

    print(outcome.text)
    assert not outcome.problems, outcome.text
    assert outcome.kills == KILLS
