"""What a list says against what is stored: a newer write of ours stays, and a server that has lost data is believed."""

from __future__ import annotations

import msgspec
import pytest
from doubles.jobs import as_object, job

from mirror.kube.objects import Object
from mirror.kube.resources import JOBS
from mirror.kube.watch import WatchEvent
from mirror.runtime.store import EVERYWHERE, Store
from mirror.runtime.store_writer import Change, Filter, Scope, StoreWriter


class Written:
    """A store that has seen one Job in version 20, and what is told of it."""

    def __init__(self) -> None:
        self.store = Store()
        self.told: list[tuple[str, Change]] = []
        self.writer = StoreWriter(Scope(JOBS), self.store, Filter(), on_change=self._on_change)
        self.list("10", as_job(9))
        self.writer.take_event(WatchEvent("MODIFIED", as_job(20)))
        self.told.clear()

    def list(self, version: str, *listed: Object) -> None:
        """A whole list."""
        self.writer.begin_list()
        for one in listed:
            self.writer.take_listed(one)
        self.writer.finish_list(version)

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


def as_job(version: int) -> Object:
    """The Job in this version."""
    body = job("a")
    return as_object(body | {"metadata": {**body["metadata"], "namespace": "default", "resourceVersion": str(version)}})


@pytest.mark.parametrize("version", ["15", "1000"], ids=["older versions", "raised versions"])
def test_a_server_that_has_lost_data_is_believed(version: str) -> None:
    """It was restored, by the book with its revision raised: the list is newer, what it shows is older."""
    written = Written()
    written.list(version, as_job(9))
    assert written.version == 9
    assert written.told == [("9", Change.LISTED)]
    assert written.store.turned_back == 1
    assert written.store.progress(EVERYWHERE) == int(version)


def test_a_list_that_is_older_than_our_write_tells_nothing() -> None:
    """The answer to the write came while the list was under way."""
    written = Written()
    written.writer.begin_list()
    assert written.store.read_own_write(as_job(40))
    written.writer.take_listed(as_job(20))
    written.writer.finish_list("30")
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


def test_a_spec_that_stays_is_kept_as_it_is() -> None:
    """What a kind has read of it need not be read anew for each status, whoever wrote that."""
    written = Written()
    spec = written.spec
    written.writer.take_event(WatchEvent("MODIFIED", as_job(21)))
    assert written.spec is spec
    assert written.store.read_own_write(as_job(22))
    assert (written.version, written.spec is spec) == (22, True)


@pytest.mark.parametrize("kind", ["MODIFIED", "DELETED"])
def test_what_a_list_shows_later_counts(kind: str) -> None:
    """A watch that begins with all objects goes on with what has changed before it was whole."""
    written = Written()
    written.writer.begin_list()
    assert written.store.read_own_write(as_job(40))
    written.writer.take_listed(as_job(20))
    if kind == "DELETED":
        written.writer.take_deleted_while_listing(WatchEvent(kind, as_job(41)))
    else:
        written.writer.take_listed(as_job(40))
    written.writer.finish_list("50")
    assert written.version == (0 if kind == "DELETED" else 40)
    assert written.store.turned_back == 0
