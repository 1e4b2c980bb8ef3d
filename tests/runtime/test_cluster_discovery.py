"""What a cluster serves is asked once for all who wait for some of it (D23), in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from mirror.kube.client import Tagged
from mirror.kube.errors import Forbidden, KubeError, OutcomeUnknown, Unreachable
from mirror.kube.requests import Request
from mirror.kube.resources import Resource
from mirror.runtime.discovering import INTERVAL_SECONDS, LISTED_ANYWAY_SECONDS, Discovery
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

A, B, C = (Resource("example.com", "v1", plural, plural.upper()) for plural in "abc")


class Server:
    """Serves some resources, or fails."""

    def __init__(self) -> None:
        self.serves: list[Resource] = []
        self.fails: KubeError | None = None
        self.takes_seconds = 0.0
        self.asked_at: list[float] = []
        self.read = 0
        """How often the whole document went out."""

    def client(self) -> Server:
        if isinstance(self.fails, Unreachable):
            raise self.fails
        return self

    async def send_tagged(self, request: Request) -> Tagged:
        self.asked_at.append(asyncio.get_running_loop().time())
        names = [one.plural for one in self.serves]
        await asyncio.sleep(self.takes_seconds)
        if self.fails is not None:
            raise self.fails
        tag = f'"v{",".join(names)}"'
        if request.if_none_match == tag:
            return Tagged(None, tag)
        self.read += 1
        resources = [{"resource": name, "verbs": ["create", "list"]} for name in names]
        groups = [{"metadata": {"name": "example.com"}, "versions": [{"version": "v1", "resources": resources}]}]
        return Tagged(json.dumps({"kind": "APIGroupDiscoveryList", "items": groups}).encode(), tag)


@asynccontextmanager
async def looking(server: Server, *, of_workers: bool = False) -> AsyncIterator[Discovery]:
    discovery = Discovery(server.client, [A, B, C], of_workers=of_workers, log=get_log("mirror"))
    task = asyncio.create_task(discovery.run(), name="discovery")
    yield discovery
    task.cancel()
    await asyncio.wait({task})


@asynccontextmanager
async def waiting(discovery: Discovery, resources: Sequence[Resource]) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(discovery.wait_until_served(one), name=one.plural) for one in resources]
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_one_request_serves_all_who_wait() -> None:
    """At the pace of one; while nothing has changed, no document comes."""
    server = Server()
    async with looking(server) as discovery, waiting(discovery, [A, B, C, A, B, C]) as tasks:
        await asyncio.sleep(60.5)
        assert server.asked_at == pytest.approx([INTERVAL_SECONDS * number for number in (1, 2, 3, 4)], abs=0.01)
        assert server.read == 1
        assert not any(task.done() for task in tasks)
        server.serves = [B]
        await asyncio.sleep(INTERVAL_SECONDS)
        assert [task.done() for task in tasks] == [False, True, False, False, True, False]


@pytest.mark.parametrize("of_workers", [False, True])
async def test_nobody_is_asked_while_nobody_waits(*, of_workers: bool) -> None:
    """Nor once all who waited have gone."""
    server = Server()
    async with looking(server, of_workers=of_workers) as discovery:
        await asyncio.sleep(100)
        assert server.asked_at == []
        async with waiting(discovery, [A]):
            await asyncio.sleep(INTERVAL_SECONDS + 0.5)
        await asyncio.sleep(100)
        assert len(server.asked_at) == 1


@pytest.mark.parametrize("error", [OutcomeUnknown("no response"), Forbidden(403, "Forbidden")])
async def test_where_the_cluster_does_not_say_everybody_looks_for_itself(error: KubeError) -> None:
    """As if there was no such document; and what was known of an earlier one is no answer then."""
    server = Server()
    async with looking(server) as discovery, waiting(discovery, [A, B]) as tasks:
        await asyncio.sleep(INTERVAL_SECONDS + 0.5)
        server.fails = error
        await asyncio.sleep(INTERVAL_SECONDS)
        assert all(task.done() for task in tasks)
        server.fails = None
        async with waiting(discovery, [A, B]) as others:
            await asyncio.sleep(2 * INTERVAL_SECONDS)
            assert not any(task.done() for task in others)
        assert server.read == 1


async def test_an_unreachable_cluster_leads_to_no_list() -> None:
    """Each would fail, too; it is looked at as soon as it is known to answer."""
    server = Server()
    server.fails = Unreachable("connection refused")
    async with looking(server) as discovery, waiting(discovery, [A, B]) as tasks:
        await asyncio.sleep(4 * INTERVAL_SECONDS + 1)
        assert not any(task.done() for task in tasks)
        server.fails, server.serves = None, [A]
        discovery.look_soon()
        await asyncio.sleep(0.1)
        assert [task.done() for task in tasks] == [True, False]


async def test_who_is_denied_for_long_looks_for_itself_now_and_then() -> None:
    """What a cluster says of itself may be wrong for ever; whoever finds nothing waits as long again."""
    server = Server()
    async with looking(server) as discovery, waiting(discovery, [A]) as early:
        await asyncio.sleep(LISTED_ANYWAY_SECONDS / 2)
        async with waiting(discovery, [B]) as late:
            await asyncio.sleep(LISTED_ANYWAY_SECONDS / 2 - 1)
            assert not early[0].done()
            await asyncio.sleep(2 * INTERVAL_SECONDS)
            assert [task.done() for task in (*early, *late)] == [True, False]
        assert server.read == 1
        async with waiting(discovery, [A]) as again:
            await asyncio.sleep(LISTED_ANYWAY_SECONDS - 1)
            assert not again[0].done()


async def test_who_comes_while_it_is_under_way_waits_for_the_next() -> None:
    """Its list may have found later that nothing is there any more."""
    server = Server()
    server.serves, server.takes_seconds = [A, B], 5.0
    async with looking(server) as discovery, waiting(discovery, [A]) as early:
        await asyncio.sleep(INTERVAL_SECONDS + 1)
        async with waiting(discovery, [B]) as late:
            await asyncio.sleep(5)
            assert [task.done() for task in (*early, *late)] == [True, False]
            await asyncio.sleep(INTERVAL_SECONDS + 5)
            assert late[0].done()


async def test_a_nudge_of_nobody_is_forgotten() -> None:
    """Who waits next waits as long as always."""
    server = Server()
    async with looking(server) as discovery:
        discovery.look_soon()
        async with waiting(discovery, [A]):
            await asyncio.sleep(INTERVAL_SECONDS - 1)
            assert server.asked_at == []
