"""Watches: events out of bytes, however those arrive, and 410 in all its forms."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from wire import (
    Answering,
    Clients,
    InMemory,
    Received,
    always,
    answer,
    chunk,
    chunked_head,
    error_event,
    event,
    serving,
    skip_time,
    status,
    too_late,
)

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.errors import BadAnswer, Expired, Forbidden, KubeError, PageNotFound, ServerFailure, Unreachable
from mirror.kube.requests import Request
from mirror.kube.resources import JOBS
from mirror.kube.watch import WatchEvent, watch


def watching(*pieces: bytes, end: bool = True) -> Answering:
    """A watch that sends these pieces, one HTTP chunk each, and then ends or goes on for ever without a word."""

    async def answering(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head())
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
            await asyncio.sleep(0)
        if end:
            writer.write(b"0\r\n\r\n")
        else:
            await asyncio.get_running_loop().create_future()

    return answering


def request(deadline_seconds: float = 330.0) -> Request:
    made = requests.watch(JOBS, resource_version="1", timeout_seconds=300)
    return Request(made.verb, made.method, made.path, made.query, deadline_seconds=deadline_seconds)


async def collect(
    client: Client, *, silent_seconds: float = 150.0, deadline_seconds: float = 330.0
) -> list[WatchEvent]:
    events = watch(client, request(deadline_seconds), silent_seconds=silent_seconds)
    async with aclosing(events):
        return [event async for event in events]


@pytest.mark.parametrize(
    "cuts", [[], [1], [7, 8], list(range(1, 150))], ids=["whole", "one early", "two in a row", "every byte"]
)
async def test_events_are_the_same_however_the_bytes_are_cut(clients: Clients, cuts: Sequence[int]) -> None:
    """Chunks of HTTP have nothing to do with lines."""
    content = event("ADDED", "a") + b"\n" + event("DELETED", "b") + b"\n\n" + event("BOOKMARK") + b"\n"
    pieces = [content[begin:end] for begin, end in itertools.pairwise([0, *cuts, len(content)])]
    async with serving(watching(*pieces)) as server:
        events = await collect(clients.make(server.url))
    assert [(found.type, found.object.metadata.name) for found in events] == [
        ("ADDED", "a"),
        ("DELETED", "b"),
        ("BOOKMARK", "train"),
    ]


async def test_a_line_of_megabytes_arrives_whole(clients: Clients) -> None:
    """3 MB, in odd pieces, with a small one right behind it."""
    content = event("ADDED", spec={"x": "y" * 3_000_000}) + b"\n" + event("MODIFIED") + b"\n"
    pieces = [content[begin : begin + 77_777] for begin in range(0, len(content), 77_777)]
    async with serving(watching(*pieces)) as server:
        large, small = await collect(clients.make(server.url))
    assert len(large.object.spec) == 3_000_000 + len('{"x": ""}')
    assert small.type == "MODIFIED"


async def test_a_line_without_end_is_cut_off(clients: Clients) -> None:
    """A worker must not fill our memory with one line."""

    async def endless(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head())
        while not writer.is_closing():
            writer.write(chunk(b"x" * 1_000_000))
            await writer.drain()

    async with serving(endless) as server:
        with pytest.raises(BadAnswer, match="line"):
            await collect(clients.make(server.url))


async def test_the_server_ends_a_watch_and_that_is_normal(clients: Clients) -> None:
    """The caller goes on from the last version; a last line that was cut off is dropped."""
    async with serving(watching(event("ADDED") + b"\n", event("ADDED")[:20])) as server:
        assert len(await collect(clients.make(server.url))) == 1


async def test_a_broken_watch_is_unreachable_after_what_came(clients: Clients) -> None:
    """What was read before it broke has been handed out."""

    async def broken(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + chunk(event("ADDED") + b"\n"))
        await writer.drain()
        writer.close()

    async with serving(broken) as server:
        events = watch(clients.make(server.url), request(), silent_seconds=150.0)
        assert (await anext(events)).type == "ADDED"
        with pytest.raises(Unreachable):
            await anext(events)


@pytest.mark.looptime
async def test_a_half_open_connection_is_noticed_by_its_silence(clients: Clients) -> None:
    """The server is gone without a word: no byte for that long means that nobody is there."""
    loop = asyncio.get_running_loop()
    client = clients.make("", transport=InMemory((100.0, event("ADDED") + b"\n"), (151.0, event("ADDED") + b"\n")))
    with pytest.raises(Unreachable, match="silent for 150 s"):
        await collect(client, silent_seconds=150.0, deadline_seconds=1000.0)
    assert loop.time() == pytest.approx(250.0)


@pytest.mark.looptime
async def test_how_long_a_watch_may_be_silent_can_change_while_it_is_read(clients: Clients) -> None:
    """A list that is streamed is given less time than what comes after it."""
    pieces = [(29.0, event("ADDED") + b"\n"), (100.0, event("BOOKMARK") + b"\n"), (31.0, event("ADDED") + b"\n")]
    client = clients.make("", transport=InMemory(*pieces))
    patience = 30.0
    async with aclosing(watch(client, request(1000.0), silent_seconds=lambda: patience)) as events:
        await anext(events)
        patience = 150.0
        await anext(events)
        patience = 30.0
        with pytest.raises(Unreachable, match="silent for 30 s"):
            await anext(events)


@pytest.mark.looptime
async def test_slow_readers_do_not_make_a_watch_silent(clients: Clients) -> None:
    """Only the time in which we wait for the server counts."""
    client = clients.make("", transport=InMemory((1.0, event("ADDED") + b"\n"), (2.0, event("DELETED") + b"\n")))
    types = []
    async for found in watch(client, request(1000.0), silent_seconds=3.0):
        types.append(found.type)
        await asyncio.sleep(60)
    assert types == ["ADDED", "DELETED"]


@pytest.mark.looptime
async def test_a_watch_that_the_server_never_ends_is_ended_here(clients: Clients) -> None:
    """The request's deadline is a little longer than the time the server was asked for."""
    loop = asyncio.get_running_loop()
    client = clients.make("", transport=InMemory(*[(1.0, event("BOOKMARK") + b"\n")] * 1000))
    with pytest.raises(Unreachable, match="did not end"):
        await collect(client, deadline_seconds=330.0)
    assert loop.time() == pytest.approx(330.0)


