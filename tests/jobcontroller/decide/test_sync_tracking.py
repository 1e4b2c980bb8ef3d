"""Whose finalizer goes, who is written down and counted, each once (T1–T7, T11, A12, Q16)."""

from __future__ import annotations

from typing import Any

import pytest
from syncs import IGNORE_1, Json, ago, indexed, pod, pods, policy, running, snapshot, spec, sync

from mirror.jobcontroller.decide.values import BackoffRecord, Constants, Pod

RUNS_ON = {"completions": 9, "parallelism": 0}


def named(uid: str, phase: str = "Running", **more: Any) -> Pod:
    return pod(phase, uid=uid, finished=60, **more)


def listed(succeeded: str = "", failed: str = "", /, **fields: Any) -> Json:
    """A stored status with these uncounted pods."""
    uncounted = {"succeeded": list(succeeded), "failed": list(failed)}
    return running(uncountedTerminatedPods={name: uids for name, uids in uncounted.items() if uids}, **fields)


@pytest.mark.parametrize(
    ("of", "found", "status", "removed", "first", "counted"),
    [
        pytest.param(spec(**RUNS_ON), [], running(), "", "/", "0/0", id="nothing happens"),
        pytest.param(
            spec(**RUNS_ON),
            [named("a", "Succeeded"), named("b", "Failed"), named("c", "Succeeded", has_finalizer=False)],
            running(),
            "ab",
            "a/b",
            "1/1",
            id="T4, T5: finished pods are written down, then counted",
        ),
        pytest.param(
            spec(**RUNS_ON),
            [named("a", "Succeeded"), named("d", "Failed"), named("e", "Succeeded")],
            listed("ab", "cd", succeeded=2, failed=3),
            "ade",
            "ae/d",
            "5/5",
            id="T2: past and new ones; those without finalizer are counted at once",
        ),
        pytest.param(
            spec(**RUNS_ON),
            [named("a", "Succeeded", has_finalizer=False), named("b", "Failed", has_finalizer=False)],
            listed("a", "b"),
            "",
            "/",
            "1/1",
            id="Q1: those whose finalizer is about to go are not taken up again",
        ),
        pytest.param(
            spec(**RUNS_ON),
            [named("a", "Succeeded")],
            listed("", "a"),
            "a",
            "/a",
            "0/1",
            id="Q16: failed first, succeeded later: failed",
        ),
        pytest.param(
            spec(**RUNS_ON),
            [named("a", "Failed")],
            listed("a"),
            "a",
            "a/",
            "1/0",
            id="V12: and the other way round: in one list only",
        ),
        pytest.param(
            spec(**RUNS_ON),
            [named("a", going=True), named("b", "Failed")],
            running(),
            "ab",
            "/ab",
            "0/2",
            id="R2: a terminating pod is counted before it has ended",
        ),
        pytest.param(
            spec(**RUNS_ON, podReplacementPolicy="Failed"),
            [named("a", going=True), named("b", "Failed", going=True)],
            running(),
            "b",
            "/b",
            "0/1",
            id="R3: or only when it has ended",
        ),
        pytest.param(
            spec(**RUNS_ON, **policy(IGNORE_1)),
            [named("a", "Failed"), named("b", "Failed", code=2)],
            running(),
            "ab",
            "/b",
            "0/1",
            id="F3: an ignored one goes uncounted",
        ),
        pytest.param(
            indexed(9, parallelism=0),
            [named("b", "Failed"), named("c", "Failed", index=9), named("a", "Failed", index=1)],
            running(),
            "bac",
            "/a",
            "0/1",
            id="Q16: without an index of the Job a failure does not count",
        ),
        pytest.param(
            indexed(9, parallelism=0),
            [named("c", "Succeeded", index=3), named("b", "Succeeded", index=3), named("a", "Succeeded")],
            running(),
            "acb",
            "/",
            "1/0",
            id="Q16, T1: an index succeeds once; in the order of indexes",
        ),
    ],
)
def test_counting(of: Json, found: list[Pod], status: Json, removed: str, first: str, counted: str) -> None:
    """Which finalizers go, who is listed before that, and the counters after it."""
    whole = sync(snapshot(of, found, status=status))
    uncounted = whole.tracking.status["uncountedTerminatedPods"]
    assert "".join(one.uid for one in whole.tracking.removals) == removed
    assert "/".join("".join(uncounted.get(name, ())) for name in ("succeeded", "failed")) == first
    assert f"{whole.status.get('succeeded', 0)}/{whole.status.get('failed', 0)}" == counted
    assert whole.status["uncountedTerminatedPods"] == {}


