"""``access`` over HTTP: what aiohttp makes of requests, and what clients get."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from mirror.access.answers import Answer, StatusError, refusal
from mirror.access.logs import Cut
from mirror.access.request_parsing import Asked
from mirror.access.service import Access, Reply
from mirror.access.web import routes

Handling = Callable[[Asked, Reply], Coroutine[Any, Any, None]]


class Scripted:
    """An ``Access`` that does as a test says."""

    def __init__(self, handling: Handling) -> None:
        self.handle = handling


def serving(handling: Handling) -> TestClient[web.Request, web.Application]:
    app = web.Application(client_max_size=1000)
    app.add_routes(routes(cast(Access, Scripted(handling))))
    return TestClient(TestServer(app, handler_cancellation=True, access_log=None))


async def test_a_request_is_handed_on_as_it_came() -> None:
    """Path and query undecoded, headers in lower case, the body, and who is there."""
    asked: list[Asked] = []
    bodies: list[bytes] = []

    async def handle(request: Asked, reply: Reply) -> None:
        asked.append(request)
        bodies.append(await reply.body(1000))
        await reply.whole(Answer(418, b"{}", (("Retry-After", "1"),)))

    async with serving(handle) as client:
        target = aiohttp.client.URL("/v1/namespaces/a/jobs/b%2Fc/log?pod=%ff", encoded=True)
        async with client.post(target, data=b"body", headers={"Authorization": "Bearer x"}) as got:
            assert (got.status, got.headers["Retry-After"], await got.read()) == (418, "1", b"{}")
            assert got.headers["X-Content-Type-Options"] == "nosniff"
            assert got.headers["Cache-Control"] == "no-store"
            assert got.content_type == "application/json"

    (one,) = asked
    assert (one.method, one.target, bodies) == ("POST", "/v1/namespaces/a/jobs/b%2Fc/log?pod=%ff", [b"body"])
    assert (one.headers["authorization"], one.peer) == ("Bearer x", "127.0.0.1")


async def test_text_comes_as_it_is_written() -> None:
    """A piece is there before the next one exists; bytes are not touched."""
    go_on = asyncio.Event()

    async def handle(_: Asked, reply: Reply) -> None:
        await reply.begin((("X-Jobmirror-Pod", "train-x"),))
        await reply.write(b"<script>\xff\n")
        await go_on.wait()
        await reply.write(b"two\n")

    async with serving(handle) as client, client.get("/v1/jobs") as got:
        assert await got.content.readline() == b"<script>\xff\n"
        go_on.set()
        assert await got.content.read() == b"two\n"
        assert (got.content_type, got.headers["X-Jobmirror-Pod"]) == ("text/plain", "train-x")


async def test_a_log_that_is_cut_does_not_look_whole() -> None:
    """The connection ends without the last chunk."""

    async def handle(_: Asked, reply: Reply) -> None:
        await reply.begin(())
        await reply.write(b"one\n")
        raise Cut("enough")

    async with serving(handle) as client, client.get("/v1/jobs") as got:
        with pytest.raises(aiohttp.ClientPayloadError):
            await got.read()


async def test_a_client_that_leaves_ends_the_work() -> None:
    """Up to the worker, which is asked no longer."""
    ended = asyncio.Event()

    async def handle(_: Asked, reply: Reply) -> None:
        await reply.begin(())
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async with serving(handle) as client:
        async with client.get("/v1/jobs") as got:
            got.close()
        async with asyncio.timeout(60):
            await ended.wait()


async def test_a_body_is_read_only_when_asked_for_and_no_further_than_wanted() -> None:
    """Whoever is not known yet must not be able to fill our memory."""
    reading: list[str] = []

    async def handle(_: Asked, reply: Reply) -> None:
        try:
            await reply.body(1000)
        except StatusError as refused:
            reading.append(f"{refused.code}")
            await reply.whole(refusal(refused))

    async with serving(handle) as client, client.post("/v1/diff", data=b"x" * 2000) as got:
        assert (got.status, (await got.json())["kind"], reading) == (413, "Status", ["413"])
