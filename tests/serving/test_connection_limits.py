"""Who gets in: connections are bounded on every port, and a probe, a scraper or an API server is never refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from mirror.serving import connection_limits, health, https
from mirror.serving.certificates import Certificates, Material
from mirror.serving.connection_limits import Limits
from mirror.serving.listening import Port, serve_application
from mirror.serving.peers import peer_of
from mirror.serving.x509 import Authority, client_context
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics

HALF = b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
Held = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Strangers:
    """Connections that stay open as long as the test."""

    def __init__(self, port: int, **options: Any) -> None:
        self._port = port
        self._options = options
        self.held: list[Held] = []

    async def connect(self, source: str = "127.0.0.1", first: bytes = b"") -> Held:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(source, 0), **self._options)
        writer.write(first)
        self.held.append((reader, writer))
        return reader, writer

    async def request(self, source: str = "127.0.0.1") -> bytes:
        """The status line of a request over a connection of its own, which stays open."""
        reader, _ = await self.connect(source, WHOLE)
        async with asyncio.timeout(60):
            return await reader.readline()


@asynccontextmanager
async def strangers(port: int, **options: Any) -> AsyncIterator[Strangers]:
    made = Strangers(port, **options)
    async with AsyncExitStack() as stack:
        stack.callback(lambda: [writer.transport.abort() for _, writer in made.held])
        yield made


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


@asynccontextmanager
async def serving(in_all: int, of_peer: int, handler: Any = hello) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_route("*", "/healthz", handler)
    async with serve_application(app, Port(("127.0.0.1", 0), "listen", Limits(in_all, of_peer))) as port:
        yield port


async def closed(held: Held) -> bool:
    async with asyncio.timeout(60):
        try:
            while await held[0].read(4096):
                pass
        except ConnectionError:
            pass
        return True


@pytest.mark.parametrize("first", [b"", HALF, WHOLE], ids=["silent", "half a head", "idle"])
async def test_a_probe_gets_in_however_many_connections_of_its_own_address_are_held(first: bytes) -> None:
    """Behind a node's address there may be pods that mean harm, and the kubelet."""
    async with serving(in_all=8, of_peer=4) as port, strangers(port) as crowd:
        for _ in range(12):
            await crowd.connect(first=first)
        for _ in range(3):
            assert b"200" in await crowd.request()


async def test_addresses_that_take_all_places_make_room_the_heaviest_first() -> None:
    """Four addresses hold what they may; a fifth one is served, at the cost of who has the most."""
    async with serving(in_all=8, of_peer=3) as port, strangers(port) as crowd:
        light = await crowd.connect("127.0.0.2", HALF)
        heavy = [await crowd.connect(f"127.0.0.{3 + number // 3}", HALF) for number in range(7)]
        assert b"200" in await crowd.request("127.0.0.9")
        assert await closed(heavy[0])
        assert not light[0].at_eof()


async def test_what_never_sent_a_request_goes_before_what_idles() -> None:
    """An API server leaves connections open between two calls."""
    async with serving(in_all=3, of_peer=3) as port, strangers(port) as crowd:
        assert b"200" in await crowd.request("127.0.0.2")
        assert b"200" in await crowd.request("127.0.0.2")
        silent = await crowd.connect("127.0.0.3")
        assert b"200" in await crowd.request("127.0.0.4")
        assert await closed(silent)
        assert not any(reader.at_eof() for reader, _ in crowd.held[:2])


async def test_a_request_under_way_is_never_closed_for_another() -> None:
    """Who is being served stays; one that has no room then is refused."""
    begun, end = asyncio.Semaphore(0), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        begun.release()
        await end.wait()
        return web.Response(text="done")

    async with serving(2, 2, slow) as port, strangers(port) as crowd:
        served = [await crowd.connect(first=WHOLE) for _ in range(2)]
        for _ in served:
            await begun.acquire()
        assert await closed(await crowd.connect("127.0.0.2", WHOLE))
        end.set()
        for reader, _ in served:
            assert b"200" in await reader.readline()


async def test_half_a_body_holds_no_place() -> None:
    """A head is sent in a moment, and a body may never come."""

    async def reading(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async with serving(2, 2, reading) as port, strangers(port) as crowd:
        for _ in range(2):
            await crowd.connect(first=b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
        for _ in range(3):
            assert b"200" in await crowd.request("127.0.0.2")


async def test_who_sends_no_request_in_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds are enough for a head; one that has been served may wait between two requests."""
    monkeypatch.setattr(connection_limits, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(connection_limits, "_LOOK_SECONDS", 0.01)
    async with serving(9, 9) as port, strangers(port) as crowd:
        silent, half = await crowd.connect(), await crowd.connect(first=HALF)
        assert b"200" in await crowd.request()
        assert await closed(silent)
        assert await closed(half)
        reader, writer = crowd.held[-1]
        assert not reader.at_eof()
        writer.write(WHOLE)
        while (line := await reader.readline()) and b"200" not in line:
            pass
        assert line


class Given:
    """A source with one certificate."""

    every_seconds = 3600.0

    def __init__(self) -> None:
        self.authority = Authority.new("one", now=datetime.now(UTC))

    async def look(self) -> Material:
        return Material(self.authority.issue_server(["127.0.0.1"]), self.authority.certificate)


async def test_connections_that_never_agree_on_tls_make_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The webhook is called by an API server, whoever opens sockets beside it."""
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 4)
    source = Given()
    certificates = Certificates(source, log=get_log("test"))
    await certificates.load()
    app = https.application([web.get("/healthz", hello)])
    tls = client_context(source.authority.certificate)
    async with (
        https.serve_https(("127.0.0.1", 0), app, certificates) as port,
        strangers(port) as plain,
        strangers(port, ssl=tls) as agreed,
    ):
        silent = [await plain.connect(f"127.0.0.{2 + number}") for number in range(8)]
        for _ in range(3):
            assert b"200" in await agreed.request("127.0.0.20")
        assert await closed(silent[0])


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/metrics"])
async def test_the_port_of_metrics_is_bounded(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Half-sent heads used up the manager's files, probes failed, and the kubelet restarted it."""
    monkeypatch.setattr(health, "LIMITS", Limits(in_all=6, of_peer=4))
    async with (
        health.serve(("127.0.0.1", 0), metrics=Metrics(), health={}, readiness={}) as port,
        strangers(port) as crowd,
    ):
        for _ in range(40):
            await crowd.connect(first=HALF)
        reader, _ = await crowd.connect(first=f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        async with asyncio.timeout(60):
            assert b"200" in await reader.readline()
        assert sum([await closed(one) for one in crowd.held[:30]]) == 30


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::4", "2001:db8:1:3::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_an_ipv6_address_counts_as_its_network(address: str, peer: str) -> None:
    """Whoever has one has 18 trillion millions of them."""
    assert peer_of(address) == peer
