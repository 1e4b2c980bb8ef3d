"""Tasks that must never end: a return is an error, an error is a restart with backoff (docs/libraries.md)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import NoReturn

from mirror.runtime.backoff import Backoff
from mirror.telemetry.logs import Log

RESTART = Backoff(first=0.5, most=30.0, jitter=0.2)
QUIET_SECONDS = 120.0


class Ended(RuntimeError):
    """A task that must not return has returned."""


async def supervise(
    name: str, work: Callable[[], Awaitable[None]], *, log: Log, on_restart: Callable[[str], None] | None = None
) -> NoReturn:
    """Run ``work`` for ever; after two quiet minutes its failures are forgotten."""
    chance = random.Random()
    failures = 0
    while True:
        started = asyncio.get_running_loop().time()
        try:
            await work()
            raise Ended(f"{name} returned")
        except Exception as error:
            if asyncio.get_running_loop().time() - started > QUIET_SECONDS:
                failures = 0
            failures += 1
            delay = RESTART.delay(failures, chance)
            log.error("task failed", task=name, error=error, restart_in_seconds=round(delay, 2), exc_info=error)
            if on_restart is not None:
                on_restart(name)
        await asyncio.sleep(delay)
