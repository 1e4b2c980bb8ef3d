"""Whether what is watched of a worker's pods is known yet: until then, that nothing is seen means nothing (D22).

Whoever takes over finds on a source what another process has seen. Used by ``pods``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from mirror.runtime.informers import Informers
from mirror.workers.pod_lookups import PodLookups

LISTED_WITHIN_SECONDS = 30.0
QUIET_SECONDS = 2.0
"""Warnings of before come without an end that could be told from a pause: of so long, with all looked up, is one."""
WARNINGS_WITHIN_SECONDS = 30.0
"""In any case: a worker may warn without end, or not say whose pods are."""


class FirstLook:
    """Of one worker. Invariant: nobody is kept waiting once it is over."""

    def __init__(self, on_change: Callable[[str], None]) -> None:
        """``on_change``: called with the uid of each source that was kept as it was, once it is over."""
        self._on_change = on_change
        self._kept: set[str] = set()
        self._is_over = False

    def keeps(self, source: str) -> bool:
        """Whether what a source shows of pods may still be so although nothing of it is seen."""
        if not self._is_over:
            self._kept.add(source)
        return not self._is_over

    async def run(self, informers: Informers, lookups: PodLookups) -> None:
        """End it once all pods are listed, and what was warned of them is looked up, or that takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTED_WITHIN_SECONDS):
                await informers.wait_until_synced()
        with suppress(TimeoutError):
            async with asyncio.timeout(WARNINGS_WITHIN_SECONDS):
                await _wait_until_quiet(lookups)
        self._is_over, kept = True, self._kept
        self._kept = set()
        for source in kept:
            self._on_change(source)


async def _wait_until_quiet(lookups: PodLookups) -> None:
    while True:
        asked = lookups.asked
        await asyncio.sleep(QUIET_SECONDS)
        await lookups.wait_until_empty()
        if lookups.asked == asked:
            return
