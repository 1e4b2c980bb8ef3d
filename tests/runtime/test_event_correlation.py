"""What is stored of events: client-go's correlation (N3), and repeats that are left out."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime, timedelta

import pytest

from mirror.kube.resources import JOBS, PODS
from mirror.runtime import correlation
from mirror.runtime.correlation import EventCorrelator, RepeatFilter
from mirror.runtime.events import Event, Regarding, StoredEvent

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Now:
    """A clock that is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    boottime = monotonic


def record(
    memory: EventCorrelator,
    message: str,
    *,
    reason: str = "SuccessfulCreate",
    seconds: float = 0.0,
    job: str = "train",
    type_name: str = "Normal",
) -> StoredEvent | None:
    about = Regarding(JOBS, "default", job, f"uid of {job}", "7")
    return memory.correlate(Event(about, type_name, reason, message, NOON + timedelta(seconds=seconds)))


def test_the_same_again_is_counted() -> None:
    """An identical event is the first one with another count and a later time."""
    memory = EventCorrelator()
    first, again = record(memory, "Job suspended"), record(memory, "Job suspended", seconds=5)

    assert first is not None
    assert again is not None
    assert (first.series, first.count) == (again.series, 1)
    assert (again.count, again.series.first, again.event.at) == (2, NOON, NOON + timedelta(seconds=5))


def test_names_are_made_as_client_go_makes_them() -> None:
    """``JOB.`` and nanoseconds in hexadecimal; two events of one moment differ."""
    memory = EventCorrelator()
    names = [memory.new_name("train", NOON) for _ in range(2)]

    assert names == [f"train.{int(NOON.timestamp()) * 10**9 + number:x}" for number in range(2)]


def test_a_name_that_is_none_is_made_up() -> None:
    """A Job's name may leave no room for the rest."""
    assert len(EventCorrelator().new_name("a" * 250, NOON)) == 36


def test_the_tenth_similar_event_begins_a_combined_one() -> None:
    """Nine single ones; then one event that is counted up and shows the newest message."""
    memory = EventCorrelator()
    stored = [record(memory, f"Created pod: p{number}") for number in range(12)]

    assert [one.is_combined for one in stored if one] == [False] * 9 + [True] * 3
    combined = [one for one in stored if one and one.is_combined]
    assert [one.count for one in combined] == [1, 2, 3]
    assert len({id(one.series) for one in combined}) == 1
    assert combined[-1].message == "(combined from similar events): Created pod: p11"


def test_ten_minutes_of_silence_end_a_group() -> None:
    """Counted from the latest similar event."""
    memory = EventCorrelator()
    for number in range(9):
        record(memory, f"p{number}")

    at_600, later = record(memory, "p9", seconds=600), record(memory, "p10", seconds=1201)

    assert at_600 is not None
    assert at_600.is_combined
    assert later is not None
    assert not later.is_combined


def test_other_jobs_types_and_reasons_are_groups_of_their_own() -> None:
    """Only what differs by its message alone is similar."""
    memory = EventCorrelator()
    for number in range(9):
        record(memory, f"p{number}")

    others = (
        record(memory, "p9", job="other"),
        record(memory, "p9", type_name="Warning"),
        record(memory, "p9", reason="SuccessfulDelete"),
    )
    assert [one.is_combined for one in others if one] == [False] * 3


def test_parts_of_an_object_have_events_of_their_own() -> None:
    """The same of two containers is two events."""
    memory = EventCorrelator()
    parts = [Regarding(PODS, "default", "p", "u", "7", f"spec.containers{{{name}}}") for name in "ab"]
    stored = [memory.correlate(Event(part, "Normal", "Started", "Container started", NOON)) for part in parts]

    assert [one.count for one in stored if one] == [1, 1]


def test_an_object_has_25_events_and_one_more_every_five_minutes() -> None:
    """40 pods: 9 single events and a combined one with count 16, as on the real thing (N3)."""
    memory = EventCorrelator()
    stored = [record(memory, f"Created pod: p{number}") for number in range(40)]

    kept = [one for one in stored if one is not None]
    assert (len(kept), kept[-1].count) == (25, 16)
    assert record(memory, "Created pod: p40", seconds=299) is None
    late = record(memory, "Created pod: p41", seconds=301)
    assert late is not None
    assert late.count == 33  # those that were not stored are counted


@pytest.mark.parametrize(("bucket", "kept"), [("object", 25), ("reason", 50)])
def test_who_shares_a_bucket_is_the_components_choice(bucket: str, kept: int) -> None:
    """All events of an object, as client-go has it, unless a function says otherwise."""

    def by_reason(event: Event) -> Hashable:
        return event.regarding.uid, event.reason

    memory = EventCorrelator() if bucket == "object" else EventCorrelator(by_reason)
    stored = [record(memory, f"p{number}", reason=reason) for number in range(40) for reason in ("A", "B")]

    assert len([one for one in stored if one]) == kept


def test_what_is_remembered_is_bounded() -> None:
    """The Jobs that had no event for the longest are forgotten."""
    memory = EventCorrelator()
    for number in range(correlation.MOST_REMEMBERED + 1):
        record(memory, "Job completed", job=f"job-{number}")

    first, last = record(memory, "Job completed", job="job-0"), record(memory, "Job completed", job="job-4096")
    assert first is not None
    assert last is not None
    assert (first.count, last.count) == (1, 2)


def test_repeats_are_left_out_for_a_while() -> None:
    """Counted from the last one that was not; what differs by object, reason or message is no repeat."""
    clock = Now()
    memory = RepeatFilter(clock, 600.0)

    def is_kept(uid: str, reason: str, message: str) -> bool:
        about = Regarding(JOBS, "default", "train", uid, str(clock.seconds))
        return memory.correlate(Event(about, "Normal", reason, message, clock.now())) is not None

    assert is_kept("a", "Refused", "no")
    clock.seconds = 599.0
    assert not is_kept("a", "Refused", "no")
    assert is_kept("b", "Refused", "no")
    assert is_kept("a", "Mirrored", "no")
    assert is_kept("a", "Refused", "never")
    clock.seconds = 600.0
    assert is_kept("a", "Refused", "no")


def test_the_memory_of_repeats_is_bounded() -> None:
    """The oldest is forgotten first, and is no repeat then."""
    memory = RepeatFilter(Now(), 600.0, most_remembered=2)
    kept = []
    for uid in ("a", "b", "b", "c", "a"):
        about = Regarding(JOBS, "default", "train", uid)
        kept.append(memory.correlate(Event(about, "Normal", "Refused", "no", NOON)) is not None)

    assert kept == [True, True, False, True, True]


def test_names_of_single_events_are_random_and_fit() -> None:
    """Two replicas may record at the same moment; a name has at most 253 characters."""
    memory = RepeatFilter(Now(), 600.0)
    names = {memory.new_name("a" * 250, NOON) for _ in range(2)}

    assert [len(name) for name in names] == [217, 217]
