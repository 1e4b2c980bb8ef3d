"""Events of controllers: what is stored of what they tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from embedded_world import EVENTS, Json, World, in_virtual_time, world

from mirror.embedded import memory
from mirror.embedded.controllers.client import Api
from mirror.embedded.controllers.recording import NORMAL, WARNING, About, Recorder

POD = About("Pod", "v1", "default", "p", "u-1", "7", "spec.containers{c}")
NODE = About("Node", "v1", "", "n", "u-2")


@asynccontextmanager
async def recorder(here: World, component: str = "kubelet", host: str = "") -> AsyncIterator[Recorder]:
    made = Recorder(Api(memory.client_of(here.wire, "test"), "test"), component, clock=here.clock, host=host)
    task = here.scope.create_task(made.run(), name="send events")
    yield made
    await asyncio.sleep(5)
    task.cancel()


async def stored(here: World) -> list[Json]:
    return await here.api.list(EVENTS)


@in_virtual_time
async def test_an_event_looks_as_client_go_writes_it() -> None:
    """With its component, and the part of the object that it is about."""
    async with world() as here:
        async with recorder(here, host="node-0") as events:
            events.tell(POD, NORMAL, "Started", "Container started")
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


@in_virtual_time
async def test_repeats_are_counted() -> None:
    """One event, whose figures change."""
    async with world() as here:
        async with recorder(here) as events:
            for _ in range(3):
                events.tell(POD, WARNING, "BackOff", "again")
                await asyncio.sleep(10)
        (event,) = await stored(here)
        assert (event["count"], event["firstTimestamp"][-9:]) == (3, "12:00:00Z")
        assert event["lastTimestamp"][-9:] == "12:00:20Z"


@in_virtual_time
async def test_many_alike_are_combined() -> None:
    """From the tenth on in ten minutes."""
    async with world() as here:
        async with recorder(here) as events:
            for number in range(15):
                events.tell(POD, NORMAL, "Seen", f"number {number}")
                await asyncio.sleep(1)
        messages = sorted((one["message"], one["count"]) for one in await stored(here))
        assert len(messages) == 10
        assert messages[0] == ("(combined from similar events): number 14", 6)


@in_virtual_time
async def test_one_object_cannot_have_too_many() -> None:
    """25 at once, then one in five minutes."""
    async with world() as here:
        async with recorder(here) as events:
            for number in range(100):
                events.tell(POD, NORMAL, f"Reason{number}", "text")
                await asyncio.sleep(0.1)
        assert len(await stored(here)) == 25


@in_virtual_time
async def test_events_of_the_same_moment_have_names_of_their_own() -> None:
    """Even if two components tell them."""
    async with world() as here:
        async with recorder(here) as one, recorder(here, "scheduler") as other:
            one.tell(POD, NORMAL, "A", "text")
            other.tell(POD, NORMAL, "B", "text")
        assert sorted(event["reason"] for event in await stored(here)) == ["A", "B"]


@in_virtual_time
async def test_what_has_no_namespace_is_told_in_the_default_one() -> None:
    """Nodes, say."""
    async with world() as here:
        async with recorder(here) as events:
            events.tell(NODE, NORMAL, "NodeNotReady", "text")
        (event,) = await stored(here)
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["involvedObject"]


@in_virtual_time
async def test_events_survive_an_outage_and_their_own_expiry() -> None:
    """Sent when the server is back; created anew when the server has forgotten them."""
    async with world() as here:
        async with recorder(here) as events:
            here.wire.server = None
            events.tell(POD, NORMAL, "A", "text")
            await asyncio.sleep(1)
            here.wire.server = here.server
            await asyncio.sleep(5)
            (event,) = await stored(here)
            await here.api.delete(f"{EVENTS}/{event['metadata']['name']}")
            events.tell(POD, NORMAL, "A", "text")
        (event,) = await stored(here)
        assert event["count"] == 2


@in_virtual_time
async def test_an_event_that_is_refused_is_given_up() -> None:
    """In a namespace that is gone, say."""
    async with world() as here:
        async with recorder(here) as events:
            events.tell(About("Pod", "v1", "nowhere", "p", "u-3"), NORMAL, "A", "text")
            events.tell(POD, NORMAL, "A", "text")
        assert len(await stored(here)) == 1
