"""Ours and kube-controller-manager's Job controller live the same scenarios, and leave the same traces.

All scenarios are played once, at the same time, on two control planes (``job_scenarios``); each test compares one. To
look at one: ``python -m e2e.job_scenarios NAME --traces DIRECTORY``.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import pytest_asyncio

from e2e.job_scenarios import groups
from e2e.job_scenarios.explained import EXPLAINED
from e2e.job_scenarios.playing import find_differences
from e2e.job_scenarios.report import Difference
from e2e.job_scenarios.scenario import SCENARIOS

Differences = Mapping[str, Difference]

assert groups.__all__  # they fill the list of scenarios


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def differences(binaries: None) -> Differences:
    """Every scenario was played under upstream's controller and under ours."""
    return await find_differences(SCENARIOS.values(), "upstream", "ours")


@pytest.mark.timeout(1800)  # the first one waits until all have been played
@pytest.mark.parametrize("name", SCENARIOS)
async def test_ours_does_what_upstream_does(differences: Differences, name: str) -> None:
    """Same statuses, pods, finalizers, owners, events and writes, but for what is explained."""
    difference = differences.get(name)
    if difference is not None and not difference.is_explained_by(EXPLAINED.get(name)):
        pytest.fail(f"{SCENARIOS[name].cites}\n{difference.text}", pytrace=False)


def test_there_are_scenarios_enough() -> None:
    """Every group has some, and what is explained exists."""
    assert len(SCENARIOS) >= 60
    assert {one.group for one in SCENARIOS.values()} == set(groups.__all__)
    assert set(EXPLAINED) <= set(SCENARIOS)
