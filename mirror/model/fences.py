"""How a source says that its mirror has a lease: the reason of its condition ``jobmirror.io/Placed`` (D14). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.model import terms

FENCED = "PlacedWithFence"
"""Its mirror has a lease, or gets it when it is made."""
VOIDED = "FenceVoided"
"""Somebody on its worker restarts it: when that ends cannot be known. Until it has another worker."""


def mark_of(status: Mapping[str, Any]) -> str:
    """Of a source's status: one of the above; empty: it has no lease."""
    mark = terms.mark_in(status)
    return mark if mark in (FENCED, VOIDED) else ""


def with_mark(status: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, with this mark; empty: with none."""
    return terms.with_mark(status, mark or "Placed")
