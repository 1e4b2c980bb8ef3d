"""Serves an application at an address, with the bounds of every port of ours: connections, heads, log lines.

``https``, ``health`` and the page use it. Not here: who gets in (``connection_limits``), and what is answered.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from aiohttp.http import HttpProcessingError

from mirror.model.endings import CannotStart
from mirror.model.failures import file_words
from mirror.serving.connection_limits import CLOSE_SECONDS, ConnectionLimits, Limits, listening_sockets

IDLE_SECONDS = 120.0
"""Longer than the 90 s after which an API server leaves an idle connection: were we first, a call just being sent on it
would fail."""
_MOST_HEADER_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Port:
    """Where to serve."""

    address: tuple[str, int]
    """Host (empty: every interface) and port (0: any free one)."""
    setting: str
    """The name of the setting that says so, for who has to mend it."""
    limits: Limits
    tls: Callable[[], ssl.SSLContext] | None = None
    """What connections have to agree on, asked for each of them; None: plain HTTP."""


@asynccontextmanager
async def serve_application(app: web.Application, port: Port) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port, which is a free one if port 0 was asked for.

    Raises:
        CannotStart: the address cannot be listened on.
    """
    limiter = ConnectionLimits(port.limits, tls=port.tls)
    app.middlewares.insert(0, limiter.notice)
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
        tasks: list[asyncio.Task[None]] = []
        try:
            await runner.setup()
            assert runner.server is not None
            limiter.open(runner.server, scope)
            listening = await _listen(port)
            tasks = [scope.create_task(limiter.take(one), name="take connections") for one in listening]
            tasks.append(scope.create_task(limiter.close_silent(), name="close silent connections"))
            found: int = listening[0].getsockname()[1]
            yield found
        except Exception as error:  # noqa: BLE001 - raised below: out of the scope it would come as a group
            failure = error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for one in listening:
                one.close()
            limiter.close()
            await runner.cleanup()
    if failure is not None:
        raise failure


async def _listen(port: Port) -> list[socket.socket]:
    host, number = port.address
    try:
        return await listening_sockets(host, number)
    except OSError as error:
        why = file_words(error)
        raise CannotStart(f"cannot listen on {host}:{number} (setting {port.setting}): {why}") from error


def _logger() -> logging.Logger:
    """Where the server tells of errors, but for those of strangers: what they send may hold anything, and no end."""
    logger = logging.getLogger("aiohttp.server.https")
    if not logger.filters:
        logger.addFilter(_is_ours)
    return logger


def _is_ours(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)
