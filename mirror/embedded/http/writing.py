"""Answers as bytes: heads, chunks, and Statuses that no API server had to make. Pure."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus

import msgspec

from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError
from mirror.embedded.apiserver.messages import Response, Stream

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
_BODILESS = frozenset((204, 304))
_encode = msgspec.json.Encoder().encode


def status_response(status: Json, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A refusal as a whole answer."""
    return Response(status["code"], _encode(status), headers=headers)


def refusal_response(refusal: StatusError) -> Response:
    """The same of what was raised."""
    return status_response(refusal.status, refusal.headers)


def whole(answer: Response, *, date: bytes, is_head: bool = False, closes: bool = False) -> bytes:
    """A whole answer.

    Args:
        date: the line of the header, with its end; empty: none.
        is_head: only the head was asked for.
        closes: the connection ends with it.
    """
    parts = [_prefix(answer.status, answer.content_type), date]
    if answer.headers:
        parts.append(_lines(answer.headers))
    if closes:
        parts.append(b"Connection: close\r\n")
    if answer.status in _BODILESS:
        parts.append(b"\r\n")
    else:
        parts.append(b"Content-Length: %d\r\n\r\n" % len(answer.body))
        if not is_head:
            parts.append(answer.body)
    return b"".join(parts)


def stream_head(answer: Stream, *, date: bytes, is_chunked: bool, closes: bool) -> bytes:
    """The beginning of an answer whose length nobody knows."""
    parts = [_prefix(answer.status, answer.content_type), date, _lines(answer.headers)]
    if closes:
        parts.append(b"Connection: close\r\n")
    parts.append(b"Transfer-Encoding: chunked\r\n\r\n" if is_chunked else b"\r\n")
    return b"".join(parts)


def chunk(pieces: list[bytes]) -> bytes:
    """Some pieces as one chunk; nothing of nothing, since an empty chunk is the end."""
    size = sum(map(len, pieces))
    return b"".join((b"%x\r\n" % size, *pieces, b"\r\n")) if size else b""


@lru_cache(maxsize=256)
def _prefix(status: int, content_type: str) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = f"HTTP/1.1 {status} {phrase}\r\nCache-Control: no-cache, private\r\n"
    if status not in _BODILESS:  # a 304 would change the type of what a client has cached
        lines += f"Content-Type: {content_type}\r\n"
    return lines.encode("latin-1", "replace")


def _lines(headers: tuple[tuple[str, str], ...]) -> bytes:
    """Header lines; a line end within a value would be a header of its own, and becomes a space."""
    text = "".join(f"{name}: {_in_one_line(value)}\r\n" for name, value in headers)
    return text.encode("utf-8", "replace")


def _in_one_line(value: str) -> str:
    return value if value.isprintable() else "".join(one if one.isprintable() else " " for one in value)
