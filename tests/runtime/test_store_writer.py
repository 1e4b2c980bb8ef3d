"""What a list says against what is stored: a newer write of ours stays, and a server that has lost data is believed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from doubles.counting import Turns
from doubles.jobs import as_object, job

from mirror.kube.objects import Object
from mirror.kube.resources import JOBS
from mirror.kube.watch import WatchEvent
from mirror.runtime.store import EVERYWHERE, Store
from mirror.runtime.store_writer import Change, Filter, Scope, StoreWriter
from mirror.runtime.turns import OBJECTS_A_TURN, listing

pytestmark = pytest.mark.looptime


class Written:
    """A store that has seen one Job in version 20, and what is told of it."""

    def __init__(self) -> None:
        self.store = Store()
        self.told: list[tuple[str, Change]] = []
        self.writer = StoreWriter(Scope(JOBS), self.store, Filter(), on_change=self._on_change)

    async def begin(self) -> Written:
        await self.list("10", as_job(9))
        self.writer.take_event(WatchEvent("MODIFIED", as_job(20)))
        self.told.clear()
        return self

    async def list(self, version: str, *listed: Object) -> None:
        """A whole list."""
        self.writer.begin_list()
        for one in listed:
            self.writer.take_listed(one)
        await self.finish(version)

    async def finish(self, version: str) -> None:
        """The list under way is whole."""
        await self.writer.finish_list(version, listing(of_workers=True))

    @property
    def version(self) -> int:
        """Of the Job that is stored; 0 if there is none."""
        found = self.store.get("default", "a")
        return found.version if found is not None else 0

    @property
    def spec(self) -> msgspec.Raw:
        """Of the Job that is stored."""
        found = self.store.get("default", "a")
        assert found is not None
        return found.spec

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        assert found is not None
        self.told.append((found.metadata.resource_version, change))


def as_job(version: int, name: str = "a") -> Object:
    """The Job in this version, or one of another name."""
    body = job(name)
    return as_object(body | {"metadata": {**body["metadata"], "namespace": "default", "resourceVersion": str(version)}})


@pytest.mark.parametrize("version", ["15", "1000"], ids=["older versions", "raised versions"])
async def test_a_server_that_has_lost_data_is_believed(version: str) -> None:
    """It was restored, by the book with its revision raised: the list is newer, what it shows is older."""
    written = await Written().begin()
    await written.list(version, as_job(9))
    assert written.version == 9
    assert written.told == [("9", Change.LISTED)]
    assert written.store.turned_back == 1
    assert written.store.progress(EVERYWHERE) == int(version)


async def test_a_list_that_is_older_than_our_write_tells_nothing() -> None:
    """The answer to the write came while the list was under way."""
    written = await Written().begin()
    written.writer.begin_list()
    assert written.store.read_own_write(as_job(40))
    written.writer.take_listed(as_job(20))
    await written.finish("30")
    assert (written.version, written.told, written.store.turned_back) == (40, [], 0)


def test_the_echo_of_a_write_is_not_judged() -> None:
    """Whether to store it was judged of what is stored, which is as new or newer."""
    store, judged = Store(), list[str]()

    def accept(found: Object) -> bool:
        judged.append(found.metadata.resource_version)
        return True

    writer = StoreWriter(Scope(JOBS), store, Filter(accept=accept), on_change=lambda *_: None)
    for version in (20, 20, 15, 21):
        writer.take_event(WatchEvent("MODIFIED", as_job(version)))
    assert judged == ["20", "21"]


async def test_a_spec_that_stays_is_kept_as_it_is() -> None:
    """What a kind has read of it need not be read anew for each status, whoever wrote that."""
    written = await Written().begin()
    spec = written.spec
    written.writer.take_event(WatchEvent("MODIFIED", as_job(21)))
    assert written.spec is spec
    assert written.store.read_own_write(as_job(22))
    assert (written.version, written.spec is spec) == (22, True)


@pytest.mark.parametrize("kind", ["MODIFIED", "DELETED"])
async def test_what_a_list_shows_later_counts(kind: str) -> None:
    """A watch that begins with all objects goes on with what has changed before it was whole."""
    written = await Written().begin()
    written.writer.begin_list()
    assert written.store.read_own_write(as_job(40))
    written.writer.take_listed(as_job(20))
    if kind == "DELETED":
        written.writer.take_deleted_while_listing(WatchEvent(kind, as_job(41)))
    else:
        written.writer.take_listed(as_job(40))
    await written.finish("50")
    assert written.version == (0 if kind == "DELETED" else 40)
    assert written.store.turned_back == 0


class Crowd:
    """A store of many Jobs, and a list that has shown none of them."""

    def __init__(self, count: int) -> None:
        self.store, self.turns = Store(), Turns()
        self.gone = set[str]()
        self.turns.count(self, "_on_change")
        self.writer = StoreWriter(Scope(JOBS), self.store, Filter(), on_change=lambda *of: self._on_change(*of))
        for number in range(count):
            self.store.put(as_job(9, f"job-{number}"))
        self.writer.begin_list()

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        assert old is not None
        assert change is Change.MISSING
        self.gone.add(old.metadata.name)


async def test_what_a_list_has_not_shown_is_missing_some_at_a_time() -> None:
    """A thousand at once would hold up the event loop, by what each of them causes."""
    crowd = Crowd(10 * OBJECTS_A_TURN)
    await crowd.writer.finish_list("30", listing(of_workers=True))
    assert len(crowd.gone) == 10 * OBJECTS_A_TURN
    assert len(crowd.store) == 0
    assert crowd.turns.most["_on_change"] <= OBJECTS_A_TURN


async def test_what_is_written_or_gone_meanwhile_is_not_missing() -> None:
    """Who is told of the first that are missing may write the others, or find out that they are gone."""
    crowd = Crowd(3 * OBJECTS_A_TURN)
    finishing = asyncio.ensure_future(crowd.writer.finish_list("30", listing(of_workers=True)))
    await asyncio.sleep(0)
    written, gone, *_ = (name for _, name in crowd.store.names_in(EVERYWHERE))
    assert crowd.store.read_own_write(as_job(40, written))
    crowd.store.remove(("default", gone))
    await finishing
    assert crowd.store.names_in(EVERYWHERE) == [("default", written)]
    assert crowd.gone == {f"job-{number}" for number in range(3 * OBJECTS_A_TURN)} - {written, gone}


async def test_a_server_that_went_back_is_believed_in_one_turn() -> None:
    """Whoever ends a list in the middle of that begins another one, which does not tell what is left over."""
    crowd = Crowd(3 * OBJECTS_A_TURN)
    crowd.store.advance(EVERYWHERE, 50)
    await crowd.writer.finish_list("30", listing(of_workers=True))
    await asyncio.sleep(0)
    assert crowd.turns.most["_on_change"] == 3 * OBJECTS_A_TURN
    assert len(crowd.store) == 0
