"""JSON Merge Patch (RFC 7386)."""

from __future__ import annotations

from typing import Any


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
