"""Connections: whom we trust, who we are by certificate, where we refuse to go, and names that resolve slowly."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from certificates import Authority, Pair
from wire import Clients, Received, Server, always, answer, serving

from mirror.kube.addresses import judge_host, refuser
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.errors import KubeError, OutcomeUnknown, Unreachable
from mirror.kube.requests import Request
from mirror.kube.resolver import ThreadPerLookup
from mirror.kube.tls import BadCertificate, client_context, load_client_certificate

READ = Request("get", "GET", "/api", deadline_seconds=5.0)


@asynccontextmanager
async def tls_serving(
    authority: Authority, folder: Path, *names: str, ask_for_client: bool = False
) -> AsyncIterator[Server]:
    async def who(_: Received, writer: asyncio.StreamWriter) -> None:
        certificate = writer.get_extra_info("peercert") or {}
        names = [value for entry in certificate.get("subject", ()) for key, value in entry]
        writer.write(answer(200, f'{{"you":"{",".join(names)}"}}'.encode()))

    context = authority.server_context(authority.issue("server", *names), folder, ask_for_client=ask_for_client)
    async with serving(who, tls=context) as server:
        yield server


def client_for(clients: Clients, server: Server, tls: ssl.SSLContext, server_hostname: str | None = None) -> Client:
    return clients.make(server.url, credentials=Credentials(Endpoint(server.url, tls, server_hostname), Identity()))


# TLS


async def test_a_server_is_trusted_by_its_authority(clients: Clients, authority: Authority, tmp_path: Path) -> None:
    """The kubeconfig's, and then no other; comments around the PEM are common in bundles."""
    tls = client_context(ca_pem="# Zertifizierungsstelle für Ost\n".encode() + authority.pem)
    async with tls_serving(authority, tmp_path, "127.0.0.1") as server:
        await client_for(clients, server, tls).send(READ)
        for other in (client_context(ca_pem=Authority().pem), client_context(ca_pem=b"")):
            with pytest.raises(Unreachable, match="ertificate"):
                await client_for(clients, server, other).send(READ)


async def test_a_server_that_is_another_is_unreachable(clients: Clients, authority: Authority, tmp_path: Path) -> None:
    """The certificate must name the host, or what ``tls-server-name`` says instead."""
    tls = client_context(ca_pem=authority.pem)
    async with tls_serving(authority, tmp_path, "api.example") as server:
        with pytest.raises(Unreachable, match="ertificate"):
            await client_for(clients, server, tls).send(READ)
        await client_for(clients, server, tls, "api.example").send(READ)


async def test_verification_can_be_off(clients: Clients, authority: Authority, tmp_path: Path) -> None:
    """Only by opt-in, which is checked elsewhere."""
    async with tls_serving(authority, tmp_path, "elsewhere.example") as server:
        await client_for(clients, server, client_context(ca_pem=b"", verify=False)).send(READ)


async def test_a_client_certificate_is_presented(clients: Clients, authority: Authority, tmp_path: Path) -> None:
    """It is who we are."""
    pair = authority.issue("robot")
    tls = client_context(ca_pem=authority.pem)
    load_client_certificate(tls, pair.certificate, pair.key)
    async with tls_serving(authority, tmp_path, "127.0.0.1", ask_for_client=True) as server:
        assert await client_for(clients, server, tls).send(READ) == b'{"you":"robot"}'


