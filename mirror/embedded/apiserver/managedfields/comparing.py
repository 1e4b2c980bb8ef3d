"""Which fields an object has, and which of them differ between two objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mirror.embedded.apiserver.managedfields.sets import (
    LEAF,
    SELF,
    Items,
    Scalar,
    Set,
    Shape,
    Struct,
    Whole,
    item_element,
    text_key_element,
    union,
    value_element,
)

_ABSENT: Any = object()


class Unownable(ValueError):
    """An object has an item that nothing tells from others, so nobody can own it: nothing of the object is tracked."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of an object; no path is in two of the sets."""

    removed: Set
    modified: Set
    added: Set

    @property
    def is_same(self) -> bool:
        """Nothing differs."""
        return not (self.removed or self.modified or self.added)

    @property
    def written(self) -> Set:
        """What the new object has that the old one had not, or differently."""
        return union(self.modified, self.added)


def compared(old: Any, new: Any, shape: Struct, *, ignored: frozenset[str] = frozenset()) -> Comparison:
    """How two objects differ; members called ``ignored`` are not looked at.

    Raises:
        Unownable: nobody can say.
    """
    found = Comparison({}, {}, {})
    for name, value in new.items():
        if name not in ignored:
            below = _inner(shape, name)
            known = old.get(name, _ABSENT)
            if known is not value:
                _compare("f:" + name, known, value, below, found)
    for name, value in old.items():
        if name not in new and name not in ignored:
            found.removed["f:" + name] = _all_of(value, _inner(shape, name))
    return found


# Kinds of shapes are distinguished by type(), which is cheaper than isinstance() where it counts; mypy does not narrow
# by it.
def _compare(element: str, old: Any, new: Any, shape: Shape, into: Comparison) -> None:
    """Adds to the three sets what is to be said of this element."""
    if old is _ABSENT:
        into.added[element] = _all_of(new, shape)
        return
    kind = type(shape)
    if kind is Struct and _is_map(old) and _is_map(new) and (old or new):
        if type(old) is type(new) and old == new:
            return
        _put(element, compared(old or {}, new or {}, shape), into)  # type: ignore[arg-type]  # told by type()
    elif kind is Items and _is_list(old) and _is_list(new) and (old or new):
        if old == new:
            return
        _put(element, _compared_items(old or [], new or [], shape), into)  # type: ignore[arg-type]  # told by type()
    elif not same(old, new):
        into.modified[element] = LEAF
        if kind is Struct and shape.is_deduced:  # type: ignore[union-attr]  # told by type()
            _put_inside(element, old, new, shape, into)  # type: ignore[arg-type]  # told by type()


def _put(element: str, found: Comparison, into: Comparison) -> None:
    if found.removed:
        into.removed[element] = found.removed
    if found.modified:
        into.modified[element] = found.modified
    if found.added:
        into.added[element] = found.added


def _put_inside(element: str, old: Any, new: Any, shape: Struct, into: Comparison) -> None:
    """Where nothing is known of a member, a map may have become something else, or the other way round."""
    for value, those in ((old, into.removed), (new, into.added)):
        if isinstance(value, dict) and value:
            those[element] = {name: below for name, below in _all_members(value, shape).items() if name != SELF}


def _compared_items(old: list[Any], new: list[Any], shape: Items) -> Comparison:
    found = Comparison({}, {}, {})
    before, after = _by_element(old, shape), _by_element(new, shape)
    for element in before | after:
        mine, theirs = before.get(element, []), after.get(element, [])
        if len(mine) < 2 and len(theirs) < 2:
            if not theirs:
                found.removed[element] = _all_of(mine[0], shape.item)
            else:
                known = mine[0] if mine else _ABSENT
                _compare(element, known, theirs[0], shape.item, found)
        elif len(mine) > 1 and len(theirs) > 1:
            if not same(mine, theirs):
                found.modified[element] = LEAF
        elif len(mine) > 1:
            found.removed[element] = LEAF
            if theirs:
                found.added[element] = _all_of(theirs[0], shape.item)
        else:
            found.added[element] = LEAF
            if mine:
                found.removed[element] = _all_of(mine[0], shape.item)
    return found


