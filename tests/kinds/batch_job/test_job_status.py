"""The next status of a source, case by case (D7)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mirror.batch import conditions
from mirror.kinds.batch_job.status import StoredJob, next_status
from mirror.kinds.stored_source import NextStatus

Json = dict[str, Any]

T0, T1, T2, T3 = (f"2026-03-01T1{hour}:00:00Z" for hour in range(4))
NOW = datetime(2026, 3, 1, 13, 0, 5, 999_999, tzinfo=UTC)
NOW_TEXT = "2026-03-01T13:00:05Z"

PLAIN = {"completions": 3, "parallelism": 2}
SUSPENDED_SPEC = PLAIN | {"suspend": True}
INDEXED = {"completionMode": "Indexed", "completions": 5, "parallelism": 2, "backoffLimitPerIndex": 1}
ELASTIC = INDEXED | {"completions": 3, "parallelism": 3}

SUSPENDED = conditions.new("Suspended", "True", reason="JobSuspended", message="Job suspended", at=T1)
RESUMED = conditions.new("Suspended", "False", reason="JobResumed", message="Job resumed", at=T2)
PLACED = conditions.new("jobmirror.io/Placed", "True", reason="Placed", message="east", at=T0)


def condition(type_name: str, reason: str, at: str | None = T2) -> Json:
    return conditions.new(type_name, "True", reason=reason, message=f"{reason}!", at=at)


MET, COMPLETE = condition("SuccessCriteriaMet", "CompletionsReached"), condition("Complete", "CompletionsReached", T3)
TARGET, FAILED = condition("FailureTarget", "BackoffLimitExceeded"), condition("Failed", "BackoffLimitExceeded", T3)
ENDED_WELL = {"startTime": T1, "completionTime": T3, "succeeded": 3, "conditions": [MET, COMPLETE]}
ENDED_BADLY = {"startTime": T1, "failed": 2, "conditions": [TARGET, FAILED]}


def following(spec: Json, stored: Json, mirror: object, **more: Any) -> NextStatus:
    return next_status(StoredJob.of(spec, stored), mirror, now=NOW, **more)


# What is stored, what the mirror shows, what is written.
SHOWN: dict[str, tuple[Json, Json, Json, Json]] = {
    "the first counts": (
        PLAIN,
        {},
        {"startTime": T1, "active": 2, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}},
        {"startTime": T1, "active": 2, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}},
    ),
    "zones and fractions become whole seconds in UTC": (
        PLAIN,
        {},
        {"startTime": "2026-03-01T12:00:00.9+01:00"},
        {"startTime": T1},
    ),
    "pods are the mirror's own, counters the highest ever": (
        PLAIN,
        {"startTime": T1, "active": 2, "ready": 2, "terminating": 1, "succeeded": 2, "failed": 1},
        {"startTime": T1, "active": 1, "succeeded": 1, "failed": 3},
        {"startTime": T1, "active": 1, "succeeded": 2, "failed": 3},
    ),
    "never more ready than active": (
        PLAIN,
        {"startTime": T1},
        {"startTime": T1, "active": 1, "ready": 2},
        {"startTime": T1, "active": 1, "ready": 1},
    ),
    "a restarted mirror takes nothing back": (
        INDEXED,
        {"startTime": T1, "succeeded": 2, "failed": 1, "completedIndexes": "0,3", "conditions": [TARGET]},
        {"startTime": T2, "active": 1, "succeeded": 1, "completedIndexes": "1"},
        {
            "startTime": T1,
            "active": 1,
            "succeeded": 3,
            "failed": 1,
            "completedIndexes": "0,1,3",
            "conditions": [TARGET],
        },
    ),
    "indexes are rewritten, clipped and completed ones win": (
        INDEXED,
        {"startTime": T1},
        {"startTime": T1, "succeeded": 9, "completedIndexes": "0,1,2,4-900", "failedIndexes": "2,3,7"},
        {"startTime": T1, "succeeded": 4, "completedIndexes": "0-2,4", "failedIndexes": "3"},
    ),
    "an index that failed before and is completed now": (
        INDEXED,
        {"startTime": T1, "failedIndexes": "3"},
        {"startTime": T1, "completedIndexes": "3", "failedIndexes": ""},
        {"startTime": T1, "succeeded": 1, "completedIndexes": "3", "failedIndexes": ""},
    ),
    "an elastic Job that became smaller": (
        ELASTIC,
        {"startTime": T1, "succeeded": 3, "completedIndexes": "0,3,4"},
        {"startTime": T1, "succeeded": 3, "completedIndexes": "0,3,4"},
        {"startTime": T1, "succeeded": 1, "completedIndexes": "0"},
    ),
    "a smaller Job that is not elastic any more keeps its count": (
        ELASTIC | {"parallelism": 1},
        {"startTime": T1, "succeeded": 3, "completedIndexes": "0,3,4"},
        {"startTime": T1, "succeeded": 3, "completedIndexes": "0,3,4"},
        {"startTime": T1, "succeeded": 3, "completedIndexes": "0"},
    ),
    "index texts of a Job without indexes are ignored": (
        PLAIN,
        {},
        {"succeeded": 1, "completedIndexes": "0", "failedIndexes": "1"},
        {"succeeded": 1},
    ),
    "conditions of others stay in place, ours are not taken from a worker": (
        PLAIN,
        {"conditions": [PLACED, condition("example.com/Audited", "ByUs")]},
        {"startTime": T1, "conditions": [condition("example.com/Seen", "There"), PLACED | {"message": "evil"}]},
        {
            "startTime": T1,
            "conditions": [PLACED, condition("example.com/Audited", "ByUs"), condition("example.com/Seen", "There")],
        },
    ),
    "fields that we do not know stay": (
        PLAIN,
        {"future": {"x": 1}},
        {"startTime": T1, "future": "theirs"},
        {"startTime": T1, "future": {"x": 1}},
    ),
    "complete in one write": (
        PLAIN,
        {"conditions": [PLACED]},
        ENDED_WELL,
        ENDED_WELL | {"conditions": [PLACED, MET, COMPLETE]},
    ),
    "failed in one write": (PLAIN, {}, ENDED_BADLY, ENDED_BADLY),
    "interim conditions that an older worker does not set": (
        PLAIN,
        {},
        ENDED_BADLY | {"conditions": [FAILED]},
        ENDED_BADLY | {"conditions": [condition("FailureTarget", "BackoffLimitExceeded", T3), FAILED]},
    ),
    "an interim condition that is not true does not count": (
        PLAIN,
        {},
        ENDED_BADLY | {"conditions": [TARGET | {"status": "False"}, TARGET, FAILED]},
        ENDED_BADLY,
    ),
    "ended with pods that are not: the interim condition only": (
        PLAIN,
        {"startTime": T1, "active": 1},
        ENDED_BADLY | {"terminating": 1},
        ENDED_BADLY | {"terminating": 1, "conditions": [TARGET]},
    ),
    "ended with pods not counted: the interim condition only": (
        PLAIN,
        {"startTime": T1},
        ENDED_WELL | {"uncountedTerminatedPods": {"succeeded": ["u-1"]}},
        {
            "startTime": T1,
            "succeeded": 3,
            "uncountedTerminatedPods": {"succeeded": ["u-1"]},
            "conditions": [MET],
        },
    ),
    "the stored verdict wins over the mirror's: failed": (
        PLAIN,
        {"startTime": T1, "conditions": [TARGET]},
        ENDED_WELL,
        {"startTime": T1, "succeeded": 3, "conditions": [TARGET, FAILED]},
    ),
    "the stored verdict wins over the mirror's: complete": (
        PLAIN,
        {"startTime": T1, "conditions": [MET]},
        ENDED_BADLY,
        {"startTime": T1, "completionTime": T3, "failed": 2, "conditions": [MET, COMPLETE]},
    ),
    "a final condition without its time gets ours": (
        PLAIN,
        {},
        ENDED_BADLY | {"conditions": [TARGET, FAILED | {"lastTransitionTime": None}]},
        ENDED_BADLY | {"conditions": [TARGET, condition("Failed", "BackoffLimitExceeded", NOW_TEXT)]},
    ),
    "completed before the stored start": (
        PLAIN,
        {"startTime": T2},
        ENDED_WELL | {"completionTime": T1, "conditions": [MET, COMPLETE | {"lastTransitionTime": T1}]},
        ENDED_WELL
        | {
            "startTime": T2,
            "completionTime": T2,
            "conditions": [MET, condition("Complete", "CompletionsReached", NOW_TEXT)],
        },
    ),
    "ended without a start: it began when it was completed": (
        PLAIN,
        {},
        ENDED_WELL | {"startTime": None},
        ENDED_WELL | {"startTime": T3},
    ),
    "nothing to do, suspended: it never starts": (
        {"completions": 0, "parallelism": 1, "suspend": True},
        {},
        {"completionTime": T3, "conditions": [MET, COMPLETE]},
        {"completionTime": T3, "conditions": [MET, COMPLETE]},
    ),
    "suspended: the start is cleared": (
        SUSPENDED_SPEC,
        {"startTime": T1, "active": 2},
        {"terminating": 2, "conditions": [SUSPENDED]},
        {"terminating": 2, "conditions": [SUSPENDED]},
    ),
    "suspended, and the mirror still runs": (
        SUSPENDED_SPEC,
        {"startTime": T1},
        {"startTime": T1, "active": 2},
        {"startTime": T1, "active": 2},
    ),
    "suspended by the worker's own queueing: the start stays": (
        PLAIN,
        {"startTime": T1, "active": 2},
        {"conditions": [SUSPENDED]},
        {"startTime": T1, "conditions": [SUSPENDED]},
    ),
    "suspended, ended and without a start any more: the stored one stays": (
        SUSPENDED_SPEC,
        {"startTime": T1},
        ENDED_BADLY | {"startTime": None},
        ENDED_BADLY,
    ),
    "suspended while the mirror was out of sight, and it runs still": (
        SUSPENDED_SPEC,
        {"startTime": T1, "conditions": [SUSPENDED]},
        {"startTime": T1, "active": 2},
        {"startTime": T1, "active": 2, "conditions": [SUSPENDED]},
    ),
    "resumed with another start, but its end is decided": (
        PLAIN,
        {"startTime": T1, "conditions": [TARGET]},
        {"startTime": T2, "active": 1, "conditions": [RESUMED]},
        {"startTime": T1, "active": 1, "conditions": [TARGET, RESUMED]},
    ),
    "resumed with another start": (
        PLAIN,
        {"startTime": T1, "conditions": [SUSPENDED]},
        {"startTime": T2, "active": 1, "conditions": [RESUMED]},
        {"startTime": T2, "active": 1, "conditions": [RESUMED]},
    ),
    "started elsewhere: the resumption that the new mirror never had": (
        PLAIN,
        {"startTime": T1, "conditions": [SUSPENDED | {"reason": "WorkerLost"}]},
        {"startTime": T2, "active": 1},
        {"startTime": T2, "active": 1, "conditions": [RESUMED]},
    ),
    "another start without any suspension is not followed": (
        PLAIN,
        {"startTime": T1},
        {"startTime": T2, "active": 1},
        {"startTime": T1, "active": 1},
    ),
}


@pytest.mark.parametrize(("spec", "stored", "mirror", "expected"), SHOWN.values(), ids=SHOWN)
def test_a_mirrors_status_is_shown(spec: Json, stored: Json, mirror: Json, expected: Json) -> None:
    """One write shows all of it, and the same answer then changes nothing."""
    first = following(spec, stored, mirror)

    assert expected == first.status
    assert not first.more
    assert following(spec, expected, mirror).status is None


NOTHING: dict[str, tuple[Json, Json, object]] = {
    "no status yet": (PLAIN, {"conditions": [PLACED]}, {}),
    "no status at all": (PLAIN, {}, None),
    "the same": (
        PLAIN,
        {"startTime": T1, "active": 1},
        {"startTime": T1, "active": 1, "succeeded": 0, "conditions": []},
    ),
    "the same indexes in other words": (
        INDEXED,
        {"succeeded": 3, "completedIndexes": "0,1,2"},
        {"succeeded": 3, "completedIndexes": "0-2"},
    ),
    "finished, and the mirror starts again": (PLAIN, ENDED_WELL, {"startTime": T2, "active": 1}),
    "finished, and the mirror says otherwise": (PLAIN, ENDED_WELL, ENDED_BADLY),
    "suspended, and the new mirror has not started": (PLAIN, {"startTime": T1, "conditions": [SUSPENDED]}, {}),
    "an end without a beginning or verdict": (PLAIN, {}, {"completionTime": T3}),
    "a text": (PLAIN, {}, "Complete"),
}


@pytest.mark.parametrize(("spec", "stored", "mirror"), NOTHING.values(), ids=NOTHING)
def test_nothing_is_written(spec: Json, stored: Json, mirror: object) -> None:
    """What is stored says it already, or is final."""
    assert following(spec, stored, mirror).status is None


def test_a_suspension_that_nobody_saw_comes_first() -> None:
    """M11: startTime moves only through a suspension, so that is written in between."""
    mirror = {"startTime": T2, "active": 1, "conditions": [RESUMED]}
    stored = {"startTime": T1, "active": 2, "failed": 1}

    first = following(PLAIN, stored, mirror)

    assert first.status == stored | {"conditions": [SUSPENDED | {"lastTransitionTime": T2, "lastProbeTime": T2}]}
    assert first.more
    second = following(PLAIN, first.status, mirror)
    assert second.status == {"startTime": T2, "active": 1, "failed": 1, "conditions": [RESUMED]}
    assert not second.more


@pytest.mark.parametrize(
    ("spec", "stored", "mirror", "shown"),
    [
        pytest.param(PLAIN, {}, {}, True, id="held by the worker's queue"),
        pytest.param(SUSPENDED_SPEC, {}, {}, True, id="created suspended"),
        pytest.param(PLAIN, {"startTime": T1}, {"startTime": T1, "active": 1}, False, id="its pods still run"),
        pytest.param(PLAIN, {"conditions": [MET]}, {}, False, id="its end is decided"),
    ],
)
def test_a_mirror_that_never_ran_is_suspended_at_once(spec: Json, stored: Json, mirror: Json, shown: bool) -> None:
    """D9: spec.suspend of the mirror is shown before its controller says so, unless there is something to wait for."""
    status = following(spec, stored, mirror, mirror_suspended=True).status

    assert shown == conditions.is_true(conditions.of(status or {}), "Suspended")


SKEWS = {
    "the end lies in our future": (None, "2026-03-01T13:00:20Z", True, NOW_TEXT),
    "a few seconds are no skew": (None, "2026-03-01T13:00:12Z", False, "2026-03-01T13:00:12Z"),
    "we were away when it ended": (None, T2, False, T2),
    "a clock that is known to be right": (3.0, T2, False, T2),
    "a clock that is known to be slow": (-3600.0, T2, True, NOW_TEXT),
    "a clock that is known to be fast": (11.0, T2, True, NOW_TEXT),
}


@pytest.mark.parametrize(("offset", "ended", "skewed", "written"), SKEWS.values(), ids=SKEWS)
def test_the_final_condition_gets_our_time_when_clocks_differ(
    offset: float | None, ended: str, skewed: bool, written: str
) -> None:
    """D7, M7: the management cluster's TTL runs by that time. Start and completion stay the worker's."""
    mirror = ENDED_WELL | {"completionTime": ended, "conditions": [MET, COMPLETE | {"lastTransitionTime": ended}]}

    found = following(PLAIN, {}, mirror, clock_offset_seconds=offset)

    assert found.status is not None
    assert skewed == found.clock_skewed
    assert written == found.status["conditions"][1]["lastTransitionTime"]
    assert (T1, ended) == (found.status["startTime"], found.status["completionTime"])


def test_pods_that_an_older_worker_never_counts_down_are_waited_for_only_so_long() -> None:
    """A Job that ended with terminating pods on an old worker is finished once the caller says that nothing moves."""
    mirror = ENDED_BADLY | {"active": 1, "ready": 1, "terminating": 2, "uncountedTerminatedPods": {"failed": ["u-1"]}}

    assert following(PLAIN, {}, mirror).waits_for_pods
    found = following(PLAIN, {}, mirror, settled=True)

    assert found.status == ENDED_BADLY | {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    assert not found.waits_for_pods


@pytest.mark.parametrize(
    ("stored", "field"),
    [
        pytest.param({"conditions": [MET, TARGET]}, "conditions", id="V31, from before the API had rules"),
        pytest.param({"startTime": None}, "startTime", id="V37, a zero time as the API serves it"),
    ],
)
def test_what_is_stored_may_allow_no_write_at_all(stored: Json, field: str) -> None:
    """Such a Job is left alone, with the reason, rather than written to and refused."""
    found = following(PLAIN, stored, {"startTime": T1, "active": 1})

    assert found.status is None
    assert f"allows no such write: status.{field}" in found.because


@pytest.mark.slow
def test_index_texts_that_together_are_too_long_keep_what_is_stored() -> None:
    """A worker that names ever new indexes cannot make the source too large to be written."""
    spec = INDEXED | {"completions": 10**6}
    before, new = (",".join(map(str, range(first, first + 240_000, 4))) for first in (100_000, 100_002))

    found = following(spec, {"succeeded": 60_000, "completedIndexes": before}, {"completedIndexes": new, "active": 1})

    assert found.status == {"succeeded": 60_000, "completedIndexes": before, "active": 1}


def test_a_status_that_is_stored_for_long_is_followed_from_any_clock() -> None:
    """Nothing but the final condition and supplied ones depends on our clock."""
    mirror = {"startTime": T1, "active": 1, "conditions": [RESUMED]}
    stored = StoredJob.of(PLAIN, {})

    later = next_status(stored, mirror, now=NOW + timedelta(days=400))

    assert later == next_status(stored, mirror, now=NOW)
