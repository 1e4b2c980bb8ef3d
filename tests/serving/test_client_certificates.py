"""Users' client certificates: which are accepted at the HTTPS address, and where their authorities are read."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web
from doubles.loglines import captured

from mirror.embedded.apiserver.messages import User
from mirror.kube.tls import BadCertificate
from mirror.planes.plane import control_plane
from mirror.planes.shape import NONE, Shape
from mirror.serving import https
from mirror.serving.certificates import Certificates, Material
from mirror.serving.client_certificates import ClientAuthorities, user_named
from mirror.serving.x509 import Authority, KeyPair, client_context
from mirror.telemetry.logs import get_log

SERVER, USERS, OTHERS = (Authority.new(name, now=datetime.now(UTC)) for name in ("server", "users", "others"))
CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps"


class Fixed:
    """A source of one certificate."""

    every_seconds = 3600.0

    async def look(self) -> Material:
        return Material(SERVER.issue_server(["127.0.0.1"]), SERVER.certificate)


async def who(request: web.Request) -> web.Response:
    """Says whom the connection's certificate names."""
    encrypted = request.get_extra_info("ssl_object")
    found = user_named(encrypted.getpeercert() or {})
    return web.Response(text=" ".join((found.name, *found.groups)) if found else "nobody")


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Certificates, int]]:
    certificates = Certificates(Fixed(), log=get_log("test"))
    await certificates.load()
    app = https.application([web.get("/", who)])
    async with https.serve_https(("127.0.0.1", 0), app, certificates) as port:
        yield certificates, port


async def asked(port: int, pair: KeyPair | None = None) -> str:
    """The answer over a connection of its own; raises for one that is refused."""
    tls = client_context(SERVER.certificate, pair)
    async with aiohttp.ClientSession() as session, session.get(f"https://127.0.0.1:{port}/", ssl=tls) as answer:
        return await answer.text()


async def test_a_certificate_names_its_user_once_its_authority_is_accepted() -> None:
    """User and groups as an API server reads them; whoever has none is let in, as nobody; also after a change."""
    ann = USERS.issue_client("ann", ["team-a", "team-b"])
    async with serving() as (certificates, port):
        assert await asked(port, ann) == "nobody"
        certificates.accept_clients(USERS.certificate)
        assert await asked(port, ann) == "ann team-a team-b"
        assert await asked(port) == "nobody"
        certificates.accept_clients(OTHERS.certificate + USERS.certificate)
        assert await asked(port, ann) == "ann team-a team-b"
        certificates.accept_clients(b"")
        assert await asked(port, ann) == "nobody"


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(OTHERS.issue_client("ann"), id="of another authority"),
        pytest.param(USERS.issue_server(["127.0.0.1"]), id="of a server"),
        pytest.param(Authority.new("x", now=datetime(2001, 1, 1, tzinfo=UTC)).issue_client("ann"), id="expired"),
    ],
)
async def test_any_other_certificate_is_refused_by_tls(pair: KeyPair) -> None:
    """Before a request is read: no code of ours judges signatures."""
    async with serving() as (certificates, port):
        certificates.accept_clients(USERS.certificate)
        with pytest.raises(aiohttp.ClientError):
            await asked(port, pair)


async def test_an_authority_that_does_not_load_changes_nothing() -> None:
    """Those of before are accepted still."""
    async with serving() as (certificates, port):
        certificates.accept_clients(USERS.certificate)
        with pytest.raises(BadCertificate):
            certificates.accept_clients(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
        assert await asked(port, USERS.issue_client("ann")) == "ann"


def test_a_certificate_without_a_common_name_is_nobodys() -> None:
    """The last common name counts, as in an API server; a certificate ends some time."""
    organization, one, two = (("organizationName", "o"),), (("commonName", "one"),), (("commonName", "two"),)
    assert user_named({"subject": (organization,)}) is None
    found = user_named({"subject": (one, organization, two), "notAfter": "Nov 23 21:00:00 2036 GMT"})
    assert found is not None
    assert (found.name, found.groups) == ("two", ("o",))
    assert found.ends > time.time()


@pytest.mark.looptime
async def test_authorities_are_those_that_the_cluster_publishes() -> None:
    """They are read again each minute; while the ConfigMap is away nobody's certificate counts."""
    accepted: list[bytes] = []
    async with control_plane(Shape(controllers=NONE)) as plane:
        client = plane.client()
        work = asyncio.create_task(
            ClientAuthorities(client, accepted.append, log=get_log("test")).keep(), name="authorities"
        )
        try:
            await asyncio.sleep(1)
            assert accepted == [b""]
            body = {"metadata": {"name": "extension-apiserver-authentication"}, "data": {"client-ca-file": "PEM"}}
            await plane.api.create(CONFIGMAPS, body)
            await asyncio.sleep(60)
            assert accepted[-1] == b"PEM"
            await plane.api.delete(f"{CONFIGMAPS}/extension-apiserver-authentication")
            await asyncio.sleep(60)
            assert accepted[-1] == b""
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await client.close()


@pytest.mark.looptime
async def test_a_missing_permission_is_reported_once() -> None:
    """It names the file that grants it; everything else goes on."""
    async with control_plane(Shape(controllers=NONE, authorization="RBAC")) as plane, AsyncExitStack() as stack:
        lines = stack.enter_context(captured())
        client = plane.client(user=User("manager", ("system:authenticated",)))
        work = asyncio.create_task(
            ClientAuthorities(client, lambda _: None, log=get_log("test")).keep(), name="authorities"
        )
        try:
            await asyncio.sleep(300)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await client.close()
    (line,) = [line for line in lines if line["event"] == "client certificates not accepted"]
    assert "config/rbac/access.yaml" in line["because"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda one: str(one.name))
async def test_no_session_outlives_the_authorities_that_it_was_verified_by(version: ssl.TLSVersion) -> None:
    """A resumed one carries a certificate that nobody verifies again."""
    tls = client_context(SERVER.certificate, USERS.issue_client("ann"))
    tls.maximum_version = version

    def ask(port: int, session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None]:
        answer = b""
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            tls.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as connection,
        ):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while piece := connection.recv(65_536):
                answer += piece
            return answer, connection.session

    async with serving() as (certificates, port):
        certificates.accept_clients(USERS.certificate)
        answer, session = await asyncio.to_thread(ask, port, None)
        assert answer.endswith(b"ann")
        certificates.accept_clients(OTHERS.certificate)
        with suppress(OSError):  # an alert, or the end of the connection
            answer, _ = await asyncio.to_thread(ask, port, session)
            assert answer == b""
        certificates.accept_clients(b"")
        assert (await asyncio.to_thread(ask, port, session))[0].endswith(b"nobody")
