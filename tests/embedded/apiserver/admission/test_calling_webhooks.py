"""Webhooks are really called over HTTPS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web

from mirror.embedded.apiserver.admission.calling import LARGEST_ANSWER, CallFailed, HttpsCaller
from mirror.serving.x509 import Authority, server_context

NAME = "hook.team.svc"


@asynccontextmanager
async def serving(authority: Authority) -> AsyncIterator[int]:
    """A webhook on a free port, whose certificate is a service's."""

    async def answer(request: web.Request) -> web.Response:
        match request.path:
            case "/echo":
                return web.Response(body=await request.read(), headers={"x-query": request.query_string})
            case "/huge":
                return web.Response(body=b"x" * (LARGEST_ANSWER + 1))
            case "/slow":
                await asyncio.sleep(60)
            case "/away":
                return web.Response(status=302, headers={"location": "/echo"})
        return web.Response(status=int(request.path[1:]))

    tls = server_context(authority.issue_server([NAME]), client_authority=authority.certificate)
    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        assert runner.addresses
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.new("test", now=datetime.now(UTC))


async def post(port: int, authorities: bytes, path: str = "/echo", seconds: float = 5) -> bytes:
    url, address = f"https://{NAME}:443{path}", f"127.0.0.1:{port}"
    return await HttpsCaller().post(url, b"{}", authorities=authorities, seconds=seconds, address=address)


async def test_a_service_is_known_by_its_certificate(authority: Authority) -> None:
    """Wherever it is."""
    async with serving(authority) as port:
        assert await post(port, authority.certificate) == b"{}"
        with pytest.raises(CallFailed, match="tls: failed to verify certificate"):
            await post(port, Authority.new("other", now=datetime.now(UTC)).certificate)
        url = f"https://127.0.0.1:{port}/echo"
        with pytest.raises(CallFailed, match="tls: failed to verify certificate"):
            await HttpsCaller().post(url, b"{}", authorities=authority.certificate, seconds=5)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/404", "the server could not find the requested resource"),
        ("/500", "an error on the server has prevented the request from succeeding"),
        ("/400", "the server rejected our request for an unknown reason"),
        ("/away", "the server rejected our request for an unknown reason"),
        ("/huge", "longer than"),
    ],
)
async def test_what_is_no_answer(authority: Authority, path: str, why: str) -> None:
    """Nothing is followed, and nothing endless is read."""
    async with serving(authority) as port:
        with pytest.raises(CallFailed, match=why):
            await post(port, authority.certificate, path)


async def test_one_that_does_not_answer_in_time(authority: Authority) -> None:
    """Its timeout counts."""
    async with serving(authority) as port:
        with pytest.raises(CallFailed, match="context deadline exceeded"):
            await post(port, authority.certificate, "/slow", seconds=0.2)


async def test_authorities_that_are_none() -> None:
    """Said before anything is sent."""
    with pytest.raises(CallFailed, match="unable to parse bytes as PEM block"):
        await post(1, b"no PEM")


async def test_nobody_is_there(authority: Authority) -> None:
    """As a client library says it."""
    with pytest.raises(CallFailed, match="connect: "):
        await post(1, authority.certificate)


def test_nothing_but_https_is_trusted() -> None:
    """The context checks names and certificates."""
    from mirror.embedded.apiserver.admission.calling import _trust

    assert (_trust(b"").check_hostname, _trust(b"").verify_mode) == (True, ssl.CERT_REQUIRED)
