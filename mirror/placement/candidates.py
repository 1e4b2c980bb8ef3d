"""Workers as placement sees them, and what speaks against one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from mirror.placement.selector import EVERY, Selector


class Obstacle(StrEnum):
    """Why a worker does not get a Job: kinds, without counts or times (D21)."""

    REFUSED = "refused"
    NOT_SELECTED = "not selected"
    NAMESPACE = "does not accept the namespace"
    CORDONED = "cordoned"
    MISCONFIGURED = "misconfigured"
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


def obstacle(wish: Wish, candidate: Candidate) -> Obstacle | None:
    """The first thing that speaks against this worker, the lasting ones first."""
    if not wish.selector.matches(candidate.labels):
        return Obstacle.NOT_SELECTED
    if not candidate.accepts(wish.namespace):
        return Obstacle.NAMESPACE
    if candidate.misconfigured:
        return Obstacle.MISCONFIGURED
    if candidate.name in wish.refused_by:
        return Obstacle.REFUSED
    if candidate.cordoned:
        return Obstacle.CORDONED
    if not candidate.reachable:
        return Obstacle.UNREACHABLE
    return Obstacle.FULL if candidate.is_full else None
