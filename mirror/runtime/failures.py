"""What has failed of a queue's keys since they last went well, and how long each waits. Used by ``queue``.

A server that is away says nothing about a key. So what fails meanwhile is counted apart: it is forgotten as soon as a
server answers, be it by a refusal, as an API server's first answers are until it has read its roles.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from mirror.runtime.backoff import Backoff

K = TypeVar("K", bound=Hashable)

OUTAGE_LOOK_SECONDS = 1.0
"""During an outage one key is tried about this often, so that its end is seen."""


class Failures(Generic[K]):
    """Of each key how often it has failed by itself, and how often because a server was away.

    Invariant: who is in ``in_outage`` has failed by an outage last; who is in ``_away`` has since it last went well.
    """

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._own: dict[K, int] = {}
        self._away: dict[K, int] = {}
        self.in_outage: dict[K, bool] = {}
        """Who waits for a server to be back, and whether as a look; to be read only."""
        self._next_look = float("-inf")

    def __len__(self) -> int:
        """Of how many keys something is known."""
        return len(self._own.keys() | self._away.keys())

    def of(self, key: K) -> int:
        """How often it has failed in a row; refused, what failed in the outage before counts no more."""
        return self._own.get(key, 0) + self._away.get(key, 0)

    def note_refused(self, key: K) -> tuple[float, K | None]:
        """It was answered, and failed.

        Returns:
            For how many seconds it waits, and who is to find out in its place whether the outage is over, if it was to.
        """
        was_in_outage = self.in_outage.pop(key, None) is not None
        if key in self._away:
            self._away[key] = 0
        self._own[key] = self._own.get(key, 0) + 1
        return self._backoff.delay(self._own[key]), next(iter(self.in_outage), None) if was_in_outage else None

    def note_away(self, key: K, *, is_look: bool, at_least_seconds: float, now: float) -> float:
        """Its server was away; for how many seconds it waits, unless another such key goes well before."""
        self._away[key] = self._away.get(key, 0) + 1
        self.in_outage[key] = is_look
        delay = max(self._backoff.delay(self.of(key)), at_least_seconds)
        if delay > OUTAGE_LOOK_SECONDS and now >= self._next_look:
            delay = max(OUTAGE_LOOK_SECONDS, at_least_seconds)
            self._next_look = now + delay
        return delay

    def forget(self, key: K) -> Mapping[K, bool]:
        """It went well: its next failure is its first.

        Returns:
            Who need not wait any more, since the outage in which this one had failed is over; as ``in_outage``.
        """
        self._own.pop(key, None)
        if self._away.pop(key, None) is None:
            return {}
        self.in_outage.pop(key, None)
        woken, self.in_outage, self._next_look = self.in_outage, {}, float("-inf")
        return woken
