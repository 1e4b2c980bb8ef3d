"""How many pods a sync makes or deletes, and what it counts (Y9–Y17, A1–A9)."""

from __future__ import annotations

from typing import Any

import pytest
from syncs import NOW, Json, Sync, ago, condition, indexed, pod, pods, running, snapshot, spec, sync

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide.assess import assess
from mirror.jobcontroller.decide.values import Action, BackoffRecord, Constants, Done, Pod

FIVE = {"completions": 5, "parallelism": 2}
FAILED_ONLY = {"podReplacementPolicy": "Failed"}


def done(found: Sync) -> str:
    """``+2 -1``: pods made and deleted; then the status as active/ready/terminating/succeeded/failed."""
    status = found.status
    fields = ("active", "ready", "terminating", "succeeded", "failed")
    return (
        f"+{len(found.assessment.births)} -{len(found.assessment.deletes)} "
        f"{'/'.join(str(status.get(name, 0)) for name in fields)}"
    )


@pytest.mark.parametrize(
    ("of", "found", "more", "expected"),
    [
        pytest.param(spec(**FIVE), [], {}, "+2 -0 2/0/0/0/0", id="job start"),
        pytest.param(spec(completions=None, parallelism=2), [], {}, "+2 -0 2/0/0/0/0", id="work queue start"),
        pytest.param(spec(**FIVE), pods(2, "Pending"), {}, "+0 -0 2/0/0/0/0", id="pending pods"),
        pytest.param(spec(**FIVE), pods(2, is_ready=True), {}, "+0 -0 2/2/0/0/0", id="as many as wanted"),
        pytest.param(spec(**FIVE), [*pods(1), *pods(1, "Succeeded")], {}, "+1 -0 2/0/0/1/0", id="too few active"),
        pytest.param(
            spec(completions=None, parallelism=2),
            [*pods(1), *pods(1, "Failed", finished=99)],
            {},
            "+1 -0 2/0/0/0/1",
            id="work queue: failed ones are replaced",
        ),
        pytest.param(
            spec(completions=None, parallelism=2),
            [*pods(1), *pods(1, going=True, is_ready=False)],
            {},
            "+1 -0 2/0/1/0/1",
            id="R2: a terminating one is failed, and replaced",
        ),
        pytest.param(
            spec(completions=None, parallelism=2, **FAILED_ONLY),
            [*pods(1), *pods(1, going=True)],
            {},
            "+0 -0 1/0/1/0/0",
            id="R3: a terminating one is neither failed nor replaced",
        ),
        pytest.param(
            spec(completions=6, parallelism=2, **FAILED_ONLY),
            pods(4, going=True),
            {},
            "+0 -0 0/0/4/0/0",
            id="R3: more terminating than parallelism",
        ),
        pytest.param(
            spec(completions=6, parallelism=2, podFailurePolicy={"rules": []}),
            pods(4, going=True),
            {},
            "+0 -0 0/0/4/0/0",
            id="F5: with a failure policy, too",
        ),
        pytest.param(
            spec(completions=None, parallelism=2),
            [*pods(1), *pods(1, "Succeeded")],
            {},
            "+0 -0 1/0/0/1/0",
            id="A2: a work queue with a success starts no more",
        ),
        pytest.param(
            spec(completions=5, parallelism=4),
            [*pods(1), *pods(3, "Succeeded")],
            {},
            "+1 -0 2/0/0/3/0",
            id="A2: never more than completions are left",
        ),
        pytest.param(
            spec(**FIVE), pods(3, is_ready=True), {}, "+0 -1 2/2/1/0/0", id="A3: too many; ready ones counted"
        ),
        pytest.param(spec(parallelism=0), pods(2), {}, "+0 -2 0/0/2/0/0", id="parallelism 0 deletes all"),
        pytest.param(
            spec(completions=5, parallelism=5),
            [*pods(2), *pods(4, "Succeeded")],
            {},
            "+0 -1 1/0/1/4/0",
            id="more active than completions are left",
        ),
        pytest.param(spec(**FIVE), [], {"is_deleting": True}, "+0 -0 0/0/0/0/0", id="A12: being deleted"),
        pytest.param(spec(**FIVE), pods(3), {"expectations_met": False}, "+0 -0 3/0/0/0/0", id="A3, Y16: not seen yet"),
        pytest.param(spec(completions=900, parallelism=900), [], {}, "+500 -0 500/0/0/0/0", id="A7: 500 at a time"),
        pytest.param(
            spec(completions=900, parallelism=0), pods(600), {}, "+0 -500 100/0/500/0/0", id="A3: 500 at a time"
        ),
        pytest.param(spec(**FIVE, suspend=True), [], {}, "+0 -0 0/0/0/0/0", id="A1: suspended at creation"),
        pytest.param(
            spec(completions=900, parallelism=900, suspend=True),
            pods(600, is_ready=True),
            {},
            "+0 -600 0/0/600/0/0",
            id="A1: suspending deletes all, whatever the cap",
        ),
        pytest.param(indexed(4), [], {}, "+4 -0 4/0/0/0/0", id="indexed start"),
        pytest.param(
            indexed(3),
            [pod(index=0), pod("Pending", index=0), pod(), pod(index=7), pod(index=2)],
            {},
            "+0 -3 2/0/3/0/0",
            id="A3: duplicates, no index, beyond the completions; nothing is created",
        ),
        pytest.param(
            indexed(3, parallelism=1),
            [pod(index=0), pod("Pending", index=1), pod("Pending", index=1)],
            {},
            "+0 -2 1/0/2/0/0",
            id="A3: a duplicate and one too many",
        ),
    ],
)
def test_pods_of_a_sync(of: Json, found: list[Pod], more: dict[str, Any], expected: str) -> None:
    assert done(sync(snapshot(of, found, status=running(), **more))) == expected


