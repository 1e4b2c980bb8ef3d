"""Requests to an embedded server in this process, without HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

from mirror.embedded.apiserver.messages import ADMIN, Answer, Request, Response, Stream, User
from tests.contract.wire import Asked, Reply, Streaming


class Handles(Protocol):
    """An embedded API server."""

    async def handle(self, request: Request) -> Answer:
        """See ``mirror.embedded.apiserver.server``."""
        ...


class InProcess:
    """A ``Wire``; identified requests are those of ``user``."""

    def __init__(self, server: Handles, user: User = ADMIN) -> None:
        self._server = server
        self._user = user

    async def send(self, asked: Asked) -> Reply:
        """See ``Wire``."""
        answer = await self._server.handle(self._request(asked))
        match answer:
            case Response():
                # As HTTP does it: the answer to HEAD has no body.
                body = b"" if asked.method == "HEAD" else answer.body
                return Reply(answer.status, _headers(answer), body)
            case Stream():
                async with aclosing(answer.pieces) as pieces:
                    return Reply(answer.status, _headers(answer), b"".join([piece async for piece in pieces]))

    @asynccontextmanager
    async def stream(self, asked: Asked) -> AsyncIterator[Streaming]:
        """See ``Wire``."""
        answer = await self._server.handle(self._request(asked))
        match answer:
            case Response():
                yield Streaming(answer.status, _headers(answer), _lines_of(answer.body))
            case Stream():
                async with aclosing(answer.pieces) as pieces:
                    yield Streaming(answer.status, _headers(answer), _lines(pieces))

    def _request(self, asked: Asked) -> Request:
        path, _, query = asked.target.partition("?")
        user = self._user if asked.is_identified else None
        return Request(asked.method, path, query, asked.headers, asked.body, user)


def _headers(answer: Response | Stream) -> tuple[tuple[str, str], ...]:
    return (("content-type", answer.content_type), *((name.lower(), value) for name, value in answer.headers))


async def _lines_of(body: bytes) -> AsyncIterator[bytes]:
    for line in body.splitlines():
        yield line


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest
