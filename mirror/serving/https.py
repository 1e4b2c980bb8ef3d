"""The one HTTPS address of the manager, for API servers that call our webhook and for users of ``access``.

``app`` opens it when one of both is enabled, on every replica: who stands by answers too. What is answered is in the
application that it is given. Not here: certificates (``certificates``), who gets in (``doors``), and metrics and health
(``telemetry/server``).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http import HttpProcessingError

from mirror.model.endings import CannotStart
from mirror.model.failures import file_words
from mirror.serving.certificates import Certificates
from mirror.serving.doors import CLOSE_SECONDS, Doors, listening_sockets

IDLE_SECONDS = 120.0
"""Longer than the 90 s after which an API server leaves an idle connection: were we first, a call just being sent on it
would fail. It also ends connections that never send a whole header."""
MOST_BODY_BYTES = 4 << 20
"""Two objects of the size that etcd takes, the new and the old one, and something around them."""
_MOST_HEADER_BYTES = 16 << 10

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
    failure: Exception | None = None
    async with asyncio.TaskGroup() as scope:
        listening: list[socket.socket] = []
        taking: list[asyncio.Task[None]] = []
        doors: Doors | None = None
        try:
            await runner.setup()
            listening = await _listen(address)
            assert runner.server is not None
            doors = Doors(runner.server, certificates, scope)
            taking = [scope.create_task(doors.take(one), name="take HTTPS connections") for one in listening]
            port: int = listening[0].getsockname()[1]
            yield port
        except Exception as error:  # noqa: BLE001 - raised below: out of the scope it would come as a group
            failure = error
        finally:
            for task in taking:
                task.cancel()
            await asyncio.gather(*taking, return_exceptions=True)
            for one in listening:
                one.close()
            if doors is not None:
                doors.close()
            await runner.cleanup()
    if failure is not None:
        raise failure


async def _listen(address: tuple[str, int]) -> list[socket.socket]:
    host, port = address
    try:
        return await listening_sockets(host, port)
    except OSError as error:
        why = file_words(error)
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
