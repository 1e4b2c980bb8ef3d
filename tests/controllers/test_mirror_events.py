"""The mirror's own events: one at a time, without repeats, never tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from doubles.clock import LoopClock
from doubles.transport import Fault, Wire, client_of, wire_to

from mirror.controllers.events import LONGEST_MESSAGE, REPEAT_AFTER_SECONDS, event_recorder
from mirror.kube.resources import JOBS
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.events import NORMAL, WARNING, Regarding
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

TRAIN = Regarding(JOBS, "default", "train", "the uid", "7")


@asynccontextmanager
async def recording(wire: Wire) -> AsyncIterator[EventRecorder]:
    recorder = event_recorder(client_of(wire), clock=LoopClock(), log=get_log("test"))
    async with asyncio.TaskGroup() as scope:
        running = scope.create_task(recorder.run(), name="send")
        yield recorder
        await recorder.flush(5)
        running.cancel()


async def test_an_event_has_the_managers_name() -> None:
    """It regards the version of the source that was decided on."""
    wire = wire_to("home")
    async with recording(wire) as recorder:
        recorder.event(TRAIN, NORMAL, "Mirrored", "Mirrored to worker east")

    (event,) = wire.server.all("events")
    about = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": "train"}
    assert event["involvedObject"] == {**about, "uid": "the uid", "resourceVersion": "7"}
    assert (event["source"], event["reportingComponent"]) == ({"component": "jobmirror"}, "jobmirror")
    assert (event["firstTimestamp"], event["lastTimestamp"], event["count"]) == (("2026-03-01T12:00:00Z",) * 2 + (1,))
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Mirrored", "Mirrored to worker east")


async def test_a_repeat_is_a_new_event_after_ten_minutes() -> None:
    """Until then it is left out; what is there is never changed, which needs no permission to patch."""
    wire = wire_to("home")
    async with recording(wire) as recorder:
        for _ in range(3):
            recorder.event(TRAIN, WARNING, "Refused", "no")
            await asyncio.sleep(REPEAT_AFTER_SECONDS / 2)

    assert [event["count"] for event in wire.server.all("events")] == [1, 1]
    assert [sent.verb for sent in wire.writes()] == ["create", "create"]


async def test_many_alike_are_not_combined() -> None:
    """Each says what a user looks for."""
    wire = wire_to("home")
    async with recording(wire) as recorder:
        for number in range(40):
            recorder.event(TRAIN, WARNING, "Refused", f"number {number}")

    assert len(wire.server.all("events")) == 40


async def test_an_event_that_is_not_sent_is_given_up() -> None:
    """While the API server is away, statuses matter."""
    wire = wire_to("home")
    wire.arrange("create", "events", Fault.BREAK)
    async with recording(wire) as recorder:
        recorder.event(TRAIN, WARNING, "Refused", "no")
        await asyncio.sleep(60)

    assert wire.server.all("events") == []


async def test_what_a_worker_says_is_one_line_and_short() -> None:
    """Its text may be anything (D18)."""
    wire = wire_to("home")
    async with recording(wire) as recorder:
        recorder.event(TRAIN, WARNING, "Refused", "\x1b[2J\n" + "x" * 5000)

    (event,) = wire.server.all("events")
    assert event["message"].startswith("\\x1b[2J\\n")
    assert event["message"].isprintable()
    assert len(event["message"]) == LONGEST_MESSAGE + 1