async def test_a_renewed_certificate_is_presented_on_new_connections(
    clients: Clients, authority: Authority, tmp_path: Path
) -> None:
    """An idle connection of before still stands for the old certificate, and is not used again."""
    pairs = [authority.issue("first"), authority.issue("second"), authority.issue("third")]
    wall = [0.0]

    class Certificates:
        async def fetch(self) -> Identity:
            pair: Pair = pairs.pop(0)
            return Identity("", pair.certificate, pair.key, renew_at=wall[0] + 10)

    async with tls_serving(authority, tmp_path, "127.0.0.1", ask_for_client=True) as server:
        credentials = Credentials(
            Endpoint(server.url, client_context(ca_pem=authority.pem)),
            Identity(renew_at=-1.0),
            source=Certificates(),
            wall=lambda: wall[0],
        )
        client = clients.make(server.url, credentials=credentials)
        seen = []
        for _ in range(3):
            seen += [await client.send(READ), await client.send(READ)]
            wall[0] += 11
    assert seen == [b'{"you":"first"}'] * 2 + [b'{"you":"second"}'] * 2 + [b'{"you":"third"}'] * 2
    assert server.connections == 3


async def test_a_request_under_way_survives_a_renewed_certificate(clients: Clients) -> None:
    """Its connection is left alone until the renewal after the next."""
    release = asyncio.Event()

    async def slow(received: Received, writer: asyncio.StreamWriter) -> None:
        if received.target == "/slow":
            await release.wait()
        writer.write(answer(200))

    async with serving(slow) as server:
        client = clients.make(server.url)
        pending = asyncio.create_task(client.send(Request("get", "GET", "/slow")), name="slow")
        await server.arrivals(1)
        await client._transport.reconnect()
        await client.send(READ)
        release.set()
        assert await pending == b"{}"


