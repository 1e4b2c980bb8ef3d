"""Ending in order: what was begun is not cut off, as long as it does not take too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


async def answered(
    work: Coroutine[Any, Any, None], *, seconds: float, is_patient: Callable[[], bool] = lambda: True
) -> None:
    """Do some work. Cancelled meanwhile, it goes on for at most so long before that takes effect; then it is cut off.

    ``is_patient``: asked when that happens; False: it is cut off at once.
    """
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        if is_patient():
            await asyncio.wait({working}, timeout=seconds)
        raise
    finally:
        working.cancel()
