"""What differs between a source and its mirror, and what to look after, as values. Made by kinds, shown to people."""

from __future__ import annotations

import msgspec

STRIPPED, OURS, WORKER, PENDING = "stripped", "ours", "worker", "pending"
"""Kinds: not copied on purpose; set or changed by us on its way; set on the worker; not (or no longer) as it should."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One place where source and mirror differ. Values are JSON, cut; None: there is none."""

    path: str
    kind: str
    source: str | None = None
    mirror: str | None = None
    because: str = ""


class Caution(msgspec.Struct, frozen=True):
    """Something to look after, and where it comes from."""

    path: str
    text: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that differs, and what to look after."""

    differences: tuple[Difference, ...] = ()
    cautions: tuple[Caution, ...] = ()
    is_cut: bool = False
    """There is more."""
