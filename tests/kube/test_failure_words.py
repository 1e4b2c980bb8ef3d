"""What a user reads of a request that failed: each way a connection can fail, made with real sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from certificates import Authority
from wire import Clients, Received, always, answer, chunk, chunked_head, never, serving

from mirror.kube import transport
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.errors import KubeError, describe
from mirror.kube.requests import Request
from mirror.kube.tls import client_context, load_client_certificate

READ = Request("get", "GET", "/api", deadline_seconds=0.4)
NEVER_SHOWN = ("Errno", "errno", "_ssl", "ssl:", "Error", "Unreachable", "Unknown:", "[", "<", "object at", "\n")


@dataclass
class World:
    """What a way to fail is made with."""

    authority: Authority
    folder: Path

    def tls(self, *names: str, **validity: timedelta) -> ssl.SSLContext:
        """A server's, with a certificate for these names."""
        return self.authority.server_context(self.authority.issue("server", *names, **validity), self.folder)

    @property
    def trust(self) -> ssl.SSLContext:
        return client_context(ca_pem=self.authority.pem)


Way = Callable[[World], "AsyncIterator[Endpoint]"]
WAYS: dict[str, tuple[Callable[[World], object], str]] = {}


def way(words: str) -> Callable[[Way], Way]:
    """Registers a way to fail with what is to be read of it."""

    def register(making: Way) -> Way:
        WAYS[making.__name__.replace("_", " ")] = (asynccontextmanager(making), words)
        return making

    return register


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, as a process that is killed, or a firewall, does."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """A TCP server that need not speak HTTP."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@way("connection refused")
async def a_closed_port(_: World) -> AsyncIterator[Endpoint]:
    yield Endpoint(f"http://127.0.0.1:{closed_port()}", None)


@way("connection refused")
async def a_closed_port_of_a_name_with_two_addresses(_: World) -> AsyncIterator[Endpoint]:
    yield Endpoint(f"https://localhost:{closed_port()}", None)


@way("no such host (DNS)")
async def a_name_that_does_not_exist(_: World) -> AsyncIterator[Endpoint]:
    yield Endpoint("http://nobody.invalid:6443", None)


@way("not a host name")
async def a_name_that_cannot_exist(_: World) -> AsyncIterator[Endpoint]:
    yield Endpoint(f"http://{'a' * 64}.example:6443", None)


