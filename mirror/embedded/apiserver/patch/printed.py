"""Objects as the server prints them: members in the order of its types, those of maps by name, markup escaped.

Only refusals of patches show whole objects, and say what is wrong in that order.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS
from mirror.embedded.apiserver.managedfields import sets

_MARKUP = re.compile("[<>&\u2028\u2029]")
_FIRST = ("kind", "apiVersion")
_AS_THEY_ARE = ("OwnerReference", "ManagedFieldsEntry", "TypedLocalObjectReference", "TypedObjectReference")
"""Structs in which these two do not come first, or not both."""


def in_order(value: Any, struct: str) -> Any:
    """A copy of an object of this struct; empty: of a map of anything."""
    if not isinstance(value, dict):
        return value
    fields = STRUCTS.get(struct, {})
    first = () if struct in _AS_THEY_ARE else _FIRST
    names = [name for name in (*first, *fields) if name in fields and name in value] if fields else sorted(value)
    found = {name: _value(value[name], fields.get(name, "")) for name in dict.fromkeys((*names, *value))}
    if struct == "ManagedFieldsEntry" and "fieldsV1" in value:
        found["fieldsV1"] = sets.ordered(value["fieldsV1"])
    return found


def _value(value: Any, kind: str) -> Any:
    kind = kind.strip("*!")
    if isinstance(value, list):
        inner = kind[1:-1] if kind.startswith("[") else ""
        return [_value(one, inner) for one in value]
    if kind.startswith("{") and isinstance(value, dict):
        return {name: _value(value[name], kind[1:-1]) for name in sorted(value)}
    return in_order(value, kind)


def text(value: Any) -> str:
    """The JSON of a value."""
    found = msgspec.json.encode(value).decode()
    return _MARKUP.sub(lambda one: f"\\u{ord(one[0]):04x}", found)
