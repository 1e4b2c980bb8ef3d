"""Random faults with a seed: each request may meet one, as often as its odds say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.kinds import (
    Fault,
    Loss,
    Slow,
    conflict,
    internal_error,
    too_many_requests,
    unavailable,
)
from mirror.embedded.faults.targets import Target

ROUGH: Mapping[str, float] = {
    "no connection": 0.01,
    "lose request": 0.01,
    "lose answer": 0.02,
    "hang": 0.003,
    "hang after": 0.003,
    "slow": 0.02,
    "conflict": 0.02,
    "429": 0.005,
    "500": 0.01,
    "503": 0.005,
}
"""Odds per request of a bad day."""


@dataclass(slots=True)
class RandomFaults:
    """``injector.FaultSource``: the same seed and the same requests meet the same faults."""

    random: Random
    odds: Mapping[str, float] = field(default_factory=lambda: ROUGH)
    longest_seconds: float = 0.01
    """One way takes up to so long."""

    def fault(self, request: Request, target: Target) -> Fault | None:
        """What this request meets."""
        drawn = self.random.random()
        for name, odds in self.odds.items():
            drawn -= odds
            if drawn < 0:
                return self._fault(name, target)
        return None

    def seconds(self) -> float:
        return self.random.random() * self.longest_seconds

    def _fault(self, name: str, target: Target) -> Fault | None:
        match name:
            case "no connection":
                return Loss.NO_CONNECTION
            case "lose request":
                return Loss.LOSE_REQUEST
            case "lose answer":
                return Loss.LOSE_ANSWER
            case "hang":
                return Loss.HANG
            case "hang after":
                return Loss.HANG_AFTER
            case "slow":
                return Slow(self.random.random() * 5.0)
            case "conflict":
                return conflict() if target.verb in ("update", "patch") else None
            case "429":
                return too_many_requests(self.random.randrange(1, 4))
            case "500":
                return internal_error()
            case "503":
                return unavailable(self.random.choice((None, 1)))
        raise ValueError(f"there is no fault called {name}")
