"""Requests out of bytes: HTTP/1.1 as RFC 9112 has it, strict where two readers could differ. Pure.

``connections`` feeds what arrives and takes requests out. Not here: time limits, and what a request means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mirror.embedded.apiserver.apimachinery import errors

LONGEST_HEAD = 1 << 20
"""Bytes of the request line and the headers; the bound of Go's server."""
LONGEST_BODY = 3 << 20
"""Bytes; the bound of kube-apiserver."""
_LONGEST_CHUNK_LINE = 4096
_LONGEST_TRAILERS = 16 << 10
"""Bytes of all trailers together."""
_MOST_EMPTY_LINES = 8
"""Before a request."""
_LONGEST_REMEMBERED = 8 << 10
"""Bytes of headers that a connection keeps to know them again."""
_TURN = 64 << 10
"""What was read is thrown away at once, rather than by every line, when it is this much."""

_request_line = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([^\x00-\x20\x7f]+) HTTP/(\d)\.(\d)").fullmatch
_header_name = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_CONTROLS = bytes(one for one in (*range(0x20), 0x7F) if one != 0x09)
_length = re.compile("[0-9]{1,18}").fullmatch
_chunk_line = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(;[^\x00-\x08\x0a-\x1f\x7f]*)?").fullmatch
_not_ascii = re.compile(rb"[\x80-\xff]")
_absolute = re.compile(rb"https?://[^/?]*(.*)", re.IGNORECASE | re.DOTALL).fullmatch

_FIRST_COUNTS = frozenset(("authorization", "content-type", "user-agent"))
_IN_LINES = "impersonate-"
"""Values of these may hold commas, so that several are put together by line feeds, which no value holds."""


