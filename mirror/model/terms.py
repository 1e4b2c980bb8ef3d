"""In which term of its worker's slot a source was recorded: the end of its record's reason (S6). Pure.

Where there are no slots there is no term, and the reason is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mirror.model import names

_BEFORE = ":"
"""As reasons of conditions may have it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms that one instance of mirroring knows of; empty texts where there are none."""

    of: Callable[[str], str] = lambda worker: ""
    """In which term the slot of a worker is held, by whomever; of a slot's holder its own, whatever worker it is."""


NO_TERMS = Terms()
"""Of who has no slots."""


def term_of(status: Mapping[str, Any]) -> str:
    """In which a source was recorded; empty: in none, or it is not recorded."""
    return _reason_in(status).partition(_BEFORE)[2]


def mark_in(status: Mapping[str, Any]) -> str:
    """What the reason says beside the term; empty: there is no record."""
    return _reason_in(status).partition(_BEFORE)[0]


def with_term(status: Mapping[str, Any], term: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, with this term; empty: with none."""
    return _with_reason(status, lambda mark, _: _reason(mark, term))


def with_mark(status: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, with another reason but the same term."""
    return _with_reason(status, lambda _, term: _reason(mark, term))


def _reason(mark: str, term: str) -> str:
    return f"{mark}{_BEFORE}{term}" if term else mark


def _reason_in(status: Mapping[str, Any]) -> str:
    for one in status.get("conditions") or ():
        if _is_record(one):
            return str(one.get("reason", ""))
    return ""


def _with_reason(status: Mapping[str, Any], reason: Callable[[str, str], str]) -> dict[str, Any]:
    def changed(one: Mapping[str, Any]) -> Mapping[str, Any]:
        if not _is_record(one):
            return one
        mark, _, term = str(one.get("reason", "")).partition(_BEFORE)
        return {**one, "reason": reason(mark, term)}

    return {**status, "conditions": [changed(one) for one in status.get("conditions") or ()]}


def _is_record(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == names.PLACED and condition.get("status") == "True"
