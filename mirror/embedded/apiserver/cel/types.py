"""Types of expressions, and which fits where. Pure."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Type:
    """A type: simple, with parameters (``list``, ``map``, ``optional_type``, ``type``), or a function's parameter."""

    name: str
    parameters: tuple[Type, ...] = ()
    is_parameter: bool = False
    fields: Mapping[str, Type] | None = field(default=None, compare=False)
    """Of an object, by their names in expressions; objects are told apart by their names."""

    def __str__(self) -> str:
        shown = _SHOWN.get(self.name, self.name)
        return f"{shown}({', '.join(map(str, self.parameters))})" if self.parameters else shown


_SHOWN = {"null_type": "null", "google.protobuf.Duration": "duration", "google.protobuf.Timestamp": "timestamp"}

DYN, ERROR = Type("dyn"), Type("!error!")
BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null_type")
DURATION, TIMESTAMP = Type("google.protobuf.Duration"), Type("google.protobuf.Timestamp")
URL, IP, CIDR = Type("kubernetes.URL"), Type("net.IP"), Type("net.CIDR")
QUANTITY, FORMAT, SEMVER = Type("kubernetes.Quantity"), Type("kubernetes.NamedFormat"), Type("kubernetes.Semver")
NAMED = {
    "dyn": DYN,
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "null_type": NULL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "url": URL,
    "ip": IP,
    "cidr": CIDR,
    "quantity": QUANTITY,
    "format": FORMAT,
    "semver": SEMVER,
}
"""By the names that signatures of functions use here."""
CONSTANTS = {
    **{name: NAMED[name] for name in ("bool", "int", "uint", "double", "string", "bytes", "null_type", "dyn")},
    **{one.name: one for one in (DURATION, TIMESTAMP, URL, IP, CIDR, QUANTITY, FORMAT, SEMVER)},
    "list": Type("list", (DYN,)),
    "map": Type("map", (DYN, DYN)),
    "optional_type": Type("optional_type", (DYN,)),
    "type": Type("type"),
}
"""Types that expressions may name."""
Bindings = MutableMapping[str, Type]
"""What parameters were found to be."""


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of(one: Type) -> Type:
    return Type("type", (one,))


def parameter(name: str) -> Type:
    return Type(name, is_parameter=True)


def is_dyn(one: Type) -> bool:
    """Whether anything may be there."""
    return one.name in ("dyn", "!error!")


def bound(one: Type, bindings: Mapping[str, Type], *, frees: bool = False) -> Type:
    """The type with its parameters filled in; those that are not known stay, or with ``frees`` are anything."""
    while one.is_parameter:
        known = bindings.get(one.name)
        if known is None:
            return DYN if frees else one
        one = known
    if not one.parameters:
        return one
    inner = tuple(bound(each, bindings, frees=frees) for each in one.parameters)
    return one if inner == one.parameters else Type(one.name, inner)


def assign(wanted: Sequence[Type], given: Sequence[Type], bindings: Bindings) -> Bindings | None:
    """The bindings with which all of the second fit the first, None if they do not."""
    if len(wanted) != len(given):
        return None
    tried = dict(bindings)
    for one, other in zip(wanted, given, strict=True):
        if not _fits(one, other, tried):
            return None
    return tried


def _fits(one: Type, other: Type, bindings: Bindings) -> bool:
    if one.is_parameter and one.name in bindings:
        known = _resolved(one, bindings)
        is_fitting = _fits(known, other, bindings)
        if is_fitting and not known.is_parameter and is_dyn(_resolved(other, bindings)):
            bindings[one.name] = DYN  # the more general of the two
        return is_fitting
    one, other = _resolved(one, bindings), _resolved(other, bindings)
    if one.is_parameter or other.is_parameter:
        return _bind(one, other, bindings)
    if is_dyn(one) or is_dyn(other):
        return True
    if one.name == "null_type" or other.name == "null_type":
        whole = other if one.name == "null_type" else one
        return whole.name == "null_type" or whole.fields is not None or whole in (DURATION, TIMESTAMP)
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    if one.name == "type":
        return True
    return all(_fits(a, b, bindings) for a, b in zip(one.parameters, other.parameters, strict=True))


def _resolved(one: Type, bindings: Mapping[str, Type]) -> Type:
    while one.is_parameter and one.name in bindings:
        one = bindings[one.name]
    return one


def _bind(one: Type, other: Type, bindings: Bindings) -> bool:
    if one == other:
        return True
    name, value = (one.name, other) if one.is_parameter else (other.name, one)
    if _occurs(name, value, bindings):
        return False
    bindings[name] = value
    return True


def _occurs(name: str, inside: Type, bindings: Mapping[str, Type]) -> bool:
    inside = _resolved(inside, bindings)
    if inside.is_parameter:
        return inside.name == name
    return any(_occurs(name, one, bindings) for one in inside.parameters)


def joined(one: Type, other: Type, bindings: Bindings) -> tuple[Type, Bindings]:
    """A type for both, in a list or a map."""
    if one == other:
        return one, bindings
    found = assign((one,), (other,), bindings)
    if found is None:
        return DYN, bindings
    return (one if is_dyn(one) or not is_dyn(other) else other), found