@pytest.mark.parametrize(
    ("of", "found", "status", "born"),
    [
        pytest.param(indexed(4), [pod(index=1)], running(1), [0, 2, 3], id="those without pods"),
        pytest.param(indexed(4, parallelism=2), [pod(index=1)], running(1), [0], id="the lowest first"),
        pytest.param(
            indexed(6), [pod(index=5)], running(1, completedIndexes="0,2-3"), [1, 4], id="completed ones are done"
        ),
        pytest.param(
            indexed(3), [pod("Succeeded", index=0), pod(index=1)], running(2), [2], id="a success not yet stored"
        ),
        pytest.param(indexed(3), [pod("Failed", index=0, finished=60)], running(1), [0, 1, 2], id="failed ones again"),
        pytest.param(
            indexed(3), pods(1, index=0, going=True, is_ready=False), running(1), [0, 1, 2], id="R2: terminating again"
        ),
        pytest.param(
            indexed(3, **FAILED_ONLY), pods(1, index=0, going=True), running(1), [1, 2], id="R3: terminating, not yet"
        ),
        pytest.param(
            indexed(4, backoffLimitPerIndex=1), [], running(failedIndexes="0,2"), [1, 3], id="failed for good"
        ),
        pytest.param(indexed(0), [], running(), [], id="no indexes"),
    ],
)
def test_indexes_of_new_pods(of: Json, found: list[Pod], status: Json, born: list[int]) -> None:
    """A7."""
    assert [birth.index for birth in sync(snapshot(of, found, status=status)).assessment.births] == born


@pytest.mark.parametrize(
    ("more", "action"),
    [
        ({"of": spec(**FIVE)}, Action.PODS_CREATED),
        ({"of": spec(**FIVE), "backoff": BackoffRecord(1, NOW)}, Action.PODS_CREATED),
        ({"of": spec(**FIVE), "found": pods(2)}, Action.TRACKING),
        ({"of": spec(**FIVE), "found": pods(3)}, Action.PODS_DELETED),
        ({"of": spec(**FIVE, suspend=True)}, Action.PODS_DELETED),
        ({"of": spec(**FIVE), "expectations_met": False}, Action.RECONCILING),
        ({"of": spec(**FIVE), "is_deleting": True}, Action.RECONCILING),
        ({"of": spec(**FIVE, backoffLimit=0), "found": [*pods(1, "Failed"), *pods(1)]}, Action.RECONCILING),
    ],
)
def test_action_of_a_sync(more: dict[str, Any], action: Action) -> None:
    """The label of its metric (Y6, A1–A9)."""
    assert assess(snapshot(**more, status=running())).action == action


