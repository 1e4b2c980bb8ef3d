"""What a case needs of a server: requests answered, streams read line by line. Two ways to carry them follow this.

Nothing here knows what is asked (``api``) or which server it is (``servers``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. ``target`` is path and query as they go over the wire; header names are lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_identified: bool = True
    """Whether it comes with the administrator's certificate; else it is whose its headers say, or nobody's."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; header names are lower case, and may come several times."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Streaming:
    """An answer that goes on: its lines as they come, until it ends."""

    status: int
    headers: tuple[tuple[str, str], ...]
    lines: AsyncIterator[bytes]


class Wire(Protocol):
    """A way to one server."""

    async def send(self, asked: Asked) -> Reply:
        """The whole answer; of a stream, everything until its end."""
        ...

    def stream(self, asked: Asked) -> AbstractAsyncContextManager[Streaming]:
        """The answer as it comes; leaving the block ends it."""
        ...
