"""Events on Jobs reach the server: merged while they wait, in order, bounded, and flushed at the end (N3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from doubles.clock import LoopClock
from doubles.refusals import forbidden
from doubles.transport import Fault, MemoryTransport, NoCount, Wire, client_of, wire_to

from mirror.jobcontroller import events
from mirror.jobcontroller.events import JobEvents
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.limits import Limiter
from mirror.kube.objects import Meta, Object
from mirror.kube.resources import CONFIGMAPS
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

TRAIN = Object(Meta(name="train", namespace="default", uid="the uid", resource_version="7"))


def recorder(client: Client) -> JobEvents:
    return JobEvents(client, clock=LoopClock(), log=get_log("test"))


@asynccontextmanager
async def sending(found: JobEvents) -> AsyncIterator[None]:
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
    return Client("limited", credentials, limiter, NoCount(), transport=MemoryTransport(wire), wall=wire.clock.wall)


def told(wire: Wire) -> list[tuple[str, int, str]]:
    return sorted((event["reason"], event["count"], event["message"]) for event in wire.server.all("events"))


async def test_an_event_has_the_shape_of_client_gos() -> None:
    """Source, reporter, the Job that it is about, times in whole seconds."""
    wire = wire_to("home")
    found = recorder(client_of(wire))
    async with sending(found):
        found.tell(TRAIN, "Normal", "Completed", "Job completed")
        await found.flush(5)

    (event,) = wire.server.all("events")
    about = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "train"}
    assert event["involvedObject"] == {**about, "uid": "the uid", "resourceVersion": "7"}
    assert (event["source"], event["reportingComponent"]) == ({"component": "job-controller"}, "job-controller")
    assert (event["firstTimestamp"], event["lastTimestamp"], event["count"]) == (("2026-03-01T12:00:00Z",) * 2 + (1,))
    assert event["metadata"]["name"].startswith("train.")
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Completed", "Job completed")


async def test_what_was_stored_is_counted_up_by_a_patch() -> None:
    """A repeat changes the event that is there."""
    wire = wire_to("home")
    found = recorder(client_of(wire))
    async with sending(found):
        for _ in range(3):
            found.tell(TRAIN, "Warning", "FailedCreate", "Error creating: no")
            await asyncio.sleep(1)

    assert told(wire) == [("FailedCreate", 3, "Error creating: no")]
    assert [sent.verb for sent in wire.writes()] == ["create", "patch", "patch"]
    (event,) = wire.server.all("events")
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-03-01T12:00:00Z", "2026-03-01T12:00:02Z")


async def test_an_event_that_has_expired_is_made_anew() -> None:
    """Servers forget events after an hour."""
    wire = wire_to("home")
    found = recorder(client_of(wire))
    async with sending(found):
        found.tell(TRAIN, "Normal", "Suspended", "Job suspended")
        await asyncio.sleep(1)
        (event,) = wire.server.all("events")
        wire.server.remove("events", event["metadata"]["name"], "default")
        found.tell(TRAIN, "Normal", "Suspended", "Job suspended")
        await asyncio.sleep(1)

    assert told(wire) == [("Suspended", 2, "Job suspended")]


async def test_what_waits_for_the_rate_limit_is_one_write() -> None:
    """40 pods at one request a second: the combined event's count arrives as a whole, not 16 times."""
    wire = wire_to("home")
    found = recorder(limited(wire, 1.0))
    async with sending(found):
        for number in range(40):
            found.tell(TRAIN, "Normal", "SuccessfulCreate", f"Created pod: train-{number}")
        found.tell(TRAIN, "Normal", "Completed", "Job completed")
        await found.flush(60)

    assert len(wire.writes()) == 11
    assert told(wire)[0] == ("Completed", 1, "Job completed")
    assert ("SuccessfulCreate", 16, "(combined from similar events): Created pod: train-24") in told(wire)


async def test_events_let_others_go_first() -> None:
    """Whatever else waits for the same limit is sent before any event but those that are in line already."""
    wire = wire_to("home")
    client = limited(wire, 1.0)
    found = recorder(client)
    async with sending(found):
        for number in range(8):
            found.tell(TRAIN, "Normal", "SuccessfulCreate", f"Created pod: train-{number}")
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
        found.tell(TRAIN, "Normal", "Completed", "Job completed")
        await asyncio.sleep(30)

    assert told(wire) == [("Completed", 1, "Job completed")]
    assert found.waiting == 0


async def test_a_refused_event_is_let_go() -> None:
    """As in a namespace that is terminating: it would be refused again."""
    wire = wire_to("home")
    wire.arrange("create", "events", forbidden())
    found = recorder(client_of(wire))
    async with sending(found):
        found.tell(TRAIN, "Normal", "Completed", "Job completed")
        await asyncio.sleep(60)

    assert (told(wire), len(wire.writes())) == ([], 1)


async def test_nothing_waits_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage with a flood of events costs a bounded amount of memory."""
    monkeypatch.setattr(events, "MOST_WAITING", 5)
    wire = wire_to("home")
    found = recorder(client_of(wire))
    for number in range(20):
        job = Object(Meta(name=f"job-{number}", namespace="default", uid=str(number)))
        found.tell(job, "Normal", "Completed", "Job completed")

    assert found.waiting == 5


async def test_the_flush_is_bounded() -> None:
    """A server that hangs does not keep the process."""
    wire = wire_to("home")
    wire.is_hung = True
    found = recorder(client_of(wire))
    async with sending(found):
        found.tell(TRAIN, "Normal", "Completed", "Job completed")
        began = wire.clock.monotonic()
        await found.flush(2.0)
        assert wire.clock.monotonic() - began == pytest.approx(2.0)


async def test_an_endless_message_is_cut() -> None:
    """A refusal may quote a whole object."""
    wire = wire_to("home")
    found = recorder(client_of(wire))
    async with sending(found):
        found.tell(TRAIN, "Warning", "FailedCreate", "x" * 100_000)
        await found.flush(5)

    (event,) = wire.server.all("events")
    assert len(event["message"]) == events.LONGEST_MESSAGE
