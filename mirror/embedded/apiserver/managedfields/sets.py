"""Sets of fields, in the form in which ``metadata.managedFields`` stores them (FieldsV1), and the shapes of kinds.

A set is a map from path elements (``f:name``, ``k:{"name":"main"}``, ``v:"text"``) to the sets below them. A path
belongs to the set if its map is empty or has the member ``.``. Sets are never changed once made; they share parts. A
shape tells of each field whether it is owned as one piece, member by member, or item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, TypeAlias

import msgspec

from mirror.batch.quoting import json_text, quoted
from mirror.embedded.apiserver.apimachinery.schemas import merging
from mirror.embedded.apiserver.apimachinery.schemas.dropped import KNOWN

Set: TypeAlias = dict[str, Any]

SELF = "."
LEAF: Set = {}
"""A path that belongs to the set, with nothing below it."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./: ")


def is_member(node: Set) -> bool:
    """Whether the path of this node belongs to the set itself."""
    return not node or SELF in node


def union(one: Set, other: Set) -> Set:
    """What is in either."""
    if not other or one is other:
        return one
    if not one:
        return other
    found = dict(one)
    for element, theirs in other.items():
        mine = found.get(element)
        if mine is None:
            found[element] = theirs
        elif element != SELF:
            found[element] = _both(mine, theirs)
    return found


def _both(mine: Set, theirs: Set) -> Set:
    """The node of a path that both have."""
    if not mine:
        return theirs if is_member(theirs) else {SELF: {}, **theirs}
    if not theirs:
        return mine if SELF in mine else {SELF: {}, **mine}
    return union(mine, theirs)


def difference(one: Set, other: Set) -> Set:
    """What is in the first only."""
    found = one
    for element, theirs in other.items():
        mine = found.get(element)
        if mine is None or element == SELF:
            continue
        left = _left(mine, theirs)
        if left is mine:
            continue
        if found is one:
            found = dict(one)
        if left is None:
            del found[element]
        else:
            found[element] = left
    return found


def _left(mine: Set, theirs: Set) -> Set | None:
    """What is left of a node; None: nothing."""
    if not mine:
        return None if is_member(theirs) else mine
    if not theirs:
        if SELF not in mine:
            return mine
        return {element: below for element, below in mine.items() if element != SELF}
    left = difference(mine, theirs)
    if SELF in left and SELF in theirs:
        left = {element: below for element, below in left.items() if element != SELF}
        return left or None
    if left:
        return left if len(left) > 1 or SELF not in left else LEAF
    return None


def intersection(one: Set, other: Set) -> Set:
    """What is in both."""
    found: Set = {}
    for element, mine in one.items():
        theirs = other.get(element)
        if theirs is None or element == SELF:
            continue
        common = _common(mine, theirs)
        if common is not None:
            found[element] = common
    return found


def _common(mine: Set, theirs: Set) -> Set | None:
    is_in_both = is_member(mine) and is_member(theirs)
    below = intersection(mine, theirs)
    if below:
        return {SELF: {}, **below} if is_in_both else below
    return LEAF if is_in_both else None


def without(one: Set, path: tuple[str, ...]) -> Set:
    """The set without this path of names and everything below it."""
    element = f"f:{path[0]}"
    below = one.get(element)
    if below is None:
        return one
    rest = {name: node for name, node in one.items() if name != element}
    if len(path) > 1:
        left = without(below, path[1:])
        if left is below:
            return one
        if left or not below:
            rest[element] = left if tuple(left) != (SELF,) else LEAF
    return rest


def paths(one: Set) -> Iterator[tuple[str, ...]]:
    """Every path of the set: those that end here before those below, each in order."""
    elements = sorted((element for element in one if element != SELF), key=order)
    for element in elements:
        if is_member(one[element]):
            yield (element,)
    for element in elements:
        for path in paths(one[element]):
            yield (element, *path)


def ordered(one: Set) -> Set:
    """The set with its elements in the order in which they are stored."""
    if len(one) < 2:
        return {element: ordered(below) for element, below in one.items()} if one else one
    return {element: ordered(one[element]) for element in sorted(one, key=order)}


def order(element: str) -> tuple[int, Any]:
    """Names come before keys, keys before values."""
    if element == SELF:
        return -1, ""
    kind = "fkvi".find(element[0])
    if kind == 1:
        return kind, [(name, str(type(value)), value) for name, value in key_of(element)]
    return kind, element


def key_of(element: str) -> list[tuple[str, Any]]:
    """The names and values of the key of a list's item, sorted by name."""
    try:
        found = msgspec.json.decode(element[2:])
    except msgspec.DecodeError:
        return []
    return sorted(found.items()) if isinstance(found, dict) else []


def item_element(keys: list[tuple[str, Any]]) -> str:
    """The path element of a list's item; ``keys`` are sorted by name."""
    return "k:{" + ",".join(f'"{name}":{_json(value)}' for name, value in keys) + "}"


@lru_cache(maxsize=4096)
def text_key_element(name: str, value: str) -> str:
    """The path element of a list's item that has one key, a text."""
    return f'k:{{"{name}":{_json(value)}}}'


def value_element(value: Any) -> str:
    """The path element of a value in a set."""
    return "v:" + _json(value)


def shown(path: tuple[str, ...]) -> str:
    """A path as messages show it: ``.spec.containers[name="main"].image``."""
    return "".join(map(_shown, path))


