"""A write is looked at once more when its connection is there: what the Lease no longer covers never goes out (D28)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import replace

import pytest
from multidict import CIMultiDict
from wire import Clients, Received, always, answer, never, read, serving, status, write

from mirror.kube import requests
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.errors import NotLeading, OutcomeUnknown, Unreachable
from mirror.kube.limits import Limiter
from mirror.kube.permits import WritePermit
from mirror.kube.resources import JOBS


class Watch:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def permit_for(seconds: float, watch: Watch) -> WritePermit:
    permit = WritePermit(watch)
    permit.extend(until=watch.now + seconds, ends=watch.now + seconds * 1.5)
    return permit


@pytest.mark.parametrize(
    ("at", "is_allowed", "left"),
    [
        pytest.param(100.0, True, 15.0, id="just renewed"),
        pytest.param(109.9, True, 5.1, id="just before the renew deadline"),
        pytest.param(110.0, False, 0.0, id="at the renew deadline"),
        pytest.param(116.0, False, 0.0, id="the lease may be another's"),
    ],
)
def test_a_permit_counts_from_the_renewal(at: float, is_allowed: bool, left: float) -> None:
    """Writes begin before the renew deadline, and end before the lease does."""
    watch = Watch()
    permit = permit_for(10.0, watch)
    watch.now = at
    assert permit.seconds_left() == pytest.approx(left)
    if is_allowed:
        permit.check()
    else:
        with pytest.raises(NotLeading):
            permit.check()


def test_nothing_is_permitted_before_the_lease_and_after_it() -> None:
    """Who stands by may not write, nor who gave the lease back."""
    watch = Watch()
    for permit in (WritePermit(watch), permit_for(10.0, watch)):
        permit.revoke()
        with pytest.raises(NotLeading):
            permit.check()


async def test_a_write_without_a_lease_is_not_sent_and_reads_are(clients: Clients) -> None:
    """Standing by means to watch; a review is a question, though it is sent as a create."""
    async with serving(always(answer(200))) as server:
        client = clients.make(server.url, permit=WritePermit(Watch()))
        await client.send(read())
        with pytest.raises(NotLeading):
            await client.send(write())
        await client.send(write().by_any_replica())
    assert [got.method for got in server.received] == ["GET", "POST"]


@pytest.mark.parametrize("size", [10, 1_500_000], ids=["small", "large"])
@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
async def test_a_permitted_write_arrives_whole(clients: Clients, method: str, size: int) -> None:
    """A body of megabytes goes out in pieces."""
    request = replace(write(), method=method, body=b'"' + b"x" * size + b'"')
    async with serving(always(answer(200))) as server:
        client = clients.make(server.url, permit=permit_for(10.0, Watch()))
        for _ in range(2):
            await client.send(request)
    assert [(got.method, got.body) for got in server.received] == [(method, request.body)] * 2
    assert server.connections == 1


async def test_a_write_without_a_body_is_looked_at_too(clients: Clients) -> None:
    """Nothing of ours has none; the wire does not rely on that."""
    watch = Watch()
    async with serving(always(answer(200))) as server:
        client = clients.make(server.url, permit=permit_for(10.0, watch))
        await client.send(replace(write(), body=None))
        watch.now += 10.0
        with pytest.raises(NotLeading):
            await client.send(replace(write(), body=None))
    assert len(server.received) == 1


async def test_a_lease_that_ends_while_a_token_is_fetched_ends_the_write(clients: Clients) -> None:
    """An exec plugin may take seconds; the machine may sleep meanwhile."""
    watch = Watch()

    class Slow(Credentials):
        async def headers(self) -> CIMultiDict[str]:
            watch.now += 10.0
            return await super().headers()

    async with serving(always(answer(200))) as server:
        credentials = Slow(Endpoint(server.url, None), Identity())
        client = clients.make(server.url, credentials=credentials, permit=permit_for(10.0, watch))
        with pytest.raises(NotLeading):
            await client.send(write())
    assert server.received == []


async def test_a_lease_that_ends_while_a_write_waits_for_the_rate_limit_ends_the_write(clients: Clients) -> None:
    """Waiting for the limit has no deadline."""
    watch = Watch()
    async with serving(always(answer(200))) as server:
        limiter = Limiter(20, 1, asyncio.get_running_loop().time)
        client = clients.make(server.url, limiter=limiter, permit=permit_for(10.0, watch))
        await client.send(write())
        waiting = asyncio.create_task(client.send(write()))
        await asyncio.sleep(0)
        watch.now += 10.0
        with pytest.raises(NotLeading):
            await waiting
    assert len(server.received) == 1


async def test_a_lease_that_ends_while_a_connection_is_made_ends_the_write(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last look is when the connection is there: not one byte of the request goes out."""
    watch, loop = Watch(), asyncio.get_running_loop()
    connect = loop.sock_connect

    async def slowly(sock: socket.socket, address: tuple[str, int]) -> None:
        """Between the looks of client and transport, as when the process is stopped while it connects."""
        await connect(sock, address)
        watch.now += 10.0

    async with serving(always(answer(200))) as server:
        client = clients.make(server.url, permit=permit_for(10.0, watch))
        with monkeypatch.context() as changed:
            changed.setattr(loop, "sock_connect", slowly)
            with pytest.raises(NotLeading) as caught:
                await client.send(write())
        assert (server.connections, watch.now) == (1, 110.0)
        watch.now -= 10.0
        await client.send(write())
    assert isinstance(caught.value, Unreachable), "certainly not done"
    assert len(server.received) == 1