class Malformed(Exception):
    """What came is no request, or none that is read. The connection ends after the answer."""

    def __init__(self, refusal: errors.StatusError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Head:
    """The request line and the headers, and what they say about the connection."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    is_kept_alive: bool
    length: int
    """Bytes of the body; -1: it comes in chunks."""
    expects_continue: bool
    is_modern: bool
    """HTTP/1.1, not 1.0: an answer may come in chunks."""


@dataclass(frozen=True, slots=True)
class Received:
    """A whole request."""

    head: Head
    body: bytes


class Reader:
    """Takes bytes in any pieces and gives requests, one after another.

    Invariant: ``_buffer`` from ``_position`` on holds what was not understood yet; ``_head`` is set while its body
    comes.
    """

    __slots__ = (
        "_body",
        "_buffer",
        "_empty_lines",
        "_head",
        "_in_chunk",
        "_in_trailers",
        "_position",
        "_remembered",
        "_searched",
        "_trailer_bytes",
    )

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._position = 0
        self._searched = 0
        """Up to here there is no end of a head."""
        self._head: Head | None = None
        self._body = bytearray()
        self._in_chunk = 0
        """Bytes of the current chunk, and its line end, that are still to come."""
        self._in_trailers = False
        self._trailer_bytes = 0
        self._empty_lines = 0
        # Clients repeat their headers: those of the last request on a connection need not be read again.
        self._remembered: tuple[bytes, _Headers] | None = None

    @property
    def has_begun(self) -> bool:
        """A part of a request is there."""
        return self._head is not None or len(self._buffer) > self._position

    @property
    def held_bytes(self) -> int:
        """How much waits to be understood."""
        return len(self._buffer) - self._position

    @property
    def expects_continue(self) -> bool:
        """The client waits for ``100 Continue`` before it sends the body; ask when no request came out."""
        return self._head is not None and self._head.expects_continue and not self.held_bytes and not self._body

    def feed(self, data: bytes) -> None:
        """Take what has arrived."""
        self._buffer += data

    def next_request(self) -> Received | None:
        """The next whole request, or None: more has to come.

        Raises:
            Malformed: there will be no more requests here.
        """
        if self._head is None:
            self._head = self._next_head()
        head = self._head
        if head is None:
            return None
        if head.length < 0:
            body = self._chunked()
            if body is None:
                return None
        elif self.held_bytes < head.length:
            return None
        else:
            body = self._take(head.length) if head.length else b""
        self._head = None
        self._forget_read()
        return Received(head, body)

    def _next_head(self) -> Head | None:
        buffer = self._buffer
        if self._position:
            del buffer[: self._position]
            self._position = self._searched = 0
        while buffer.startswith(b"\r\n"):  # left by clients after a body
            del buffer[:2]
            self._searched = 0
            self._empty_lines += 1
            if self._empty_lines > _MOST_EMPTY_LINES:
                raise _bad("malformed HTTP request")
        end = buffer.find(b"\r\n\r\n", self._searched)
        if end < 0:
            self._searched = max(0, len(buffer) - 3)
            if len(buffer) > LONGEST_HEAD:
                raise _too_long_head()
            if b"\n" in buffer and not _may_become_head(buffer):
                raise _bad("malformed HTTP request")
            return None
        if end > LONGEST_HEAD:
            raise _too_long_head()
        line_end = buffer.find(b"\r\n")
        line, lines = bytes(buffer[:line_end]), bytes(buffer[line_end:end])
        self._position, self._searched, self._empty_lines = end + 4, 0, 0
        remembered = self._remembered
        if remembered is not None and remembered[0] == lines:
            headers = remembered[1]
        else:
            headers = _headers(lines)
            self._remembered = (lines, headers) if len(lines) <= _LONGEST_REMEMBERED else None
        return _head(line, headers)

    def _take(self, count: int) -> bytes:
        start = self._position
        self._position = start + count
        return bytes(self._buffer[start : start + count])

    def _chunked(self) -> bytes | None:
        while not self._in_trailers:
            if self._in_chunk > 2:
                piece = self._take(min(self._in_chunk - 2, self.held_bytes))
                self._body += piece
                self._in_chunk -= len(piece)
                self._forget_read()
                if self._in_chunk > 2:
                    return None
            if self._in_chunk:
                if self.held_bytes < 2:
                    return None
                if self._take(2) != b"\r\n":
                    raise _bad("malformed chunked encoding")
                self._in_chunk = 0
            line = self._line(_LONGEST_CHUNK_LINE)
            if line is None:
                return None
            found = _chunk_line(line)
            if found is None:
                raise _bad("malformed chunked encoding")
            count = int(found[1], 16)
            if len(self._body) + count > LONGEST_BODY:
                raise Malformed(too_large())
            self._in_trailers = count == 0
            self._in_chunk = count + 2 if count else 0
        while (line := self._line(_LONGEST_TRAILERS)) is not None:
            if not line:
                body, self._body, self._in_trailers, self._trailer_bytes = bytes(self._body), bytearray(), False, 0
                return body
            self._trailer_bytes += len(line)
            if self._trailer_bytes > _LONGEST_TRAILERS or _header(line) is None:
                raise _bad("malformed trailer")
            self._forget_read()
        return None

    def _line(self, longest: int) -> bytes | None:
        end = self._buffer.find(b"\r\n", self._position)
        if end < 0:
            if self.held_bytes > longest:
                raise _bad("malformed chunked encoding")
            return None
        if end - self._position > longest:
            raise _bad("malformed chunked encoding")
        line = bytes(self._buffer[self._position : end])
        self._position = end + 2
        return line

    def _forget_read(self) -> None:
        if self._position == len(self._buffer):
            self._buffer.clear()
            self._position = 0
        elif self._position > _TURN:
            del self._buffer[: self._position]
            self._position = 0


@dataclass(frozen=True, slots=True)
class _Headers:
    values: Mapping[str, str]
    length: int
    keeps_alive: bool | None
    """What Connection says; None: nothing."""
    expects_continue: bool
    hosts: int


def too_large() -> errors.StatusError:
    """413, in the words of kube-apiserver."""
    return errors.too_large(f"Request entity too large: limit is {LONGEST_BODY}")


def _head(line: bytes, headers: _Headers) -> Head:
    found = _request_line(line)
    if found is None:
        raise _bad("malformed HTTP request")
    method, target, major, minor = found.groups()
    if major != b"1":
        raise Malformed(errors.StatusError(errors.failure(505, "", "only HTTP/1.1 is spoken here")))
    is_modern = minor != b"0"
    if is_modern and headers.hosts != 1:
        raise _bad("missing required Host header" if not headers.hosts else "too many Host headers")
    if not is_modern and headers.length < 0:
        raise _bad("chunks need HTTP/1.1")
    if not target.startswith(b"/"):
        absolute = _absolute(target)
        if absolute is None:
            raise _bad("the request target must be a path")
        target = absolute[1] if absolute[1].startswith(b"/") else b"/" + absolute[1]
    if not target.isascii():
        target = _not_ascii.sub(lambda one: b"%%%02X" % one[0][0], target)
    path, _, query = target.decode("ascii").partition("?")
    is_kept_alive = is_modern if headers.keeps_alive is None else headers.keeps_alive
    expects = headers.expects_continue and is_modern and headers.length != 0
    return Head(method.decode(), path, query, headers.values, is_kept_alive, headers.length, expects, is_modern)


def _headers(lines: bytes) -> _Headers:
    """Of lines that each begin with their line end."""
    values: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}  # put together at the end, since each addition would copy what there is
    hosts = 0
    for line in lines.split(b"\r\n")[1:]:
        found = _header(line)
        if found is None:
            raise _bad("malformed HTTP header")
        name, value = found
        hosts += name == "host"
        if name not in values:
            values[name] = value
        elif name == "content-length":
            if values[name] != value:
                raise _bad("several Content-Length headers")
        elif name not in _FIRST_COUNTS:
            repeated.setdefault(name, [values[name]]).append(value)
    for name, several in repeated.items():
        values[name] = ("\n" if name.startswith(_IN_LINES) else ", ").join(several)
    connection = {word.strip().lower() for word in values.get("connection", "").split(",")}
    keeps_alive = False if "close" in connection else True if "keep-alive" in connection else None
    expects = values.get("expect", "").lower()
    if expects not in ("", "100-continue"):
        raise Malformed(errors.StatusError(errors.failure(417, "", "no such expectation can be met")))
    return _Headers(values, _body_length(values), keeps_alive, bool(expects), hosts)


def _header(line: bytes) -> tuple[str, str] | None:
    """The name, in lower case, and the value; None: it is malformed."""
    name, colon, value = line.decode("latin-1").partition(":")
    # The bytes that no value may have are looked for by deleting them, which is several times faster than a regular
    # expression: tokens are long.
    if not colon or _header_name(name) is None or len(line.translate(None, _CONTROLS)) != len(line):
        return None
    return name.lower(), value.strip(" \t")


def _body_length(values: Mapping[str, str]) -> int:
    coding, length = values.get("transfer-encoding"), values.get("content-length")
    if coding is not None:
        if length is not None:
            raise _bad("both Content-Length and Transfer-Encoding")
        if coding.lower() != "chunked":
            raise Malformed(errors.StatusError(errors.failure(501, "", "unsupported transfer encoding")))
        return -1
    if length is None:
        return 0
    if _length(length) is None:
        raise _bad("malformed Content-Length")
    count = int(length)
    if count > LONGEST_BODY:
        raise Malformed(too_large())
    return count


def _may_become_head(buffer: bytearray) -> bool:
    """Whether what is there can still be the beginning of a request: else the response comes at once."""
    end = buffer.find(b"\n")
    return end < 0 or (buffer[end - 1 : end] == b"\r" and _request_line(buffer[: end - 1]) is not None)


def _bad(message: str) -> Malformed:
    return Malformed(errors.bad_request(message))


def _too_long_head() -> Malformed:
    return Malformed(errors.StatusError(errors.failure(431, "", f"headers are too large: limit is {LONGEST_HEAD}")))
