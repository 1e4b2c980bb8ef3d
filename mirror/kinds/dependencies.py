"""What goes along with a mirror (D27): which kinds of objects a user asks for, and an operator allows. Pure.

Not here: where a pod refers to something (``pod_references``), and how copies are made (``decide.dependencies``).
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec

from mirror.kube.resources import CONFIGMAPS, SECRETS, SERVICE_ACCOUNTS, Resource
from mirror.model import names
from mirror.model.text import clean

RESOURCES: Mapping[str, Resource] = {one.kind: one for one in (CONFIGMAPS, SECRETS, SERVICE_ACCOUNTS)}
"""By kind: what can go along."""
_KIND_OF: Mapping[str, str] = {one.plural: one.kind for one in RESOURCES.values()}
_LONGEST_SHOWN = 60


class Reference(msgspec.Struct, frozen=True):
    """One place where a pod template, or an object beside it, names an object of its namespace."""

    kind: str
    """``ConfigMap``, ``Secret`` or ``ServiceAccount``; of what never goes along any other."""
    name: str
    path: str
    is_optional: bool = False
    """Pods run without it, too."""
    resource: Resource | None = None
    """Of a kind that is not Kubernetes' own."""


class BadCarry(ValueError):
    """The annotation ``carry`` cannot be understood; the text says why."""


class DependencyPolicy(msgspec.Struct, frozen=True):
    """What an operator lets go along (settings ``dependencies``)."""

    kinds: frozenset[str] = frozenset()
    namespaces: tuple[str, ...] = ()
    """Globs of sources' namespaces; empty: all."""
    closed: tuple[str, ...] = ()
    """Globs of namespaces whose objects never leave, whatever else is said."""

    def allowed(self, namespace: str) -> frozenset[str]:
        """The kinds of objects that may leave this namespace."""
        is_open = not self.namespaces or any(fnmatchcase(namespace, glob) for glob in self.namespaces)
        if not is_open or any(fnmatchcase(namespace, glob) for glob in self.closed):
            return frozenset()
        return self.kinds


def requested_kinds(annotations: Mapping[str, str]) -> frozenset[str]:
    """The kinds of objects that a source wants to go along.

    Raises:
        BadCarry: its annotation names something else.
    """
    text = annotations.get(names.CARRY)
    if text is None:
        return frozenset()
    words = [word.strip() for word in text.split(",") if word.strip()]
    if unknown := [word for word in words if word not in _KIND_OF]:
        shown = clean(unknown[0], longest=_LONGEST_SHOWN)
        raise BadCarry(f"{shown} is unknown; write some of {', '.join(_KIND_OF)}, comma-separated")
    return frozenset(_KIND_OF[word] for word in words)