async def test_a_lease_that_ends_while_a_write_waits_for_a_connection_ends_the_write(clients: Clients) -> None:
    """All connections are busy; the one that becomes free finds the lease gone."""
    watch, gate = Watch(), asyncio.Event()

    async def busy(_: Received, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(answer(200))

    async with serving(busy) as server:
        client = clients.make(server.url, permit=permit_for(10.0, watch))
        sent = [asyncio.create_task(client.send(write())) for _ in range(65)]
        await server.arrivals(64)
        watch.now += 10.0
        gate.set()
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
    assert len(server.received) == 64
    assert [type(one) for one in outcomes].count(NotLeading) == 1


async def test_a_large_write_that_is_stopped_halfway_was_not_carried_out(clients: Clients) -> None:
    """The server has a part of it, and does nothing without the rest."""
    watch = Watch()
    size = 40 * 2**20
    arrived: list[int] = []
    ended = asyncio.Event()

    async def reads_a_little(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1000)
        watch.now += 10.0
        with contextlib.suppress(ConnectionError):
            arrived.append(len(await reader.read()))
        writer.close()
        ended.set()

    async with await asyncio.start_server(reads_a_little, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = clients.make(url, permit=permit_for(10.0, watch))
        with pytest.raises(NotLeading):
            await client.send(requests.create(JOBS, b" " * size, namespace="team"))
        await ended.wait()
    assert sum(arrived) < size / 2


async def test_a_write_after_renewed_credentials_is_looked_at_again(clients: Clients) -> None:
    """A 401 did nothing; the second try is a write of its own."""
    watch = Watch()

    class Renewable(Credentials):
        async def renew(self, used: object) -> bool:
            watch.now += 10.0
            return True

    async with serving(always(answer(401, status(401, "Unauthorized")), answer(200))) as server:
        credentials = Renewable(Endpoint(server.url, None), Identity())
        client = clients.make(server.url, credentials=credentials, permit=permit_for(10.0, watch))
        with pytest.raises(NotLeading):
            await client.send(write())
    assert len(server.received) == 1


async def test_a_write_is_not_waited_for_when_the_lease_may_be_anothers(clients: Clients) -> None:
    """Its deadline ends with the lease; a read's does not."""
    async with serving(never) as server:
        permit = WritePermit(asyncio.get_running_loop().time)
        now = asyncio.get_running_loop().time()
        permit.extend(until=now + 0.2, ends=now + 0.3)
        client = clients.make(server.url, permit=permit)
        with pytest.raises(OutcomeUnknown, match=r"within 0\.[0-3]"):
            await client.send(write(deadline_seconds=60.0))


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop turn until it is so."""
    for _ in range(10_000):
        if is_so():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never was")
