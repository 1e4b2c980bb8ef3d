"""Events reach the server: merged while they wait, in order, bounded, and flushed at the end (N3)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from doubles.clock import LoopClock
from doubles.refusals import forbidden
from doubles.transport import Fault, MemoryTransport, Wire, client_of, wire_to

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.limits import Limiter
from mirror.kube.objects import Meta, Object
from mirror.kube.requests import Rank
from mirror.kube.resources import CONFIGMAPS, JOBS, Resource
from mirror.runtime.correlation import EventCorrelator
from mirror.runtime.event_recorder import EventRecorder, RecorderOptions
from mirror.runtime.events import Regarding
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

TRAIN = Regarding(JOBS, "default", "train", "the uid", "7")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
OPTIONS = RecorderOptions(component="test", longest_message=100, most_waiting=1000)


class Keepable(Object, weakref=True, gc=True):
    """An object whose end is noticed."""


def recorder(client: Client, options: RecorderOptions = OPTIONS) -> EventRecorder:
    return EventRecorder(client, options, EventCorrelator(), clock=LoopClock(), log=get_log("test"))


@asynccontextmanager
async def sending(found: EventRecorder) -> AsyncIterator[None]:
    """While the block runs its tasks send."""
    async with asyncio.TaskGroup() as scope:
        running = scope.create_task(found.run(), name="send")
        try:
            yield
        finally:
            running.cancel()


def limited(wire: Wire, qps: float) -> Client:
    """A client that may send one request at once."""
    credentials = Credentials(Endpoint("https://limited", None), Identity())
    limiter = Limiter(qps, 1, wire.clock.monotonic)
    return Client("limited", credentials, limiter, transport=MemoryTransport(wire), wall=wire.clock.wall)


def stored(wire: Wire) -> list[tuple[str, int, str]]:
    return sorted((event["reason"], event["count"], event["message"]) for event in wire.server.all("events"))


@pytest.mark.parametrize("host", ["", "node-0"])
async def test_an_event_has_the_shape_of_client_gos(host: str) -> None:
    """Source, reporter, the part of the object that it is about, times in whole seconds; nothing that is empty."""
    wire = wire_to("home")
    found = recorder(client_of(wire), replace(OPTIONS, host=host))
    async with sending(found):
        found.event(
            Regarding(JOBS, "default", "train", "the uid", "7", "spec.x"), "Normal", "Completed", "Job completed"
        )
        found.event(Regarding(NODES, "", "n", "u"), "Warning", "Other", "")
        await found.flush(5)

    of_node, event = sorted(wire.server.all("events"), key=lambda one: str(one["metadata"]["name"]))
    about = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "train"}
    assert event["involvedObject"] == {**about, "uid": "the uid", "resourceVersion": "7", "fieldPath": "spec.x"}
    assert event["source"] == ({"component": "test", "host": host} if host else {"component": "test"})
    assert event["reportingComponent"] == "test"
    assert event.get("reportingInstance", "") == host
    assert (event["firstTimestamp"], event["lastTimestamp"], event["count"]) == (("2026-03-01T12:00:00Z",) * 2 + (1,))
    assert event["metadata"]["name"].startswith("train.")
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Completed", "Job completed")
    assert of_node["metadata"]["namespace"] == "default"
    assert of_node["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}


async def test_what_was_stored_is_counted_up_by_a_patch() -> None:
    """A repeat changes the event that is there."""
    wire = wire_to("home")
    found = recorder(client_of(wire))
    async with sending(found):
        for _ in range(3):
            found.event(TRAIN, "Warning", "FailedCreate", "Error creating: no")
            await asyncio.sleep(1)

    assert stored(wire) == [("FailedCreate", 3, "Error creating: no")]
    assert [sent.verb for sent in wire.writes()] == ["create", "patch", "patch"]
    (event,) = wire.server.all("events")
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-03-01T12:00:00Z", "2026-03-01T12:00:02Z")


async def test_an_event_that_has_expired_is_made_anew() -> None:
    """Servers forget events after an hour."""
    wire = wire_to("home")
    found = recorder(client_of(wire))
    async with sending(found):
        found.event(TRAIN, "Normal", "Suspended", "Job suspended")
        await asyncio.sleep(1)
        (event,) = wire.server.all("events")
        wire.server.remove("events", event["metadata"]["name"], "default")
        found.event(TRAIN, "Normal", "Suspended", "Job suspended")
        await asyncio.sleep(1)

    assert stored(wire) == [("Suspended", 2, "Job suspended")]


async def test_what_waits_for_the_rate_limit_is_one_write() -> None:
    """40 pods at one request a second: the combined event's count arrives as a whole, not 16 times."""
    wire = wire_to("home")
    found = recorder(limited(wire, 1.0))
    async with sending(found):
        for number in range(40):
            found.event(TRAIN, "Normal", "SuccessfulCreate", f"Created pod: train-{number}")
        await found.flush(60)

    assert len(wire.writes()) == 10
    assert ("SuccessfulCreate", 16, "(combined from similar events): Created pod: train-24") in stored(wire)


