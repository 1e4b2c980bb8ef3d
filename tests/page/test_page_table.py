"""The table of all Jobs is always what a fresh look at them would give."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mirror.model.keys import SourceKey
from mirror.model.views import JobView
from mirror.page.query import STATES, Query
from mirror.page.table import PAGE_JOBS, Table
from tests.doubles.pretended import before, job, many

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
