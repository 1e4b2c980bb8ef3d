"""Events go an hour after they were written last, as etcd's leases make them go under kube-apiserver.

How old an event is, is known by its version: whatever has not been written since a look that was an hour ago is due.
After a restart with data, the hour begins anew.
"""

from __future__ import annotations

import asyncio
from collections import deque

from mirror.embedded.apiserver.apimachinery.kinds import Registry
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.runtime.clock import Clock

LIFE_SECONDS = 3600.0
LOOK_SECONDS = 60.0
_EVENTS = ("", "v1", "events")


class Expiry:
    """Looks at the events of a server from time to time."""

    def __init__(
        self, storage: Storage, registry: Registry, clock: Clock, *, life_seconds: float = LIFE_SECONDS
    ) -> None:
        self._storage = storage
        self._registry = registry
        self._clock = clock
        self._life_seconds = life_seconds
        self._looks: deque[tuple[float, int]] = deque()
        """When we looked (monotonic), and the storage's version then; oldest first, none older than a life."""

    async def run(self) -> None:
        """Never ends."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> int:
        """Remove the events that are due; how many they were."""
        now, storage = self._clock.monotonic(), self._storage
        self._looks.append((now, storage.version))
        due = 0
        while self._looks and self._looks[0][0] <= now - self._life_seconds:
            due = self._looks.popleft()[1]
        kind = self._registry.find(*_EVENTS)
        if not due or kind is None:
            return 0
        old = [record for record in storage.records(kind.stored_as, None) if record.version <= due]
        for record in old:
            object_meta.remove(self._storage, kind, record)
        return len(old)
