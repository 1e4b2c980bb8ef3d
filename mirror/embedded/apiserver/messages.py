"""Requests and responses of the API server as values, whatever the transport is.

``web`` makes them of HTTP, ``memory`` of our own client's requests.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias
from urllib.parse import parse_qs

JSON_TYPE = "application/json"
ANONYMOUS = "system:anonymous"
UNAUTHENTICATED_GROUP = "system:unauthenticated"
AUTHENTICATED_GROUP = "system:authenticated"
MASTERS_GROUP = "system:masters"

malformed_escape = re.compile(r"%(?![0-9A-Fa-f]{2})").search


@dataclass(frozen=True, slots=True)
class User:
    """Who sends a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ADMIN = User("kubernetes-admin", (MASTERS_GROUP, AUTHENTICATED_GROUP))
"""May do everything; the default of transports in memory."""


@dataclass(frozen=True)
class Request:
    """One request.

    ``headers`` have lower-case names. ``path`` is as it came, still percent-encoded; ``query`` is the raw text after
    the question mark.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User | None = None
    """Whom the transport has identified (client certificate, or a client in memory); None: look at the headers."""
    peer: str = ""
    """Where it came from, for logs."""

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """The query, decoded; of a name that comes twice, the first value counts."""
        if not self.query:
            return {}
        return {name: values[0] for name, values in self.all_parameters.items()}

    @cached_property
    def all_parameters(self) -> Mapping[str, list[str]]:
        """The query, decoded, with every value of each name. What Go cannot read of it, it passes over."""
        query = self.query
        if ";" in query or ("%" in query and malformed_escape(query)):
            query = "&".join(one for one in query.split("&") if ";" not in one and not malformed_escape(one))
        return parse_qs(query, keep_blank_values=True)


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer."""

    status: int
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    """Others than the content type and length; ``Warning`` may come several times."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A response that continues until ``pieces`` ends or the reader disconnects; the transport closes ``pieces``.

    Each piece is whole events, ready to be sent. A piece that is empty means: send what you have.
    """

    status: int
    pieces: AsyncGenerator[bytes, None]
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()


Answer: TypeAlias = Response | Stream
