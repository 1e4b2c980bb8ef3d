"""Indexes of an Indexed Job and what each carries on (T7, I1, I2, L1, L2, L5, L7)."""

from __future__ import annotations

from typing import Any

import pytest
from syncs import IGNORE_1, Json, indexed, pod, policy, running, snapshot, sync

from mirror.jobcontroller.decide.values import Pod

FAIL_INDEX_1 = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}


def named(uid: str, phase: str = "Running", **more: Any) -> Pod:
    return pod(phase, uid=uid, finished=60, **more)


def test_held_back_pods_are_counted_once_their_replacement_runs() -> None:
    """L5, Q17."""
    of = indexed(2, backoffLimitPerIndex=3)
    held = named("a", "Failed", index=0, index_failures=1)
    waiting = sync(snapshot(of, [held, pod(index=1)], status=running(1)))
    assert (waiting.tracking.removals, waiting.status.get("failed")) == ((), None)
    (birth,) = waiting.assessment.births
    assert (birth.index, birth.index_failures, birth.index_ignored_failures) == (0, 2, None)
    replaced = sync(snapshot(of, [held, pod(index=0), pod(index=1)], status=running(2)))
    assert ([one.uid for one in replaced.tracking.removals], replaced.status["failed"]) == (["a"], 1)


@pytest.mark.parametrize(
    ("rules", "held", "failures"),
    [
        pytest.param({}, None, (0, None), id="the first pod"),
        pytest.param({}, pod("Failed", index=0, finished=99), (1, None), id="a failure"),
        pytest.param({}, pod("Failed", index=0, index_failures=2, finished=99), (3, None), id="one more"),
        pytest.param(
            policy(IGNORE_1), pod("Failed", index=0, index_failures=2, finished=99), (2, 1), id="an ignored one"
        ),
        pytest.param(
            policy(IGNORE_1),
            pod("Failed", index=0, code=2, index_failures=2, index_ignored_failures=1, finished=99),
            (3, 1),
            id="a counted one after an ignored one",
        ),
    ],
)
def test_counters_of_replacements(rules: Json, held: Pod | None, failures: tuple[int, int | None]) -> None:
    """L7."""
    whole = sync(snapshot(indexed(1, backoffLimitPerIndex=9, **rules), [held] if held else [], status=running()))
    (birth,) = whole.assessment.births
    assert (birth.index_failures, birth.index_ignored_failures) == failures


def test_indexes_without_a_limit_of_their_own_carry_no_counters() -> None:
    """A11."""
    births = sync(snapshot(indexed(2))).assessment.births
    assert {(birth.index_failures, birth.index_ignored_failures) for birth in births} == {(None, None)}


@pytest.mark.parametrize(
    ("of", "found", "status", "completed", "failed", "succeeded"),
    [
        pytest.param(indexed(9), [pod("Succeeded", index=3)], {}, "3", None, 1, id="one"),
        pytest.param(
            indexed(9),
            [pod("Succeeded", index=index) for index in (4, 5, 7, 0)],
            {"completedIndexes": "6,8", "succeeded": 2},
            "0,4-8",
            None,
            6,
            id="I1: merged",
        ),
        pytest.param(
            indexed(3), [], {"completedIndexes": "0,2,4-6", "succeeded": 5}, "0,2", None, 2, id="I2: scaled down"
        ),
        pytest.param(
            indexed(3, parallelism=2),
            [],
            {"completedIndexes": "0,2,4-6", "succeeded": 5},
            "0,2",
            None,
            5,
            id="V35: scaled down, and then not elastic any more: the counter stays",
        ),
        pytest.param(indexed(3), [], {"completedIndexes": "x,1"}, "1", None, 1, id="I1: what makes sense of it"),
        pytest.param(indexed(3, backoffLimitPerIndex=1), [], {}, None, "", 0, id="L2: empty from the first write on"),
        pytest.param(
            indexed(3, backoffLimitPerIndex=1),
            [pod("Failed", index=1, index_failures=1), pod("Failed", index=0, index_failures=0)],
            {},
            None,
            "1",
            0,
            id="L1: as many failures before as allowed",
        ),
        pytest.param(
            indexed(9, backoffLimitPerIndex=0),
            [
                pod("Failed", index=1),
                pod("Failed", index=9),
                pod("Failed"),
                pod("Failed", index=7, has_finalizer=False),
            ],
            {"failedIndexes": "2,9-11"},
            None,
            "1,2",
            0,
            id="L1, L2: of the Job's indexes, with the finalizer, and clipped",
        ),
        pytest.param(
            indexed(3, backoffLimitPerIndex=5, **policy(FAIL_INDEX_1)),
            [pod("Failed", index=1)],
            {},
            None,
            "1",
            0,
            id="L1: FailIndex",
        ),
        pytest.param(
            indexed(3, backoffLimitPerIndex=0, **policy(IGNORE_1)),
            [pod("Failed", index=1)],
            {},
            None,
            "",
            0,
            id="L1: not by an ignored failure",
        ),
        pytest.param(
            indexed(3, backoffLimitPerIndex=0),
            [pod("Failed", index=1), pod("Succeeded", index=1)],
            {"failedIndexes": "1"},
            "1",
            "",
            1,
            id="V27: completed wins over failed",
        ),
    ],
)
def test_index_texts(
    of: Json, found: list[Pod], status: Json, completed: str | None, failed: str | None, succeeded: int
) -> None:
    """T7, I1, I2, L1, L2."""
    stored = sync(snapshot(of, found, status=running(**status))).tracking.status
    found_now = (stored.get("completedIndexes"), stored.get("failedIndexes"), stored.get("succeeded", 0))
    assert found_now == (completed, failed, succeeded)


def test_a_job_scaled_to_nothing_is_complete() -> None:
    """TestElasticIndexedJob: scaled down to 0."""
    whole = sync(snapshot(indexed(0), status=running(completedIndexes="1", succeeded=1)))
    assert (whole.settled.is_finished, whole.status.get("succeeded"), whole.events) == (True, None, ["Completed"])