@pytest.mark.parametrize(
    ("of", "found", "status", "writes"),
    [
        pytest.param(spec(**RUNS_ON), pods(1, "Succeeded"), running(1), 2, id="a success: before and after"),
        pytest.param(spec(**RUNS_ON), pods(1, "Failed"), running(1), 2, id="a failure: before and after"),
        pytest.param(
            indexed(9, parallelism=0), [pod("Succeeded", index=0)], running(1), 1, id="T14: an indexed success: once"
        ),
        pytest.param(
            spec(**RUNS_ON, **policy(IGNORE_1)), pods(1, "Failed"), running(), 0, id="an ignored failure: not at all"
        ),
    ],
)
def test_writes_of_a_finished_pod(of: Json, found: list[Pod], status: Json, writes: int) -> None:
    """T9, T13."""
    assert len(sync(snapshot(of, found, status=status)).writes) == writes


@pytest.mark.parametrize(
    ("of", "found"),
    [
        pytest.param(spec(completions=9, parallelism=0), pods(8, "Succeeded"), id="succeeded"),
        pytest.param(spec(completions=9, parallelism=0, backoffLimit=99), pods(8, "Failed"), id="failed"),
        pytest.param(
            indexed(9, parallelism=0), [pod("Succeeded", index=index) for index in range(8)], id="indexes completed"
        ),
    ],
)
def test_only_so_many_at_a_time(of: Json, found: list[Pod]) -> None:
    """T6: the rest after the batch period."""
    whole = sync(snapshot(of, found, status=running(), constants=Constants(max_uncounted_pods=5)))
    assert (len(whole.tracking.removals), whole.tracking.again_after_seconds) == (5, 1.0)


def test_a_job_is_not_finished_before_all_its_pods_are_written_down() -> None:
    """T6."""
    found = snapshot(spec(completions=6), pods(6, "Succeeded"), constants=Constants(max_uncounted_pods=5))
    whole = sync(found)
    assert (whole.status["succeeded"], whole.settled.is_finished) == (5, False)
    assert whole.true_conditions == [("SuccessCriteriaMet", "CompletionsReached")]


def test_who_is_written_down_already_goes_whatever_the_cap() -> None:
    """Beyond upstream, which after a crash would let them go one by one."""
    found = [named(uid, "Failed") for uid in "xabcde"]
    status = listed("", "abcde")
    whole = sync(snapshot(spec(**RUNS_ON), found, status=status, constants=Constants(max_uncounted_pods=5)))
    assert "".join(one.uid for one in whole.tracking.removals) == "abcde"


def test_of_a_job_that_is_deleted_every_finalizer_goes() -> None:
    """A12: those that ended count, the others do not."""
    found = [named("a"), named("b", "Failed"), named("c", "Succeeded"), named("d", "Pending")]
    whole = sync(snapshot(spec(completions=9, parallelism=9), found, status=running(2), is_deleting=True))
    assert {one.uid for one in whole.tracking.removals} == set("abcd")
    assert (whole.status["failed"], whole.status["succeeded"], whole.assessment.deletes) == (1, 1, ())


def test_matches_of_the_failure_policy_are_reported_once() -> None:
    """T5: by action, of those that were not written down before."""
    rules = policy(IGNORE_1, {"action": "Count", "onExitCodes": {"operator": "In", "values": [2]}})
    found = [
        named("a", "Failed"),
        named("b", "Failed", code=2),
        named("c", "Failed", code=3),
        named("d", "Failed", code=2),
    ]
    whole = sync(snapshot(spec(**RUNS_ON, **rules), found, status=listed("", "d")))
    assert whole.tracking.policy_actions == ("Ignore", "Count")


def test_failures_are_remembered_for_the_delay() -> None:
    """B5, Q18: ignored ones too."""
    whole = sync(snapshot(spec(**policy(IGNORE_1)), pods(2, "Failed", finished=3), status=running(2)))
    assert whole.tracking.backoff == BackoffRecord(2, ago(3))
    assert whole.assessment.births == ()
