"""How a Job ends: what is stored when, what is told, who still counts (Y15, T8–T13, N1, Q13, Q14, Z2)."""

from __future__ import annotations

import pytest
from syncs import (
    AT,
    FAIL_42,
    FIRST_INDEX,
    NOW,
    STARTED,
    Json,
    ago,
    condition,
    indexed,
    later,
    pod,
    pods,
    policy,
    running,
    snapshot,
    spec,
    sync,
)

from mirror.batch import times
from mirror.jobcontroller.decide.assess import assess
from mirror.jobcontroller.decide.track import settle, track
from mirror.jobcontroller.decide.values import Done, Event, Pod

BACKOFF = [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
MAX_INDEXES = [("FailureTarget", "MaxFailedIndexesExceeded"), ("Failed", "MaxFailedIndexesExceeded")]
MET = [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]

STORED_FAILURE = condition("FailureTarget", reason="Why", message="By hand")


@pytest.mark.parametrize(
    ("of", "found", "event"),
    [
        pytest.param(spec(), pods(1, "Succeeded"), Event("Normal", "Completed", "Job completed"), id="completed"),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX),
            [pod("Succeeded", index=0)],
            Event("Normal", "Completed", "Job completed"),
            id="by the success policy",
        ),
        pytest.param(
            spec(backoffLimit=0),
            pods(1, "Failed"),
            Event("Warning", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
            id="backoff limit",
        ),
        pytest.param(
            spec(activeDeadlineSeconds=1),
            [],
            Event("Warning", "DeadlineExceeded", "Job was active longer than specified deadline"),
            id="deadline",
        ),
        pytest.param(
            indexed(1, backoffLimitPerIndex=0),
            [pod("Failed", index=0)],
            Event("Warning", "FailedIndexes", "Job has failed indexes"),
            id="failed indexes",
        ),
        pytest.param(
            indexed(1, backoffLimitPerIndex=0, maxFailedIndexes=0),
            [pod("Failed", index=0)],
            Event(
                "Warning",
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            ),
            id="too many failed indexes",
        ),
        pytest.param(
            spec(**policy(FAIL_42)),
            pods(1, "Failed", code=42, name="train"),
            Event(
                "Warning",
                "PodFailurePolicy",
                "Container main for pod n/train failed with exit code 42 matching FailJob rule at index 0",
            ),
            id="failure policy",
        ),
    ],
)
def test_the_end_is_told_after_it_is_stored(of: Json, found: list[Pod], event: Event) -> None:
    """4.14, 4.15: with the words of the final condition."""
    whole = sync(snapshot(of, found, status=running()))
    final = whole.status["conditions"][-1]
    assert (whole.tracking.events, whole.settled.events) == ((), (event,))
    assert (whole.settled.verdict, whole.settled.reason) == (final["type"], final["reason"])
    if event.type == "Warning":
        assert (final["reason"], final["message"]) == (event.reason, event.message)


def test_more_successes_than_asked_for_are_told_first() -> None:
    """4.15."""
    whole = sync(snapshot(spec(), pods(2, "Succeeded"), status=running()))
    assert (whole.events, whole.status["succeeded"]) == (["TooManySucceededPods", "Completed"], 2)


def test_indexes_that_were_scaled_away_are_not_too_many() -> None:
    """V35 keeps their number in the counter."""
    found = snapshot(indexed(2, parallelism=1), status=running(completedIndexes="0-4", succeeded=5))
    whole = sync(found)
    assert (whole.events, whole.status["succeeded"]) == (["Completed"], 5)


def test_a_completion_time_that_is_stored_stays() -> None:
    """V36: whoever wrote it before the Job was complete."""
    whole = sync(snapshot(spec(), pods(1, "Succeeded"), status=running(completionTime=STARTED)))
    assert whole.status["completionTime"] == STARTED


def test_the_interim_condition_is_stored_before_finalizers_go() -> None:
    """T8, T9, F6: then the pods are counted, and only then the Job is finished."""
    whole = sync(snapshot(spec(backoffLimit=0), pods(1, "Failed"), status=running(1)))
    interim, final = whole.writes
    assert [one["type"] for one in interim["conditions"]] == ["FailureTarget"]
    assert (len(interim["uncountedTerminatedPods"]["failed"]), interim.get("failed")) == (1, None)
    assert [one["type"] for one in final["conditions"]] == ["FailureTarget", "Failed"]
    assert (final["uncountedTerminatedPods"], final["failed"]) == ({}, 1)


