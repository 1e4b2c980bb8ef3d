"""Workers as placement sees them, and what a source asks of them. Who fits whom: ``index``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from mirror.placement.selector import EVERY, Selector


class Obstacle(StrEnum):
    """Why a worker does not get a Job: kinds, without counts or times (D21). The first that applies is reported."""

    NOT_SELECTED = "not selected"
    NAMESPACE = "does not accept the namespace"
    MISCONFIGURED = "misconfigured"
    REFUSED = "refused"
    CORDONED = "cordoned"
    UNREACHABLE = "unreachable"
    FULL = "at capacity"


class Candidate(msgspec.Struct, frozen=True):
    """One worker at this moment."""

    name: str
    labels: Mapping[str, str] = {}
    reachable: bool = True
    cordoned: bool = False
    misconfigured: bool = False
    capacity: int | None = None
    weight: float = 1.0
    load: int = 0
    namespaces: tuple[str, ...] = ()
    """Globs of the namespaces it accepts; empty = all but ``kube-*`` and those in ``closed_namespaces``."""
    closed_namespaces: tuple[str, ...] = ("kube-*",)

    @property
    def is_full(self) -> bool:
        return self.capacity is not None and self.load >= self.capacity

    @property
    def is_open(self) -> bool:
        """Whether it takes Jobs at all at the moment."""
        return self.reachable and not (self.cordoned or self.misconfigured or self.is_full)

    def accepts(self, namespace: str) -> bool:
        """Whether its owner lets Jobs of this namespace in (D18)."""
        if self.namespaces:
            return any(fnmatchcase(namespace, glob) for glob in self.namespaces)
        return not any(fnmatchcase(namespace, glob) for glob in self.closed_namespaces)


class Wish(msgspec.Struct, frozen=True):
    """What a source asks of placement."""

    namespace: str
    selector: Selector = EVERY
    refused_by: frozenset[str] = frozenset()
