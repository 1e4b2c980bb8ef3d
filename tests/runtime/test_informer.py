"""The informer: whatever happens to its watch, the store ends up like the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any

import pytest
from doubles.jobs import as_object, job
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault, Gone, Wire, client_of, wire_to

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import KubeError, OutcomeUnknown, Unreachable
from mirror.kube.objects import Object
from mirror.kube.requests import Request
from mirror.kube.resources import JOBS
from mirror.kube.streaming import Silence
from mirror.kube.watch import WatchEvent
from mirror.runtime.informer import (
    UNANSWERED_SECONDS,
    Change,
    Filter,
    Informer,
    InformerHooks,
    Listener,
    Phase,
    Scope,
)
from mirror.runtime.store import Store
from mirror.runtime.turns import OBJECTS_A_TURN

pytestmark = pytest.mark.looptime


class Watched:
    """An informer at work, and what it has told."""

    def __init__(self, wire: Wire, *, namespace: str | None = None, selector: str = "", **more: Any) -> None:
        self.wire = wire
        self.store = Store()
        self.changes: list[tuple[str, Change]] = []
        self.troubles: list[KubeError] = []
        self.healthy = 0
        self.events: list[WatchEvent] = []
        client = client_of(wire)
        self.informer = Informer(
            Scope(JOBS, namespace, selector),
            self.store,
            client=lambda: client,
            hooks=InformerHooks(self._on_change, self.events.append, self.troubles.append, self._on_healthy),
            **more,
        )

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        assert found is not None
        self.changes.append((found.metadata.name, change))

    def _on_healthy(self) -> None:
        self.healthy += 1

    def names(self) -> set[str]:
        return {found.metadata.name for found in self.store}

    def news(self) -> list[tuple[str, Change]]:
        """What was told since the last look."""
        found, self.changes = self.changes, []
        return found

    def verbs(self) -> list[str]:
        found = [sent.verb for sent in self.wire.sent]
        self.wire.sent.clear()
        return found

    def is_like_the_server(self) -> bool:
        stored = {found.metadata.name: found.metadata.resource_version for found in self.store}
        there = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in self.wire.server.all("jobs")}
        return stored == there


@asynccontextmanager
async def watching(wire: Wire | None = None, *jobs: str, **more: Any) -> AsyncIterator[Watched]:
    """An informer on a server with these Jobs, synced."""
    wire = wire or wire_to("c")
    for name in jobs:
        wire.server.put("jobs", job(name))
    watched = Watched(wire, **more)
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(watched.informer.run(), name="informer")
        await asyncio.sleep(0.1)
        yield watched
        task.cancel()


@pytest.mark.parametrize("streams_lists", [True, False], ids=["one watch that begins with all", "pages, then a watch"])
async def test_everything_is_listed_and_then_followed(streams_lists: bool) -> None:
    """An older server refuses the first, which is remembered."""
    wire = wire_to("c", streams_lists=streams_lists)
    async with watching(wire, "a", "b") as watched:
        assert watched.informer.is_synced
        assert watched.names() == {"a", "b"}
        assert watched.verbs() == (["watch"] if streams_lists else ["watch", "list", "watch"])
        wire.server.put("jobs", job("c"))
        wire.server.remove("jobs", "a")
        wire.server.edit("jobs", "b", lambda body: body["spec"].update(parallelism=2))
        await asyncio.sleep(0.1)
        assert watched.is_like_the_server()
        changes = [("c", Change.SEEN), ("a", Change.DELETED), ("b", Change.SEEN)]
        assert watched.news()[2:] == changes
        wire.expire(Gone.BY_EVENT)
        await asyncio.sleep(1)
        assert watched.verbs() == (["watch"] if streams_lists else ["list", "watch"])


async def test_a_long_list_comes_in_pages() -> None:
    """500 at a time."""
    wire = wire_to("c", streams_lists=False)
    async with watching(wire, *(f"job-{number}" for number in range(1_100))) as watched:
        assert len(watched.store) == 1_100
        assert watched.verbs().count("list") == 3


async def test_only_one_namespace_or_certain_labels_are_watched() -> None:
    """A scope bounds it."""
    wire = wire_to("c")
    wire.server.put("namespaces", {"metadata": {"name": "other"}})
    wire.server.put("jobs", job("there", namespace="other", labels={"app": "x"}))
    wire.server.put("jobs", job("unlabelled", namespace="other"))
    async with watching(wire, "here", namespace="other", selector="app=x") as watched:
        assert watched.names() == {"there"}
        wire.server.edit("jobs", "there", lambda body: body["metadata"].update(labels={}), "other")
        await asyncio.sleep(0.1)
        assert watched.names() == set()


async def test_a_watch_that_ends_is_resumed_from_its_last_version() -> None:
    """Nothing is listed again, nothing is told twice, and nothing in between is missed."""
    async with watching(None, "a") as watched:
        watched.news(), watched.verbs()
        watched.wire.end_watches()
        watched.wire.server.put("jobs", job("between"))
        await asyncio.sleep(1)
        assert watched.news() == [("between", Change.SEEN)]
        assert watched.verbs() == ["watch"]
        assert watched.troubles == []


async def test_a_bookmark_moves_the_version_from_which_to_resume() -> None:
    """Else an idle watch would have to list after each compaction."""
    async with watching(None, "a") as watched:
        for number in range(5):
            watched.wire.server.put("secrets", {"metadata": {"name": f"s{number}", "namespace": "default"}})
        await asyncio.sleep(130)
        watched.verbs()
        watched.wire.server.compact()
        watched.wire.end_watches()
        await asyncio.sleep(1)
        assert watched.verbs() == ["watch"]


@pytest.mark.parametrize("form", list(Gone), ids=lambda form: form.value)
async def test_a_version_that_is_too_old_means_a_new_list_and_its_difference(form: Gone) -> None:
    """410 in each form; deletions that were missed are told as not certain."""
    async with watching(None, "stays", "changes", "goes") as watched:
        watched.news()
        watched.wire.break_watches()
        watched.wire.is_down = True
        await asyncio.sleep(0.01)
        server = watched.wire.server
        server.remove("jobs", "goes")
        server.edit("jobs", "changes", lambda body: body["spec"].update(parallelism=2))
        server.put("jobs", job("comes"))
        server.compact()
        watched.wire.restore()
        await asyncio.sleep(5)
        assert sorted(watched.news()) == sorted(
            [("changes", Change.LISTED), ("comes", Change.LISTED), ("goes", Change.MISSING)], key=str
        )
        assert watched.is_like_the_server()
        watched.wire.expire(form)
        server.put("jobs", job("later"))
        await asyncio.sleep(5)
        assert [name for name, _ in watched.news()] == ["later"]
        assert watched.is_like_the_server()


async def test_deleted_and_made_again_while_nobody_watched() -> None:
    """The new object has another uid; the old one's deletion is left to who compares them."""
    async with watching(None, "a") as watched:
        first = watched.store.get("default", "a")
        assert first is not None
        watched.wire.expire(Gone.BY_EVENT)
        watched.wire.server.remove("jobs", "a")
        watched.wire.server.put("jobs", job("a"))
        await asyncio.sleep(1)
        second = watched.store.get("default", "a")
        assert second is not None
        assert second.metadata.uid != first.metadata.uid
        assert watched.is_like_the_server()


