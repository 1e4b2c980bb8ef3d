"""Work that ends as in a process that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def until_killed(work: Callable[[], Awaitable[None]]) -> None:
    """Work; when cancelled, nothing of it is ended in order, however it would like to."""

    async def plain() -> None:
        await work()

    working = asyncio.ensure_future(plain())
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            working.cancel()
            await asyncio.sleep(0)
        raise
