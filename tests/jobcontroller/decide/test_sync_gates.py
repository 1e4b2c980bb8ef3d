"""What happens with a gate off: what the versions did that had it off (G1, G3)."""

from __future__ import annotations

import pytest
from syncs import (
    FAIL_42,
    FIRST_INDEX,
    NOW,
    Json,
    condition,
    indexed,
    pod,
    pods,
    policy,
    running,
    snapshot,
    spec,
    sync,
)

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide.assess import assess
from mirror.jobcontroller.decide.track import settle, track
from mirror.jobcontroller.decide.values import Done, Pod

WITHOUT_BOTH = FeatureGates(job_pod_replacement_policy=False, job_managed_by=False)


@pytest.mark.parametrize(
    ("gates", "terminating", "is_finished"),
    [
        pytest.param(FeatureGates(), 1, False, id="all on"),
        pytest.param(FeatureGates(job_pod_replacement_policy=False), None, False, id="not shown, but waited for"),
        pytest.param(FeatureGates(job_managed_by=False), 1, False, id="shown and waited for"),
        pytest.param(WITHOUT_BOTH, None, True, id="neither"),
    ],
)
def test_terminating_pods_without_gates(gates: FeatureGates, terminating: int | None, is_finished: bool) -> None:
    """TestDelayTerminalPhaseCondition, beside a server that asks for the interim condition always (V18)."""
    whole = sync(snapshot(spec(backoffLimit=0, completions=2), [*pods(1), *pods(1, "Failed")], gates=gates))
    assert (whole.status.get("terminating"), whole.settled.is_finished) == (terminating, is_finished)
    assert whole.true_conditions[0] == ("FailureTarget", "BackoffLimitExceeded")


@pytest.mark.parametrize(
    ("of", "found", "expected"),
    [
        pytest.param(spec(backoffLimit=0), pods(1, "Failed"), ["Failed"], id="too many failures"),
        pytest.param(spec(), pods(1, "Succeeded"), ["Complete"], id="completions"),
        pytest.param(
            spec(**policy(FAIL_42)), [pod("Failed", code=42)], ["FailureTarget", "Failed"], id="F6: a failure policy"
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX),
            [pod("Succeeded", index=0)],
            ["SuccessCriteriaMet", "Complete"],
            id="Z3: a success policy",
        ),
    ],
)
def test_without_both_gates_only_policies_leave_an_interim_condition(
    of: Json, found: list[Pod], expected: list[str]
) -> None:
    """TestDelayTerminalPhaseCondition; a server of these versions stores the end at once."""
    seen = snapshot(of, found, gates=WITHOUT_BOTH, server_wants_interim=False)
    assessment = assess(seen)
    settled = settle(tracking := track(seen, assessment, Done()), {one.uid for one in tracking.removals}, NOW)
    assert [one["type"] for one in settled.status["conditions"]] == expected
    assert settled.is_finished


def test_a_stored_number_of_terminating_pods_goes_with_its_gate() -> None:
    whole = sync(snapshot(spec(), pods(1), status=running(1), gates=FeatureGates(job_pod_replacement_policy=False)))
    assert [status.get("terminating") for status in whole.writes] == [None]


@pytest.mark.parametrize(
    ("of", "found", "gates", "expected"),
    [
        pytest.param(
            spec(podReplacementPolicy="Failed"),
            pods(1, going=True, is_ready=False),
            FeatureGates(job_pod_replacement_policy=False),
            (1, 1),
            id="R1: Failed is not looked at; the pod is failed, and replaced",
        ),
        pytest.param(
            spec(**policy()),
            pods(1, going=True),
            FeatureGates(job_pod_replacement_policy=False),
            (0, 0),
            id="F5: a failure policy waits all the same",
        ),
        pytest.param(
            indexed(2, backoffLimitPerIndex=0, backoffLimit=6),
            [pod("Failed", index=0, finished=60), pod(index=1)],
            FeatureGates(job_backoff_limit_per_index=False),
            (1, 1),
            id="backoffLimitPerIndex is not looked at",
        ),
    ],
)
def test_fields_whose_gate_is_off(of: Json, found: list[Pod], gates: FeatureGates, expected: tuple[int, int]) -> None:
    """Births and failures."""
    whole = sync(snapshot(of, found, status=running(len(found)), gates=gates))
    assert (len(whole.assessment.births), whole.status.get("failed", 0)) == expected


@pytest.mark.parametrize(
    ("gates", "verdicts", "again"),
    [
        pytest.param(FeatureGates(), [], 30, id="it starts anew, whoever left the old start"),
        pytest.param(
            FeatureGates(mutable_scheduling_directives_for_suspended_jobs=False),
            ["Suspended", "FailureTarget", "Failed"],
            None,
            id="as the versions did that kept the start: the time of the suspension counts",
        ),
    ],
)
def test_the_deadline_of_a_resumed_job_that_kept_its_start(
    gates: FeatureGates, verdicts: list[str], again: float | None
) -> None:
    """W3, W5."""
    suspended = condition("Suspended", reason="JobSuspended", message="Job suspended")
    whole = sync(snapshot(spec(activeDeadlineSeconds=30), status=running(conditions=[suspended]), gates=gates))
    assert ([type_name for type_name, _ in whole.true_conditions], whole.assessment.again_after_seconds) == (
        verdicts,
        again,
    )


def test_success_policies_without_their_gate() -> None:
    """Not looked at; and completions give no reason, as in the versions that had no success policies."""
    of = indexed(2, successPolicy={"rules": [{"succeededIndexes": "0"}]})
    off = FeatureGates(job_success_policy=False)
    assert sync(snapshot(of, [pod("Succeeded", index=0), pod(index=1)], gates=off)).true_conditions == []
    whole = sync(snapshot(of, [pod("Succeeded", index=index) for index in (0, 1)], gates=off))
    assert whole.true_conditions == [("SuccessCriteriaMet", ""), ("Complete", "")]
    assert whole.assessment.facts.deadline_from == NOW