@pytest.mark.parametrize(
    ("of", "found", "more", "reason"),
    [
        pytest.param(spec(), [], {}, "new", id="new"),
        pytest.param(spec(**FIVE), [], {"status": running(failed=1)}, "recreate_terminating_or_failed", id="failed"),
        pytest.param(
            spec(**FIVE), pods(1, going=True, is_ready=False), {}, "recreate_terminating_or_failed", id="terminating"
        ),
        pytest.param(spec(**FAILED_ONLY), [], {"status": running(failed=1)}, "recreate_failed", id="failed only"),
        pytest.param(
            spec(**FIVE, **FAILED_ONLY),
            pods(1, going=True),
            {},
            "recreate_terminating_or_failed",
            id="only, terminating",
        ),
        pytest.param(
            spec(**FIVE),
            [],
            {"status": running(failed=1), "gates": FeatureGates(job_pod_replacement_policy=False)},
            "new",
            id="without the gate",
        ),
    ],
)
def test_reason_of_creations(of: Json, found: list[Pod], more: dict[str, Any], reason: str) -> None:
    """PM2."""
    assert assess(snapshot(of, found, **{"status": running(), **more})).creation_reason == reason


@pytest.mark.parametrize(
    ("of", "found", "more", "again", "born"),
    [
        pytest.param(spec(), pods(1, "Failed", finished=2), {}, 8, 0, id="B4: the failure is fresh"),
        pytest.param(spec(), pods(1, "Failed", finished=10), {}, None, 1, id="B4: long enough ago"),
        pytest.param(spec(), pods(1, "Failed", finished=9.8), {}, 1, 0, id="A6: at least the batch period"),
        pytest.param(spec(), pods(2, "Failed", finished=2), {}, 18, 0, id="B5: two failures"),
        pytest.param(spec(), [], {"backoff": BackoffRecord(3, ago(1))}, 39, 0, id="B5: remembered"),
        pytest.param(
            spec(**FIVE), pods(1), {"backoff": BackoffRecord(1, ago(1))}, 9, 0, id="A6, Q10: another one runs on"
        ),
        pytest.param(
            spec(**FIVE),
            [pod("Succeeded", finished=1), pod("Failed", finished=3)],
            {"backoff": BackoffRecord(3, ago(5))},
            None,
            2,
            id="B5: a success resets the delay",
        ),
        pytest.param(spec(activeDeadlineSeconds=100), pods(1), {}, 40, 0, id="Y14: the deadline"),
        pytest.param(
            spec(activeDeadlineSeconds=65), pods(1, "Failed", finished=2), {}, 5, 0, id="the deadline comes first"
        ),
        pytest.param(
            spec(activeDeadlineSeconds=100, suspend=True), [], {}, None, 0, id="W5: none while it is suspended"
        ),
        pytest.param(
            spec(activeDeadlineSeconds=100), [], {"expectations_met": False}, 40, 0, id="Y14: whatever is expected"
        ),
        pytest.param(
            indexed(2, backoffLimitPerIndex=2),
            [pod("Failed", index=0, finished=4), pod("Failed", index=1, index_failures=1, finished=15)],
            {},
            5,
            0,
            id="L6: the index that is due first",
        ),
        pytest.param(
            indexed(2, backoffLimitPerIndex=2),
            [pod("Failed", index=0, finished=4), pod("Failed", index=1, finished=15)],
            {},
            None,
            1,
            id="L6: one is due, the other is not waited for",
        ),
        pytest.param(
            indexed(2, parallelism=1, backoffLimitPerIndex=2),
            pods(1, "Failed", index=0, finished=4),
            {},
            6,
            0,
            id="L6: only the lowest indexes are looked at",
        ),
        pytest.param(
            indexed(1, backoffLimitPerIndex=9),
            pods(1, "Failed", index=0, index_failures=1, index_ignored_failures=1, finished=4),
            {},
            36,
            0,
            id="L6: ignored failures delay, too",
        ),
    ],
)
def test_when_to_look_again(of: Json, found: list[Pod], more: dict[str, Any], again: float | None, born: int) -> None:
    whole = sync(snapshot(of, found, status=running(), **more))
    seconds = whole.assessment.again_after_seconds
    assert (None if seconds is None else round(seconds, 3), len(whole.assessment.births)) == (again, born)


