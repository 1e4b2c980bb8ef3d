"""What a failed request proves, over real sockets: never sent, outcome unknown, or not the Kubernetes API."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

import pytest
from wire import Clients, Received, always, answer, chunk, chunked_head, never, read, serving, too_late, write

from mirror.kube import transport
from mirror.kube.errors import (
    BadAnswer,
    OutcomeUnknown,
    Unreachable,
)
from mirror.kube.requests import Request

EITHER = pytest.mark.parametrize("request_of", [read, write], ids=["a read", "a write"])
RequestOf = Callable[[float], Request]


async def hang_up(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def test_a_closed_port_is_unreachable(clients: Clients) -> None:
    """Nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable):
        await clients.make(f"http://127.0.0.1:{port}").send(write())


async def test_a_name_that_nobody_knows_is_unreachable(clients: Clients) -> None:
    """``.invalid`` never resolves."""
    with pytest.raises(Unreachable):
        await clients.make("http://nobody.invalid:6443").send(write())


async def test_a_connection_that_takes_too_long_is_unreachable(clients: Clients) -> None:
    """A full backlog: the handshake never ends, so nothing was sent."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        crowd = []
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            crowd.append(one)
        try:
            with pytest.raises(Unreachable):
                await clients.make(f"http://127.0.0.1:{full.getsockname()[1]}").send(write(0.15))
        finally:
            for one in crowd:
                one.close()


async def test_tls_that_never_gets_going_is_unreachable(clients: Clients) -> None:
    """A server that does not speak TLS, and one that accepts and says nothing."""
    async with serving(always(answer(200))) as server:
        with pytest.raises(Unreachable):
            await clients.make(server.url.replace("http:", "https:")).send(write(0.15))


async def test_a_deadline_that_passes_before_there_is_a_connection_is_unreachable(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connecting has a shorter limit, but after a pause of the event loop both have passed; nothing was sent."""
    monkeypatch.setattr(transport, "_CONNECT_SHARE", 100.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(Unreachable, match="no connection within"):
        await clients.make(f"https://127.0.0.1:{silent.getsockname()[1]}").send(write(0.1))


async def test_a_deadline_that_passes_in_the_queue_for_a_connection_is_unreachable(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All connections of the pool are in use by requests that are not answered."""
    monkeypatch.setattr(transport, "_CONNECT_SHARE", 100.0)
    monkeypatch.setattr(transport, "_MOST_CALLS", 1)
    async with serving(never) as server:
        client = clients.make(server.url)
        slow = asyncio.create_task(client.send(read()), name="the only connection")
        await server.arrivals(1)
        with pytest.raises(Unreachable, match="no connection within"):
            await client.send(write(0.1))
        assert len(server.received) == 1
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow


@EITHER
async def test_silence_leaves_the_outcome_unknown(clients: Clients, request_of: RequestOf) -> None:
    """It was sent: the server may have done it."""
    async with serving(too_late) as server:
        with pytest.raises(OutcomeUnknown):
            await clients.make(server.url).send(request_of(30.0))
        assert len(server.received) == 1
    assert [("east", request_of(1).verb, "error")] == clients.observed.requests


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_lost_connection_leaves_the_outcome_unknown(clients: Clients, method: str) -> None:
    """The server hangs up instead of answering; nothing is sent again behind the caller's back, PUT neither."""
    async with serving(hang_up) as server:
        with pytest.raises(OutcomeUnknown):
            await clients.make(server.url).send(Request("x", method, "/x", body=b"{}"))
    assert len(server.received) == 1


@EITHER
@pytest.mark.parametrize(
    "part",
    [
        b"HTTP/1.1 200 OK\r\ncontent-type: app",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
        chunked_head() + chunk(b'{"metadata"') + b"9\r\nx",
    ],
    ids=["within the head", "within the body", "within a chunk"],
)
async def test_half_an_answer_leaves_the_outcome_unknown(clients: Clients, request_of: RequestOf, part: bytes) -> None:
    """Cut off by the network, or stuck for ever: both the same."""

    async def cut(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(part)
        await writer.drain()
        writer.close()

    async def stuck(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(part)
        for _ in range(10):
            await asyncio.sleep(0)  # the client may read it
        await too_late(received, writer)

    for answering in (cut, stuck):
        async with serving(answering) as server:
            with pytest.raises(OutcomeUnknown):
                await clients.make(server.url).send(request_of(30.0))


@pytest.mark.parametrize("junk", [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x46" * 9 + b"\r\n\r\n"])
async def test_what_is_not_http_is_a_bad_answer(clients: Clients, junk: bytes) -> None:
    """Another kind of server on the port."""
    async with serving(always(junk)) as server:
        with pytest.raises(BadAnswer):
            await clients.make(server.url).send(read())


async def test_cancelling_a_request_is_a_cancellation(clients: Clients) -> None:
    """It is never mistaken for a failure."""
    async with serving(never) as server:
        task = asyncio.create_task(clients.make(server.url).send(read()), name="request")
        await server.arrivals(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def open_sockets() -> int:
    return sum(
        os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
        for fd in os.listdir("/proc/self/fd")
        if os.path.islink(f"/proc/self/fd/{fd}")
    )


async def test_closing_leaves_no_socket(clients: Clients) -> None:
    """Neither of idle connections, nor of a request under way; that one fails as a request, not as a cancellation."""
    before = open_sockets()
    async with serving(always(answer(200))) as server, serving(never) as silent:
        client = clients.make(server.url)
        await asyncio.gather(*(client.send(read()) for _ in range(5)))
        other = clients.make(silent.url)
        pending = asyncio.create_task(other.send(write()), name="pending")
        await silent.arrivals(1)
        await client.close()
        await other.close()
        with pytest.raises(OutcomeUnknown):
            await pending
    await asyncio.sleep(0.01)
    assert before == open_sockets()


async def test_closing_fails_those_who_wait_for_a_connection(clients: Clients) -> None:
    """With all 64 connections in use, the next request waits; it must not believe itself cancelled."""
    async with serving(never) as server:
        client = clients.make(server.url)
        pending = [asyncio.create_task(client.send(read()), name=f"request {n}") for n in range(70)]
        await server.arrivals(64)
        await client.close()
        results = await asyncio.gather(*pending, return_exceptions=True)
    assert {OutcomeUnknown} == {type(result) for result in results}


async def test_a_closed_client_is_unreachable(clients: Clients) -> None:
    """Whoever still holds the old client after a rotation learns that nothing was sent."""
    async with serving(always(answer(200))) as server:
        client = clients.make(server.url)
        await client.close()
        with pytest.raises(Unreachable, match="closed"):
            await client.send(read())
