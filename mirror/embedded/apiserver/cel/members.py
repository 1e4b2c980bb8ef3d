"""Members of values: fields, items, keys, and what loops go through. Pure; the words are cel-go's."""

from __future__ import annotations

from typing import Any

from mirror.embedded.apiserver.cel.functions.standard import double_text
from mirror.embedded.apiserver.cel.times import NONE, EvaluationError, Optional
from mirror.embedded.apiserver.cel.values import NO_OVERLOAD, Typed, equal, go_type, type_name


def items(whole: Any, count: int) -> Any:
    """What a loop with so many variables goes through. Raises: EvaluationError."""
    if isinstance(whole, list):
        return whole if count == 1 else list(enumerate(whole))
    if isinstance(whole, dict):
        return list(whole) if count == 1 else list(whole.items())
    raise EvaluationError(f"got '{go_type(whole)}', expected iterable type")


def fresh(value: Any) -> Any:
    """An empty list or map that the loop may change."""
    return value if not isinstance(value, list | dict) or value else type(value)()


def shown(key: Any) -> str:
    """A key as errors have it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return double_text(key) if isinstance(key, float) else str(key)


def field(found: Any, field: str) -> Any:
    """Why there is no such field, or the field of an optional. Raises: EvaluationError."""
    if isinstance(found, Optional):
        return optionally(found, field)
    if isinstance(found, dict):
        raise EvaluationError(f"no such key: {field}")
    raise EvaluationError(
        f"no such key: {field}" if not isinstance(found, list) else "unsupported index type 'string' in list"
    )


def item(found: Any, key: Any) -> Any:
    """An item of a list, or a value of a map. Raises: EvaluationError."""
    if isinstance(found, Optional):
        return optionally(found, key)
    if isinstance(found, list):
        if isinstance(key, bool) or not isinstance(key, int | float) or (isinstance(key, float) and key != int(key)):
            raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
        if not 0 <= key < len(found):
            raise EvaluationError(f"index out of bounds: {int(key)}")
        return found[int(key)]
    if isinstance(found, dict):
        if isinstance(key, str):
            if key in found:
                return found[key]
        elif isinstance(found, Typed):
            raise EvaluationError(NO_OVERLOAD)
        else:
            for one, value in found.items():
                if equal(one, key):
                    return value
        raise EvaluationError(f"no such key: {shown(key)}")
    raise EvaluationError(f"no such key: {shown(key)}")


def optionally(found: Any, key: Any) -> Optional:
    """An item or a field, if it is there; what is missing once stays missing."""
    if isinstance(found, Optional):
        if not found.has_value:
            return NONE
        found = found.value
    if isinstance(found, list):
        return Optional(True, found[key]) if isinstance(key, int) and 0 <= key < len(found) else NONE
    if isinstance(found, dict):
        if isinstance(found, Typed) and not isinstance(key, str):
            raise EvaluationError(NO_OVERLOAD)
        return Optional(True, found[key]) if key in found else NONE
    raise EvaluationError(NO_OVERLOAD)


def has(found: Any, field: str) -> bool:
    """Whether there is such a field. Raises: EvaluationError."""
    if isinstance(found, Optional):
        found = found.value if found.has_value else {}
    if isinstance(found, dict):
        return field in found
    raise EvaluationError(NO_OVERLOAD)
