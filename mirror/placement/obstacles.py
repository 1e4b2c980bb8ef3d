"""What speaks against workers, as sets of them, and what is told of those that are in trouble. Pure.

Kept by ``index``, told by ``reasons``.
"""

from __future__ import annotations

import msgspec

from mirror.placement.candidates import Obstacle

Workers = int
"""A set of workers, as bits."""
IN_TROUBLE = (Obstacle.MISCONFIGURED, Obstacle.UNREACHABLE)
"""What has a text of its own for each worker."""


class Obstacles(msgspec.Struct, frozen=True):
    """What speaks against which workers; each worker is in one of them at most."""

    by_reason: tuple[tuple[Obstacle, Workers], ...]
    eligible: Workers

    def of(self, bit: Workers) -> Obstacle | None:
        """What speaks against one worker."""
        return next((reason for reason, workers in self.by_reason if workers & bit), None)

    @property
    def lasting(self) -> tuple[tuple[Obstacle, Workers], ...]:
        """Without workers that are full: to one who waits they are as free ones."""
        return tuple(one for one in self.by_reason if one[0] is not Obstacle.FULL)

    @property
    def in_trouble(self) -> Workers:
        """The workers that a text is told of."""
        found = 0
        for reason, workers in self.by_reason:
            found |= workers if reason in IN_TROUBLE else 0
        return found


class Troubles:
    """What is wrong with each worker, and a hash of that for a set of them; few sets are asked for."""

    def __init__(self) -> None:
        self._texts: dict[Workers, str] = {}
        self._hashes: dict[Workers, int] = {}

    def note(self, bit: Workers, text: str) -> None:
        """What is wrong with a worker now; nothing, if the text is empty."""
        if self._texts.get(bit, "") != text:
            self._hashes.clear()
            self._texts[bit] = text
            if not text:
                del self._texts[bit]

    def text_of(self, bit: Workers) -> str:
        return self._texts.get(bit, "")

    def hash_of(self, workers: Workers) -> int:
        """Another one whenever what is told of one of these workers is."""
        if workers not in self._hashes:
            self._hashes[workers] = hash(tuple(one for one in self._texts.items() if one[0] & workers))
        return self._hashes[workers]
