"""Whether a Job ends, and why: each rule, and which goes before which (Y13, B1–B3, L3, Z1–Z3, F3)."""

from __future__ import annotations

from typing import Any

import pytest
from syncs import (
    FAIL_42,
    FAIL_DISRUPTED,
    FIRST_INDEX,
    IGNORE_1,
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

from mirror.jobcontroller.decide.values import Container, Pod

BACKOFF = [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
DEADLINE = [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]
POLICY = [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")]
MAX_INDEXES = [("FailureTarget", "MaxFailedIndexesExceeded"), ("Failed", "MaxFailedIndexesExceeded")]
FAILED_INDEXES = [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]
REACHED = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
MET = [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]

STORED_SUCCESS = condition("SuccessCriteriaMet", reason="SuccessPolicy", message="Matched rules at index 0")
STORED_FAILURE = condition("FailureTarget", reason="Why", message="By hand")


def restarting(phase: str, times_restarted: int) -> Pod:
    return pod(phase, containers=(Container("main", restarts=times_restarted),))


@pytest.mark.parametrize(
    ("of", "found", "more", "verdict"),
    [
        pytest.param(spec(), pods(1, "Succeeded"), {}, REACHED, id="completed"),
        pytest.param(spec(completions=0), [], {}, REACHED, id="no completions"),
        pytest.param(spec(completions=2), pods(1, "Succeeded"), {}, [], id="one is missing"),
        pytest.param(
            spec(completions=None), [*pods(1), *pods(1, "Succeeded")], {}, [], id="work queue: one still runs"
        ),
        pytest.param(
            spec(completions=None), [*pods(1, "Failed"), *pods(2, "Succeeded")], {}, REACHED, id="work queue: all ended"
        ),
        pytest.param(
            spec(), [*pods(1, "Succeeded")], {"expectations_met": False}, REACHED, id="Q3: completions wait for nothing"
        ),
        pytest.param(spec(backoffLimit=0), pods(1, "Failed"), {}, BACKOFF, id="B1: limit 0"),
        pytest.param(spec(backoffLimit=1), pods(1, "Failed"), {}, [], id="B1: not more than the limit"),
        pytest.param(
            spec(backoffLimit=1), pods(1, "Failed"), {"status": running(failed=1)}, BACKOFF, id="B1: the second"
        ),
        pytest.param(
            spec(backoffLimit=1, parallelism=3, completions=3),
            [*pods(1, "Failed"), *pods(2, is_ready=True)],
            {"status": running(failed=1)},
            [("FailureTarget", "BackoffLimitExceeded")],
            id="T12: the others have to end first",
        ),
        pytest.param(
            spec(backoffLimit=0), pods(1, "Failed"), {"expectations_met": False}, [], id="Y15: not before all is seen"
        ),
        pytest.param(
            spec(restartPolicy="OnFailure", backoffLimit=1), [restarting("Running", 0)], {}, [], id="B2: none"
        ),
        pytest.param(
            spec(restartPolicy="OnFailure", backoffLimit=1),
            [restarting("Running", 1)],
            {},
            BACKOFF[:1],
            id="B2: as many restarts as the limit",
        ),
        pytest.param(
            spec(restartPolicy="OnFailure", backoffLimit=0),
            [restarting("Pending", 1)],
            {},
            BACKOFF[:1],
            id="B2: limit 0",
        ),
        pytest.param(
            spec(restartPolicy="OnFailure", backoffLimit=0), [restarting("Running", 0)], {}, [], id="B2: limit 0, none"
        ),
        pytest.param(
            spec(restartPolicy="OnFailure", backoffLimit=5, parallelism=2, completions=2),
            [restarting("Running", 2), restarting("Running", 3)],
            {},
            BACKOFF[:1],
            id="B2: of all pods together",
        ),
        pytest.param(
            spec(restartPolicy="Never", backoffLimit=1), [restarting("Running", 9)], {}, [], id="B2: only then"
        ),
        pytest.param(spec(activeDeadlineSeconds=60), [], {}, DEADLINE, id="B3: at the deadline, before any pod"),
        pytest.param(spec(activeDeadlineSeconds=61), pods(1), {}, [], id="B3: not yet"),
        pytest.param(spec(activeDeadlineSeconds=60), pods(1), {}, DEADLINE[:1], id="B3: a pod runs"),
        pytest.param(spec(activeDeadlineSeconds=0), [], {"status": {}}, DEADLINE, id="B3: at once"),
        pytest.param(
            spec(activeDeadlineSeconds=60, suspend=True), [], {}, [("Suspended", "JobSuspended")], id="W5: suspended"
        ),
        pytest.param(
            spec(activeDeadlineSeconds=60, backoffLimit=0),
            pods(1, "Failed"),
            {},
            BACKOFF,
            id="Y13: backoff beats deadline",
        ),
        pytest.param(
            spec(activeDeadlineSeconds=60), pods(1, "Succeeded"), {}, DEADLINE, id="Y13: the deadline beats completions"
        ),
        pytest.param(spec(**policy(FAIL_42)), pods(1, "Failed", code=42), {}, POLICY, id="F3: FailJob"),
        pytest.param(spec(**policy(FAIL_42)), pods(1, "Running", code=42), {}, [], id="F3: a running pod"),
        pytest.param(
            indexed(2, **policy(FAIL_42)), [pod("Failed", code=42, index=1)], {}, POLICY, id="F3: FailJob, indexed"
        ),
        pytest.param(
            spec(**policy(FAIL_42, backoffLimit=0)),
            pods(1, "Failed", code=42),
            {},
            POLICY,
            id="Y13: FailJob beats backoff",
        ),
        pytest.param(
            spec(**policy(FAIL_42)),
            [],
            {"settled_failed": pods(1, "Failed", code=42, has_finalizer=False)},
            POLICY,
            id="Y13: also by a pod that was counted before",
        ),
        pytest.param(
            spec(**policy(FAIL_42)),
            [],
            {"settled_failed": pods(1, "Failed", code=42, has_finalizer=False, going=True)},
            POLICY,
            id="Y13: and that is being deleted",
        ),
        pytest.param(
            spec(completions=2),
            pods(1, "Succeeded", uid="a"),
            {"status": running(uncountedTerminatedPods={"succeeded": ["a"]})},
            [],
            id="Y10: a success that is written down is not counted again",
        ),
        pytest.param(
            spec(),
            pods(1, "Succeeded", uid="a"),
            {"status": running(uncountedTerminatedPods={"failed": ["a"]})},
            [],
            id="Q16: nor is what failed first",
        ),
        pytest.param(
            spec(backoffLimit=1),
            pods(1, "Failed", uid="a"),
            {"status": running(uncountedTerminatedPods={"failed": ["a"]})},
            [],
            id="Y10: nor is a failure",
        ),
        pytest.param(
            spec(**policy(FAIL_42)),
            pods(1, "Failed", code=42),
            {"expectations_met": False},
            [],
            id="Y15: FailJob, not before all is seen",
        ),
        pytest.param(
            spec(**policy(FAIL_DISRUPTED)),
            pods(1, going=True, has={"DisruptionTarget": "True"}),
            {},
            [],
            id="F5: a terminating pod has not failed yet",
        ),
        pytest.param(
            spec(**policy(IGNORE_1, backoffLimit=0)), pods(1, "Failed"), {}, [], id="F3: ignored failures do not count"
        ),
        pytest.param(
            indexed(4, backoffLimitPerIndex=0, maxFailedIndexes=1),
            [pod("Failed", index=0), pod("Failed", index=1)],
            {},
            MAX_INDEXES,
            id="L3: too many failed indexes",
        ),
        pytest.param(
            indexed(4, backoffLimitPerIndex=0, maxFailedIndexes=1),
            [pod("Failed", index=0)],
            {},
            [],
            id="L3: one may fail",
        ),
        pytest.param(
            indexed(2, backoffLimitPerIndex=0),
            [pod("Failed", index=0), pod("Succeeded", index=1)],
            {},
            FAILED_INDEXES,
            id="L3: every index has ended, one failed",
        ),
        pytest.param(
            indexed(2, backoffLimitPerIndex=0), [pod("Failed", index=0), pod(index=1)], {}, [], id="L3: one still runs"
        ),
        pytest.param(
            indexed(1, backoffLimitPerIndex=0, **policy(FAIL_42)),
            [pod("Failed", index=0, code=42)],
            {},
            POLICY,
            id="Y13: FailJob beats FailedIndexes",
        ),
        pytest.param(
            indexed(2, backoffLimitPerIndex=9, backoffLimit=0),
            [pod("Failed", index=0)],
            {},
            BACKOFF,
            id="L4: the global limit still counts",
        ),
        pytest.param(indexed(2, successPolicy=FIRST_INDEX), [pod("Succeeded", index=0)], {}, MET, id="Z2: met"),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX),
            [pod("Succeeded", index=0), pod(index=1)],
            {},
            MET[:1],
            id="Z2: met, one has to end first",
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX), [pod("Succeeded", index=0), pod("Failed", index=1)], {}, MET, id="Z2"
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX), [pod(index=0), pod("Succeeded", index=1)], {}, [], id="Z1: not met"
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX),
            [pod("Succeeded", index=0), pod("Succeeded", index=1)],
            {},
            MET,
            id="Z2: all succeeded, too",
        ),
        pytest.param(
            indexed(2, backoffLimit=0, successPolicy=FIRST_INDEX),
            [pod("Succeeded", index=0), pod("Failed", index=1)],
            {},
            BACKOFF,
            id="Z3: backoffLimit beats it",
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX, **policy(FAIL_42)),
            [pod("Succeeded", index=0), pod("Failed", index=1, code=42)],
            {},
            POLICY,
            id="Z3: FailJob beats it",
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX, **policy(FAIL_42)),
            [pod("Succeeded", index=0), pod("Failed", index=1, code=7)],
            {},
            MET,
            id="Z3: another exit code does not",
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX, backoffLimitPerIndex=0),
            [pod("Succeeded", index=0), pod("Failed", index=1)],
            {},
            FAILED_INDEXES,
            id="Z3: failed indexes beat it",
        ),
        pytest.param(
            indexed(3, successPolicy=FIRST_INDEX, backoffLimitPerIndex=0),
            [pod("Succeeded", index=0), pod("Failed", index=1)],
            {},
            MET,
            id="Z3: but only when every index has ended",
        ),
        pytest.param(
            indexed(2, backoffLimit=0, **policy(FAIL_42)),
            [pod("Failed", index=1, code=42)],
            {"status": running(conditions=[STORED_SUCCESS], completedIndexes="0", succeeded=1)},
            MET,
            id="Z3: a stored success stays one",
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX),
            [pod("Succeeded", index=0)],
            {"status": running(conditions=[STORED_FAILURE])},
            [("FailureTarget", "Why"), ("Failed", "Why")],
            id="Y13, Q15: a stored failure stays one, with its reason",
        ),
        pytest.param(
            spec(),
            pods(1),
            {"status": running(1, conditions=[STORED_FAILURE])},
            [("FailureTarget", "Why")],
            id="Q15: by hand; active pods go",
        ),
    ],
)
def test_verdict(of: Json, found: list[Pod], more: dict[str, Any], verdict: list[tuple[str, str]]) -> None:
    whole = sync(snapshot(of, found, **{"status": running(), **more}))
    assert whole.true_conditions == verdict
    assert whole.settled.is_finished is (len(verdict) == 2)
