"""Suspending and resuming (A1, W1–W7, KEP-2232): the condition, the start time, the deadline, and who counts."""

from __future__ import annotations

from typing import Any

import pytest
from syncs import (
    Json,
    condition,
    pods,
    running,
    snapshot,
    spec,
    sync,
)

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide.values import Done

SUSPENDED = [condition("Suspended", reason="JobSuspended", message="Job suspended")]
RESUMED = [condition("Suspended", "False", reason="JobResumed", message="Job resumed")]


@pytest.mark.parametrize(
    ("of", "status", "more", "events", "shown", "start"),
    [
        pytest.param(spec(suspend=True), {}, {}, ["Suspended"], "True", None, id="created suspended"),
        pytest.param(spec(suspend=True), running(), {}, ["Suspended"], "True", None, id="W3: the start is cleared"),
        pytest.param(
            spec(suspend=True),
            running(),
            {"gates": FeatureGates(mutable_scheduling_directives_for_suspended_jobs=False)},
            ["Suspended"],
            "True",
            "2026-03-01T11:59:00Z",
            id="W3: the start stays without the gate",
        ),
        pytest.param(
            spec(suspend=True), running(conditions=SUSPENDED), {}, [], "True", "2026-03-01T11:59:00Z", id="still"
        ),
        pytest.param(
            spec(), running(conditions=SUSPENDED), {}, ["Resumed"], "False", "2026-03-01T12:00:00Z", id="W3: resumed"
        ),
        pytest.param(spec(), running(conditions=RESUMED), {}, [], "False", "2026-03-01T11:59:00Z", id="runs since"),
        pytest.param(
            spec(suspend=True), running(conditions=RESUMED), {}, ["Suspended"], "True", None, id="suspended again"
        ),
        pytest.param(spec(), running(), {}, [], None, "2026-03-01T11:59:00Z", id="W1: never suspended, no condition"),
        pytest.param(
            spec(suspend=True),
            running(),
            {"expectations_met": False},
            [],
            None,
            "2026-03-01T11:59:00Z",
            id="Q20: not before its pods are seen",
        ),
        pytest.param(
            spec(suspend=True), running(), {"is_deleting": True}, [], None, "2026-03-01T11:59:00Z", id="being deleted"
        ),
    ],
)
def test_suspending_and_resuming(
    of: Json, status: Json, more: dict[str, Any], events: list[str], shown: str | None, start: str | None
) -> None:
    """W1–W3."""
    whole = sync(snapshot(of, status=status, **more))
    condition_shown = next(iter(whole.status.get("conditions", ())), {})
    found = (whole.events, condition_shown.get("status"), whole.status.get("startTime"))
    assert found == (events, shown, start)


def test_suspension_shows_when_pods_could_not_all_be_deleted() -> None:
    """W4: in the same sync that has asked for it; pods that still end are shown."""
    whole = sync(snapshot(spec(suspend=True), pods(2), status=running(2)), done=Done(deleted=1, complete=False))
    (status,) = whole.writes
    assert (status["active"], status["terminating"], status["conditions"][0]["type"]) == (1, 1, "Suspended")


def test_pods_of_a_suspended_job_do_not_count() -> None:
    """A1: their finalizer goes before they do; neither failed nor uncounted."""
    whole = sync(snapshot(spec(suspend=True), pods(2), status=running(2)))
    assert whole.assessment.strips_first
    assert not whole.tracking.removals


def test_resuming_restarts_the_deadline_whatever_start_is_stored() -> None:
    """W5, also where a version without the gate left the old start time."""
    old = running(conditions=SUSPENDED)
    whole = sync(snapshot(spec(activeDeadlineSeconds=10), status=old))
    assert (whole.assessment.ending, whole.assessment.again_after_seconds) == (None, 10)