def _shown(element: str) -> str:
    kind, text = element[:1], element[2:]
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return "[" + ",".join(f"{name}={_text(value)}" for name, value in key_of(element)) + "]"
    if kind == "v":
        return f"[={_text(msgspec.json.decode(text))}]"
    return f"[{text}]"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "".join(f"{name}={_text(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return _json(value)


def _json(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if _PLAIN.issuperset(value) else json_text(value)
    return msgspec.json.encode(value).decode()


# The shape of each kind: which of its maps and lists are owned as a whole, and which part by part.

SCALARS: Mapping[str, str] = {"s": "string", "i": "numeric", "f": "numeric", "b": "boolean", "y": "string"}
"""What a scalar must be; others may be any scalar."""


@dataclass(slots=True)
class Scalar:
    """One value; ``wanted`` is string, numeric, boolean or untyped."""

    wanted: str = "untyped"


@dataclass(slots=True)
class Whole:
    """A list or map that is owned as one piece, or anything at all (``wanted`` is empty)."""

    wanted: str = ""
    inner: Shape | None = None
    """What it must look like inside."""


@dataclass(slots=True)
class Struct:
    """A map whose members are known by name, and perhaps others."""

    fields: dict[str, Shape] = field(default_factory=dict)
    other: Shape | None = None
    """The shape of members that are not known; None: there are none."""
    is_deduced: bool = False
    """Nothing is known of it, so it may also be no map at all; then it is owned as one piece."""
    members: dict[str, tuple[str, Shape]] = field(default_factory=dict, repr=False, compare=False)
    """Of known members the path element and the shape; empty until they are asked for (``known_members``)."""

    def known_members(self) -> dict[str, tuple[str, Shape]]:
        """``members``, filled. Not asked before the shape is complete."""
        self.members = {name: ("f:" + name, shape) for name, shape in self.fields.items()}
        return self.members


@dataclass(slots=True)
class Items:
    """A list whose items are owned each for itself, by key, or, without keys, by value."""

    item: Shape
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What a key is where an item lacks it."""


Shape: TypeAlias = Scalar | Whole | Struct | Items

ANYTHING = Whole()
DEDUCED = Struct(is_deduced=True)
"""What has no schema: maps are owned member by member, lists as one piece."""
DEDUCED.other = DEDUCED


@cache
def of_struct(struct: str) -> Struct:
    """The shape of a built-in kind, or of a part of one."""
    return _struct(struct, {})


def _struct(struct: str, known: dict[str, Struct]) -> Struct:
    if struct in known:
        return known[struct]
    found = known[struct] = Struct()
    for name, kind in KNOWN[struct].items():
        found.fields[name] = _field(struct, name, kind.strip("*!"), known)
    return found


def _field(struct: str, name: str, kind: str, known: dict[str, Struct]) -> Shape:
    place = struct, name
    if "|" in kind and kind[0] not in "[{":
        return ANYTHING
    if kind.startswith("["):
        item = _value(kind[1:-1], known)
        if place in merging.SETS:
            return Items(item)
        if place in merging.KEYED:
            return Items(item, merging.KEYED[place], merging.KEY_DEFAULTS[place])
        return Whole("list", item)
    if kind.startswith("{"):
        inner = _value(kind[1:-1], known)
        return Whole("map", Struct(other=inner)) if place in merging.ATOMIC_MAPS else Struct(other=inner)
    return _value(kind, known)


def _value(kind: str, known: dict[str, Struct]) -> Shape:
    if kind in KNOWN:
        inner = _struct(kind, known)
        return Whole("map", inner) if kind in merging.ATOMIC_STRUCTS else inner
    if kind in ("?", "x") or "|" in kind:  # A number or a text (x) is read as either only when all is applied.
        return ANYTHING
    if kind.startswith("["):
        return Whole("list", _value(kind[1:-1], known))
    return Scalar(SCALARS.get(kind, "untyped"))


def of_schema(schema: Mapping[str, Any]) -> Struct:
    """The shape of a custom resource, from the structural schema of its definition."""
    found = _from_schema(schema)
    if not isinstance(found, Struct):
        found = Struct(other=DEDUCED)
    root = Struct(dict(found.fields), found.other)
    root.fields |= {"apiVersion": Scalar("string"), "kind": Scalar("string"), "metadata": of_struct("ObjectMeta")}
    return root


def _from_schema(schema: Mapping[str, Any]) -> Shape:
    keeps_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if schema.get("x-kubernetes-int-or-string"):
        return Scalar()
    maker = _MAKERS.get(schema.get("type", ""))
    if maker is not None:
        return maker(schema)
    return DEDUCED if keeps_unknown else ANYTHING


def _object(schema: Mapping[str, Any]) -> Shape:
    properties = schema.get("properties") or {}
    found = Struct({name: _from_schema(one) for name, one in properties.items()})
    additional = schema.get("additionalProperties")
    if schema.get("x-kubernetes-preserve-unknown-fields") or (additional is None and not properties):
        found.other = DEDUCED
    elif isinstance(additional, Mapping):
        found.other = _from_schema(additional)
    elif additional is True:
        found.other = DEDUCED
    if schema.get("x-kubernetes-embedded-resource"):
        found.fields |= {"apiVersion": Scalar("string"), "kind": Scalar("string"), "metadata": of_struct("ObjectMeta")}
    return Whole("map", found) if schema.get("x-kubernetes-map-type") == "atomic" else found


def _array(schema: Mapping[str, Any]) -> Shape:
    items = schema.get("items") or {}
    item = _from_schema(items)
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return Items(item)
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            properties = items.get("properties") or {}
            defaults = {key: properties[key]["default"] for key in keys if "default" in (properties.get(key) or {})}
            return Items(item, keys, defaults)
        case _:
            return Whole("list", item)


_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], Shape]] = {
    "object": _object,
    "array": _array,
    "string": lambda _: Scalar("string"),
    "integer": lambda _: Scalar("numeric"),
    "number": lambda _: Scalar("numeric"),
    "boolean": lambda _: Scalar("boolean"),
}
