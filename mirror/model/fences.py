"""How a source says that its mirror has a lease: the reason of its condition ``jobmirror.io/Placed`` (D14). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mirror.model import names

FENCED = "PlacedWithFence"
"""Its mirror has a lease, or gets it when it is made."""
VOIDED = "FenceVoided"
"""Somebody on its worker restarts it: when that ends cannot be known. Until it has another worker."""


def mark_of(status: Mapping[str, Any]) -> str:
    """Of a source's status: one of the above; empty: it has no lease."""
    reason = next((one.get("reason") for one in _conditions(status) if _is_record(one)), None)
    return reason if reason in (FENCED, VOIDED) else ""


def with_mark(status: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, with this mark; empty: with none."""
    listed = [{**one, "reason": mark or "Placed"} if _is_record(one) else one for one in _conditions(status)]
    return {**status, "conditions": listed}


def _is_record(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == names.PLACED and condition.get("status") == "True"


def _conditions(status: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return status.get("conditions") or ()
