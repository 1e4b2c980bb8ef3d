"""An HTTPS proxy before an API server that can lose single answers: the request is carried out, and nobody is told.

It remembers what came through. It ends TLS, so its users need a token; ``kubeconfig`` makes a file for one. Not here:
breaking connections as such (``proxy``).
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from e2e.controlplane.kubeconfigs import read_kubeconfig, write_kubeconfig
from e2e.controlplane.plane import ControlPlane
from mirror.serving.x509 import Authority, server_context

_OF_THE_HOP = frozenset(("connection", "content-length", "host", "keep-alive", "transfer-encoding"))

Chooser = Callable[[str, str], bool]
"""Given a method and a path."""


class Interceptor:
    """Passes requests on to one API server. Make one with ``before``."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._authority = Authority.new("interceptor", now=datetime.now(UTC))
        self._server = ""
        self._upstream: aiohttp.ClientSession
        self._loses: Chooser = lambda method, path: False
        self.lost: list[str] = []
        """The requests whose answers were lost, as ``METHOD path -> code``."""
        self.received: list[tuple[datetime, str]] = []
        """Every request, as ``METHOD path``, and when it had come."""

    @classmethod
    @asynccontextmanager
    async def before(cls, plane: ControlPlane) -> AsyncIterator[Interceptor]:
        """An interceptor before a control plane, which loses nothing until told to."""
        made = cls(plane)
        connector = aiohttp.TCPConnector(ssl=read_kubeconfig(plane.kubeconfig).tls or False, limit=0)
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", made._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as made._upstream:
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made._tls())
                await site.start()
                made._server = f"https://127.0.0.1:{runner.addresses[0][1]}"
                yield made
            finally:
                await runner.cleanup()

    def lose_answers_to(self, chosen: Chooser) -> None:
        """From now on, carry out such requests and break the connection instead of answering."""
        self._loses = chosen

    def kubeconfig(self, original: Path) -> Path:
        """The user of a kubeconfig with a token, coming through here."""
        config = yaml.safe_load(original.read_text())
        path = original.with_name(f"intercepted-{original.name}")
        return write_kubeconfig(path, self._server, self._authority.certificate, config["users"][0]["user"]["token"])

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.received.append((datetime.now(UTC), f"{request.method} {request.path}"))
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_THE_HOP}
        async with self._upstream.request(
            request.method,
            self._plane.server + request.path_qs,
            data=await request.read() if request.can_read_body else None,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as found:
            if self._loses(request.method, request.path):
                await found.read()
                self.lost.append(f"{request.method} {request.path} -> {found.status}")
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            return await _passed_on(request, found)

    def _tls(self) -> ssl.SSLContext:
        return server_context(self._authority.issue_server(["127.0.0.1"]))


async def _passed_on(request: web.Request, found: aiohttp.ClientResponse) -> web.StreamResponse:
    """The answer as it comes, watches included."""
    headers = {name: value for name, value in found.headers.items() if name.lower() not in _OF_THE_HOP}
    answer = web.StreamResponse(status=found.status, headers=headers)
    await answer.prepare(request)
    async for piece in found.content.iter_any():
        await answer.write(piece)
    await answer.write_eof()
    return answer
