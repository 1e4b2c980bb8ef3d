"""Events of the embedded controllers, on an embedded API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from embedded_world import EVENTS, Json, World, in_virtual_time, world

from mirror.embedded import memory
from mirror.embedded.controllers.client import NODES, Api
from mirror.embedded.controllers.recording import event_recorder, regarding
from mirror.kube.resources import PODS
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.events import NORMAL, WARNING, Regarding

POD = regarding(
    PODS,
    {"metadata": {"namespace": "default", "name": "p", "uid": "u-1", "resourceVersion": "7"}},
    container="containers{c}",
)
NODE = regarding(NODES, {"metadata": {"name": "n", "uid": "u-2"}})


@asynccontextmanager
async def recorder(here: World, component: str = "kubelet", host: str = "") -> AsyncIterator[EventRecorder]:
    made = event_recorder(Api(memory.client_of(here.wire, "test"), "test"), component, clock=here.clock, host=host)
    task = here.scope.create_task(made.run(), name="send events")
    yield made
    await asyncio.sleep(5)
    task.cancel()


async def stored(here: World) -> list[Json]:
    return await here.api.list(EVENTS)


@in_virtual_time
async def test_an_event_looks_as_client_go_writes_it() -> None:
    """With its component, the part of the object that it is about, and the component's field manager."""
    async with world() as here:
        async with recorder(here, host="node-0") as events:
            events.event(POD, NORMAL, "Started", "Container started")
        (event,) = await stored(here)
        assert event["metadata"]["name"].startswith("p.")
        assert event["involvedObject"] == {
            "kind": "Pod",
            "namespace": "default",
            "name": "p",
            "uid": "u-1",
            "apiVersion": "v1",
            "resourceVersion": "7",
            "fieldPath": "spec.containers{c}",
        }
        assert event["source"] == {"component": "kubelet", "host": "node-0"}
        assert (event["type"], event["reason"], event["count"]) == ("Normal", "Started", 1)
        assert (event["reportingComponent"], event["reportingInstance"]) == ("kubelet", "node-0")
        assert [one["manager"] for one in event["metadata"]["managedFields"]] == ["test"]


@in_virtual_time
async def test_repeats_are_counted() -> None:
    """One event, whose figures change."""
    async with world() as here:
        async with recorder(here) as events:
            for _ in range(3):
                events.event(POD, WARNING, "BackOff", "again")
                await asyncio.sleep(10)
        (event,) = await stored(here)
        assert (event["count"], event["firstTimestamp"][-9:]) == (3, "12:00:00Z")
        assert event["lastTimestamp"][-9:] == "12:00:20Z"


@in_virtual_time
async def test_one_object_cannot_have_too_many() -> None:
    """25 at once, whatever they say, then one in five minutes."""
    async with world() as here:
        async with recorder(here) as events:
            for number in range(100):
                events.event(POD, NORMAL, f"Reason{number}", "text")
                await asyncio.sleep(0.1)
        assert len(await stored(here)) == 25


@in_virtual_time
async def test_events_of_the_same_moment_have_names_of_their_own() -> None:
    """Even if two components record them."""
    async with world() as here:
        async with recorder(here) as one, recorder(here, "scheduler") as other:
            one.event(POD, NORMAL, "A", "text")
            other.event(POD, NORMAL, "B", "text")
        assert sorted(event["reason"] for event in await stored(here)) == ["A", "B"]


@in_virtual_time
async def test_what_has_no_namespace_is_recorded_in_the_default_one() -> None:
    """Nodes, say."""
    async with world() as here:
        async with recorder(here) as events:
            events.event(NODE, NORMAL, "NodeNotReady", "text")
        (event,) = await stored(here)
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["involvedObject"]


@in_virtual_time
async def test_events_survive_an_outage_and_their_own_expiry() -> None:
    """Sent when the server is back; created anew when the server has forgotten them."""
    async with world() as here:
        async with recorder(here) as events:
            here.wire.server = None
            events.event(POD, NORMAL, "A", "text")
            await asyncio.sleep(1)
            here.wire.server = here.server
            await asyncio.sleep(5)
            (event,) = await stored(here)
            await here.api.delete(f"{EVENTS}/{event['metadata']['name']}")
            events.event(POD, NORMAL, "A", "text")
        (event,) = await stored(here)
        assert event["count"] == 2


@in_virtual_time
async def test_an_event_that_is_refused_is_given_up() -> None:
    """In a namespace that is gone, say."""
    async with world() as here:
        async with recorder(here) as events:
            events.event(Regarding(PODS, "nowhere", "p", "u-3"), NORMAL, "A", "text")
            events.event(POD, NORMAL, "A", "text")
        assert len(await stored(here)) == 1
