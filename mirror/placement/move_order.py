"""Who is moved next: round robin over namespaces; within one by priority, then the oldest first (D14, D21). Pure.

As those who wait for a worker are served (``waiting``), whatever suits them: ``controllers/move_turns`` asks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

import msgspec

from mirror.model.keys import SourceKey
from mirror.placement.waiting import Position


class Mover(msgspec.Struct, frozen=True):
    """One source that waits for its turn; ``since`` is its creation, as text that sorts by time."""

    since: str
    key: SourceKey
    uid: str
    priority: int = 0


class MoveOrder:
    """Invariant: each key in ``_movers`` has its position in ``_namespaces`` once, and nothing else is there."""

    def __init__(self) -> None:
        self._movers: dict[SourceKey, Mover] = {}
        self._namespaces: dict[str, list[Position]] = {}  # each sorted, none empty
        self._names: list[str] = []  # sorted
        self._last_served = ""

    def __len__(self) -> int:
        return len(self._movers)

    def add(self, mover: Mover) -> None:
        """Let it wait; one that waits already does so as what it is now."""
        if self._movers.get(mover.key) == mover:
            return
        self._leave(mover.key)
        self._movers[mover.key] = mover
        namespace = mover.key.namespace
        if namespace not in self._namespaces:
            self._namespaces[namespace] = []
            insort(self._names, namespace)
        insort(self._namespaces[namespace], _position_of(mover))

    def take(self) -> Mover:
        """The next one, which waits no longer.

        Raises:
            LookupError: none waits.
        """
        if not self._names:
            raise LookupError("nobody waits for a turn")
        after = bisect_right(self._names, self._last_served)
        self._last_served = self._names[after % len(self._names)]
        _, _, name, kind = self._namespaces[self._last_served][0]
        mover = self._movers[SourceKey(kind, self._last_served, name)]
        self._leave(mover.key)
        return mover

    def clear(self) -> None:
        """Nobody waits any more."""
        self._movers.clear()
        self._namespaces.clear()
        self._names.clear()

    def _leave(self, key: SourceKey) -> None:
        mover = self._movers.pop(key, None)
        if mover is None:
            return
        positions = self._namespaces[key.namespace]
        del positions[bisect_left(positions, _position_of(mover))]
        if not positions:
            del self._namespaces[key.namespace]
            del self._names[bisect_left(self._names, key.namespace)]


def _position_of(mover: Mover) -> Position:
    return -mover.priority, mover.since, mover.key.name, mover.key.kind
