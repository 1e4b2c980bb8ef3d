"""``access`` over HTTP: requests and answers of aiohttp, and nothing that decides. ``app`` serves its routes.

Clients that leave cancel what is done for them (the server's ``handler_cancellation``).
"""

from __future__ import annotations

from aiohttp import web

from mirror.access.answers import JSON_TYPE, TEXT_TYPE, Answer, StatusError
from mirror.access.logs import Cut
from mirror.access.request_parsing import Asked
from mirror.access.service import Access
from mirror.serving.client_certificates import CertificateUser, user_named

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


def routes(access: Access) -> list[web.RouteDef]:
    """Everything under ``/v1``."""

    async def handle(request: web.Request) -> web.StreamResponse:
        reply = _HttpReply(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(request.method, request.raw_path, headers, request.remote or "", _certificate(request))
        try:
            await access.handle(asked, reply)
        except Cut:
            # Without the last chunk a client knows that this was not all.
            if request.transport is not None:
                request.transport.abort()
        return reply.done()

    return [web.route("*", "/v1/{rest:.*}", handle)]


def _certificate(request: web.Request) -> CertificateUser | None:
    """Whom the connection's client certificate names; ``ssl`` shows verified ones only."""
    encrypted = request.get_extra_info("ssl_object")
    certificate = encrypted.getpeercert() if encrypted is not None else None
    return user_named(certificate) if certificate else None


class _HttpReply:
    """``service.Reply`` over one aiohttp request."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None

    async def body(self, most_bytes: int) -> bytes:
        read = bytearray()
        while piece := await self._request.content.readany():
            read += piece
            if len(read) > most_bytes:
                raise StatusError(413, f"the body is longer than {most_bytes} bytes")
        return bytes(read)

    async def whole(self, answer: Answer) -> None:
        headers = _HEADERS | dict(answer.headers)
        self._response = web.Response(
            status=answer.status, body=answer.body, content_type=JSON_TYPE, charset="utf-8", headers=headers
        )

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        response = web.StreamResponse(headers=_HEADERS | {"Content-Type": TEXT_TYPE} | dict(headers))
        self._response = response
        await response.prepare(self._request)

    async def write(self, piece: bytes) -> None:
        assert isinstance(self._response, web.StreamResponse)
        await self._response.write(piece)

    def done(self) -> web.StreamResponse:
        """What aiohttp is to send, or has sent."""
        assert self._response is not None
        return self._response