async def test_a_silent_socket_is_noticed_as_well(clients: Clients) -> None:
    """The same over a real connection."""
    async with (
        serving(watching(event("ADDED") + b"\n", end=False)) as server,
        aclosing(watch(clients.make(server.url), request(10_000.0), silent_seconds=150.0)) as events,
    ):
        await anext(events)
        asyncio.get_running_loop().call_soon(skip_time)
        with pytest.raises(Unreachable, match="silent"):
            await anext(events)


async def test_a_watch_that_is_not_answered_is_unreachable(clients: Clients) -> None:
    """Accepted, and never a word."""

    async with serving(too_late) as server:
        with pytest.raises(Unreachable):
            await collect(clients.make(server.url))
    assert clients.observed.requests == [("east", "watch", "error")]


@pytest.mark.parametrize(
    ("answering", "kind"),
    [
        (always(answer(410, status(410, "Expired"))), Expired),
        (watching(error_event(410, "Expired") + b"\n"), Expired),
        (watching(event("ADDED") + b"\n" + error_event(410, "Expired") + b"\n"), Expired),
        (always(answer(403, status(403, "Forbidden"))), Forbidden),
        (always(answer(503, b"<html>", content_type="text/html")), ServerFailure),
        (always(answer(200, b"<html>", content_type="text/html")), BadAnswer),
        (always(answer(302, b"", location="/login")), BadAnswer),
        (always(answer(404, b"404 page not found", content_type="text/plain")), PageNotFound),
        (watching(b"<html>\n"), BadAnswer),
    ],
    ids=[
        "410 as a status",
        "410 as the first event",
        "410 in the middle",
        "no rights",
        "an HTML page with 503",
        "an HTML page with 200",
        "a redirect",
        "no such page",
        "HTML lines",
    ],
)
async def test_a_watch_fails_by_meaning(clients: Clients, answering: Answering, kind: type[KubeError]) -> None:
    """The same errors as for calls; 410 in its three forms is ``Expired``."""
    async with serving(answering) as server:
        with pytest.raises(KubeError) as caught:
            await collect(clients.make(server.url))
    assert type(caught.value) is kind


async def test_an_endless_refusal_is_still_a_refusal(clients: Clients) -> None:
    """Its body is read up to a bound."""

    async def flood(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head().replace(b"200 OK", b"403 No"))
        while not writer.is_closing():
            writer.write(chunk(b" " * 1_000_000))
            await writer.drain()

    async with serving(flood) as server:
        with pytest.raises(Forbidden):
            await collect(clients.make(server.url))


async def test_a_watch_renews_a_refused_token(clients: Clients) -> None:
    """As calls do."""

    class Tokens:
        async def fetch(self) -> Identity:
            return Identity("Bearer two")

    async def only_two(received: Received, writer: asyncio.StreamWriter) -> None:
        if received.headers["authorization"] == "Bearer two":
            await watching(event("ADDED") + b"\n")(received, writer)
        else:
            writer.write(answer(401, status(401, "Unauthorized")))

    async with serving(only_two) as server:
        credentials = Credentials(Endpoint(server.url, None), Identity("Bearer one"), source=Tokens())
        assert len(await collect(clients.make(server.url, credentials=credentials))) == 1


async def test_leaving_a_watch_early_closes_its_connection(clients: Clients) -> None:
    """``aclosing`` around the loop is enough."""
    gone = asyncio.Event()

    async def chatty(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head())
        while not writer.is_closing():
            writer.write(chunk(event("ADDED") + b"\n"))
            await asyncio.sleep(0.005)
        gone.set()

    async with serving(chatty) as server:
        async with aclosing(watch(clients.make(server.url), request(), silent_seconds=150.0)) as events:
            async for _ in events:
                break
        async with asyncio.timeout(60):
            await gone.wait()


async def test_a_crowd_of_watches_blocks_no_call(clients: Clients) -> None:
    """Watches have a pool of their own, without a limit."""

    async def both(received: Received, writer: asyncio.StreamWriter) -> None:
        if "watch=1" in received.target:
            await watching(event("ADDED") + b"\n", end=False)(received, writer)
        else:
            writer.write(answer(200))

    async with serving(both) as server:
        client = clients.make(server.url)
        watches = [watch(client, request(), silent_seconds=5.0) for _ in range(80)]
        for events in watches:
            await anext(events)
        await client.send(requests.get(JOBS, "train", namespace="team"))
        for events in watches:
            await events.aclose()
