"""The server on a socket: what clients get, slow ones, rude ones, many at once, and at the end."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from doubles.loglines import Lines

from mirror.embedded import certificates, kubeconfigs, web
from mirror.embedded.apiserver.messages import Answer, Request, Response, Stream
from mirror.embedded.faults.kinds import Dropped
from mirror.embedded.http import connections
from mirror.model.endings import CannotStart
from mirror.serving import x509

AUTHORITY = x509.Authority.new("test", now=datetime.now(UTC))
SERVER = AUTHORITY.issue_server(certificates.names_for("127.0.0.1"))
GET = b"GET %s HTTP/1.1\r\nHost: here\r\n\r\n"


class Scripted:
    """Answers by path."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.ended = asyncio.Event()
        self.go_on = asyncio.Event()
        self.waits = asyncio.Event()

    async def handle(self, request: Request) -> Answer:
        self.seen.append(request)
        match request.path:
            case "/stream":
                return Stream(200, self._pieces([b"one\n", b"two\n"]))
            case "/endless":
                return Stream(200, self._endless())
            case "/broken":
                return Stream(200, self._broken())
            case "/wait":
                self.waits.set()
                await self.go_on.wait()
                return Response(200, b"waited")
            case "/drop":
                raise Dropped(was_sent=True)
            case "/defect":
                raise RuntimeError("a defect")
            case "/large":
                return Response(200, b"x" * 2_000_000)
            case _:
                return Response(200, request.body or b"{}", headers=(("Warning", "299 - a\r\nb"),))

    async def _pieces(self, pieces: list[bytes]) -> AsyncGenerator[bytes, None]:
        for piece in pieces:
            yield piece
            yield b""

    async def _endless(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b"begun\n"
            while True:
                await self.go_on.wait()
                yield b"x" * 10_000
        finally:
            self.ended.set()

    async def _broken(self) -> AsyncGenerator[bytes, None]:
        yield b"begun\n"
        raise RuntimeError("a defect")


@asynccontextmanager
async def serving(server: Scripted, *, is_plain: bool = True) -> AsyncIterator[int]:
    tls = None if is_plain else x509.server_context(SERVER, client_authority=AUTHORITY.certificate)
    async with web.serve(server, listen=("127.0.0.1", 0), tls=tls) as (_, port):
        yield port


@asynccontextmanager
async def client(
    port: int, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:-2])
    body = b""
    if headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readuntil(b"\r\n")), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
    else:
        body = await reader.readexactly(int(headers["content-length"]))
    return int(lines[0].split()[1]), headers, body


async def test_requests_follow_one_another() -> None:
    """On one connection, even when they are all sent at once; answers come in order."""
    server = Scripted()
    async with serving(server) as port, client(port) as (reader, writer):
        for number in range(3):
            writer.write(b"POST /p HTTP/1.1\r\nHost: here\r\nContent-Length: 1\r\n\r\n%d" % number)
        for number in range(3):
            status, headers, body = await answer(reader)
            assert (200, b"%d" % number) == (status, body)
            assert {"date", "content-type", "cache-control"} <= headers.keys()
            assert headers["warning"] == "299 - a  b"


async def test_a_stream_comes_in_pieces() -> None:
    """And ends with the last chunk; the connection goes on."""
    server = Scripted()
    async with serving(server) as port, client(port) as (reader, writer):
        writer.write(GET % b"/stream" + GET % b"/next")
        assert (await answer(reader))[2] == b"one\ntwo\n"
        assert (await answer(reader))[0] == 200


async def test_head_has_no_body() -> None:
    """But its length."""
    async with serving(Scripted()) as port, client(port) as (reader, writer):
        writer.write(b"HEAD / HTTP/1.1\r\nHost: here\r\n\r\n" + GET % b"/")
        assert b"content-length: 2" in (await reader.readuntil(b"\r\n\r\n")).lower()
        assert (await answer(reader))[2] == b"{}"


async def test_malformed_bytes_get_a_status() -> None:
    """And the connection ends."""
    async with serving(Scripted()) as port, client(port) as (reader, writer):
        writer.write(b"nonsense\r\n\r\n")
        status, headers, body = await answer(reader)
        assert (status, headers["connection"]) == (400, "close")
        assert b'"kind":"Status"' in body


