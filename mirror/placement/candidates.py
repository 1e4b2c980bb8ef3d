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
    namespace_prefix: str = ""
    """Before the source's namespace, it makes the target namespace."""
    reserved_namespaces: tuple[str, ...] = ()
    """Target namespaces that stay closed whatever ``namespaces`` says: that of our own account there."""

    @property
    def is_full(self) -> bool:
        return self.capacity is not None and self.load >= self.capacity

    def accepts(self, namespace: str) -> bool:
        """Whether its owner lets Jobs of this namespace in (D18).

        A prefix leads to no namespace that is closed by default, whatever the globs say: they speak of sources.
        """
        target = self.namespace_prefix + namespace
        if target in self.reserved_namespaces:
            return False
        if self.namespace_prefix and any(fnmatchcase(target, glob) for glob in self.closed_namespaces):
            return False
        if self.namespaces:
            return any(fnmatchcase(namespace, glob) for glob in self.namespaces)
        return not any(fnmatchcase(namespace, glob) for glob in self.closed_namespaces)


def reserved_namespaces(closed_namespaces: tuple[str, ...], account_namespace: str) -> tuple[str, ...]:
    """Where our account on a worker lives: as its token says, and where ``mirror worker add`` makes it."""
    named = (one for one in closed_namespaces if "*" not in one)
    return tuple(dict.fromkeys(filter(None, (*named, account_namespace))))


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
