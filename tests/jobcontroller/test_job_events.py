"""Events on Jobs: as kube-controller-manager's, but for the bucket that pods do not use up (N3)."""

from __future__ import annotations

import asyncio

import pytest
from doubles.clock import LoopClock
from doubles.transport import client_of, wire_to

from mirror.jobcontroller import events
from mirror.jobcontroller.events import job_event_recorder
from mirror.kube.resources import JOBS
from mirror.runtime import correlation
from mirror.runtime.events import Regarding
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

TRAIN = Regarding(JOBS, "default", "train", "the uid", "7")
Recorded = tuple[str, str, str]


async def stored_of(*recorded: Recorded) -> list[dict[str, object]]:
    """What the server has after these events."""
    wire = wire_to("home")
    recorder = job_event_recorder(client_of(wire), clock=LoopClock(), log=get_log("test"))
    async with asyncio.TaskGroup() as scope:
        running = scope.create_task(recorder.run(), name="send")
        for one in recorded:
            recorder.event(TRAIN, *one)
        await recorder.flush(60)
        running.cancel()
    found: list[dict[str, object]] = wire.server.all("events")
    return found


def pods(count: int, reason: str = "SuccessfulCreate") -> list[Recorded]:
    return [("Normal", reason, f"pod: train-{number}") for number in range(count)]


async def test_events_are_the_job_controllers() -> None:
    """The name that upstream's has."""
    (event,) = await stored_of(("Normal", "Completed", "Job completed"))

    assert (event["source"], event["reportingComponent"]) == ({"component": "job-controller"}, "job-controller")
    assert event["involvedObject"] == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": "default",
        "name": "train",
        "uid": "the uid",
        "resourceVersion": "7",
    }


async def test_the_end_of_a_large_job_has_its_event() -> None:
    """Upstream's bucket is empty by then, and its Completed event is lost (N3); pods use up only their own here."""
    found = await stored_of(*pods(40), ("Normal", "Completed", "Job completed"), *pods(1, "SuccessfulDelete"))

    figures = sorted((event["reason"], event["count"], event["message"]) for event in found)
    assert len(found) == 11
    assert figures[0] == ("Completed", 1, "Job completed")
    assert ("SuccessfulCreate", 16, "(combined from similar events): pod: train-24") in figures
    assert not [reason for reason, _, _ in figures if reason == "SuccessfulDelete"]


async def test_a_reason_that_repeats_forever_is_bounded_too() -> None:
    """Each has a bucket like the pods'."""
    (event,) = await stored_of(*[("Warning", "UnknownCompletionMode", "unknown")] * 100)

    assert event["count"] == correlation.BURST


async def test_an_endless_message_is_cut() -> None:
    """A refusal may quote a whole object."""
    (event,) = await stored_of(("Warning", "FailedCreate", "x" * 100_000))

    assert event["message"] == "x" * (events.OPTIONS.longest_message - 1) + "…"
