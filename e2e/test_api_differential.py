"""What our rules say of creates, updates and status writes of Jobs is what a real API server says.

Thousands of requests with one seed; ``python -m e2e.api_differential --seed N`` asks for others. The corpus must also
meet every rule of the reference's §2 and §3 that a request can meet, or its silence would prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from e2e.api_differential.cases import Kind
from e2e.api_differential.run import Comparison, Report
from e2e.api_differential.server import comparison
from mirror.batch.feature_gates import FeatureGates

SEED = 4
COUNT = 1500
FEWER = 300

pytestmark = pytest.mark.usefixtures("binaries")


async def test_a_real_server_and_ours_give_the_same_verdicts() -> None:
    """C, P, SP, U, V, X, D, E: accepted or refused alike, in the same words, with the same object stored."""
    async with comparison() as both:
        report = await _agreed(both, COUNT)

    assert not report.rules_not_met
    assert min(report.asked[f"{kind} accepted"] for kind in Kind) > COUNT / 5


@pytest.mark.parametrize(
    ("feature_gates", "gates"),
    [
        pytest.param(
            {"MutableSchedulingDirectivesForSuspendedJobs": False},
            FeatureGates(mutable_scheduling_directives_for_suspended_jobs=False),
            id="directives change only before the first start",
        ),
        pytest.param(
            {"MutablePodResourcesForSuspendedJobs": False},
            FeatureGates(mutable_pod_resources_for_suspended_jobs=False),
            id="resources do not change",
        ),
    ],
)
async def test_they_agree_with_a_gate_off(feature_gates: Mapping[str, bool], gates: FeatureGates) -> None:
    """U9."""
    async with comparison(feature_gates, gates=gates) as both:
        await _agreed(both, FEWER)


async def _agreed(both: Comparison, count: int) -> Report:
    """The report of a run in which nothing differed."""
    report = await both.run(seed=SEED, count=count)
    print(report)
    shown = [str(await both.shrink(one)) for one in report.differences[:3]]
    if report.differences:
        pytest.fail("\n\n".join((f"{len(report.differences)} differences", *shown)), pytrace=False)
    return report