def test_active_pods_of_a_failing_job_are_deleted_and_counted() -> None:
    """Y15, T5: their finalizers stay until they are written down, and ready ones are taken off (Q11)."""
    found = [*pods(2, is_ready=True), *pods(1, "Failed")]
    whole = sync(snapshot(spec(backoffLimit=0, completions=3, parallelism=3), found, status=running(3, 2)))
    assert (whole.assessment.strips_first, len(whole.assessment.deletes)) == (False, 2)
    first, last = whole.writes
    assert (first.get("active"), first["ready"], first["terminating"]) == (None, 0, 2)
    assert (last["failed"], last["terminating"], whole.settled.is_finished) == (3, 2, False)


def test_a_failing_job_ends_once_its_pods_have() -> None:
    """T12: the last write of a Job that waited."""
    stored = condition("FailureTarget", reason="BackoffLimitExceeded", message="m")
    whole = sync(snapshot(spec(), [], status=running(terminating=1, failed=3, conditions=[stored])))
    assert [status["terminating"] for status in whole.writes] == [0, 0]
    assert whole.settled.is_finished


@pytest.mark.parametrize(
    ("of", "found", "again"),
    [
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX, activeDeadlineSeconds=90), [pod("Succeeded", index=0)], 30, id="(8)"
        ),
        pytest.param(
            indexed(1, backoffLimitPerIndex=0, activeDeadlineSeconds=90), [pod("Failed", index=0)], 30, id="(7)"
        ),
        pytest.param(
            indexed(2, backoffLimitPerIndex=0, maxFailedIndexes=0, activeDeadlineSeconds=90),
            [pod("Failed", index=0)],
            30,
            id="(6)",
        ),
        pytest.param(spec(backoffLimit=0, activeDeadlineSeconds=90), pods(1, "Failed"), None, id="(4)"),
    ],
)
def test_a_verdict_that_comes_after_the_deadlines_waits_for_it(of: Json, found: list[Pod], again: float | None) -> None:
    """Y14: it may be dropped (Y15), and then the deadline must not be missed."""
    whole = sync(snapshot(of, found, status=running(1), expectations_met=False))
    assert whole.assessment.ending is not None
    assert whole.assessment.again_after_seconds == again


def test_a_start_in_the_year_0_is_long_ago() -> None:
    """Go can say it, and an API server stores it."""
    found = snapshot(spec(activeDeadlineSeconds=60), status=running() | {"startTime": "0000-01-01T00:00:00Z"})
    ending = assess(found).ending
    assert ending is not None
    assert ending.reason == "DeadlineExceeded"


def test_incomplete_deletes_keep_the_verdict_out_of_the_status() -> None:
    """Y15: pods that were not reached would keep their finalizers for ever."""
    found = [*pods(2), *pods(1, "Failed")]
    whole = sync(
        snapshot(spec(backoffLimit=0, completions=3, parallelism=3), found, status=running(3)),
        done=Done(deleted=1, complete=False),
    )
    assert whole.true_conditions == []
    assert (whole.status["active"], whole.status["terminating"], whole.status["failed"]) == (1, 1, 1)


def test_a_pod_that_fails_the_job_waits_for_the_verdict_to_be_stored() -> None:
    """F6, beyond upstream: gone, it would take the verdict with it."""
    witness, other = pod("Failed", code=42), pod("Failed", code=7)
    found = snapshot(spec(**policy(FAIL_42)), [witness, other], status=running(2), expectations_met=False)
    assert [one.uid for one in sync(found).tracking.removals] == [other.uid]


def test_pods_whose_finalizer_stays_keep_the_job_from_ending() -> None:
    """T11: an Indexed success is in no list, so nothing else would show it."""
    found = snapshot(indexed(1), [pod("Succeeded", index=0)], status=running(1))
    whole = sync(found, removed=[])
    assert ([status["succeeded"] for status in whole.writes], whole.settled.is_finished) == ([1], False)


def test_partial_removals_are_written_down() -> None:
    """T11."""
    good, bad = pods(2, "Succeeded")
    whole = sync(snapshot(spec(completions=2), [good, bad], status=running(2)), removed=[good])
    assert whole.settled.status["uncountedTerminatedPods"] == {"succeeded": [bad.uid]}
    assert (whole.settled.status["succeeded"], whole.settled.flush, whole.settled.is_finished) == (1, True, False)


def test_times_of_the_end() -> None:
    """T12, N1, N2: completed when it was decided, final when it is written."""
    found = snapshot(spec(), pods(1, "Succeeded"), status=running())
    assessment = assess(found)
    tracking = track(found, assessment, Done())
    final = settle(tracking, {one.uid for one in tracking.removals}, later(found, 3).now).status
    stamps = [(one["lastProbeTime"], one["lastTransitionTime"]) for one in final["conditions"]]
    after = times.of(later(found, 3).now)
    assert (final["completionTime"], stamps) == (AT, [(AT, AT), (after, after)])


