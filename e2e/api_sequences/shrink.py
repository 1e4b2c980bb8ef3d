"""Makes a difference as small as it gets in so many tries: fewer steps, and less in each."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from e2e.api_sequences.requests import History
from e2e.api_sequences.run import Difference, Pair

Json: TypeAlias = dict[str, Any]
_MOST_TRIES = 150


@dataclass(slots=True)
class Shrinking:
    """One difference on its way."""

    pair: Pair
    smallest: Difference
    tries: int = _MOST_TRIES

    async def run(self) -> Difference:
        """The smallest that was found."""
        steps = self.smallest.history.steps[: self.smallest.position + 1]
        await self._try(replace(self.smallest.history, steps=steps))
        position = len(self.smallest.history.steps) - 2
        while position >= 0:
            shorter = self.smallest.history.without(position)
            if shorter is not None:
                await self._try(shorter)
            position = min(position - 1, len(self.smallest.history.steps) - 2)
        for position in range(len(self.smallest.history.steps)):
            await self._shrink_body(position)
        return self.smallest

    async def _shrink_body(self, position: int) -> None:
        tried: set[str] = set()
        while self.tries > 0:
            step = self.smallest.history.steps[position]
            bodies = [one for one in _lesser(step.get("body")) if json.dumps(one) not in tried]
            if not bodies:
                return
            for body in bodies:
                tried.add(json.dumps(body))
                if await self._try(self.smallest.history.with_step(position, {**step, "body": body})):
                    break

    async def _try(self, candidate: History) -> bool:
        """Whether the candidate shows the same difference; it is the smallest then."""
        if self.tries <= 0:
            return False
        self.tries -= 1
        found = await self.pair.play(candidate)
        if found is None or found.key != self.smallest.key:
            return False
        self.smallest = found
        return True


def _lesser(body: Any) -> list[Any]:
    """The body with one thing less, for each thing in it."""
    if isinstance(body, dict):
        found: list[Any] = []
        for name, value in body.items():
            rest = {other: inner for other, inner in body.items() if other != name}
            found.append(rest)
            found += [{**body, name: inner} for inner in _lesser(value)]
        return found
    if isinstance(body, list):
        return [
            one
            for position, value in enumerate(body)
            for one in (
                body[:position] + body[position + 1 :],
                *([*body[:position], inner, *body[position + 1 :]] for inner in _lesser(value)),
            )
        ]
    return []
