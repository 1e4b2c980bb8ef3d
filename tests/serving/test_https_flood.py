"""Strangers at the HTTPS address: connections that never speak, and many from one address, leave room for others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web

from mirror.serving import https
from mirror.serving.certificates import Certificates, Material
from mirror.serving.x509 import Authority, client_context
from mirror.telemetry.logs import get_log

ONE = Authority.new("one", now=datetime.now(UTC))


class Given:
    """A source with one certificate."""

    every_seconds = 3600.0

    async def look(self) -> Material:
        return Material(ONE.issue_server(["127.0.0.1"]), ONE.certificate)


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    certificates = Certificates(Given(), log=get_log("test"))
    await certificates.load()
    app = https.application([web.get("/", hello)])
    async with https.serve_https(("127.0.0.1", 0), app, certificates) as port:
        yield port


async def get(port: int, source: str = "127.0.0.1") -> str:
    """Over a connection of its own, from this address."""
    connector = aiohttp.TCPConnector(local_addr=(source, 0), ssl=client_context(ONE.certificate))
    async with aiohttp.ClientSession(connector=connector) as session, session.get(f"https://127.0.0.1:{port}/") as got:
        return await got.text()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(60):
        try:
            return await reader.read(1) == b""
        except ConnectionError:
            return True


async def test_shutting_down_ends_handshakes_too() -> None:
    """Who never speaks does not keep us."""
    async with asyncio.timeout(60):
        async with serving() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.sleep(0)
        assert await is_closed(reader)
        writer.close()


async def test_what_fails_inside_comes_out_as_it_is() -> None:
    """Not as a group: callers tell failures apart."""
    with pytest.raises(KeyError):
        async with serving():
            raise KeyError