def test_waiting_pods_are_still_counted() -> None:
    """A6, Q10: a delay that reported no active pod would have more ready than active, which the API refuses (V29)."""
    found = snapshot(spec(**FIVE), pods(1, is_ready=True), status=running(2, 2), backoff=BackoffRecord(1, NOW))
    assert done(sync(found)) == "+0 -0 1/1/0/0/0"


@pytest.mark.parametrize(
    ("found", "outcome", "counted"),
    [
        pytest.param(snapshot(spec(**FIVE)), Done(created=1, complete=False), "1/0/0", id="A8: a creation failed"),
        pytest.param(
            snapshot(spec(parallelism=0), pods(2, is_ready=True)),
            Done(deleted=1, deleted_ready=2, complete=False),
            "1/0/1",
            id="Y15: a deletion failed; ready ones are taken off all the same",
        ),
        pytest.param(
            snapshot(spec(parallelism=0), pods(1, is_ready=True)),
            Done(deleted=1),
            "0/0/1",
            id="Q11: gone before its finalizer was, it is not ready any more either",
        ),
    ],
)
def test_what_became_of_it_is_what_is_stored(found: Any, outcome: Done, counted: str) -> None:
    """Y18: the status is stored when pods could not be made or deleted, too."""
    whole = sync(found, done=outcome)
    assert "/".join(str(whole.status.get(name, 0)) for name in ("active", "ready", "terminating")) == counted
    assert whole.tracking.flush


@pytest.mark.parametrize(
    ("status", "found", "writes"),
    [
        pytest.param({}, [], 1, id="the first sync always writes: null is not 0"),
        pytest.param(running(1, 1), pods(1, is_ready=True), 0, id="T14: nothing new, nothing written"),
        pytest.param(running(1), pods(1, is_ready=True), 1, id="ready"),
        pytest.param(running(2), pods(1), 1, id="active"),
        pytest.param(running(1, terminating=1), pods(1), 1, id="terminating"),
        pytest.param(running(1, uncountedTerminatedPods={"failed": ["gone"]}), pods(1), 1, id="T2: a pod is gone"),
    ],
)
def test_when_a_status_is_written(status: Json, found: list[Pod], writes: int) -> None:
    """Y17."""
    whole = snapshot(spec(parallelism=len(found)), found, status=status)
    assert len(sync(whole).writes) == writes


def test_the_first_status_has_all_counters_that_are_pointers() -> None:
    """DF20, Q27, Y7: zeros and empty lists are written, other zeros are left out."""
    (status,) = sync(snapshot(spec(parallelism=0))).writes
    assert status == {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": "2026-03-01T12:00:00Z"}


def test_fields_that_nobody_knows_stay() -> None:
    placed = condition("jobmirror.io/Placed")
    status = running(2, conditions=[placed], later=1)
    stored = sync(snapshot(spec(), pods(1), status=status)).status
    assert (stored["conditions"], stored["later"], status["active"]) == ([placed], 1, 2)


def test_smaller_caps_are_honoured() -> None:
    """The shell lowers them while its limiter is full."""
    few = Constants(max_pod_create_delete_per_sync=2)
    assert len(assess(snapshot(spec(completions=9, parallelism=9), constants=few)).births) == 2
