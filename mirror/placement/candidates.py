"""Workers as placement sees them, and what a source asks of them. Who fits whom: ``index``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from mirror.placement.selector import EVERY, Selector


class Obstacle(StrEnum):
    """Why a worker does not get a Job: kinds, without counts or times (D21). The first that applies is reported."""

    LABELS_DO_NOT_MATCH = "labels do not match worker-selector"
    NAMESPACE = "does not accept the namespace"
    KIND = "does not serve the kind"
    KIND_INCOMPLETE = "its definition lacks required fields"
    MISCONFIGURED = "misconfigured"
    REFUSED = "refused"
    CORDONED = "cordoned"
    UNREACHABLE = "unreachable"
    FULL = "at capacity"


OF_KINDS = (Obstacle.KIND, Obstacle.KIND_INCOMPLETE)
"""What is in the way of the sources of one kind."""


class NamespaceRules(msgspec.Struct, frozen=True):
    """Of which namespaces a worker takes Jobs (D18)."""

    globs: tuple[str, ...] = ()
    """Of the sources' namespaces; empty = all but those that are closed."""
    closed: tuple[str, ...] = ("kube-*",)
    """Globs of namespaces that are closed by default."""
    prefix: str = ""
    """Before the source's namespace, it makes the target namespace."""
    reserved: tuple[str, ...] = ()
    """Target namespaces that stay closed whatever ``globs`` says: that of our own account there."""

    def accepts(self, namespace: str) -> bool:
        """Whether Jobs of this namespace are let in.

        A prefix leads to no namespace that is closed by default, whatever the globs say: they speak of sources.
        """
        target = self.prefix + namespace
        if target in self.reserved:
            return False
        if self.prefix and any(fnmatchcase(target, glob) for glob in self.closed):
            return False
        if self.globs:
            return any(fnmatchcase(namespace, glob) for glob in self.globs)
        return not any(fnmatchcase(namespace, glob) for glob in self.closed)


class Candidate(msgspec.Struct, frozen=True):
    """One worker at this moment."""

    name: str
    labels: Mapping[str, str] = {}
    reachable: bool = True
    cordoned: bool = False
    misconfigured: bool = False
    trouble: str = ""
    """What is wrong where it is misconfigured or unreachable; without counts or times (D21)."""
    capacity: int | None = None
    weight: float = 1.0
    load: int = 0
    stalled: int = 0
    """How many of its load wait for their pods to become ready; 0 where nobody counts."""
    allocatable: float | None = None
    """The share of its nodes that is free; None where that is not known."""
    namespace_rules: NamespaceRules = NamespaceRules()
    unserved: frozenset[str] = frozenset()
    """Kinds that it does not serve (D23)."""
    incomplete: Mapping[str, str] = {}
    """Kinds whose definition there lacks fields without which nothing of them can be mirrored, and which those are."""

    def unsuited_kinds(self) -> Iterator[tuple[Obstacle, str]]:
        """The kinds of which it gets nothing, each with what is in the way."""
        for obstacle, kinds in zip(OF_KINDS, (self.unserved, self.incomplete), strict=True):
            for kind in kinds:
                yield obstacle, kind

    @property
    def is_full(self) -> bool:
        return self.capacity is not None and self.load >= self.capacity


def reserved_namespaces(closed_namespaces: tuple[str, ...], account_namespace: str) -> tuple[str, ...]:
    """Where our account on a worker lives: as its token says, and where ``mirror worker add`` makes it."""
    named = (one for one in closed_namespaces if "*" not in one)
    return tuple(dict.fromkeys(filter(None, (*named, account_namespace))))


class PlacementRequest(msgspec.Struct, frozen=True):
    """What a source asks of placement."""

    namespace: str
    selector: Selector = EVERY
    refused_by: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    """Names and globs of workers: of those that are eligible, the first that it names is chosen."""
    spread_by: str = ""
    """A label of workers: the value is chosen that the fewest Jobs of the namespace which ask for that are on."""
    queue: str = ""
    """The LocalQueue of Kueue that it is in, on whichever worker; empty: in none."""
    kind: str = ""
    """Which has to be served there; empty: any."""
