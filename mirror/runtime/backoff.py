"""Growing delays, as arithmetic."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds that double from ``first`` to ``most``, each changed by up to ``jitter`` of itself."""

    first: float
    most: float
    jitter: float = 0.0

    def delay(self, attempt: int, chance: random.Random | None = None) -> float:
        """The delay after the given number of failures in a row (the first is 1)."""
        plain = min(self.most, self.first * 2.0 ** min(max(attempt, 1) - 1, 40))
        if not self.jitter or chance is None:
            return plain
        return plain * (1 + self.jitter * (2 * chance.random() - 1))
