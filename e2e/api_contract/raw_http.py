"""One HTTP request exactly as it is given, on a connection of its own: for methods that client libraries change."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from io import BytesIO
from typing import cast
from urllib.parse import urlsplit

from e2e.api_contract.wire import Asked, Reply


async def exchange(server: str, tls: ssl.SSLContext | None, asked: Asked) -> Reply:
    """The answer of the server behind this URL."""
    where = urlsplit(server)
    reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=tls)
    try:
        headers = {"host": where.netloc, "connection": "close", "content-length": str(len(asked.body)), **asked.headers}
        lines = [f"{asked.method} {asked.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode() + asked.body)
        await writer.drain()
        return _parsed(await reader.read(-1), asked.method)
    finally:
        writer.close()


def _parsed(data: bytes, method: str) -> Reply:
    response = http.client.HTTPResponse(cast("socket.socket", _Bytes(data)), method=method)
    response.begin()
    headers = tuple((name.lower(), value) for name, value in response.getheaders())
    return Reply(response.status, headers, response.read())


class _Bytes:
    """What the parser of the standard library reads from in place of a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object) -> BytesIO:
        return BytesIO(self._data)
