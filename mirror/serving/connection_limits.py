"""Who gets in: takes connections for ``listening``, so many in all and of one address, from the first byte on.

Whoever only opens sockets, or never sends a whole request, counts like everybody else: asyncio's own servers count
nobody before that, and would let strangers use up our files. Nobody is turned away for their sake: where there is no
room, a connection without a request under way makes it, of the address that has the most of them, the oldest first. So
an API server, a scraper and a probe get in, whoever else does. Not here: what is requested.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from mirror.serving.peers import peer_of

HANDSHAKE_SECONDS = 10.0
HEAD_SECONDS = 10.0
"""Within which a connection sends its first request whole, from when it was opened."""
CLOSE_SECONDS = 1.0
MOST_CONNECTIONS = 512
"""Each costs a quarter of a MiB, whatever is sent on it."""
MOST_OF_PEER = 128
"""Connections of one address; an API server needs as many as it has requests under way."""
REST_SECONDS = 0.1
_LOOK_SECONDS = 1.0
_BACKLOG = 256
_FULL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections there may be."""

    in_all: int
    of_peer: int


@dataclass(slots=True, eq=False)
class _Guest:
    """One connection."""

    peer: str
    since: float
    socket: socket.socket
    task: asyncio.Task[None] | None = None
    """While it is being taken: it may have to agree on TLS."""
    protocol: web.RequestHandler | None = None
    request: web.Request | None = None
    """The one under way, once its head is there."""
    has_asked: bool = False
    """Whether it has ever sent a whole request."""

    @property
    def is_served(self) -> bool:
        """Whether a request of it is under way that has come to its end."""
        return self.request is not None and self.request.content.is_eof()

    def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
        elif self.protocol is not None and self.protocol.transport is not None:
            self.protocol.transport.abort()


class ConnectionLimits:
    """Takes connections and hands them to a server, as long as ``scope`` lets its tasks run.

    Invariant: ``_guests`` are the connections that are open, by their socket's or protocol's identity in order of age.
    """

    def __init__(self, limits: Limits, *, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        """Nobody is taken before ``open``.

        Args:
            limits: how many are taken.
            tls: what each connection has to agree on, as of now; None: it is plain.
        """
        self._limits = limits
        self._tls = tls
        self._guests: list[_Guest] = []
        self._server: web.Server
        self._scope: asyncio.TaskGroup

    @web.middleware
    async def notice(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A middleware of the application behind: from its head on a request is under way."""
        guest = next((one for one in self._guests if one.protocol is request.protocol), None)
        if guest is None:
            return await handler(request)
        guest.request = request
        try:
            return await handler(request)
        finally:
            guest.request, guest.has_asked = None, True

    def open(self, server: web.Server, scope: asyncio.TaskGroup) -> None:
        self._server, self._scope = server, scope

    async def take(self, listening: socket.socket) -> None:
        """Take connections from this socket, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:  # who came has gone again, or there are no files: nothing of it is ours
                await asyncio.sleep(REST_SECONDS if error.errno in _FULL else 0)
                continue
            peer = peer_of(str(address[0]))
            if self._make_room(peer):
                self._welcome(connection, peer)
            else:
                connection.close()
            await asyncio.sleep(0)  # while many wait to be taken, taking one does not wait: others go first

    async def close_silent(self) -> None:
        """Close those that do not send a request in time, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._forget_closed()
            latest = asyncio.get_running_loop().time() - HEAD_SECONDS
            for guest in self._guests:
                if guest.request is None and not guest.has_asked and guest.since < latest:
                    guest.close()

    def close(self) -> None:
        """End those who have not agreed on TLS; to be called when nobody is taken any more."""
        for guest in self._guests:
            if guest.task is not None:
                guest.task.cancel()

    def _welcome(self, connection: socket.socket, peer: str) -> None:
        guest = _Guest(peer, asyncio.get_running_loop().time(), connection)
        self._guests.append(guest)
        guest.task = self._scope.create_task(self._greet(guest), name="take a connection")

        def greeted(task: asyncio.Task[None]) -> None:
            guest.task = None
            if task.cancelled():  # perhaps before it had begun
                connection.close()

        guest.task.add_done_callback(greeted)

    async def _greet(self, guest: _Guest) -> None:
        """Agree on TLS where that is wanted; from then on the server knows the connection."""

        def protocol() -> web.RequestHandler:
            guest.protocol = self._server()
            return guest.protocol

        loop = asyncio.get_running_loop()
        context = self._tls() if self._tls is not None else None
        try:
            await loop.connect_accepted_socket(
                protocol,
                guest.socket,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
                ssl_shutdown_timeout=CLOSE_SECONDS if context else None,
            )
        except OSError:  # no TLS, or not in time, or gone
            guest.socket.close()

    def _make_room(self, peer: str) -> bool:
        """Whether another one may come from there; closes one that is not served, if it must."""
        if len(self._guests) >= min(self._limits.in_all, self._limits.of_peer):
            self._forget_closed()
        of_peer = [guest for guest in self._guests if guest.peer == peer]
        if len(of_peer) >= self._limits.of_peer:
            return self._close_one(of_peer)
        if len(self._guests) >= self._limits.in_all:
            return self._close_one(self._guests)
        return True

    def _close_one(self, guests: list[_Guest]) -> bool:
        """Close the one that is missed least: no request yet, before idle; of the heaviest address; the oldest."""
        weights = Counter(guest.peer for guest in self._guests)
        idle = [guest for guest in guests if not guest.is_served]
        if not idle:
            return False
        chosen = max(idle, key=lambda guest: (not guest.has_asked, weights[guest.peer]))
        self._guests.remove(chosen)
        chosen.close()
        return True

    def _forget_closed(self) -> None:
        open_ = set(self._server.connections)
        self._guests = [guest for guest in self._guests if guest.task is not None or guest.protocol in open_]
