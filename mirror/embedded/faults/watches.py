"""One open stream between a server and its transport, that can be ended, cut and muted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from mirror.embedded.faults.kinds import Dropped


class Watch:
    """One open stream, between the server and its transport."""

    def __init__(
        self, peer: str, plural: str, pieces: AsyncGenerator[bytes, None], *, is_cut_off: Callable[[str], bool]
    ) -> None:
        self.peer = peer
        self.plural = plural
        self.is_muted = False
        self.changed = asyncio.Event()
        self._is_cut_off = is_cut_off
        self._pieces = pieces
        self._last: bytes | Dropped | None = None
        self._limit: asyncio.Timeout | None = None

    def end(self, last: bytes | Dropped) -> None:
        """This is the last that it says."""
        if self._last is None:
            self._last = last
        self.changed.set()
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def read(self) -> AsyncGenerator[bytes, None]:
        """What the transport gets to read."""
        try:
            while True:
                piece = await self._next()
                while self._last is None and self._is_silent():
                    self.changed.clear()
                    await self.changed.wait()
                if self._last is not None:
                    break
                if piece is None:
                    return
                yield piece
            if isinstance(self._last, Dropped):
                raise self._last
            if self._last:
                yield self._last
        finally:
            await self._pieces.aclose()

    async def _next(self) -> bytes | None:
        """The server's next piece; None at its end, or when this stream is to end."""
        if self._last is not None:
            return None
        try:
            async with asyncio.timeout(None) as self._limit:
                return await anext(self._pieces)
        except (StopAsyncIteration, TimeoutError):
            return None
        finally:
            self._limit = None

    def _is_silent(self) -> bool:
        return self.is_muted or self._is_cut_off(self.peer)
