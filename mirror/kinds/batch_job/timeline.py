"""A Job's status in the words of a timeline: as a whole, and what its conditions say of the way to its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from mirror.batch import conditions, views
from mirror.model import names
from mirror.model.moves import parse_moves
from mirror.model.views import Moment

_COUNTED = ("active", "ready", "succeeded", "failed", "terminating")
_ENDING = (conditions.FAILURE_TARGET, conditions.SUCCESS_CRITERIA_MET)
_TEXT_OF_CONDITION = {
    conditions.SUCCESS_CRITERIA_MET: "success criteria met; terminating pods",
    conditions.FAILURE_TARGET: "failed; terminating pods",
}


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


def steps(status: Mapping[str, Any]) -> Iterator[Moment]:
    """Its suspensions, the way to its end, and whatever else somebody says of it in a condition."""
    for condition in conditions.of(status):
        kind, text = _step(condition)
        if text:
            yield Moment(at=views.text(condition.get("lastTransitionTime")), kind=kind, text=text)


def _step(condition: conditions.Condition) -> tuple[str, str]:
    """An entry, and its text: the last move in the words of its event, which says what became of the copy."""
    if condition.get("type") == names.MOVED:
        moves = parse_moves(views.text(condition.get("message")))
        return "Moved", moves.event if moves.count else ""
    return "Status", _text_of_condition(condition)


def _text_of_condition(condition: conditions.Condition) -> str:
    """Of one that neither records something nor ends the Job."""
    kind, is_true = views.text(condition.get("type")), condition.get("status") == conditions.TRUE
    if kind == conditions.SUSPENDED:
        return "suspended" if is_true else "resumed"
    if not is_true or kind in (names.PLACED, names.MIRRORED, *conditions.FINAL):
        return ""
    parts = (_TEXT_OF_CONDITION.get(kind, kind), *(views.text(condition.get(part)) for part in ("reason", "message")))
    return ": ".join(filter(None, parts))
