"""The last hours: what was counted, what the Jobs tell, and the picture of both."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mirror.model.views import JobView
from mirror.page.activity import BAR_SECONDS, BARS, GROUPS, Activity, bars_of
from mirror.page.chart import activity, nice_top
from mirror.page.markup import LONGEST_TEXT
from tests.doubles.pretended import before, job, many

BEGIN = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
LATER = timedelta(seconds=BAR_SECONDS)


def at(bar: int, seconds: float = 0) -> str:
    return (BEGIN + bar * LATER + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def named(counts: tuple[int, ...]) -> dict[str, int]:
    return {group: many for group, many in zip(GROUPS, counts, strict=True) if many}


def test_jobs_tell_of_the_past() -> None:
    """Each is in the bars in which it was, by its state at their end."""
    done = job("done", "Complete", created=at(0, 10), started=at(2, 10), finished=at(4, 10))
    quick = job("quick", "Failed", created=at(4, 1), started=at(4, 2), finished=at(4, 3))
    runs = job("runs", created=at(3), started=at(3, 1))
    waits = job("waits", "Waiting", created=at(5))
    bars = bars_of([done, quick, runs, waits], BEGIN + 5 * LATER + timedelta(seconds=1))
    assert [named(bar.counts) for bar in bars[-6:]] == [
        {"Waiting": 1}, {"Waiting": 1}, {"Running": 1}, {"Running": 2},
        {"Running": 1, "Failed": 1, "Complete": 1}, {"Running": 1, "Waiting": 1},
    ]  # fmt: skip
    assert [bar.at for bar in bars] == [BEGIN + (5 - n) * LATER for n in reversed(range(BARS))]


def test_what_was_counted_outlives_the_jobs() -> None:
    """Deleted Jobs stay in the bars that were followed; a gap in which nobody looked is told by the Jobs."""
    seen, running = Activity(), job("a", created=at(-1), started=at(-1))
    seen.begin([running], BEGIN)
    seen.count({"Running": 1}, BEGIN)
    seen.count({"Running": 1}, BEGIN + LATER)
    seen.note(running, job("a", "Complete"))
    seen.count({"Complete": 1}, BEGIN + LATER + timedelta(seconds=9))
    seen.count({}, BEGIN + 2 * LATER)
    assert [named(bar.counts) for bar in seen.bars(BEGIN + 2 * LATER)[-3:]] == [{"Running": 1}, {"Complete": 1}, {}]
    seen.begin([], BEGIN + 9 * LATER)
    assert named(seen.bars(BEGIN + 9 * LATER)[-9].counts) == {"Complete": 1}


TIMES = st.integers(-400, 5).map(lambda minutes: at(0, minutes * 60))


@given(st.lists(st.builds(
    lambda state, times: job("x", state, created=min(times), started=sorted(times)[1], finished=max(times)),
    st.sampled_from(["Complete", "Failed", "Odd"]), st.lists(TIMES, min_size=3, max_size=3),
)))  # fmt: skip
def test_bars_never_lie(jobs: list[JobView]) -> None:
    """No count is negative, and of those that ended each is counted once."""
    bars = bars_of(jobs, BEGIN)
    assert all(many >= 0 for bar in bars for many in bar.counts)
    ended = sum(bar.counts[3] + bar.counts[4] for bar in bars)
    assert ended == sum(job.finished >= bars[0].at.strftime("%Y-%m-%dT%H:%M:%SZ") for job in jobs)


def test_what_is_held_is_bounded() -> None:
    """A page that is open for a week."""
    seen = Activity()
    seen.begin([], BEGIN)
    for number in range(2_000):
        seen.count({"Running": number}, BEGIN + number * LATER)
    assert len(seen._done) <= BARS
    assert len(seen._rebuilt) <= BARS


def test_the_picture_is_bounded_and_says_it_in_words() -> None:
    """Whatever the bars are, no text in it is cut."""
    now = datetime.fromisoformat(before())
    drawn = activity(bars_of(many(20_000).by_key.values(), now)).draw()
    assert len(drawn) < 40_000
    assert 'role="img"' in drawn
    assert "Jobs of the last 6 hours by state" in drawn
    assert max(len(part) for part in drawn.split('"')) < LONGEST_TEXT


def test_the_scale_seldom_changes() -> None:
    """Round numbers."""
    assert [nice_top(most) for most in (0, 1, 2, 3, 11, 20, 21, 999, 20_000)] == [1, 1, 2, 5, 20, 20, 50, 1000, 20_000]
