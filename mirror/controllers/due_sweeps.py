"""Workers whose mirrors are to be judged before the next round: ``routes`` names them, ``sweeping`` takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Set


class DueSweeps:
    """Workers whose mirrors are to be judged before the next round. Filled by ``routes``."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._changed = asyncio.Event()

    def add(self, worker: str) -> None:
        self._names.add(worker)
        self._changed.set()

    def discard(self, worker: str) -> None:
        """It is no worker any more."""
        self._names.discard(worker)

    def add_all(self, workers: Iterable[str]) -> None:
        """A round: those who take them are awake."""
        self._names.update(workers)

    def take(self, *, except_for: Set[str]) -> set[str]:
        """Those that are due, but for some that are left for later."""
        taken = self._names - except_for
        self._names -= taken
        return taken

    def wake_if_due(self, worker: str) -> None:
        """A worker may be taken again."""
        if worker in self._names:
            self._changed.set()

    async def wait(self) -> None:
        """Until one is added."""
        await self._changed.wait()

    def clear_changed(self) -> None:
        """What was added is about to be taken."""
        self._changed.clear()