@way("connection timed out")
async def a_server_that_accepts_no_connection(_: World) -> AsyncIterator[Endpoint]:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        crowd = [socket.socket() for _ in range(3)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield Endpoint(f"http://127.0.0.1:{full.getsockname()[1]}", None)
        for one in crowd:
            one.close()


@way("no response within 0.4 s")
async def a_server_that_does_not_respond(_: World) -> AsyncIterator[Endpoint]:
    async with serving(never) as server:
        yield Endpoint(server.url, None)


@way("connection reset by the API server")
async def a_connection_that_is_reset(_: World) -> AsyncIterator[Endpoint]:
    async def hang_up(_: Received, writer: asyncio.StreamWriter) -> None:
        reset(writer)

    async with serving(hang_up) as server:
        yield Endpoint(server.url, None)


@way("connection reset by the manager")
async def a_connection_that_the_manager_resets(_: World) -> AsyncIterator[Endpoint]:
    async def hang_up(_: Received, writer: asyncio.StreamWriter) -> None:
        reset(writer)

    async with serving(hang_up) as server:
        yield Endpoint(server.url, None, peer="the manager")


@way("connection closed by the API server before it answered")
async def a_connection_that_is_closed(_: World) -> AsyncIterator[Endpoint]:
    async def hang_up(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with serving(hang_up) as server:
        yield Endpoint(server.url, None)


@way("connection closed by the API server before the response was complete")
async def half_a_response(_: World) -> AsyncIterator[Endpoint]:
    async def cut(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + chunk(b'{"metadata"'))
        await writer.drain()
        writer.close()

    async with serving(cut) as server:
        yield Endpoint(server.url, None)


@way("the response is not valid HTTP")
async def another_protocol(_: World) -> AsyncIterator[Endpoint]:
    async with serving(always(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")) as server:
        yield Endpoint(server.url, None)


@way("server does not speak TLS on this port")
async def http_where_https_is_expected(_: World) -> AsyncIterator[Endpoint]:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with listening(greet) as port:
        yield Endpoint(f"https://127.0.0.1:{port}", None)


@way("connection timed out")
async def a_server_that_begins_no_tls(_: World) -> AsyncIterator[Endpoint]:
    async with serving(always(answer(200))) as server:
        yield Endpoint(server.url.replace("http:", "https:"), None)


@way("connection reset by the API server")
async def a_reset_within_the_tls_handshake(world: World) -> AsyncIterator[Endpoint]:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reset(writer)

    async with listening(hang_up) as port:
        yield Endpoint(f"https://127.0.0.1:{port}", world.trust)


@way("certificate signed by unknown authority")
async def another_authority(world: World) -> AsyncIterator[Endpoint]:
    async with serving(never, tls=world.tls("127.0.0.1")) as server:
        yield Endpoint(server.url, client_context(ca_pem=Authority().pem))


@way("certificate signed by unknown authority")
async def an_authority_that_the_system_does_not_know(world: World) -> AsyncIterator[Endpoint]:
    async with serving(never, tls=world.tls("127.0.0.1")) as server:
        yield Endpoint(server.url, None)


@way("certificate has expired")
async def an_expired_certificate(world: World) -> AsyncIterator[Endpoint]:
    tls = world.tls("127.0.0.1", begins=timedelta(days=-9), ends=timedelta(days=-1))
    async with serving(never, tls=tls) as server:
        yield Endpoint(server.url, world.trust)


@way("certificate is not yet valid (check both clocks)")
async def a_certificate_of_tomorrow(world: World) -> AsyncIterator[Endpoint]:
    tls = world.tls("127.0.0.1", begins=timedelta(days=1), ends=timedelta(days=9))
    async with serving(never, tls=tls) as server:
        yield Endpoint(server.url, world.trust)


@way("certificate is not valid for localhost")
async def a_certificate_of_another_host(world: World) -> AsyncIterator[Endpoint]:
    async with serving(never, tls=world.tls("api.example")) as server:
        yield Endpoint(server.url.replace("127.0.0.1", "localhost"), world.trust)


@way("certificate is not valid for 127.0.0.1")
async def a_certificate_of_another_address(world: World) -> AsyncIterator[Endpoint]:
    async with serving(never, tls=world.tls("10.0.0.1")) as server:
        yield Endpoint(server.url, world.trust)


@contextmanager
def handshaking(tls: ssl.SSLContext) -> Iterator[int]:
    """A server that says why it ends a handshake, as Go's and OpenSSL's do and asyncio's does not: in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def shake() -> None:
            connection, _ = listener.accept()
            connection.settimeout(2.0)
            with suppress(OSError), tls.wrap_socket(connection, server_side=True) as wrapped:
                wrapped.recv(1)

        thread = threading.Thread(target=shake, name="handshake", daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


@way("no TLS version in common with the server")
async def a_server_with_new_tls_only(world: World) -> AsyncIterator[Endpoint]:
    tls, trust = world.tls("127.0.0.1"), world.trust
    tls.minimum_version, trust.maximum_version = ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2
    with handshaking(tls) as port:
        yield Endpoint(f"https://127.0.0.1:{port}", trust)


@way("TLS handshake rejected by the server")
async def a_client_without_its_certificate(world: World) -> AsyncIterator[Endpoint]:
    tls = world.tls("127.0.0.1")
    tls.maximum_version, tls.verify_mode = ssl.TLSVersion.TLSv1_2, ssl.CERT_REQUIRED
    with handshaking(tls) as port:
        yield Endpoint(f"https://127.0.0.1:{port}", world.trust)


@way("client certificate rejected by the server")
async def a_client_with_a_certificate_of_a_namesake_authority(world: World) -> AsyncIterator[Endpoint]:
    tls, trust, pair = world.tls("127.0.0.1"), world.trust, Authority().issue("robot")
    tls.maximum_version, tls.verify_mode = ssl.TLSVersion.TLSv1_2, ssl.CERT_REQUIRED
    tls.load_verify_locations(cadata=world.authority.pem.decode())
    load_client_certificate(trust, pair.certificate, pair.key)
    with handshaking(tls) as port:
        yield Endpoint(f"https://127.0.0.1:{port}", trust)


@way("proxy: connection refused")
async def a_proxy_that_is_not_there(_: World) -> AsyncIterator[Endpoint]:
    yield Endpoint("https://east.example:6443", None, proxy=f"http://127.0.0.1:{closed_port()}")


@way("proxy: it answered 407 to CONNECT")
async def a_proxy_that_refuses(_: World) -> AsyncIterator[Endpoint]:
    async with serving(always(answer(407, b""))) as server:
        yield Endpoint("https://east.example:6443", None, proxy=server.url)


@way("refused to connect: it is this machine")
async def an_address_that_is_not_allowed(_: World) -> AsyncIterator[Endpoint]:
    yield Endpoint("http://127.0.0.1:1", None, refuse_address=lambda address: "it is this machine")


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
async def test_a_failure_is_told_in_words(name: str, clients: Clients, authority: Authority, tmp_path: Path) -> None:
    """No class, no number, no line of OpenSSL's source: what an engineer would say of it."""
    making, words = WAYS[name]
    async with making(World(authority, tmp_path)) as endpoint:
        client = clients.make(endpoint.server, credentials=Credentials(endpoint, Identity()))
        with pytest.raises(KubeError) as failed:
            await client.send(READ)
    assert words == describe(failed.value)
    assert not [one for one in NEVER_SHOWN if one in str(failed.value)]


async def test_a_write_to_a_broken_pipe_is_told_in_words(monkeypatch: pytest.MonkeyPatch, clients: Clients) -> None:
    """The server is gone while a large body is sent."""
    monkeypatch.setattr(transport, "_LARGE_BODY_BYTES", 1)

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reset(writer)

    async with listening(hang_up) as port:
        large = Request("create", "POST", "/x", body=b"x" * 2**24, deadline_seconds=5.0)
        with pytest.raises(KubeError, match=r"^connection (reset|closed) by the API server( \(broken pipe\))?$"):
            await clients.make(f"http://127.0.0.1:{port}").send(large)