def test_no_job_completes_before_it_started() -> None:
    """V17: when the clock of whoever wrote the start was ahead of ours."""
    ahead = times.of(ago(-5))
    whole = sync(snapshot(spec(), pods(1, "Succeeded"), status=running() | {"startTime": ahead}))
    assert whole.status["completionTime"] == ahead


@pytest.mark.parametrize(
    ("of", "found", "start"),
    [
        pytest.param(spec(suspend=True), pods(1, "Succeeded"), AT, id="completed"),
        pytest.param(spec(suspend=True, backoffLimit=0), pods(1, "Failed"), AT, id="failed"),
        pytest.param(spec(suspend=True, completions=0), [], None, id="W6: of no completions, without a start"),
        pytest.param(spec(suspend=True, completions=0, backoffLimit=0), pods(1, "Failed"), None, id="V21: failed"),
    ],
)
def test_finishing_while_suspended(of: Json, found: list[Pod], start: str | None) -> None:
    """Q13: the suspension cleared the start, without which the API refuses any end."""
    whole = sync(snapshot(of, found, status={"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}))
    assert (whole.settled.is_finished, whole.status.get("startTime")) == (True, start)


def test_a_stored_verdict_gives_the_start_that_is_missing() -> None:
    """Q13: as upstream leaves such a Job."""
    status = running(conditions=[STORED_FAILURE])
    del status["startTime"]
    whole = sync(snapshot(spec(suspend=True), status=status))
    assert (whole.settled.is_finished, whole.status["startTime"]) == (True, STARTED)


@pytest.mark.parametrize("stale", ["FailureTarget", "SuccessCriteriaMet"])
def test_an_interim_condition_that_is_false_is_as_none(stale: str) -> None:
    """Q14: it neither ends the Job nor stays beside the true one."""
    status = running(conditions=[condition(stale, "False")])
    assert sync(snapshot(spec(), pods(1), status=status)).assessment.ending is None
    ended = pods(1, "Failed" if stale == "FailureTarget" else "Succeeded")
    whole = sync(snapshot(spec(backoffLimit=0), ended, status=status))
    assert [(one["type"], one["status"]) for one in whole.status["conditions"]][:1] == [(stale, "True")]
    assert len(whole.status["conditions"]) == 2


def test_a_true_interim_condition_counts_behind_a_false_one() -> None:
    """Q14."""
    status = running(conditions=[condition("FailureTarget", "False"), STORED_FAILURE])
    assert sync(snapshot(spec(), status=status)).settled.is_finished


def test_success_by_policy_does_not_fail_the_pods_it_deletes() -> None:
    """Z2: lingering pods lose the finalizer uncounted, also when a first attempt had deleted them before it crashed."""
    of = indexed(3, backoffLimit=0, successPolicy=FIRST_INDEX)
    winner = pod("Succeeded", index=0)
    for lingering in (pod(index=1), pod(index=1, going=True, is_ready=False), pod("Failed", index=1, deleted=NOW)):
        whole = sync(snapshot(of, [winner, lingering], status=running(), enacted=None))
        assert (whole.true_conditions[0], whole.status.get("failed")) == (MET[0], None)
        assert {one.uid for one in whole.tracking.removals} == {winner.uid, lingering.uid}


def test_a_verdict_is_not_changed_by_its_own_deletions() -> None:
    """Beyond upstream: interrupted between deleting and storing, the deleted pods would fail their indexes, too."""
    of = indexed(4, backoffLimitPerIndex=0, maxFailedIndexes=0, backoffLimit=1)
    failed = pod("Failed", index=0)
    calm = sync(snapshot(of, [failed, pod(index=1), pod(index=2)], status=running()))
    going = [pod(index=index, going=True, is_ready=False) for index in (1, 2)]
    again = sync(snapshot(of, [failed, *going], status=running(), enacted=None))
    assert calm.status["failedIndexes"] == again.status["failedIndexes"] == "0"
    assert calm.true_conditions == again.true_conditions == MAX_INDEXES[:1]


def test_completions_that_were_reached_spare_nobody() -> None:
    """No active pod was deleted for them, so whoever is being deleted has failed (R2), also after a walk cut short."""
    stored = condition("SuccessCriteriaMet", reason="CompletionsReached", message="m")
    status = running(terminating=1, succeeded=1, conditions=[stored])
    whole = sync(snapshot(spec(), pods(1, going=True, is_ready=False), status=status))
    assert (whole.status["failed"], whole.settled.is_finished) == (1, False)


def test_pods_that_users_delete_fail_the_job_all_the_same() -> None:
    """R2."""
    found = pods(1, going=True, is_ready=False)
    assert sync(snapshot(spec(backoffLimit=0), found, status=running(1))).true_conditions == BACKOFF[:1]