def _by_element(items: list[Any], shape: Items) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        element = element_of(item, shape)
        if not element:
            raise Unownable
        found.setdefault(element, []).append(item)
    return found


def element_of(item: Any, shape: Items) -> str:
    """The path element of a list's item; empty: it can have none."""
    if not shape.keys:
        return "" if item is None or isinstance(item, dict | list) else value_element(item)
    if not isinstance(item, dict):
        return ""
    if len(shape.keys) == 1:
        only = item.get(shape.keys[0])
        if type(only) is str:
            return text_key_element(shape.keys[0], only)
    keys = []
    for name in shape.keys:
        value = item.get(name, _ABSENT)
        if value is _ABSENT:
            value = shape.defaults.get(name, _ABSENT)
        if value is not _ABSENT:
            keys.append((name, value))
    if len(keys) > 1:
        keys.sort()
    return item_element(keys) if keys else ""


def _all_of(value: Any, shape: Shape) -> Set:
    """The node of something that is there on one side only: it and everything in it."""
    kind = type(shape)
    if kind is Scalar or kind is Whole or not value:
        return LEAF
    if kind is Struct and type(value) is dict:
        return _all_members(value, shape)  # type: ignore[arg-type]  # told by type()
    if kind is Items and type(value) is list:
        return _all_items(value, shape)  # type: ignore[arg-type]  # told by type()
    return LEAF


def _all_members(value: dict[str, Any], shape: Struct) -> Set:
    found: Set = {SELF: LEAF}
    known, other = shape.members or shape.known_members(), shape.other or _WHOLE
    for name, one in value.items():
        member = known.get(name)
        if member is None:
            found["f:" + name] = LEAF if type(other) is Scalar else _all_of(one, other)
            continue
        element, below = member
        kind = type(below)
        if kind is Scalar or kind is Whole or not one:
            found[element] = LEAF
        elif kind is Struct and type(one) is dict:
            found[element] = _all_members(one, below)  # type: ignore[arg-type]  # told by type()
        else:
            found[element] = _all_of(one, below)
    return found


def _all_items(value: list[Any], shape: Items) -> Set:
    found: Set = {SELF: LEAF}
    for item in value:
        element = element_of(item, shape)
        if not element:
            raise Unownable
        found[element] = LEAF if element in found else _all_of(item, shape.item)
    return found


_WHOLE = Whole()


def fields_of(value: Any, shape: Shape) -> Set:
    """The set of everything that an object has, as its applier owns it."""
    if isinstance(shape, Struct) and isinstance(value, dict):
        found: Set = {}
        for name, one in value.items():
            below = _inner(shape, name)
            node = _node(one, below)
            if node is not None and name not in shape.fields and node and SELF not in node:
                node = {SELF: LEAF, **node}
            elif node is None and name not in shape.fields:
                node = LEAF
            if node is not None:
                found["f:" + name] = node
        return found
    if isinstance(shape, Items) and isinstance(value, list):
        found = {}
        for element, items in _by_element(value, shape).items():
            node = None if len(items) > 1 else _node(items[0], shape.item)
            found[element] = {SELF: LEAF, **node} if node else LEAF
        return found
    return {}


def _node(value: Any, shape: Shape) -> Set | None:
    """The node of a member; None: neither it nor anything in it belongs to the set."""
    if isinstance(shape, Scalar | Whole) or value is None or value == {}:
        return LEAF
    if isinstance(shape, Struct) and not isinstance(value, dict):
        return LEAF
    if isinstance(shape, Items) and not isinstance(value, list):
        return LEAF
    return fields_of(value, shape) or None


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, telling booleans from numbers."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _inner(shape: Struct, name: str) -> Shape:
    return shape.fields.get(name) or shape.other or _WHOLE


def _is_map(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return value is None or isinstance(value, list)
