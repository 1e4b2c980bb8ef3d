"""A Job's status in the words of a timeline."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mirror.batch import conditions, views

_COUNTED = ("active", "ready", "succeeded", "failed", "terminating")
_ENDING = (conditions.FAILURE_TARGET, conditions.SUCCESS_CRITERIA_MET)


def describe(status: Mapping[str, Any]) -> tuple[str, str]:
    """A status as an entry of a timeline and its text: how it ended, or what it counts."""
    listed = conditions.of(status)
    final = conditions.final(listed)
    if final is not None:
        parts = (str(final.get(name) or "") for name in ("type", "reason", "message"))
        return "Finished", _shared(": ".join(filter(None, parts)))
    numbers = (views.number(status.get(name)) for name in _COUNTED)
    is_suspended = conditions.is_true(listed, conditions.SUSPENDED)
    # A Job that is failing has pods no more, rather than not yet.
    has_begun = bool(status.get("startTime")) or any(conditions.is_true(listed, one) for one in _ENDING)
    return "Status", _counted(is_suspended, has_begun, *numbers)


@lru_cache(maxsize=4096)
def _counted(is_suspended: bool, has_begun: bool, *numbers: int) -> str:
    """Most statuses of most Jobs read alike."""
    said = [f"{name} {count}" for name, count in zip(_COUNTED, numbers, strict=True) if count]
    nothing = "no active pods" if has_begun else "no pods yet"
    return ", ".join((["suspended"] if is_suspended else []) + said) or nothing


@lru_cache(maxsize=1024)
def _shared(text: str) -> str:
    """The same text once, however many sources it is told of."""
    return text