async def test_the_echo_of_our_own_write_is_no_news() -> None:
    """The answer is in the store already when the watch brings the same version."""
    async with watching(None, "a") as watched:
        watched.news()
        written = watched.wire.server.edit("jobs", "a", lambda body: body["spec"].update(parallelism=3))
        assert watched.store.read_own_write(as_object(written))
        await asyncio.sleep(1)
        assert watched.news() == []
        assert watched.is_like_the_server()


async def test_a_late_deletion_of_an_earlier_namesake_deletes_nothing() -> None:
    """The store has the new one already, from the answer to a create."""
    async with watching(None, "a") as watched:
        watched.wire.server.remove("jobs", "a")
        again = watched.wire.server.put("jobs", job("a"))
        watched.store.read_own_write(as_object(again))
        await asyncio.sleep(1)
        assert watched.names() == {"a"}
        assert ("a", Change.DELETED) not in watched.news()


async def test_an_object_that_is_not_accepted_any_more_leaves_the_store() -> None:
    """It still exists: its end here is not told as a deletion."""

    def accept(found: Object) -> bool:
        return "no" not in found.labels

    async with watching(None, "a", wanted=Filter(accept=accept)) as watched:
        watched.news()
        watched.wire.server.edit("jobs", "a", lambda body: body["metadata"]["labels"].update(no="1"))
        await asyncio.sleep(1)
        assert watched.news() == [("a", Change.MISSING)]
        assert watched.names() == set()


