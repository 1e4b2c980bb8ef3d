"""The API server on a TCP port: HTTPS (or HTTP, for tests), with client certificates for who has one.

``planes`` and the command ``mirror apiserver`` open it. How a connection works is in ``http``; keys and certificates
are made by ``serving/x509``. Not here: what requests mean (``apiserver``).
"""

from __future__ import annotations

import asyncio
import hashlib
import resource
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from email.utils import format_datetime
from typing import Any

from mirror.embedded.apiserver.messages import AUTHENTICATED_GROUP, User
from mirror.embedded.http.connections import Connection, Handler
from mirror.model.endings import CannotStart
from mirror.model.failures import file_words
from mirror.runtime.clock import Clock, SystemClock
from mirror.serving.client_certificates import user_named

FINISH_SECONDS = 2.0
"""How long requests that are being answered may take once the server is to end."""
HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 1.0
LOOK_SECONDS = 1.0
MOST_CONNECTIONS = 4096
_FILES_FOR_OTHERS = 64
_BACKLOG = 512
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


@asynccontextmanager
async def serve(
    server: Handler, *, listen: tuple[str, int], tls: ssl.SSLContext | None, clock: Clock | None = None
) -> AsyncIterator[tuple[str, int]]:
    """Serve while the block runs; gives the address, whose port is a free one if port 0 was asked for.

    At the end no new connections are taken, streams are ended, and requests in work have two seconds.

    Args:
        server: who answers.
        listen: host (empty: every interface) and port.
        tls: of ``serving.x509.server_context``; None: plain HTTP.
        clock: what ``Date`` headers tell; the machine's by default.

    Raises:
        CannotStart: the address cannot be listened on.
    """
    failure: Exception | None = None
    async with asyncio.TaskGroup() as scope:
        try:
            connections = _Connections(server, clock or SystemClock(), scope)
            listener = await _listen(connections, listen, tls)
            looking = scope.create_task(connections.look_after(), name="web connections")
            try:
                found = listener.sockets[0].getsockname()
                yield found[0], found[1]
            finally:
                listener.close()
                await connections.finish()
                looking.cancel()
        except Exception as error:  # noqa: BLE001 - raised below: out of the scope it would come as a group
            failure = error
    if failure is not None:
        raise failure


async def _listen(connections: _Connections, listen: tuple[str, int], tls: ssl.SSLContext | None) -> asyncio.Server:
    host, port = listen
    try:
        return await asyncio.get_running_loop().create_server(
            lambda: Connection(connections),
            host or None,
            port,
            ssl=tls,
            backlog=_BACKLOG,
            reuse_address=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if tls else None,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS if tls else None,
        )
    except OSError as error:
        why = file_words(error)
        raise CannotStart(f"cannot listen on {host}:{port}: {why}") from error


class _Connections:
    """Every connection of one server."""

    def __init__(self, handler: Handler, clock: Clock, scope: asyncio.TaskGroup) -> None:
        self.handler = handler
        self.date = b""
        self.streams = 0
        self._clock = clock
        self._scope = scope
        self._connections: set[Connection] = set()
        self._most = _most_connections()
        self._is_ending = False
        self._all_gone: asyncio.Future[None] | None = None
        self._set_date()

    def opened(self, connection: Connection, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        if self._is_ending or len(self._connections) >= self._most:
            return None
        self._connections.add(connection)
        return self._scope.create_task(work, name="connection")

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if self._all_gone is not None and not self._connections and not self._all_gone.done():
            self._all_gone.set_result(None)

    def user_of(self, transport: asyncio.Transport) -> User | None:
        encrypted = transport.get_extra_info("ssl_object")
        certificate = encrypted.getpeercert() if encrypted is not None else None
        return user_of(certificate, encrypted.getpeercert(binary_form=True)) if certificate else None

    async def look_after(self) -> None:
        """Keep the Date and the time limits until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._set_date()
            now = loop.time()
            for connection in list(self._connections):
                connection.check_time(now)

    async def finish(self) -> None:
        """End all connections: those with requests in work after their response."""
        self._is_ending = True
        if not self._connections:
            return
        self._all_gone = asyncio.get_running_loop().create_future()
        for connection in list(self._connections):
            connection.finish()
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await self._all_gone
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()

    def _set_date(self) -> None:
        self.date = f"Date: {format_datetime(self._clock.now(), usegmt=True)}\r\n".encode()


def user_of(certificate: Any, encoded: bytes) -> User | None:
    """Whom a client certificate names: the common name, of the organizations; None when it names nobody.

    Args:
        certificate: as ``ssl`` shows a certificate that it has verified.
        encoded: the same as it came.
    """
    named = user_named(certificate)
    if named is None:
        return None
    extra = {_CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(encoded).hexdigest()}",)}
    return User(named.name, (*named.groups, AUTHENTICATED_GROUP), "", extra)


def _most_connections() -> int:
    """As many as there can be open files, less what others need."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(16, min(MOST_CONNECTIONS, files - _FILES_FOR_OTHERS))
