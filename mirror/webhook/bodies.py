"""How many bytes of bodies are kept at once: whoever reaches our address can send reviews, and is not asked who it is.

``routes`` reads every body here. What an API server sends is a few KiB most of the time, and at most a few MiB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web

MOST_BYTES = 96 << 20
MOST_BYTES_OF_PEER = 32 << 20


class Content(Protocol):
    """A body as it comes."""

    async def readany(self) -> bytes:
        """The next piece; empty at the end."""
        ...


class Bodies:
    """Counts what is kept.

    Args:
        most: bytes in all.
        most_of_peer: bytes from one address.
    """

    def __init__(self, *, most: int = MOST_BYTES, most_of_peer: int = MOST_BYTES_OF_PEER) -> None:
        self.kept: Counter[str] = Counter()
        """Bytes, by address; those who send nothing are not in it."""
        self._most = most
        self._most_of_peer = most_of_peer

    @asynccontextmanager
    async def read(self, content: Content, peer: str, *, most: int) -> AsyncIterator[bytes]:
        """A whole body, which counts while the block runs.

        Raises:
            HTTPRequestEntityTooLarge: it is longer than ``most`` bytes.
            HTTPServiceUnavailable: too much is kept already.
        """
        body = bytearray()
        try:
            while piece := await content.readany():
                self.kept[peer] += len(piece)
                body += piece
                if len(body) > most:
                    raise web.HTTPRequestEntityTooLarge(most, len(body))
                if self.kept[peer] > self._most_of_peer or self.kept.total() > self._most:
                    raise web.HTTPServiceUnavailable(text="too much is sent at once; try again\n")
            yield bytes(body)
        finally:
            self.kept[peer] -= len(body)
            if not self.kept[peer]:
                del self.kept[peer]
