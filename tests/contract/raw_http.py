"""HTTP requests exactly as they are given, on connections that are kept: for methods that client libraries change."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from dataclasses import dataclass, field
from io import BytesIO
from typing import TypeAlias, cast
from urllib.parse import urlsplit

from tests.contract.wire import Asked, Reply

_Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_END_OF_HEAD = b"\r\n\r\n"
_LONGEST_HEAD = 1 << 20


@dataclass(slots=True)
class RawHttp:
    """A way to the server behind this URL. Used by one event loop."""

    server: str
    tls: ssl.SSLContext | None
    _idle: list[_Connection] = field(default_factory=list)
    """Connections whose last answer was read to its end."""

    async def close(self) -> None:
        """End what is idle."""
        while self._idle:
            self._idle.pop()[1].close()

    async def exchange(self, asked: Asked) -> Reply:
        """The answer.

        Raises:
            OSError, EOFError: the connection ended before it.
        """
        reader, writer = await self._connection()
        is_reusable = False
        try:
            writer.write(self._request(asked))
            await writer.drain()
            reply, is_reusable = await _reply(reader, asked.method)
            return reply
        finally:
            if is_reusable:
                self._idle.append((reader, writer))
            else:
                writer.close()

    async def _connection(self) -> _Connection:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()
        where = urlsplit(self.server)
        return await asyncio.open_connection(where.hostname, where.port, ssl=self.tls, limit=_LONGEST_HEAD)

    def _request(self, asked: Asked) -> bytes:
        headers = {"host": urlsplit(self.server).netloc, "content-length": str(len(asked.body)), **asked.headers}
        lines = [f"{asked.method} {asked.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + asked.body


async def _reply(reader: asyncio.StreamReader, method: str) -> tuple[Reply, bool]:
    """The answer, and whether the connection is good for another request."""
    head = await reader.readuntil(_END_OF_HEAD)
    response = http.client.HTTPResponse(cast("socket.socket", _Bytes(head)), method=method)
    response.begin()
    headers = tuple((name.lower(), value) for name, value in response.getheaders())
    body, is_reusable = b"", not response.will_close
    if response.chunked:
        body = await _chunks(reader)
    elif response.length is not None:
        body = await reader.readexactly(response.length)
    else:
        body, is_reusable = await reader.read(-1), False
    return Reply(response.status, headers, body), is_reusable


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """A body that comes in pieces, each with its length; no trailers."""
    pieces: list[bytes] = []
    while True:
        length = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        piece = await reader.readexactly(length + 2)
        if not length:
            return b"".join(pieces)
        pieces.append(piece[:-2])


class _Bytes:
    """What the parser of the standard library reads from in place of a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object) -> BytesIO:
        return BytesIO(self._data)
