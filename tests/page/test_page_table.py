"""The table of all Jobs is always what a fresh look at them would give."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mirror.model.keys import SourceKey
from mirror.model.views import JobView
from mirror.page.health import STATES, judged
from mirror.page.query import SORTS, Query
from mirror.page.table import PAGE_JOBS, Table, Triage
from tests.doubles.pretended import NOW, before, job, many, picture

QUERIES = st.builds(
    Query,
    state=st.sampled_from(["", *STATES]),
    namespace=st.sampled_from(["", "a", "c"]),
    worker=st.sampled_from(["", "-", "east"]),
    text=st.sampled_from(["", "1", "b/"]),
)
JOBS = st.builds(
    lambda name, namespace, state, age: job(name, state, namespace=namespace, created=before(seconds=age)),
    name=st.sampled_from(["j1", "j2", "j3"]),
    namespace=st.sampled_from(["a", "b"]),
    state=st.sampled_from(STATES),
    age=st.integers(0, 3),
)


@given(st.lists(st.tuples(JOBS, st.booleans()), max_size=30), QUERIES)
def test_changes_leave_what_a_fresh_look_gives(changes: list[tuple[JobView, bool]], query: Query) -> None:
    """Order, counts and choice, after Jobs came, changed, were made anew and went."""
    table, jobs = Table(), dict[SourceKey, JobView]()
    for one, is_gone in changes:
        key = SourceKey(one.kind, one.namespace, one.name)
        table.put(key, None if is_gone else one)
        jobs.pop(key, None)
        if not is_gone:
            jobs[key] = one

    newest_first = sorted(jobs.values(), key=lambda one: (one.created, one.namespace, one.name), reverse=True)
    meant = [one for one in newest_first if query.matches(one)]
    chosen = [one for one in meant if query.state in ("", one.state)]
    selection = table.select(query)
    assert selection.rows == tuple(chosen)
    assert selection.counts == Counter(one.state for one in meant)
    assert (selection.found, len(table)) == (len(chosen), len(jobs))
    assert table.namespaces(9) == tuple(sorted({one.namespace for one in jobs.values()}))


def test_pages_are_bounded_and_the_last_is_the_last() -> None:
    """No more than a page is ever given; one behind the end is the last."""
    table = Table(many(250).by_key.values())
    last = table.select(Query(page=99))
    assert len(table.select(Query()).rows) == PAGE_JOBS
    assert (last.page, last.pages, len(last.rows)) == (3, 3, 50)


def test_nothing_is_one_empty_page() -> None:
    """There is always a page to be on."""
    selection = Table().select(Query(text="x"))
    assert (selection.rows, selection.page, selection.pages) == ((), 1, 1)


def test_each_column_sorts_both_ways() -> None:
    """Equal ones stay newest first; what has no value comes first, or last."""
    known = picture()
    table = Table(known.by_key.values())
    for column in SORTS:
        rising = [row.name for row in table.select(Query(sort=column), NOW).rows]
        falling = [row.name for row in table.select(Query(sort=f"-{column}"), NOW).rows]
        assert sorted(rising) == sorted(falling) == sorted(job.name for job in known.by_key.values())
        assert rising != falling
    by_progress = table.select(Query(sort="pods"), NOW).rows
    shares = [row.succeeded / row.completions for row in by_progress if row.completions]
    assert shares == sorted(shares)
    by_time = table.select(Query(sort="-took", state="Running"), NOW).rows
    assert by_time[0].name == "train-resnet-large"


def test_what_deserves_a_look_is_counted() -> None:
    """Each number is what its filter finds, and goes down again."""
    known = picture()
    table = Table(judged(job, known.by_name.get(job.worker)) for job in known.by_key.values())
    triage = table.triage()
    assert triage.waiting == (("WorkersFull", 2), ("NoMatchingWorker", 1))
    assert triage.stuck == (("ImagePullBackOff", 1),)
    assert (triage.unknown, triage.workers, triage.late) == (1, ("north",), 1)
    for query, count in (
        (Query(state="Failed"), triage.failed),
        (Query(state="Unknown"), triage.unknown),
        (Query(only="late"), triage.late),
        (Query(only="stuck"), 1),
        (Query(state="Waiting", reason="workersfull"), 2),
        (Query(only="stuck", reason="ImagePullBackOff"), 1),
        (Query(label="team=research,gpu in (a100)"), 2),
        (Query(kind="JobSet"), 0),
    ):
        assert table.select(query).found == count
    for key in known.by_key:
        table.put(key, None)
    assert table.triage() == Triage()
    assert (table.lags(), table.kinds(), table.places()) == ({}, (), ())


def test_a_selection_is_kept_until_something_changes() -> None:
    """Those who turn pages of the same do not make it be found again."""
    table = Table(many(500).by_key.values())
    assert table.select(Query(text="job", sort="name")).rows[0].name == "job-00000"
    table.put(SourceKey("Job", "team-0", "job"), job("job", namespace="team-0"))
    assert table.select(Query(text="job", sort="name")).rows[0].name == "job"
