"""A verdict that has deleted pods and is not stored yet: it stays, and nobody else's deletions are taken for its own.

Upstream decides anew from what the deletions left (Y13); a pod that anybody else has deleted fails with us as there.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from syncs import (
    FAIL_DISRUPTED,
    FIRST_INDEX,
    NOW,
    Json,
    ago,
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

from mirror.jobcontroller.decide.assess import assess
from mirror.jobcontroller.decide.values import Container, Done, Enacted, Ending, Pod, Snapshot

DISRUPTED = {"DisruptionTarget": "True"}
PER_INDEX = {"backoffLimit": 2**31 - 1}
TERMINATING = {"activeDeadlineSeconds": 10, "podReplacementPolicy": "TerminatingOrFailed"}
CRASHED: dict[str, Any] = {"enacted": None}
"""The first look of a process: whoever ran before may have deleted pods for a verdict."""


def evicted(index: int | None = None, **more: Any) -> Pod:
    """Failed, and deleted five seconds ago: drained, preempted, or deleted after it had failed."""
    return pod("Failed", index=index, deleted=ago(5), finished=3, **more)


def outcome(found: Snapshot) -> tuple[str, int | None]:
    whole = sync(found)
    assert whole.assessment.ending is not None
    return whole.assessment.ending.reason, whole.status.get("failed")


@pytest.mark.parametrize(
    ("of", "found", "expected"),
    [
        pytest.param(
            indexed(2, backoffLimitPerIndex=1, **PER_INDEX, successPolicy=FIRST_INDEX),
            [pod("Succeeded", index=0), evicted(1)],
            ("SuccessPolicy", 1),
            id="A: a held-back pod counts when the success policy is met",
        ),
        pytest.param(
            indexed(2, successPolicy=FIRST_INDEX, **policy(FAIL_DISRUPTED)),
            [pod("Succeeded", index=0), evicted(1, has=DISRUPTED)],
            ("PodFailurePolicy", 1),
            id="B: a drained pod fails the Job before the success policy is asked (Z3)",
        ),
        pytest.param(
            spec(activeDeadlineSeconds=10, **policy(FAIL_DISRUPTED)),
            [evicted(has=DISRUPTED)],
            ("PodFailurePolicy", 1),
            id="C: FailJob beats the deadline",
        ),
        pytest.param(
            spec(backoffLimit=0, **TERMINATING),
            [pod(deleted=ago(5))],
            ("BackoffLimitExceeded", 1),
            id="D: a pod that a person deletes has failed",
        ),
    ],
)
def test_pods_that_others_delete_have_failed(of: Json, found: list[Pod], expected: tuple[str, int]) -> None:
    """Y10, R2, Z3: in every look but the first of a process."""
    assert outcome(snapshot(of, found, status=running(1))) == expected


def test_an_evicted_pod_fails_its_index_beside_another() -> None:
    """T7: the text tells all indexes that failed."""
    of = indexed(3, backoffLimitPerIndex=0, maxFailedIndexes=0, **PER_INDEX)
    whole = sync(snapshot(of, [pod("Failed", index=0), evicted(1), pod(index=2)], status=running(1)))
    assert (whole.true_conditions[0][1], whole.status["failedIndexes"]) == ("MaxFailedIndexesExceeded", "0,1")
    assert whole.status["failed"] == 3


def test_without_verdict_the_first_look_counts_as_every_other() -> None:
    """Only a verdict deletes pods without taking their finalizer first."""
    found = [pod(deleted=ago(5)), evicted()]
    of = spec(completions=3, parallelism=3, podReplacementPolicy="TerminatingOrFailed")
    whole = sync(snapshot(of, found, status=running(2), **CRASHED))
    assert (whole.status["failed"], len(whole.tracking.removals)) == (2, 2)


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        pytest.param(pod(deleted=ago(5)), "DeadlineExceeded", id="being deleted: maybe by the verdict"),
        pytest.param(evicted(), "DeadlineExceeded", id="ended by a deletion: maybe the verdict's"),
        pytest.param(evicted(has=DISRUPTED), "BackoffLimitExceeded", id="disrupted: nobody's verdict did that"),
        pytest.param(
            pod("Failed", deleted=ago(5), finished=9), "DeadlineExceeded", id="its kubelet let it go after its end"
        ),
    ],
)
def test_after_a_crash_a_pod_is_spared_that_a_verdict_may_have_deleted(left: Pod, reason: str) -> None:
    """Beyond upstream: the deadline deleted it; taken for a failure, it would exceed the backoff limit."""
    found = snapshot(spec(backoffLimit=0, **TERMINATING), [left], status=running(1), **CRASHED)
    assert outcome(found) == (reason, 1)


@pytest.mark.parametrize("reason", ["SuccessPolicy", "Mine"])
@pytest.mark.parametrize("is_crash", [True, False])
def test_pods_that_a_stored_success_deleted_have_not_failed(reason: str, is_crash: bool) -> None:
    """Killed, or refused, between the status and the finalizers, whoever decided it: no failures are counted."""
    stored = running(2, 2, conditions=[condition("SuccessCriteriaMet", reason=reason)])
    of, active = spec(completions=2, parallelism=2), pods(2)
    enacted = assess(snapshot(of, active, status=stored)).enacted
    going = [replace(one, deleted=NOW) for one in active]
    tracked = sync(snapshot(of, going, status=stored, enacted=None if is_crash else enacted)).tracking
    assert tracked.status.get("failed", 0) == 0
    assert not tracked.status["uncountedTerminatedPods"].get("failed")


def test_what_was_enacted_is_remembered_and_holds() -> None:
    """The status was refused (409, say): the pods that the verdict has deleted neither change it nor count twice."""
    of = spec(backoffLimit=0, completions=2, parallelism=2, **TERMINATING)
    active = pods(2)
    first = assess(snapshot(of, active, status=running(2)))
    assert first.ending is not None
    assert first.enacted == Enacted(first.ending, frozenset(one.uid for one in active))
    gone = [replace(active[0], deleted=NOW), pod("Failed", uid=active[1].uid, deleted=NOW)]
    again = snapshot(of, gone, status=running(2), enacted=first.enacted)
    assert outcome(again) == ("DeadlineExceeded", 2)
    assert assess(again).enacted == first.enacted


def test_restarts_that_ended_with_their_pods_do_not_take_the_verdict_back() -> None:
    """B2 counts restarts of running pods only."""
    of = spec(restartPolicy="OnFailure", backoffLimit=2)
    active = pod(containers=(Container("main", restarts=2),))
    first = assess(snapshot(of, [active], status=running(1)))
    ended = pod("Failed", uid=active.uid, deleted=NOW)
    assert outcome(snapshot(of, [ended], status=running(1), enacted=first.enacted)) == ("BackoffLimitExceeded", 1)


def test_a_dropped_verdict_keeps_its_pods_until_it_is_stored() -> None:
    """Y15: one could not be deleted; upstream counts the other as a failure of its own."""
    of = spec(backoffLimit=6, completions=2, parallelism=2, **TERMINATING)
    active = pods(2)
    first = sync(snapshot(of, active, status=running(2)), done=Done(deleted=1, complete=False))
    assert first.true_conditions == []
    left = [replace(active[0], deleted=NOW), active[1]]
    again = sync(snapshot(of, left, status=running(1, terminating=1), enacted=first.assessment.enacted))
    assert again.true_conditions == [("FailureTarget", "DeadlineExceeded")]
    assert [one.uid for one in again.assessment.deletes] == [active[1].uid]


def test_what_is_no_longer_so_is_forgotten() -> None:
    """The shell drops the verdict when somebody has changed the spec: then pods that are going have failed (R2)."""
    going = pod(deleted=NOW)
    enacted = Enacted(None, frozenset([going.uid]))
    of = spec(activeDeadlineSeconds=999, podReplacementPolicy="TerminatingOrFailed")
    whole = sync(snapshot(of, [going], status=running(1), enacted=enacted))
    assert (whole.status["failed"], whole.assessment.enacted) == (1, Enacted())


def test_nothing_is_remembered_of_a_verdict_that_deleted_nobody() -> None:
    """It is decided anew, as upstream does it."""
    assert assess(snapshot(spec(backoffLimit=0), pods(1, "Failed"), status=running(1))).enacted == Enacted()


def test_a_stored_verdict_goes_before_what_was_enacted() -> None:
    """Y13-1, Y13-2."""
    stored = running(conditions=[condition("FailureTarget", reason="Why", message="By hand")])
    enacted = Enacted(Ending("FailureTarget", "DeadlineExceeded", "m"), frozenset(["x"]))
    assert outcome(snapshot(spec(), status=stored, enacted=enacted))[0] == "Why"
