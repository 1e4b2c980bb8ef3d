"""A loopback proxy before an API server that breaks connections when told to; it passes bytes, so TLS stays end to end.

A worker is registered with ``proxy.kubeconfig(...)`` instead of its own file; what the proxy does then happens to the
manager alone, while the test's own clients see the cluster as it is. Not here: looking at requests (``intercept``).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from e2e.controlplane.plane import ControlPlane

_PIECE_BYTES = 65_536


class Proxy:
    """Passes connections on to one server. Make one with ``before``.

    Invariant: ``_requests`` and ``_answers`` are set exactly while bytes are passed on to the server and to clients;
    ``_server`` is None exactly while it refuses.
    """

    def __init__(self, target: str) -> None:
        self.delay_seconds = 0.0
        """How long each piece is held back, in both directions."""
        self.loses_answer: Callable[[], bool] = _never
        """Asked of each piece that the server has sent: whether to break the connection instead of passing it on."""
        self.accepted = 0
        """How many connections there have been."""
        parts = urlsplit(target)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 443)
        self._reserved = _reserve_port()
        self._server: asyncio.Server | None = None
        self._requests, self._answers = asyncio.Event(), asyncio.Event()
        self._requests.set()
        self._answers.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def before(cls, plane: ControlPlane) -> AsyncIterator[Proxy]:
        """A proxy before a control plane's API server, which lets everything through until told otherwise."""
        proxy = cls(plane.server)
        try:
            await proxy.resume()
            yield proxy
        finally:
            await proxy._close()

    @property
    def server(self) -> str:
        """The URL to use instead of the API server's own."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def connections(self) -> int:
        """How many connections from clients are open."""
        return len(self._connections)

    def kubeconfig(self, original: Path) -> Path:
        """The same user and cluster, reached through this proxy."""
        path = original.with_name(f"{self._port}-{original.name}")
        path.touch(mode=0o600)
        path.write_bytes(self.redirected(original.read_bytes()))
        return path

    def redirected(self, kubeconfig: bytes) -> bytes:
        """What the file of ``kubeconfig`` says."""
        config = yaml.safe_load(kubeconfig)
        for entry in config["clusters"]:
            entry["cluster"] |= {"server": self.server, "tls-server-name": "localhost"}
        return yaml.safe_dump(config).encode()

    def cut(self) -> None:
        """Break every open connection; new ones are served."""
        for writer in self._open:
            writer.transport.abort()

    def refuse(self) -> None:
        """Break every open connection and accept no new ones, until ``resume``."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self.cut()

    def stall(self, *, requests: bool = True, answers: bool = True) -> None:
        """Keep connections and accept new ones, and pass nothing on, or nothing one way, until ``resume``."""
        for wanted, flowing in ((requests, self._requests), (answers, self._answers)):
            if wanted:
                flowing.clear()

    async def resume(self) -> None:
        """Let everything through again, on the same port."""
        self.delay_seconds = 0.0
        self.loses_answer = _never
        self._requests.set()
        self._answers.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, reuse_port=True)

    async def _close(self) -> None:
        self.refuse()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._reserved.close()

    @property
    def _port(self) -> int:
        port: int = self._reserved.getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; in a task that asyncio's server starts for it."""
        task = asyncio.current_task()
        assert task is not None
        self.accepted += 1
        self._connections.add(task)
        with suppress(OSError, asyncio.CancelledError):  # a cancelled connection is one that is closed
            await self._join(reader, writer)
        writer.transport.abort()
        self._connections.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        beyond: asyncio.StreamWriter | None = None
        try:
            await self._requests.wait()
            back, beyond = await asyncio.open_connection(*self._target)
            self._open.add(beyond)
            async with asyncio.TaskGroup() as scope:
                scope.create_task(self._pass_on(reader, beyond, self._requests), name="to the server")
                scope.create_task(self._pass_on(back, writer, self._answers), name="to the client")
        except* OSError:
            pass  # cut, or the server is not there: the client sees the end of its connection
        finally:
            self._open.discard(writer)
            if beyond is not None:
                self._open.discard(beyond)
                beyond.transport.abort()

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, flowing: asyncio.Event) -> None:
        while piece := await source.read(_PIECE_BYTES):
            if flowing is self._answers and self.loses_answer():
                raise ConnectionResetError
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            await flowing.wait()
            sink.write(piece)
            await sink.drain()
        # One side has ended; over TLS nothing useful comes from the other any more.
        raise ConnectionResetError


def _never() -> bool:
    return False


def _reserve_port() -> socket.socket:
    """A free port that stays ours while we refuse connections on it; see ``controlplane.cluster``."""
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
