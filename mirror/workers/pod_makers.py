"""Whose an object is that makes pods and is no mirror, by its chain of controllers: a child Job of a JobSet (D22).

Warnings that no pod may be created are about it, and nothing on it is of us: a label proves nothing, anybody may write
it (D1). Only what a kind lets stand between its mirrors and their pods is looked at (``Kind.pod_owners``). Used by
``pods``; that of one mirror whose pods are known is ``pod_owners``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mirror.kinds.registry import Kinds
from mirror.kube.objects import Meta
from mirror.kube.resources import Resource
from mirror.workers.pod_events import About
from mirror.workers.pod_owners import controller_of

SourceOf = Callable[[str, str, str, str], str | None]
"""The uid of the source whose mirror has this kind, namespace, name and uid; None: there is none."""
Get = Callable[[Resource, str, str], Awaitable[Meta | None]]
"""Metadata of an object, by resource, namespace and name; None: it is not there. May raise what the caller knows."""


class PodMakers:
    """Looks for the mirror that an object belongs to."""

    def __init__(self, kinds: Kinds, source_of: SourceOf) -> None:
        """Create it.

        Args:
            kinds: of mirrors.
            source_of: finds a mirror among those that are known.
        """
        self._source_of = source_of
        self._kinds = {(kind.resource.group, kind.resource.kind): kind for kind in kinds}
        self._between = {(one.group, one.kind): one for kind in kinds for one in kind.pod_owners}
        self._most = max((len(kind.pod_owners) for kind in kinds), default=0)

    def resource_of(self, about: About) -> Resource | None:
        """What may make pods of a mirror, though it is none; None: it is something else."""
        if not about.namespace:
            return None
        if about.api_version:
            return self._between.get((_group(about.api_version), about.kind))
        return next((one for (_, kind), one in self._between.items() if kind == about.kind), None)

    async def source_of(self, about: About, get: Get) -> str | None:
        """The uid of the source of whose mirror this is a part; None: of no mirror that is known.

        Args:
            about: the object; ``resource_of`` knows it.
            get: asks for it, and for what is between it and its mirror, each once.
        """
        passed: list[Resource] = []
        resource, name, uid = self.resource_of(about), about.name, about.uid
        while resource is not None and len(passed) < self._most:
            found = await get(resource, about.namespace, name)
            owner = controller_of(found.owner_references or ()) if found is not None and found.uid == uid else None
            if owner is None:
                return None
            passed.append(resource)
            key = _group(owner.api_version), owner.kind
            kind = self._kinds.get(key)
            if kind is not None and set(passed) <= set(kind.pod_owners):
                source = self._source_of(kind.name, about.namespace, owner.name, owner.uid)
                if source is not None:
                    return source
            resource, name, uid = self._between.get(key), owner.name, owner.uid
        return None


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
