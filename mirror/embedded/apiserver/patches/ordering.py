"""In which order the items of a merged list come: the patch's items in its order, the others where they were."""

from __future__ import annotations

from typing import Any


def merged_order(merged: list[Any], order: list[Any], known: list[Any], merge_key: str) -> list[Any]:
    """``merged`` anew: items that ``order`` lists come in its order, others keep their places of ``known`` if they can.

    ``merge_key`` is empty for plain values.
    """
    ordered_keys = [_key(one, merge_key) for one in order]
    known_keys = [_key(one, merge_key) for one in known]
    mine = [one for one in merged if _key(one, merge_key) in ordered_keys]
    others = [one for one in merged if _key(one, merge_key) not in ordered_keys]
    mine.sort(key=lambda one: _place(ordered_keys, one, merge_key))
    others.sort(key=lambda one: _place(known_keys, one, merge_key))
    return _interleaved(others, mine, known_keys, merge_key)


def _interleaved(others: list[Any], mine: list[Any], known_keys: list[Any], merge_key: str) -> list[Any]:
    """Each of ``others`` goes before the first of ``mine`` that was behind it."""
    found: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(mine):
        one, two = _key(others[left], merge_key), _key(mine[right], merge_key)
        if one in known_keys and two in known_keys and known_keys.index(one) < known_keys.index(two):
            found.append(others[left])
            left += 1
        else:
            found.append(mine[right])
            right += 1
    return [*found, *others[left:], *mine[right:]]


def _place(keys: list[Any], item: Any, merge_key: str) -> int:
    key = _key(item, merge_key)
    return keys.index(key) if key in keys else len(keys)


def _key(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    return item.get(merge_key) if isinstance(item, dict) else None
