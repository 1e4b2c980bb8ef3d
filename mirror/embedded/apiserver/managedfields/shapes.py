"""How a field is owned and merged: as one piece, member by member, or item by item.

Shapes of built-in kinds come from ``schemas``, those of custom resources from their definition's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from mirror.embedded.apiserver.apimachinery.schemas import merging
from mirror.embedded.apiserver.apimachinery.schemas.dropped import KNOWN

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
    _members: dict[str, tuple[str, Shape]] = field(default_factory=dict, repr=False, compare=False)

    def members(self) -> dict[str, tuple[str, Shape]]:
        """Of known members the path element and the shape. Not asked before the shape is complete."""
        if len(self._members) != len(self.fields):
            self._members.update({name: ("f:" + name, shape) for name, shape in self.fields.items()})
        return self._members


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