async def test_events_let_others_go_first() -> None:
    """Whatever else waits for the same limit is sent before any event but those that are in line already."""
    wire = wire_to("home")
    client = limited(wire, 1.0)
    found = recorder(client)
    async with sending(found):
        for number in range(8):
            found.event(TRAIN, "Normal", "SuccessfulCreate", f"Created pod: train-{number}")
        await asyncio.sleep(0.5)
        async with asyncio.TaskGroup() as scope:
            for number in range(3):
                body = {"metadata": {"name": f"urgent-{number}", "namespace": "default"}}
                request = requests.create(CONFIGMAPS, body, namespace="default")
                scope.create_task(client.send(request), name=f"urgent {number}")
        at = wire.clock.monotonic()

    assert at < 4.5
    assert len(wire.server.all("configmaps")) == 3


async def test_a_server_that_is_away_gets_them_later() -> None:
    """No event is lost by a short outage, and none is stored twice though an answer was lost."""
    wire = wire_to("home")
    wire.arrange("create", "events", Fault.BREAK)
    wire.arrange("create", "events", Fault.LOSE_ANSWER)
    found = recorder(client_of(wire))
    async with sending(found):
        found.event(TRAIN, "Normal", "Completed", "Job completed")
        await asyncio.sleep(30)

    assert stored(wire) == [("Completed", 1, "Job completed")]
    assert found.waiting == 0


async def test_a_refused_event_is_let_go() -> None:
    """As in a namespace that is terminating: it would be refused again."""
    wire = wire_to("home")
    wire.arrange("create", "events", forbidden())
    found = recorder(client_of(wire))
    async with sending(found):
        found.event(TRAIN, "Normal", "Completed", "Job completed")
        await asyncio.sleep(60)

    assert (stored(wire), len(wire.writes())) == ([], 1)


async def test_a_missing_permission_for_events_is_logged_once_in_a_while(log_lines: list[dict[str, object]]) -> None:
    """Without it nobody reads why: all events are refused, and one line a minute says so."""
    wire = wire_to("home")
    wire.arrange("create", "events", forbidden(), times=9999)
    found = recorder(client_of(wire))
    async with sending(found):
        for number in range(3):
            found.event(Regarding(JOBS, "default", f"job-{number}", str(number)), "Normal", "Completed", "done")
        await asyncio.sleep(1)

    assert [line["event"] for line in log_lines if line["level"] == "warning"] == ["event not sent"]


async def test_nothing_waits_without_bound(log_lines: list[dict[str, object]]) -> None:
    """An outage with a flood of events costs a bounded amount of memory, and few lines."""
    wire = wire_to("home")
    found = recorder(client_of(wire), replace(OPTIONS, most_waiting=5))
    for number in range(20):
        found.event(Regarding(JOBS, "default", f"job-{number}", str(number)), "Normal", "Completed", "Job completed")

    assert found.waiting == 5
    assert [line["event"] for line in log_lines] == ["events dropped: too many wait"]


async def test_the_flush_is_bounded() -> None:
    """A server that hangs does not keep the process."""
    wire = wire_to("home")
    wire.is_hung = True
    found = recorder(client_of(wire))
    async with sending(found):
        found.event(TRAIN, "Normal", "Completed", "Job completed")
        began = wire.clock.monotonic()
        await found.flush(2.0)
        assert wire.clock.monotonic() - began == pytest.approx(2.0)


