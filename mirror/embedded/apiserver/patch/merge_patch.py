"""JSON Merge Patch (RFC 7386)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS
from mirror.embedded.apiserver.managedfields import sets


def patched(body: Any, patch: Any, *, sorts: bool = False) -> Any:
    """The patched body; what is not changed is shared with the old one, which is kept.

    ``sorts``: objects that were merged are sorted by name, as they come out of the server's library.
    """
    if not isinstance(patch, dict):
        return patch
    if not isinstance(body, dict):
        return without_nulls(patch, sorts=sorts)
    found = dict(body)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif found.get(name) is None:
            found[name] = without_nulls(value, sorts=sorts)
        else:
            found[name] = _merged(found[name], value, sorts=sorts)
    return dict(sorted(found.items())) if sorts else found


def _merged(body: Any, patch: Any, *, sorts: bool) -> Any:
    if isinstance(body, dict) and isinstance(patch, dict):
        return patched(body, patch, sorts=sorts)
    return patch if isinstance(body, dict) else without_nulls(patch, sorts=sorts)


def without_nulls(value: Any, *, sorts: bool = False) -> Any:
    """Without members that are null; items of lists stay."""
    if isinstance(value, dict):
        members = sorted(value.items()) if sorts else value.items()
        return {name: without_nulls(one, sorts=sorts) for name, one in members if one is not None}
    if isinstance(value, list):
        return [without_nulls(one, sorts=sorts) for one in value]
    return value


# Objects as the server prints them: members in the order of its types, those of maps by name, markup escaped.

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
