"""In which order the items of a merged list come: the patch's items in its order, the others where they were."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Places:
    """Where each of some keys is first, found at once; those that cannot be hashed are looked for one by one."""

    __slots__ = ("_hashed", "_others")

    def __init__(self, keys: Iterable[Any] = ()) -> None:
        self._hashed: dict[Any, int] = {}
        self._others: list[tuple[Any, int]] = []
        for place, key in enumerate(keys):
            self.add(key, place)

    def __contains__(self, key: Any) -> bool:
        return self.of(key) is not None

    def add(self, key: Any, place: int) -> None:
        """The key is at this place; of several the first counts."""
        try:
            self._hashed.setdefault(key, place)
        except TypeError:
            self._others.append((key, place))

    def of(self, key: Any) -> int | None:
        """The place; None: it has none."""
        try:
            return self._hashed.get(key)
        except TypeError:
            return next((place for one, place in self._others if one == key), None)


def merged_order(merged: list[Any], order: list[Any], known: list[Any], merge_key: str) -> list[Any]:
    """``merged`` anew: items that ``order`` lists come in its order, others keep their places of ``known`` if they can.

    ``merge_key`` is empty for plain values.
    """
    ordered = Places(_key(one, merge_key) for one in order)
    known_places = Places(_key(one, merge_key) for one in known)
    mine = [one for one in merged if _key(one, merge_key) in ordered]
    others = [one for one in merged if _key(one, merge_key) not in ordered]
    mine.sort(key=lambda one: _place(ordered, one, merge_key, len(order)))
    others.sort(key=lambda one: _place(known_places, one, merge_key, len(known)))
    return _interleaved(others, mine, known_places, merge_key)


def _interleaved(others: list[Any], mine: list[Any], known: Places, merge_key: str) -> list[Any]:
    """Each of ``others`` goes before the first of ``mine`` that was behind it."""
    found: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(mine):
        one, two = known.of(_key(others[left], merge_key)), known.of(_key(mine[right], merge_key))
        if one is not None and two is not None and one < two:
            found.append(others[left])
            left += 1
        else:
            found.append(mine[right])
            right += 1
    return [*found, *others[left:], *mine[right:]]


def _place(places: Places, item: Any, merge_key: str, last: int) -> int:
    place = places.of(_key(item, merge_key))
    return last if place is None else place


def _key(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    return item.get(merge_key) if isinstance(item, dict) else None
