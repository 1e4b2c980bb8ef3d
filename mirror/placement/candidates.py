"""Workers as placement sees them, and what speaks against one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """One worker at this moment."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
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


@dataclass(frozen=True, slots=True)
class Wish:
    """What a source asks of placement."""

    namespace: str
    selector: Selector = EVERY
    refused_by: frozenset[str] = frozenset()


def obstacle(wish: Wish, candidate: Candidate) -> Obstacle | None:
    """The first thing that speaks against this worker, the lasting ones first."""
    checks = (
        (not wish.selector.matches(candidate.labels), Obstacle.NOT_SELECTED),
        (not candidate.accepts(wish.namespace), Obstacle.NAMESPACE),
        (candidate.misconfigured, Obstacle.MISCONFIGURED),
        (candidate.name in wish.refused_by, Obstacle.REFUSED),
        (candidate.cordoned, Obstacle.CORDONED),
        (not candidate.reachable, Obstacle.UNREACHABLE),
        (candidate.is_full, Obstacle.FULL),
    )
    return next((reason for holds, reason in checks if holds), None)
