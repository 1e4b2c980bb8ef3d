"""Statuses that no mirror dictates, and small questions about a status."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mirror.batch import conditions
from mirror.kinds.batch_job.reading import is_final
from mirror.kinds.batch_job.status import (
    StoredJob,
    has_started,
    lost_status,
    placed_status,
    placed_worker,
    suspended_status,
    verdict,
)

Json = dict[str, Any]

NOW = datetime(2026, 3, 1, 13, 0, 5, tzinfo=UTC)
AT, START, LATER = "2026-03-01T13:00:05Z", "2026-03-01T10:00:00Z", "2026-03-01T14:00:00Z"
SPEC = {"completions": 3, "parallelism": 2}


def true(type_name: str, reason: str = "Because", message: str = "of this", at: str = START) -> Json:
    return conditions.new(type_name, "True", reason=reason, message=message, at=at)


def stored(status: Json) -> StoredJob:
    return StoredJob.of(SPEC, status)


SUSPENDED = true("Suspended", "JobSuspended", "Job suspended", AT)
NO_PODS = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}

LOST: dict[str, tuple[Json, Json]] = {
    "no verdict": (
        {"startTime": START, "active": 2, "ready": 1, "failed": 1, "completedIndexes": "0"},
        {
            "startTime": START,
            "failed": 1,
            "completedIndexes": "0",
            "conditions": [true("FailureTarget", "MirrorLost", "gone", AT), true("Failed", "MirrorLost", "gone", AT)],
        },
    ),
    "never started": (
        {},
        {
            "startTime": AT,
            "conditions": [true("FailureTarget", "MirrorLost", "gone", AT), true("Failed", "MirrorLost", "gone", AT)],
        },
    ),
    "it was failing": (
        {"startTime": START, "terminating": 1, "conditions": [true("FailureTarget", "DeadlineExceeded", "late")]},
        {
            "startTime": START,
            "conditions": [
                true("FailureTarget", "DeadlineExceeded", "late"),
                true("Failed", "DeadlineExceeded", "late", AT),
            ],
        },
    ),
    "it was completing": (
        {"startTime": START, "succeeded": 3, "conditions": [SUSPENDED, true("SuccessCriteriaMet")]},
        {
            "startTime": START,
            "succeeded": 3,
            "completionTime": AT,
            "conditions": [SUSPENDED, true("SuccessCriteriaMet"), true("Complete", at=AT)],
        },
    ),
    "it was completing, by a clock ahead of ours": (
        {"startTime": LATER, "conditions": [true("SuccessCriteriaMet")]},
        {
            "startTime": LATER,
            "completionTime": LATER,
            "conditions": [true("SuccessCriteriaMet"), true("Complete", at=AT)],
        },
    ),
}


@pytest.mark.parametrize(("before", "after"), LOST.values(), ids=LOST)
def test_a_lost_job_ends_by_its_stored_verdict(before: Json, after: Json) -> None:
    """D11, M12: no pods are left, counters and indexes stay."""
    assert after | NO_PODS == lost_status(stored(before), NOW, message="gone")


def test_a_finished_job_is_not_lost() -> None:
    """A final status stays as it is."""
    assert (
        lost_status(
            stored({"startTime": START, "conditions": [true("FailureTarget"), true("Failed")]}), NOW, message=""
        )
        is None
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, {"conditions": [SUSPENDED]}, id="never placed"),
        pytest.param(
            {"startTime": START, "active": 2},
            {"startTime": START, "active": 2, "conditions": [SUSPENDED]},
            id="its worker is unreachable: what was last known stays",
        ),
        pytest.param(
            {"conditions": [conditions.new("Suspended", "False", at=START), true("X")]},
            {"conditions": [SUSPENDED, true("X")]},
            id="suspended again",
        ),
        pytest.param({"conditions": [true("Suspended")]}, None, id="it is already"),
        pytest.param({"conditions": [true("FailureTarget")]}, None, id="its end is decided"),
    ],
)
def test_a_suspended_source_without_a_speaker_is_shown_as_suspended(before: Json, after: Json | None) -> None:
    """D3: kubectl would show it as running otherwise."""
    assert after == suspended_status(stored(before), NOW)


def test_the_place_is_recorded_moved_and_removed() -> None:
    """D5: a condition of ours among the others, which stay in their order."""
    on_east = placed_status(stored({"active": 1, "conditions": [true("X")]}), "east", NOW)

    assert on_east == {"active": 1, "conditions": [true("X"), true("jobmirror.io/Placed", "Placed", "east", AT)]}
    assert placed_worker(on_east) == "east"
    assert placed_status(stored(on_east), "east", NOW.replace(year=2027)) is None
    on_west = placed_status(stored(on_east), "west", NOW)
    assert on_west is not None
    assert placed_worker(on_west) == "west"
    assert {"active": 1, "conditions": [true("X")]} == placed_status(stored(on_west), None, NOW)
    assert placed_status(stored({}), None, NOW) is None


@pytest.mark.parametrize(
    ("status", "started"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param(
            {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "failedIndexes": ""}, False, id="zeros"
        ),
        pytest.param({"conditions": [SUSPENDED, true("jobmirror.io/Placed")]}, False, id="suspended and placed"),
        pytest.param({"startTime": START}, True, id="a start"),
        pytest.param({"terminating": 1}, True, id="a pod"),
        pytest.param({"failed": 1}, True, id="a failure"),
        pytest.param({"completedIndexes": "0"}, True, id="an index"),
        pytest.param({"uncountedTerminatedPods": {"failed": ["u"]}}, True, id="an uncounted pod"),
        pytest.param({"conditions": [true("SuccessCriteriaMet")]}, True, id="a verdict"),
    ],
)
def test_a_job_has_started_once_anything_of_it_ran_or_was_decided(status: Json, started: bool) -> None:
    """D11: only a Job that never started may be created again."""
    assert started == has_started(status)


def test_a_verdict_comes_before_the_end() -> None:
    """The interim condition decides how, the final one that it is over."""
    completing = {"conditions": [true("SuccessCriteriaMet")]}

    assert (verdict(completing), is_final(completing)) == ("Complete", False)
    assert is_final({"conditions": [true("FailureTarget"), true("Failed")]})
    assert placed_worker(completing) is None