async def test_a_refusal_is_trouble_until_a_new_list_proves_the_right() -> None:
    """403 on a resumed watch: it lists anew, and says when it is well."""
    async with watching(None, "a") as watched:
        assert watched.healthy == 1
        watched.wire.arrange("watch", "jobs", forbidden(), times=2)
        watched.wire.end_watches()
        await asyncio.sleep(10)
        assert [type(error).__name__ for error in watched.troubles] == ["Forbidden", "Forbidden"]
        assert watched.healthy == 2
        assert watched.is_like_the_server()


async def test_a_server_that_is_away_is_asked_less_and_less() -> None:
    """The delay grows to half a minute, and the store keeps what it has."""
    async with watching(None, "a") as watched:
        watched.wire.go_down()
        await asyncio.sleep(60)
        early = len(watched.verbs())
        await asyncio.sleep(600)
        assert early < 12
        assert len(watched.verbs()) < 40
        assert watched.names() == {"a"}
        assert watched.informer.describe().phase is Phase.BACKING_OFF


async def test_a_nudge_ends_the_waiting() -> None:
    """Somebody knows that the server is back: no need to wait for half a minute."""
    async with watching(None, "a") as watched:
        watched.wire.go_down()
        await asyncio.sleep(200)
        watched.wire.restore()
        watched.wire.server.put("jobs", job("b"))
        watched.informer.nudge()
        await asyncio.sleep(0.1)
        assert watched.names() == {"a", "b"}


async def test_silence_ends_a_watch() -> None:
    """Bookmarks come each minute; a connection that brings none is dead."""
    async with watching(None, "a") as watched:
        watched.wire.is_hung = True
        await asyncio.sleep(100)
        assert watched.troubles == []
        watched.wire.is_hung = False
        watched.wire.server.put("jobs", job("b"))
        await asyncio.sleep(200)
        assert watched.is_like_the_server()


async def test_a_server_that_ends_each_watch_at_once_is_not_hammered() -> None:
    """A broken proxy must not cost a request each millisecond."""
    async with watching(None, "a") as watched:
        watched.verbs()
        watched.wire.ends_watches = True
        watched.wire.end_watches()
        await asyncio.sleep(60)
        assert 1 < len(watched.verbs()) < 60


async def test_a_list_that_breaks_in_the_middle_begins_anew() -> None:
    """Nothing is taken for deleted because half a list lacked it."""
    async with watching(None, *(f"job-{number}" for number in range(10))) as watched:
        watched.news()
        watched.wire.arrange("watch", "jobs", Refused(500, "InternalError"), times=3)
        watched.wire.arrange("watch", "jobs", Fault.BREAK)
        watched.wire.expire(Gone.BY_EVENT)
        await asyncio.sleep(20)
        assert watched.news() == []
        assert watched.is_like_the_server()


async def test_everything_that_passes_is_shown_before_it_is_judged() -> None:
    """``on_event`` sees objects that are not accepted, too (they are counted)."""
    async with watching(None, wanted=Filter(accept=lambda _: False)) as watched:
        watched.wire.server.put("jobs", job("not-ours"))
        await asyncio.sleep(0.1)
        assert [event.object.metadata.name for event in watched.events] == ["not-ours"]
        assert watched.names() == set()


