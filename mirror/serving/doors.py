"""Who gets in: takes connections for ``https``, so many in all and of one address, from the first byte on.

Whoever only opens sockets and never agrees on TLS counts like everybody else: asyncio's own servers count nobody before
that, and would let strangers use up our files. An API server comes from other addresses than strangers do, so that they
cannot take its room. Not here: what is asked (``https`` and the parts behind it).
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import Counter

from aiohttp import web

from mirror.serving.certificates import Certificates

HANDSHAKE_SECONDS = 10.0
CLOSE_SECONDS = 1.0
MOST_CONNECTIONS = 512
"""Each costs a quarter of a MiB, whatever is sent on it."""
MOST_OF_PEER = 128
"""Connections of one address; an API server needs as many as it asks at once."""
REST_SECONDS = 0.1
_BACKLOG = 256
_FULL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


async def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """One for each address of the host (empty: every interface); with port 0 the first one finds a free port for all.

    Raises:
        OSError: one of them cannot be had.
    """
    loop, found = asyncio.get_running_loop(), list[socket.socket]()
    infos = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    try:
        for family, kind, protocol, _, address in dict.fromkeys(infos):
            try:
                one = socket.socket(family, kind, protocol)
            except OSError:
                continue  # a family that this machine does not speak
            found.append(one)
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((address[0], port, *address[2:]))
            port = one.getsockname()[1]
            one.listen(_BACKLOG)
        if not found:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    except BaseException:
        for one in found:
            one.close()
        raise
    return found


class Doors:
    """Takes connections and hands them to a server, with TLS, as long as ``scope`` lets its tasks run."""

    def __init__(self, server: web.Server, certificates: Certificates, scope: asyncio.TaskGroup) -> None:
        self._server = server
        self._certificates = certificates
        self._scope = scope
        self._coming: Counter[str] = Counter()
        """How many have not agreed on TLS yet, by address."""
        self._greeting: set[asyncio.Task[None]] = set()

    async def take(self, listening: socket.socket) -> None:
        """Take connections from this socket, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:  # who came has gone again, or there are no files: nothing of it is ours
                await asyncio.sleep(REST_SECONDS if error.errno in _FULL else 0)
                continue
            if self._has_room(str(address[0])):
                self._welcome(connection, str(address[0]))
            else:
                connection.close()
            await asyncio.sleep(0)  # while many wait to be taken, taking one does not wait: others go first

    def close(self) -> None:
        """End those who have not agreed on TLS; to be called when nobody is taken any more."""
        for task in self._greeting:
            task.cancel()

    def _welcome(self, connection: socket.socket, peer: str) -> None:
        self._coming[peer] += 1
        task = self._scope.create_task(self._greet(connection), name="TLS handshake")
        self._greeting.add(task)

        def greeted(task: asyncio.Task[None]) -> None:
            self._greeting.discard(task)
            self._coming[peer] -= 1
            if not self._coming[peer]:
                del self._coming[peer]
            if task.cancelled():  # perhaps before it had begun
                connection.close()

        task.add_done_callback(greeted)

    async def _greet(self, connection: socket.socket) -> None:
        """Agree on TLS; from then on the server knows the connection."""
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                self._server,
                connection,
                ssl=self._certificates.context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=CLOSE_SECONDS,
            )
        except OSError:  # no TLS, or not in time, or gone
            connection.close()

    def _has_room(self, peer: str) -> bool:
        """Whether another one may come from there."""
        known, coming = self._server.connections, self._coming
        if len(known) + coming.total() >= MOST_CONNECTIONS:
            return False
        if len(known) + coming[peer] < MOST_OF_PEER:
            return True  # so few are there that nobody has too many
        return coming[peer] + sum(_peer(one) == peer for one in known) < MOST_OF_PEER


def _peer(connection: web.RequestHandler) -> str:
    transport = connection.transport
    name = transport.get_extra_info("peername") if transport is not None else None
    return str(name[0]) if name else ""