async def test_upgrades_are_refused() -> None:
    """kubectl exec shows the message of the Status."""
    async with serving(Scripted()) as port, client(port) as (reader, writer):
        writer.write(b"POST /exec HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
        status, _, body = await answer(reader)
        assert status == 501
        assert b"exec" in body


@pytest.mark.parametrize("path", ["/drop", "/defect", "/broken"])
async def test_what_fails_ends_one_connection(path: str, log_lines: Lines) -> None:
    """And nobody else's."""
    async with serving(Scripted()) as port:
        async with client(port) as (reader, writer):
            writer.write(GET % path.encode())
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await answer(reader)
        async with client(port) as (reader, writer):
            writer.write(GET % b"/")
            assert (await answer(reader))[0] == 200
    assert (path == "/drop") == (not log_lines)


async def test_a_stream_ends_when_its_reader_leaves() -> None:
    """Its generator is closed at once."""
    server = Scripted()
    async with serving(server) as port:
        async with client(port) as (reader, writer):
            writer.write(GET % b"/endless")
            await reader.readuntil(b"begun\n")
        await asyncio.wait_for(server.ended.wait(), 60)


async def test_a_reader_that_stops_reading_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken from its stream meanwhile, so that it costs a bounded amount of memory."""
    monkeypatch.setattr(connections, "STALLED_SECONDS", 0.05)
    monkeypatch.setattr(web, "LOOK_SECONDS", 0.02)
    server = Scripted()
    async with serving(server) as port, client(port) as (reader, writer):
        writer.write(GET % b"/endless")
        await reader.readuntil(b"begun\n")
        writer.transport.pause_reading()
        server.go_on.set()
        await asyncio.wait_for(server.ended.wait(), 60)


@pytest.mark.parametrize(
    ("sent", "expected"), [(b"GET / HT", b"HTTP/1.1 408"), (b"", b"")], ids=["in the middle", "before it begins"]
)
async def test_a_request_that_does_not_come_is_given_up(
    sent: bytes, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a Status if it had begun."""
    for name in ("REQUEST_SECONDS", "IDLE_SECONDS", "LINGER_SECONDS"):
        monkeypatch.setattr(connections, name, 0.05)
    monkeypatch.setattr(web, "LOOK_SECONDS", 0.02)
    async with serving(Scripted()) as port, client(port) as (reader, writer):
        writer.write(sent)
        try:
            found = await asyncio.wait_for(reader.read(), 60)
        except ConnectionResetError:
            found = b""
        assert found.startswith(expected)


async def test_too_many_connections_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a Status that says to come again."""
    monkeypatch.setattr(web, "_most_connections", lambda: 1)
    async with serving(Scripted()) as port, client(port) as (reader, writer):
        writer.write(GET % b"/")
        await answer(reader)
        async with client(port) as (other, _):
            assert (await answer(other))[0] == 429


async def test_the_end_waits_for_answers_and_ends_streams() -> None:
    """A stream with its last chunk, so that the client knows that nothing broke."""
    server = Scripted()
    async with asyncio.timeout(60), serving(server) as port:
        one, two = await asyncio.open_connection("127.0.0.1", port), await asyncio.open_connection("127.0.0.1", port)
        one[1].write(GET % b"/endless")
        await one[0].readuntil(b"begun\n")
        two[1].write(GET % b"/wait")
        await server.waits.wait()
        asyncio.get_running_loop().call_later(0.01, server.go_on.set)
    assert (await one[0].read()).endswith(b"0\r\n\r\n")
    assert (await two[0].read()).endswith(b"waited")
    for _, writer in (one, two):
        writer.close()


async def test_an_address_that_is_taken_is_said() -> None:
    """In one line."""
    async with serving(Scripted()) as port:
        with pytest.raises(CannotStart, match="address already in use"):
            async with web.serve(Scripted(), listen=("127.0.0.1", port), tls=None):
                pass


async def test_a_client_certificate_names_the_user() -> None:
    """The common name is the user, the organizations are its groups; without one nobody is named."""
    server = Scripted()
    pair = AUTHORITY.issue_client("jane", ["dev", "ops"])
    async with serving(server, is_plain=False) as port:
        for tls in (
            x509.client_context(AUTHORITY.certificate, pair),
            x509.client_context(AUTHORITY.certificate),
        ):
            async with client(port, tls) as (reader, writer):
                writer.write(GET % b"/")
                assert (await answer(reader))[0] == 200
    jane, nobody = (request.user for request in server.seen)
    assert jane is not None
    assert ("jane", {"dev", "ops", "system:authenticated"}) == (jane.name, set(jane.groups))
    assert nobody is None


async def test_a_large_answer_reaches_a_slow_reader() -> None:
    """As long as it keeps reading."""
    tls = x509.client_context(AUTHORITY.certificate)
    async with serving(Scripted(), is_plain=False) as port, client(port, tls) as (reader, writer):
        writer.write(GET % b"/large" + GET % b"/")
        assert len((await answer(reader))[2]) == 2_000_000
        assert (await answer(reader))[0] == 200


@pytest.mark.parametrize(
    ("host", "url"),
    [("", "https://127.0.0.1:1"), ("0.0.0.0", "https://127.0.0.1:1"), ("::1", "https://[::1]:1"), ("a", "https://a:1")],
)
def test_where_clients_find_it(host: str, url: str) -> None:
    """A server on every interface is found on this machine."""
    assert url == kubeconfigs.url(host, 1)