async def test_what_is_kept_of_an_object_is_what_is_stored_and_told() -> None:
    """A smaller one, say; from a list as from a watch, and only of what is accepted."""

    class Slim(Object):
        """Nothing but its metadata."""

    def keep(found: Object) -> Object:
        return Slim(found.metadata)

    wire = wire_to("c")
    wanted = Filter(keep=keep, accept=lambda found: found.metadata.name != "no")
    async with watching(wire, "listed", wanted=wanted) as watched:
        wire.server.put("jobs", job("watched"))
        wire.server.put("jobs", job("no"))
        wire.server.edit("jobs", "listed", lambda body: body["spec"].update(parallelism=2))
        await asyncio.sleep(1)
        assert watched.names() == {"listed", "watched"}
        assert all(isinstance(found, Slim) for found in watched.store)
        assert watched.is_like_the_server() is False  # "no" is missing


async def test_a_deletion_among_the_first_events_is_no_version_to_go_on_from() -> None:
    """A list that breaks off half-way is begun anew, and what was listed before it may be gone."""
    wire = wire_to("c")
    for name in ("a", "b"):
        wire.server.put("jobs", job(name))
    half = HalfAList(client_of(wire))
    watched = Watched(wire)
    watched.informer._client = lambda: half  # all that it calls is stream
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(watched.informer.run(), name="informer")
        await asyncio.sleep(5)
        assert watched.informer.is_synced
        assert watched.is_like_the_server()
        task.cancel()


@pytest.mark.parametrize("where", ["before its answer", "in the middle"])
async def test_a_list_that_falls_silent_is_begun_anew_soon(where: str) -> None:
    """Nobody can work without it; a watch is given longer, since nothing may have changed."""
    wire = wire_to("c")
    wire.server.put("jobs", job("a"))
    watched = Watched(wire)
    if where == "in the middle":
        half = HalfAList(client_of(wire), falls_silent=True)
        watched.informer._client = lambda: half  # all that it calls is stream
    else:
        wire.arrange("watch", "jobs", Fault.HANG)
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(watched.informer.run(), name="informer")
        await asyncio.sleep(UNANSWERED_SECONDS - 1)
        assert not watched.informer.is_synced
        await asyncio.sleep(3)
        assert watched.informer.is_synced
        assert watched.is_like_the_server()
        task.cancel()


async def test_a_watch_that_is_not_answered_is_asked_for_again_soon() -> None:
    """An API server that has just started may accept a connection and say nothing; only an open watch may be silent."""
    async with watching(None, "a") as watched:
        wire = watched.wire
        wire.arrange("watch", "jobs", Fault.HANG)
        wire.end_watches()
        await asyncio.sleep(1)
        wire.server.put("jobs", job("b"))
        await asyncio.sleep(UNANSWERED_SECONDS - 2)
        assert watched.names() == {"a"}
        await asyncio.sleep(5)
        assert watched.names() == {"a", "b"}


async def test_a_list_that_waits_for_the_rate_limit_keeps_its_place() -> None:
    """Whoever gives up goes to the end of the line; where it is long, nothing would ever be listed."""
    wire = wire_to("c")
    wire.server.put("jobs", job("a"))
    watched = Watched(wire)
    client, ask = client_of(wire, qps=1), requests.get(JOBS, "a", namespace="default")
    watched.informer._client = lambda: client
    async with asyncio.TaskGroup() as scope:
        waiting = [scope.create_task(client.send(ask), name="ask") for _ in range(40)]
        await asyncio.sleep(0)
        task = scope.create_task(watched.informer.run(), name="informer")
        await asyncio.sleep(UNANSWERED_SECONDS + 11)
        assert watched.informer.is_synced
        assert watched.informer.describe().restarts == 0
        assert all(one.done() for one in waiting)
        task.cancel()


