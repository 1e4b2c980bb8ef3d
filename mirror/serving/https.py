"""The one HTTPS address of the manager, for API servers that call our webhook and for users of ``access``.

``app`` opens it when one of both is enabled, on every replica: who stands by answers too. What is answered is in the
application that it is given. Not here: certificates (``certificates``), and metrics and health (``telemetry/server``).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http import HttpProcessingError

from mirror.model.endings import CannotStart
from mirror.serving.certificates import Certificates

CLOSE_SECONDS = 1.0
HANDSHAKE_SECONDS = 10.0
IDLE_SECONDS = 120.0
"""Longer than the 90 s after which an API server leaves an idle connection: were we first, a call just being sent on it
would fail. It also ends connections that never send a whole header."""
MOST_CONNECTIONS = 1024
MOST_BODY_BYTES = 4 << 20
"""Two objects of the size that etcd takes, the new and the old one, and something around them."""
_MOST_HEADER_BYTES = 16 << 10
_BACKLOG = 256

Routes = Iterable[web.AbstractRouteDef]
"""What one part answers, as ``aiohttp.web`` has it (``web.post(path, handler)`` …)."""


def application(*parts: Routes) -> web.Application:
    """An application of the routes of all parts, with the bounds that everything behind this address has."""
    app = web.Application(client_max_size=MOST_BODY_BYTES)
    for routes in parts:
        app.add_routes(routes)
    return app


@asynccontextmanager
async def serve_https(address: tuple[str, int], app: web.Application, certificates: Certificates) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port, which is a free one if port 0 was asked for.

    Args:
        address: host (empty: every interface) and port, as of ``Https.listen_address``.
        app: of ``application``, with its routes.
        certificates: loaded; what it loads later is shown to connections that are opened later.

    Raises:
        CannotStart: the address cannot be listened on.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=_logger(),
        handler_cancellation=True,
        shutdown_timeout=CLOSE_SECONDS,
        keepalive_timeout=IDLE_SECONDS,
        max_line_size=_MOST_HEADER_BYTES,
        max_field_size=_MOST_HEADER_BYTES,
    )
    await runner.setup()
    listener: asyncio.Server | None = None
    try:
        listener = await _listen(runner, address, certificates)
        port: int = listener.sockets[0].getsockname()[1]
        yield port
    finally:
        if listener is not None:
            listener.close()
        await runner.cleanup()


async def _listen(runner: web.AppRunner, address: tuple[str, int], certificates: Certificates) -> asyncio.Server:
    host, port = address
    server = runner.server
    assert server is not None

    def connection() -> asyncio.Protocol:
        return server() if len(server.connections) < MOST_CONNECTIONS else _Refused()

    try:
        return await asyncio.get_running_loop().create_server(
            connection,
            host or None,
            port,
            ssl=certificates.context,
            backlog=_BACKLOG,
            reuse_address=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=CLOSE_SECONDS,
        )
    except OSError as error:
        number = error.errno or 0  # not positive for a name that does not resolve
        why = os.strerror(number).lower() if number > 0 else error.strerror or str(error)
        raise CannotStart(f"cannot listen on {host}:{port} (setting https.listen): {why}") from error


def _logger() -> logging.Logger:
    """Where the server tells of errors, but for those of strangers: what they send may hold anything, and no end."""
    logger = logging.getLogger("aiohttp.server.https")
    if not logger.filters:
        logger.addFilter(_is_ours)
    return logger


def _is_ours(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


class _Refused(asyncio.Protocol):
    """A connection beyond the bound: closed before anything is read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
