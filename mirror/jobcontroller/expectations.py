"""What one Job's syncs have asked for and have not seen yet (K4, Q1–Q3, Q20, Q21). Values and arithmetic only.

Lowered by ``handlers`` as the watch shows what was asked for; kept per Job by ``memory``.
"""

from __future__ import annotations

import msgspec

TIMEOUT_SECONDS = 300.0


class Expectations(msgspec.Struct, gc=False):
    """Pods to be seen created or deleted.

    Seeing more than was asked for makes a number negative: a deletion is seen with each update that carries a
    deletionTimestamp (Q21). Asking anew starts from there no more.
    """

    creations: int = 0
    deletions: int = 0
    asked_at: float | None = None

    def expect_creations(self, count: int, now: float) -> None:
        self.creations, self.deletions, self.asked_at = count, 0, now

    def expect_deletions(self, count: int, now: float) -> None:
        self.creations, self.deletions, self.asked_at = 0, count, now

    def creation_seen(self) -> None:
        """Seen, or known never to come."""
        if self.asked_at is not None:
            self.creations -= 1

    def deletion_seen(self) -> None:
        """As ``creation_seen``."""
        if self.asked_at is not None:
            self.deletions -= 1

    def are_met(self, now: float) -> bool:
        """Nothing was asked for, all of it was seen, or it is so long ago that waiting would be wrong (Q3)."""
        return self.seconds_left(now) is None

    def seconds_left(self, now: float) -> float | None:
        """How long what was not seen yet will be waited for; None when nothing is."""
        if self.asked_at is None or (self.creations <= 0 and self.deletions <= 0):
            return None
        left = self.asked_at + TIMEOUT_SECONDS - now
        return None if left < 0 else left
