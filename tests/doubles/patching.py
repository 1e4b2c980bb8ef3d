"""JSON Patch, as far as our requests use it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any


class BadPatch(ValueError):
    """An operation does not apply."""


def apply_json_patch(body: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """A patched copy; ``add``, ``replace``, ``remove`` and ``test``.

    Raises:
        BadPatch: an operation does not apply.
    """
    patched = copy.deepcopy(body)
    for operation in operations:
        _apply(patched, operation)
    return patched


def _apply(body: Any, operation: Mapping[str, Any]) -> None:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
    for step in steps[:-1]:
        body = _child(body, step)
    last, kind = steps[-1], operation["op"]
    value = copy.deepcopy(operation.get("value"))
    if isinstance(body, list):
        _apply_to_list(body, last, kind, value)
        return
    if not isinstance(body, dict) or (kind != "add" and last not in body):
        raise BadPatch(f"{operation['path']}: nothing is there")
    if kind == "remove":
        del body[last]
    elif kind in ("add", "replace"):
        body[last] = value
    elif body[last] != value:
        raise BadPatch(f"{operation['path']}: test failed")


def _apply_to_list(found: list[Any], step: str, kind: str, value: Any) -> None:
    position = len(found) if step == "-" else int(step)
    if kind == "add":
        found.insert(position, value)
    elif kind == "remove":
        del found[position]
    else:
        found[position] = value


def _child(body: Any, step: str) -> Any:
    try:
        return body[int(step)] if isinstance(body, list) else body[step]
    except (KeyError, IndexError, TypeError, ValueError):
        raise BadPatch(f"{step}: nothing is there") from None
