"""What a rule says of each thing that it looks at."""

from __future__ import annotations

from collections.abc import Iterator
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


Verdicts = Iterator[Breach | None]
"""One for each thing that a rule has judged; None: it is as promised."""
