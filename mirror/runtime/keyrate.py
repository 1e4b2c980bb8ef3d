"""How often one key may make requests: no world, however it answers, makes a key loop at network speed.

Asked by the controllers before a plan is carried out. The limit is far above what a Job needs; a key that meets it has
met an object that changes, or refuses to change, faster than anybody could want.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from mirror.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)

REQUESTS_PER_SECOND = 5.0
BURST = 20
_PRUNE_FROM = 1024


class KeyRate(Generic[K]):
    """A token bucket per key; only keys whose bucket is not full are remembered."""

    def __init__(self, clock: Clock, *, per_second: float = REQUESTS_PER_SECOND, burst: int = BURST) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst_seconds = burst / per_second
        # When the bucket of a key will be full again (monotonic).
        self._full_at: dict[K, float] = {}
        self._prune_at = _PRUNE_FROM

    def __len__(self) -> int:
        return len(self._full_at)

    def wait_seconds(self, key: K, requests: int) -> float:
        """Take so many requests and return 0, or take none and return after how many seconds to ask again."""
        now = self._clock.monotonic()
        full_at = max(self._full_at.get(key, now), now) + requests / self._per_second
        wait = full_at - now - self._burst_seconds
        # More requests at once than a burst are let through when the bucket is full.
        if wait > 0 and key in self._full_at and self._full_at[key] > now:
            return max(wait, 1 / self._per_second)
        self._full_at[key] = full_at
        if len(self._full_at) > self._prune_at:
            self._full_at = {one: at for one, at in self._full_at.items() if at > now}
            self._prune_at = max(_PRUNE_FROM, 2 * len(self._full_at))
        return 0.0
