"""Keys that are ready, by lane: lanes take turns. Used by ``queue``, which says what a lane is, and if it has room."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

HasRoom = Callable[[str], bool]


class Lanes(Generic[K]):
    """Keys in the order in which they came, lane by lane.

    Invariant: a lane is in ``turns``, once, exactly if it is in ``_keys``, and has a key there.
    """

    def __init__(self) -> None:
        # Ordered, so that one may leave from the middle, and the first is found at once after thousands have left.
        self._keys: dict[str, OrderedDict[K, None]] = {}
        self.turns: deque[str] = deque()
        """Lanes that have a key, the next one first; to be read only."""

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def add(self, lane: str, key: K) -> None:
        """Put a key, which is in no lane, at the end of one."""
        keys = self._keys.get(lane)
        if keys is None:
            keys = self._keys[lane] = OrderedDict()
            self.turns.append(lane)
        keys[key] = None

    def discard(self, lane: str, key: K) -> None:
        """Take a key out of its lane."""
        keys = self._keys[lane]
        del keys[key]
        if not keys:
            del self._keys[lane]
            self.turns.remove(lane)

    def take(self, has_room: HasRoom) -> tuple[str, K] | None:
        """The next key of the next lane that has room; None: there is none."""
        turns = self.turns
        for _ in range(len(turns)):
            lane = turns.popleft()
            if has_room(lane):
                keys = self._keys[lane]
                key = keys.popitem(False)[0]
                if keys:
                    turns.append(lane)
                else:
                    del self._keys[lane]
                return lane, key
            turns.append(lane)
        return None

    def has_one(self, has_room: HasRoom) -> bool:
        """Whether ``take`` would find a key."""
        return any(map(has_room, self.turns))

    def counts(self) -> Counter[str]:
        """How many keys each lane has."""
        return Counter({lane: len(keys) for lane, keys in self._keys.items()})
