"""What is stored of events: client-go's correlation (N3), and the one thing that is better."""

from datetime import UTC, datetime, timedelta

from mirror.jobcontroller.correlation import About, Correlation, Stored, Told
from mirror.runtime import correlation

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def tell(
    memory: Correlation,
    message: str,
    *,
    reason: str = "SuccessfulCreate",
    seconds: float = 0.0,
    job: str = "train",
    type_name: str = "Normal",
) -> Stored | None:
    about = About("default", job, f"uid of {job}", "7")
    return memory.correlate(Told(about, type_name, reason, message, NOON + timedelta(seconds=seconds)))


def test_the_same_again_is_counted() -> None:
    """An identical event is the first one with another count and a later time."""
    memory = Correlation()
    first, again = tell(memory, "Job suspended"), tell(memory, "Job suspended", seconds=5)

    assert first is not None
    assert again is not None
    assert (first.name, first.count) == (again.name, 1)
    assert (again.count, again.first, again.told.at) == (2, NOON, NOON + timedelta(seconds=5))


def test_names_are_made_as_client_go_makes_them() -> None:
    """``JOB.`` and nanoseconds in hexadecimal; two events of one moment differ."""
    memory = Correlation()
    names = [stored.name for number in range(2) if (stored := tell(memory, f"pod {number}"))]

    assert names == [f"train.{int(NOON.timestamp()) * 10**9 + number:x}" for number in range(2)]


def test_a_name_that_is_none_is_made_up() -> None:
    """A Job's name may leave no room for the rest."""
    stored = tell(Correlation(), "x", job="a" * 250)

    assert stored is not None
    assert len(stored.name) == 36


def test_the_tenth_similar_event_begins_a_combined_one() -> None:
    """Nine single ones; then one event that is counted up and shows the newest message."""
    memory = Correlation()
    stored = [tell(memory, f"Created pod: p{number}") for number in range(12)]

    assert [one.is_combined for one in stored if one] == [False] * 9 + [True] * 3
    combined = [one for one in stored if one and one.is_combined]
    assert [one.count for one in combined] == [1, 2, 3]
    assert len({one.name for one in combined}) == 1
    assert combined[-1].message == "(combined from similar events): Created pod: p11"


def test_ten_minutes_of_silence_end_a_group() -> None:
    """Counted from the latest similar event."""
    memory = Correlation()
    for number in range(9):
        tell(memory, f"p{number}")

    at_600, later = tell(memory, "p9", seconds=600), tell(memory, "p10", seconds=1201)

    assert at_600 is not None
    assert at_600.is_combined
    assert later is not None
    assert not later.is_combined


def test_other_jobs_types_and_reasons_are_groups_of_their_own() -> None:
    """Only what differs by its message alone is similar."""
    memory = Correlation()
    for number in range(9):
        tell(memory, f"p{number}")

    others = (
        tell(memory, "p9", job="other"),
        tell(memory, "p9", type_name="Warning"),
        tell(memory, "p9", reason="SuccessfulDelete"),
    )
    assert [one.is_combined for one in others if one] == [False] * 3


def test_a_job_may_tell_25_times_and_once_more_every_five_minutes() -> None:
    """40 pods: 9 single events and a combined one with count 16, as on the real thing (N3)."""
    memory = Correlation()
    stored = [tell(memory, f"Created pod: p{number}") for number in range(40)]

    told = [one for one in stored if one is not None]
    assert (len(told), told[-1].count) == (25, 16)
    assert tell(memory, "Created pod: p40", seconds=299) is None
    late = tell(memory, "Created pod: p41", seconds=301)
    assert late is not None
    assert late.count == 33  # those that were not stored are counted


def test_the_end_of_a_large_job_is_told() -> None:
    """Upstream's bucket is empty by then, and its Completed event is lost (N3); pods use up only their own here."""
    memory = Correlation()
    for number in range(40):
        tell(memory, f"Created pod: p{number}")

    assert tell(memory, "Job completed", reason="Completed") is not None
    assert tell(memory, "Deleted pod: p1", reason="SuccessfulDelete") is None


def test_a_reason_that_is_told_for_ever_is_bounded_too() -> None:
    """Each has a bucket like the pods'."""
    memory = Correlation()
    told = [tell(memory, "unknown", reason="UnknownCompletionMode", type_name="Warning") for _ in range(100)]

    assert len([one for one in told if one]) == correlation.BURST


def test_what_is_remembered_is_bounded() -> None:
    """The Jobs that nobody told of for the longest are forgotten."""
    memory = Correlation()
    for number in range(correlation.MOST_REMEMBERED + 1):
        tell(memory, "Job completed", job=f"job-{number}")

    first, last = tell(memory, "Job completed", job="job-0"), tell(memory, "Job completed", job="job-4096")
    assert first is not None
    assert last is not None
    assert (first.count, last.count) == (1, 2)
