"""What a rule says where it does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, order=True)
class Breach:
    """One broken invariant: the rule's name in ``judging.RULES``, when it was broken, and by what."""

    rule: str
    at: float
    text: str

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.at, UTC) if self.at < 1e11 else None
        return f"{self.rule} at {when:%H:%M:%S.%f}: {self.text}" if when else f"{self.rule}: {self.text}"
