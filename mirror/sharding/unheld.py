"""Workers that nobody works on: each replica looks for them, since a slot without a holder has nobody who would say so.

A slot may be free for as long as its Lease takes to end. Who is not ready takes none, and who may not write Leases
neither; then statuses stand still, and nothing else shows it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from mirror.sharding.slots import Slot, slot_of_worker
from mirror.telemetry.logs import Log

LOOK_SECONDS = 60.0
UNHELD_SECONDS = 60.0
"""Free for so long, nobody is just taking it."""
EVENT = "SlotUnheld"

Warn = Callable[[str, str, str], None]
"""Records an event on what declares a worker: its name, the reason, the message."""


class UnheldSlots:
    """Looks each minute whether the slot of each worker has a holder."""

    def __init__(
        self,
        unheld: Callable[[], Mapping[Slot, float]],
        workers: Callable[[], Iterable[str]],
        *,
        is_spokesman: Callable[[], bool],
        warn: Warn,
        log: Log,
    ) -> None:
        """All replicas log what they find; ``is_spokesman``: whether this one writes events, too."""
        self._unheld = unheld
        self._workers = workers
        self._is_spokesman = is_spokesman
        self._warn = warn
        self._log = log

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._look()

    def _look(self) -> None:
        found = self._workers_without_holder()
        if not found:
            return
        workers = sum(map(len, found.values()))
        self._log.warning("slots not held", slots=", ".join(map(str, sorted(found))), workers=workers)
        if not self._is_spokesman():
            return
        for slot, names in found.items():
            text = (
                f"no manager holds slot {slot}, which this worker is in: Jobs on it are not followed, and none starts"
            )
            for name in names:
                self._warn(name, EVENT, text)

    def _workers_without_holder(self) -> dict[Slot, list[str]]:
        free = {slot for slot, seconds in self._unheld().items() if seconds >= UNHELD_SECONDS}
        found = defaultdict[Slot, list[str]](list)
        for name in self._workers() if free else ():
            slot = slot_of_worker(name, next(iter(free)).of)
            if slot in free:
                found[slot].append(name)
        return found