@pytest.mark.parametrize(("is_one_line", "kept"), [(False, "x\ny" + "z" * 96 + "…"), (True, "x\\ny" + "z" * 96 + "…")])
async def test_an_endless_message_is_cut(is_one_line: bool, kept: str) -> None:
    """A refusal may quote a whole object; where messages are one line, what is not printable is escaped (D18)."""
    wire = wire_to("home")
    found = recorder(client_of(wire), replace(OPTIONS, is_one_line=is_one_line))
    async with sending(found):
        found.event(TRAIN, "Warning", "FailedCreate", "x\ny" + "z" * 100_000)
        await found.flush(5)

    (event,) = wire.server.all("events")
    assert event["message"] == kept


async def test_an_event_of_another_component_is_left_alone() -> None:
    """Two may record something about an object in the same nanosecond, and name their events alike."""
    wire = wire_to("home")
    one, other = recorder(client_of(wire)), recorder(client_of(wire))
    async with sending(one), sending(other):
        one.event(TRAIN, "Normal", "A", "text")
        other.event(TRAIN, "Normal", "B", "text")
        await asyncio.sleep(1)
        other.event(TRAIN, "Normal", "B", "text")
        await asyncio.sleep(1)

    assert stored(wire) == [("A", 1, "text"), ("B", 2, "text")]


async def test_a_repeat_of_an_event_whose_answer_was_lost_is_counted() -> None:
    """What was created without our knowing it is changed then."""
    wire = wire_to("home")
    wire.arrange("create", "events", Fault.LOSE_ANSWER)
    found = recorder(client_of(wire))
    async with sending(found):
        found.event(TRAIN, "Normal", "Suspended", "Job suspended")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        found.event(TRAIN, "Normal", "Suspended", "Job suspended")
        await asyncio.sleep(30)

    assert stored(wire) == [("Suspended", 2, "Job suspended")]


async def test_an_event_is_tried_so_often_and_given_up() -> None:
    """One try is all that some components allow."""
    wire = wire_to("home")
    wire.arrange("create", "events", Fault.BREAK)
    found = recorder(client_of(wire), replace(OPTIONS, most_tries=1))
    async with sending(found):
        found.event(TRAIN, "Normal", "A", "text")
        await asyncio.sleep(30)
        found.event(TRAIN, "Normal", "B", "text")
        await asyncio.sleep(1)

    assert stored(wire) == [("B", 1, "text")]


async def test_events_wait_for_their_turn_until_they_are_flushed() -> None:
    """What is more urgent goes first, but for the last moments of a process."""
    wire, turn = wire_to("home"), asyncio.Event()

    async def wait_for_turn() -> None:
        await turn.wait()

    found = recorder(client_of(wire), replace(OPTIONS, turn=wait_for_turn, senders=1))
    async with sending(found):
        found.event(TRAIN, "Normal", "A", "text")
        await asyncio.sleep(5)
        assert stored(wire) == []
        turn.set()
        await asyncio.sleep(1)
        assert stored(wire) == [("A", 1, "text")]
        turn.clear()
        flushing = asyncio.create_task(found.flush(5), name="flush")
        found.event(TRAIN, "Normal", "B", "text")
        await flushing

    assert len(stored(wire)) == 2


async def test_a_silent_recorder_records_nothing() -> None:
    """For load tests without events of pods, say."""
    found = recorder(client_of(wire_to("home")), replace(OPTIONS, is_silent=True))
    found.event(TRAIN, "Normal", "A", "text")

    assert found.waiting == 0


async def test_what_waits_keeps_no_object_alive() -> None:
    """20,000 may wait."""
    found = recorder(client_of(wire_to("home")))
    job = Keepable(Meta(name="train", namespace="default", uid="u", labels={"a": "b"}))
    seen = weakref.ref(job)
    found.event(Regarding.of(JOBS, job), "Normal", "A", "text")
    del job

    assert (found.waiting, seen()) == (1, None)


async def test_writes_have_the_rank_of_the_component() -> None:
    """The last one, unless the component says otherwise; patches like creates."""
    wire = wire_to("home")
    ranks: list[Rank] = []
    client = client_of(wire)

    class Noted:
        async def send(self, request: requests.Request, /) -> bytes:
            ranks.append(request.rank)
            return await client.send(request)

    for rank in (Rank.LAST, Rank.FIRST):
        options = replace(OPTIONS, rank=rank)
        found = EventRecorder(Noted(), options, EventCorrelator(), clock=LoopClock(), log=get_log("test"))
        async with sending(found):
            for _ in range(2):
                found.event(TRAIN, "Normal", "A", "text")
                await asyncio.sleep(1)

    assert ranks == [Rank.LAST] * 2 + [Rank.FIRST] * 2
