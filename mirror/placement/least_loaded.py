"""The policy: of the workers that nothing speaks against, the one least loaded for its weight."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mirror.placement.candidates import Candidate, Obstacle, Wish, obstacle


class Choice(msgspec.Struct, frozen=True):
    """A worker, or why there is none."""

    worker: str | None
    obstacles: tuple[tuple[str, Obstacle], ...] = ()

    @property
    def waiting_because(self) -> str:
        """One line for people: the set of (worker, kind of reason), sorted (D21)."""
        if not self.obstacles:
            return "no worker is registered"
        return "; ".join(f"{worker}: {reason}" for worker, reason in sorted(self.obstacles))


def choose(wish: Wish, candidates: Iterable[Candidate]) -> Choice:
    """Pick a worker for one source; equal loads go by name."""
    obstacles: list[tuple[str, Obstacle]] = []
    best: tuple[float, str] | None = None
    for candidate in candidates:
        reason = obstacle(wish, candidate)
        if reason is not None:
            obstacles.append((candidate.name, reason))
            continue
        rank = ((candidate.load + 1) / candidate.weight, candidate.name)
        best = rank if best is None else min(best, rank)
    if best is not None:
        return Choice(best[1])
    return Choice(None, tuple(obstacles))
