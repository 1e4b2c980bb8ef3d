"""Requests to a server behind an address, real or embedded."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from types import TracebackType

import aiohttp
from yarl import URL

from e2e.controlplane.kubeconfigs import authority_of, read_kubeconfig
from tests.contract.raw_http import RawHttp
from tests.contract.wire import Asked, Reply, Streaming

_TIMEOUT_SECONDS = 120
_LONGEST_LINE = 1 << 24
_USUAL_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))


class OverHttp:
    """A ``Wire``; the administrator's kubeconfig says where. Used by one event loop."""

    def __init__(self, kubeconfig: Path) -> None:
        access = read_kubeconfig(kubeconfig)
        stranger = None
        if access.tls is not None:
            stranger = ssl.create_default_context(cadata=authority_of(kubeconfig).decode())
        self._server = access.server
        self._raw = {True: RawHttp(access.server, access.tls), False: RawHttp(access.server, stranger)}
        self._admin = _session(access.tls, dict(access.headers))
        self._stranger = _session(stranger, {})

    async def __aenter__(self) -> OverHttp:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._admin.close()
        await self._stranger.close()
        for raw in self._raw.values():
            await raw.close()

    async def send(self, asked: Asked) -> Reply:
        """See ``Wire``."""
        if asked.method not in _USUAL_METHODS:
            # The client library would make another method of it, or another target.
            return await self._raw[asked.is_identified].exchange(asked)
        async with self._request(asked) as response:
            body = await response.read()
            return Reply(response.status, _headers(response), body)

    @asynccontextmanager
    async def stream(self, asked: Asked) -> AsyncIterator[Streaming]:
        """See ``Wire``."""
        async with self._request(asked) as response:
            yield Streaming(response.status, _headers(response), _lines(response.content))

    @asynccontextmanager
    async def _request(self, asked: Asked) -> AsyncIterator[aiohttp.ClientResponse]:
        session = self._admin if asked.is_identified else self._stranger
        url = URL(self._server + asked.target, encoded=True)
        async with session.request(
            asked.method,
            url,
            data=BytesIO(asked.body) if asked.body else None,
            headers=asked.headers,
            allow_redirects=False,
        ) as response:
            yield response


def _session(tls: ssl.SSLContext | None, headers: dict[str, str]) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls or False, limit=0),
        timeout=aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS),
        headers={"accept-encoding": "identity", **headers},
        skip_auto_headers=("content-type",),
        read_bufsize=_LONGEST_LINE,
    )


def _headers(response: aiohttp.ClientResponse) -> tuple[tuple[str, str], ...]:
    return tuple((name.lower(), value) for name, value in response.headers.items())


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest
