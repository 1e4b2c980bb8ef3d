"""Whether the caches have caught up with our own writes about one Job (Y1), and who waits until they have.

Nothing here does any I/O: ``syncing`` asks, ``handlers`` tell what the watches show.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import msgspec

from mirror.kube.resources import JOBS, PODS, Resource
from mirror.runtime.store import EVERYWHERE, Store


class Written(msgspec.Struct, gc=False):
    """The newest versions that writes of ours have been answered with; 0 for none.

    Written status, created and patched pods count; deleted ones do not.
    """

    job: int = 0
    pods: int = 0

    def wrote_job(self, version: int) -> None:
        self.job = max(self.job, version)

    def wrote_pod(self, version: int) -> None:
        self.pods = max(self.pods, version)

    def behind(self, namespace: str, jobs: Store, pods: Store) -> Resource | None:
        """The kind whose cache has not seen our writes yet. Once both have, they are forgotten."""
        if self.job > _seen(jobs, namespace):
            return JOBS
        if self.pods > _seen(pods, namespace):
            return PODS
        self.job = self.pods = 0
        return None


def _seen(store: Store, namespace: str) -> int:
    """How far the watch is that shows this namespace."""
    return max(store.progress(EVERYWHERE), store.progress(namespace))


class CacheWaiters:
    """Keys whose Jobs could not be synced since a watch was behind: wanted again as soon as it is not.

    Upstream tries again after a second and then less and less often; that is still done, and this is sooner.
    """

    def __init__(self, add: Callable[[str], None]) -> None:
        self._add = add
        # Invariant: each pair of ``_waiting`` is in its kind's heap; other entries there are out of date.
        self._waiting: dict[tuple[Resource, str], int] = {}
        self._heaps: dict[Resource, list[tuple[int, str]]] = {JOBS: [], PODS: []}

    def wait(self, key: str, resource: Resource, version: int) -> None:
        """The watch of this kind has to show this version first."""
        if self._waiting.get((resource, key)) != version:
            self._waiting[resource, key] = version
            heapq.heappush(self._heaps[resource], (version, key))

    def on_seen(self, resource: Resource, version: int) -> None:
        """The watch of this kind shows this version."""
        heap = self._heaps[resource]
        while heap and heap[0][0] <= version:
            wanted, key = heapq.heappop(heap)
            if self._waiting.get((resource, key)) == wanted:
                del self._waiting[resource, key]
                self._add(key)