class HalfAList:
    """A client whose first watch shows one object and a deletion, and breaks or falls silent."""

    def __init__(self, real: Client, *, falls_silent: bool = False) -> None:
        self._real = real
        self._first = True
        self._falls_silent = falls_silent

    @asynccontextmanager
    async def stream(self, request: Request, *, silent_seconds: Silence) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._real.stream(request, silent_seconds=silent_seconds) as lines:
            is_first, self._first = self._first, False
            yield self._half(silent_seconds) if is_first else lines

    async def _half(self, silent_seconds: Silence) -> AsyncIterator[bytes]:
        yield b'{"type":"ADDED","object":{"metadata":{"name":"gone","namespace":"default","resourceVersion":"2"}}}'
        yield b'{"type":"DELETED","object":{"metadata":{"name":"x","namespace":"default","resourceVersion":"3"}}}'
        if self._falls_silent and callable(silent_seconds):
            await asyncio.sleep(silent_seconds())
            raise Unreachable("the watch was silent")
        raise OutcomeUnknown("the connection broke")


async def test_a_bug_that_one_object_brings_to_light_does_not_end_the_watch() -> None:
    """It is logged, and the other objects come."""

    def accept(found: Object) -> bool:
        if found.metadata.name == "odd":
            raise OverflowError("date value out of range")
        return True

    async with watching(None, "a", "odd", "b", wanted=Filter(accept=accept)) as watched:
        assert (watched.informer.is_synced, watched.names()) == (True, {"a", "b"})
        wire = watched.wire
        wire.server.edit("jobs", "odd", lambda body: body["spec"].update(parallelism=2))
        wire.server.put("jobs", job("c"))
        await asyncio.sleep(0.1)
        assert watched.names() == {"a", "b", "c"}
        assert watched.verbs() == ["watch"]


async def test_an_object_that_is_nested_too_deeply_is_seen_like_others() -> None:
    """Whoever may create an object could stop the watch of all by its managed fields otherwise."""
    deep: dict[str, Any] = {}
    for _ in range(3_000):
        deep = {"f:a": deep}
    wire = wire_to("c")
    raw = b'{"metadata":{"name":"deep","namespace":"default","resourceVersion":"900",'
    fields = b'{"f:a":' * 3_000 + b"{}" + b"}" * 3_000
    raw += b'"managedFields":[{"fieldsV1":' + fields + b"}]}}"
    async with watching(wire, "a") as watched:
        wire.server.put_bytes("jobs", "deep", raw)
        await asyncio.sleep(0.1)
        assert watched.names() == {"a", "deep"}
        assert watched.troubles == []


@pytest.mark.parametrize("streams_lists", [True, False], ids=["one watch that begins with all", "pages, then a watch"])
async def test_the_lists_of_many_take_no_more_of_a_turn_than_one(streams_lists: bool) -> None:
    """A manager of a hundred workers has a hundred lists at its start, and users and Leases that wait for none."""
    wires = [wire_to("c", streams_lists=streams_lists) for _ in range(20)]
    for wire, number in product(wires, range(300)):
        wire.server.put("jobs", job(f"job-{number}"))
    loop, by_turn = asyncio.get_running_loop(), [0]

    def count(old: Object | None, new: Object | None, change: Change) -> None:
        if not by_turn[-1]:
            loop.call_soon(by_turn.append, 0)  # the next turn begins
        by_turn[-1] += 1

    informers = [_informer(wire, count) for wire in wires]
    async with asyncio.TaskGroup() as scope:
        tasks = [scope.create_task(informer.run()) for informer in informers]
        for informer in informers:
            await informer.wait_until_synced()
        for task in tasks:
            task.cancel()
    assert sum(by_turn) == 20 * 300
    assert max(by_turn) <= 2 * OBJECTS_A_TURN


def _informer(wire: Wire, on_change: Listener) -> Informer:
    client = client_of(wire)
    return Informer(Scope(JOBS), Store(), client=lambda: client, hooks=InformerHooks(on_change, of_workers=True))