def test_keys_are_not_left_in_files(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the folder for temporary files, and not as open files either."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = sorted(Path("/proc/self/fd").iterdir())
    pair = authority.issue("robot")
    for key in (pair.key, authority.issue("other").key):
        try:
            load_client_certificate(client_context(ca_pem=authority.pem), pair.certificate, key)
        except BadCertificate:
            continue
    assert list(tmp_path.iterdir()) == []
    assert len(sorted(Path("/proc/self/fd").iterdir())) == len(before)


def test_without_anonymous_memory_a_file_serves_and_goes(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other systems than Linux: mode 0600, and gone at once."""
    monkeypatch.delattr("os.memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pair = authority.issue("robot")
    load_client_certificate(client_context(ca_pem=authority.pem), pair.certificate, pair.key)
    assert list(tmp_path.iterdir()) == []


# Where we refuse to go


async def test_a_name_that_leads_to_this_machine_is_refused_when_it_is_connected(clients: Clients) -> None:
    """A name looks harmless in the kubeconfig; what counts is the address behind it, at each connection."""
    async with serving(always(answer(200))) as server:
        url = f"http://localhost:{server.port}"
        for allow, error in ((False, Unreachable), (True, None)):
            endpoint = Endpoint(url, None, refuse_address=refuser(allow_loopback=allow))
            client = clients.make(url, credentials=Credentials(endpoint, Identity()))
            if error is None:
                await client.send(READ)
            else:
                with pytest.raises(error, match="loopback address"):
                    await client.send(READ)
    assert len(server.received) == 1


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1%2", "0.0.0.0", "::ffff:169.254.169.254"])
def test_metadata_services_are_refused_even_if_loopback_is_allowed(address: str) -> None:
    """There is no opt-in for them."""
    assert refuser(allow_loopback=True)(address) is not None


@pytest.mark.parametrize("address", ["10.0.0.1", "192.168.1.1", "fd12:3456::1", "2001:db8::1", "8.8.8.8", "100.64.0.1"])
def test_private_and_public_addresses_are_fine(address: str) -> None:
    """Clusters live there."""
    assert refuser(allow_loopback=False)(address) is None
    assert judge_host(address) is None


# Sockets


async def test_a_dead_peer_is_noticed_by_the_system(clients: Clients) -> None:
    """The first probe after 15 s of silence, three of them 5 s apart; data without acknowledgement for 30 s."""
    made = clients.make("http://127.0.0.1:1")._transport._new_socket(
        (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    )
    with made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        names = ("TCP_NODELAY", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        options = [made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
    assert options == [1, 15, 5, 3, 30_000]


async def test_a_proxy_gets_the_requests(clients: Clients) -> None:
    """The one that the kubeconfig names."""
    async with serving(always(answer(200))) as proxy:
        endpoint = Endpoint("http://east.example:6443", None, proxy=proxy.url)
        await clients.make("", credentials=Credentials(endpoint, Identity())).send(READ)
    assert proxy.received[0].target == "http://east.example:6443/api"


async def test_a_proxy_that_refuses_leaves_the_server_unreachable(clients: Clients, authority: Authority) -> None:
    """Nothing reached the cluster."""
    async with serving(always(answer(403))) as proxy:
        endpoint = Endpoint("https://east.example:6443", client_context(ca_pem=authority.pem), proxy=proxy.url)
        with pytest.raises(Unreachable):
            await clients.make("", credentials=Credentials(endpoint, Identity())).send(READ)
    assert proxy.received[0].method == "CONNECT"


# Names


async def test_names_are_looked_up_away_from_the_loop() -> None:
    """As the system does it, with its hosts file."""
    found = await ThreadPerLookup().resolve("localhost", 6443)
    assert {entry["host"] for entry in found} <= {"127.0.0.1", "::1"}
    assert {entry["port"] for entry in found} == {6443}


@pytest.mark.parametrize("name", ["nobody.invalid", "a" * 300, "a..b", "ä" * 70], ids=["unknown", "long", "dots", "ä"])
async def test_a_name_that_cannot_be_looked_up_is_an_oserror(name: str) -> None:
    """That is what the HTTP library expects of a resolver."""
    with pytest.raises(OSError):  # noqa: PT011 - which one differs by system
        await ThreadPerLookup().resolve(name)


async def test_a_name_server_that_does_not_answer_holds_up_nobody_else(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty workers with dead names, more than the loop has threads; the next one is reached at once."""
    release = threading.Event()
    real = socket.getaddrinfo

    def stuck(host: str, *args: object, **named: object) -> object:
        if host.endswith(".example"):
            release.wait()
            raise socket.gaierror
        return real(host, *args, **named)

    monkeypatch.setattr(socket, "getaddrinfo", stuck)
    async with serving(always(answer(200))) as server, asyncio.TaskGroup() as group:
        results: list[KubeError] = []

        async def one(number: int) -> None:
            client = clients.make(f"http://dead-{number}.example:6443")
            try:
                await client.send(READ)
            except KubeError as error:
                results.append(error)

        for number in range(20):
            group.create_task(one(number), name=f"dead {number}")
        await asyncio.sleep(0.02)
        await clients.make(f"http://localhost:{server.port}").send(READ)
        assert results == []
        release.set()
    assert {type(error) for error in results} == {Unreachable}


async def test_closing_does_not_wait_for_a_name(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up is abandoned; its thread does not keep the process alive."""
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait() and [])
    client = clients.make("http://dead.example:6443")
    pending = asyncio.create_task(client.send(READ), name="pending")
    await asyncio.sleep(0.02)
    async with asyncio.timeout(60):
        await client.close()
        with pytest.raises((OutcomeUnknown, Unreachable)):
            await pending
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("look up"))
    release.set()


async def test_what_is_urgent_does_not_wait_behind_slow_answers(clients: Clients) -> None:
    """A lease is renewed though every connection for calls is in use."""
    release = asyncio.Event()

    async def slow(received: Received, writer: asyncio.StreamWriter) -> None:
        if received.target == "/slow":
            await release.wait()
        writer.write(answer(200))

    async with serving(slow) as server:
        client = clients.make(server.url)
        pending = [asyncio.create_task(client.send(Request("get", "GET", "/slow"))) for _ in range(80)]
        await server.arrivals(64)
        assert await client.send(Request("get", "GET", "/lease", urgent=True)) == b"{}"
        release.set()
        await asyncio.gather(*pending)
