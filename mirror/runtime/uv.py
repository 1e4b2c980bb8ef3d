"""uvloop's event loop (the extra ``speed``), of which each socket has one owner. Used by ``cli/process``.

A connection that breaks in the moment in which ``create_connection`` takes its socket over is closed by uvloop 0.23,
and the Python object goes on believing that the descriptor is its own: when it is collected, it closes whatever has got
that number meanwhile, another cluster's connection for one. What follows is "File descriptor N is used by transport"
for each new connection, or libuv's abort; an API server that is killed is enough.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvloop


class Loop(uvloop.Loop):  # type: ignore[misc]  # it has no types
    """uvloop's."""

    async def create_connection(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        sock: socket.socket | None = None,
        **more: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """As any event loop's; from now on the socket is the loop's alone, which closes it whatever happens."""
        try:
            made: tuple[asyncio.Transport, asyncio.BaseProtocol]
            made = await super().create_connection(protocol_factory, host, port, sock=sock, **more)
        except (Exception, asyncio.CancelledError):
            if sock is not None:
                sock.detach()
            raise
        if sock is not None and made[0].is_closing():
            sock.detach()
        return made
