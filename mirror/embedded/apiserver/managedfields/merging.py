"""Merging an applied object into the one that is there, and taking out of it what its applier no longer wants."""

from __future__ import annotations

from typing import Any

from mirror.embedded.apiserver.managedfields.comparing import element_of
from mirror.embedded.apiserver.managedfields.sets import LEAF, SELF, Items, Set, Shape, Struct, Whole, is_member

_ABSENT: Any = object()
_WHOLE = Whole()


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """Both together; where both have a value, the applied one counts. Shares parts with both, which are kept."""
    found = _merged(live, applied, shape)
    return {} if found is _ABSENT else found


def _merged(live: Any, applied: Any, shape: Shape) -> Any:
    if isinstance(shape, Struct) and _may_be(dict, live, applied) and (_full(live) or _full(applied)):
        return _merged_members(live if _full(live) else {}, applied if _full(applied) else {}, shape)
    if isinstance(shape, Items) and _may_be(list, live, applied) and (_full(live) or _full(applied)):
        return _merged_items(live if _full(live) else [], applied if _full(applied) else [], shape)
    return live if applied is _ABSENT else applied


def _may_be(wanted: type, *values: Any) -> bool:
    return all(value is _ABSENT or value is None or isinstance(value, wanted) for value in values)


def _full(value: Any) -> bool:
    return value is not _ABSENT and bool(value)


def _merged_members(live: dict[str, Any], applied: dict[str, Any], shape: Struct) -> Any:
    found = {}
    for name in live | applied:
        below = shape.fields.get(name) or shape.other or _WHOLE
        one = _merged(live.get(name, _ABSENT), applied.get(name, _ABSENT), below)
        if one is not _ABSENT:
            found[name] = one
    return found or _ABSENT


def _merged_items(live: list[Any], applied: list[Any], shape: Items) -> Any:
    """Items of both, in the order of the applied list; what only the live list has stays where it is, between them."""
    mine = [(element_of(item, shape), item) for item in live]
    theirs = {element_of(item, shape): item for item in applied}
    known: dict[str, Any] = {}
    for element, item in mine:
        # What is in the live list twice is merged with neither.
        known[element] = _ABSENT if element in known else item
    shared = [element for element in theirs if element in known]
    order = list(theirs)
    found: list[Any] = []
    done: set[str] = set()

    def take(element: str) -> None:
        done.add(element)
        one = _merged(known.get(element, _ABSENT), theirs[element], shape.item)
        if one is not _ABSENT:
            found.append(one)
        if shared and shared[0] == element:
            del shared[0]

    left, right = 0, 0
    while left < len(mine) or right < len(order):
        if left < len(mine):
            element, item = mine[left]
            if right < len(order):
                if element == order[right]:
                    left, right = left + 1, right + 1
                    take(element)
                    continue
                if element in theirs and shared and shared[0] != element:
                    left += 1  # its turn comes when its place in the applied list does
                    continue
            if element not in theirs:
                found.append(item)
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(order):
            right += 1
            take(order[right - 1])
    return found or _ABSENT


def removed(value: Any, fields: Set, shape: Shape) -> Any:
    """The value without these fields. What loses everything becomes null."""
    if isinstance(shape, Struct) and isinstance(value, dict):
        found: dict[str, Any] = {}
        for name, one in value.items():
            below = fields.get("f:" + name)
            if below is None:
                found[name] = one
            elif not is_member(below):
                found[name] = removed(one, below, shape.fields.get(name) or shape.other or _WHOLE)
        return found or None
    if isinstance(shape, Items) and isinstance(value, list):
        items = []
        for item in value:
            below = fields.get(element_of(item, shape))
            if below is None:
                items.append(item)
            elif not is_member(below):
                items.append(removed(item, below, shape.item))
        return items or None
    return None if isinstance(value, dict | list) else value


def with_named_members(fields: Set, shape: Shape) -> Set:
    """The set with every known field that has something below it as a member, too."""
    found: Set = {}
    for element, below in fields.items():
        if element == SELF:
            found[SELF] = LEAF
            continue
        inner = _inner(shape, element)
        node = with_named_members(below, inner) if below else below
        is_known = element[0] == "f" and isinstance(shape, Struct) and element[2:] in shape.fields
        found[element] = {SELF: LEAF, **node} if is_known and node else node
    return found


def _inner(shape: Shape, element: str) -> Shape:
    if isinstance(shape, Struct):
        return shape.fields.get(element[2:]) or shape.other or _WHOLE
    return shape.item if isinstance(shape, Items) else _WHOLE
