"""The page where a second kind is mirrored beside Jobs, under the same names (D24)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from test_page_serving import Site, serving

from mirror.model.keys import SourceKey
from mirror.model.views import Moment
from mirror.page import detail, listing
from mirror.page.query import Query
from mirror.page.table import Table
from tests.doubles.pretended import NOW, Pretended, before, job

HAPPENED = before(minutes=5)


def both() -> Pretended:
    """A Job and a Drill named ``train``, each with a story of its own."""
    known = Pretended()
    known.put(job("train"), Moment(at=HAPPENED, kind="Status", text="active 1"))
    known.put(job("train", "Complete", kind="Drill"), Moment(at=HAPPENED, kind="Status", text="rounds 3"))
    return known


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving(both()) as made:
        yield made


async def test_each_kind_has_its_row_and_its_page(site: Site) -> None:
    """The address of the second kind says which it is; a Job's is as it was."""
    _, text = await site.get("/")
    assert 'href="jobs/default/train"' in text
    assert 'href="jobs/default/train?kind=Drill"' in text
    assert 'id="j:default/train"' in text
    assert 'id="j:Drill/default/train"' in text

    status, of_job = await site.get("/jobs/default/train")
    assert (status, "active 1" in of_job, "rounds 3" in of_job) == (200, True, False)
    assert "<title>default/train – JobMirror</title>" in of_job
    status, of_drill = await site.get("/jobs/default/train?kind=Drill")
    assert (status, "active 1" in of_drill, "rounds 3" in of_drill) == (200, False, True)
    assert "<title>Drill default/train – JobMirror</title>" in of_drill


async def test_a_kind_that_is_not_known_is_404(site: Site) -> None:
    """As an object that is not there; what the address says is shown as text."""
    status, text = await site.get("/jobs/default/train?kind=%3Cb%3E")
    assert status == 404
    assert "&lt;b&gt; not found; it may have been deleted." in text


async def test_a_stream_is_of_the_kind_that_is_looked_at(site: Site) -> None:
    """What happens to the Job of the same name is nothing to who looks at the Drill."""
    async with site.session.get(f"{site.url}/events?job=default/train&kind=Drill") as stream:
        for _ in range(2):
            await stream.content.readuntil(b"\n\n")
        site.known.put(job("train", "Failed"), Moment(at=HAPPENED, kind="Error", text="broke"))
        site.known.put(job("train", "Failed", kind="Drill"), Moment(at=HAPPENED, kind="Error", text="blunt"))
        then = ""
        while "blunt" not in then:
            then += (await stream.content.readuntil(b"\n\n")).decode()
        assert "broke" not in then


def test_rows_of_one_name_are_two_parts() -> None:
    """Each is drawn, and sent again, by itself; only one that is no Job names its kind."""
    known = both()
    selection = Table(known.by_key.values()).select(Query())
    seen = listing.ListState(is_leading=True, workers=(), selection=selection, namespaces=())
    rows = {part.id: str(part.draw()) for part in listing.view(seen, Query(), NOW).lists["rows"]}

    assert set(rows) == {"j:default/train", "j:Drill/default/train"}
    assert ">Drill</span>" in rows["j:Drill/default/train"]
    assert 'title="Kind"' not in rows["j:default/train"]


def test_the_head_of_a_page_names_the_kind() -> None:
    """Where it is another than a Job."""

    def head(kind: str) -> str:
        key, known = SourceKey(kind, "default", "train"), both()
        seen = detail.JobState(is_leading=True, key=key, job=known.job(key))
        return next(str(part.draw()) for part in detail.view(seen, NOW).parts if part.id == "head")

    assert ">Drill</span>" in head("Drill")
    assert 'title="Kind"' not in head("Job")
