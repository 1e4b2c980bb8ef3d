"""Whose a pod is: the chain of controllers from it to a mirror, looked at object by object on the worker.

The pods of a Job are its own; between a JobSet and its pods are Jobs, and each kind says what may stand there
(``Kind.pod_owners``). A label proves nothing, anybody may write it; and an object of another kind is not looked at.
Used by ``access`` and, with the user's own permissions, by the commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from mirror.kinds.base import Kind
from mirror.kube.objects import JUNK, Meta, OwnerReference
from mirror.kube.resources import Resource

MOST_ASKED_FOR = 100
"""Owners that are asked for one by one; pods of others are not shown."""
MOST_PARTS = 1_000_000
"""Values in one list: tiny ones by the million, which nobody's objects are, would cost a hundred times their length."""
MOST_MADE = 500
"""Of what makes pods so many are looked at, for what was said of them."""
ASKED_SINGLY = 8
"""So many are asked for one by one; of more, the collection is read first."""

Get = Callable[[Resource, str], Awaitable[Meta | None]]
"""Metadata of an object in the mirror's namespace; None: it is not there. May raise what the caller understands."""
List = Callable[[Resource], Awaitable[Iterable[Meta]]]
"""Metadata of those that have the labels of the mirror's pods, since controllers mostly label both alike; none where
that may not be asked."""


class _Object(msgspec.Struct):
    metadata: Meta


class _List(msgspec.Struct):
    items: list[_Object] | None = None


def read_metadata(raw: bytes) -> Meta | None:
    """Metadata of an object as a worker sent it; None where it is none."""
    try:
        return msgspec.json.decode(raw, type=_Object).metadata
    except JUNK:
        return None


def read_metadata_list(raw: bytes) -> list[Meta]:
    """The same of a list; what is none, or one that no API server would give, is empty."""
    if raw.count(b",") > MOST_PARTS:
        return []
    try:
        return [one.metadata for one in msgspec.json.decode(raw, type=_List).items or ()]
    except JUNK:
        return []


def controller_of(owners: Iterable[OwnerReference]) -> OwnerReference | None:
    """The one controller; None where there is none, or several, which no API server stores."""
    found = [one for one in owners if one.controller]
    return found[0] if len(found) == 1 else None


class PodOwners:
    """Looks for whom pods of one mirror belong to, and remembers it. For one question: what is owned may change."""

    def __init__(self, kind: Kind, uid: str, *, get: Get, list_: List) -> None:
        """Create it.

        Args:
            kind: of the mirror.
            uid: of the mirror.
            get: asks for one owner.
            list_: asks for many.
        """
        self._kind = kind
        self._uid = uid
        self._get = get
        self._list = list_
        self._known: dict[str, Sequence[OwnerReference]] = {}
        """The owners of those that were looked at, by uid; empty for one that is gone."""
        self._asked = 0

    async def are_of_mirror(self, pods: Sequence[Sequence[OwnerReference]]) -> list[bool]:
        """For each pod, whose owners these are, whether it belongs to the mirror."""
        between = {one.uid for owners in pods if (one := controller_of(owners)) is not None and one.uid != self._uid}
        if len(between) > ASKED_SINGLY and self._kind.pod_owners:
            for found in await self._list(self._kind.pod_owners[0]):
                self._known[found.uid] = tuple(found.owner_references or ())
        return [await self._chain(owners) is not None for owners in pods]

    async def between(self, pods: Iterable[Sequence[OwnerReference]], *, without_pods: bool) -> dict[str, str]:
        """The uids of what stands between the mirror and its pods, each with its kind.

        Args:
            pods: the owners of each pod of the mirror that is known.
            without_pods: also of what has no pods, since it may create none: as far as it has the labels of pods.
        """
        found: dict[str, str] = {}
        for resource in self._kind.pod_owners[:1] if without_pods else ():
            made = list(await self._list(resource))[:MOST_MADE]
            self._known |= {one.uid: tuple(one.owner_references or ()) for one in made}
            for one in made:
                if (chain := await self._chain(self._known[one.uid])) is not None:
                    found |= {one.uid: resource.kind} | {passed.uid: passed.kind for passed in chain}
        for owners in pods:
            found |= {passed.uid: passed.kind for passed in await self._chain(owners) or ()}
        return found

    async def _chain(self, owners: Sequence[OwnerReference]) -> list[OwnerReference] | None:
        """What stands between an object, whose owners these are, and the mirror; None: it is none of the mirror's."""
        between: list[OwnerReference] = []
        for _ in range(len(self._kind.pod_owners) + 1):
            controller = controller_of(owners)
            if controller is None:
                return None
            if controller.uid == self._uid:
                return between if controller.kind == self._kind.resource.kind else None
            resource = self._resource_of(controller)
            if resource is None:
                return None
            between.append(controller)
            owners = await self._owners_of(resource, controller)
        return None

    async def _owners_of(self, resource: Resource, owner: OwnerReference) -> Sequence[OwnerReference]:
        if owner.uid not in self._known:
            if self._asked >= MOST_ASKED_FOR:
                return ()
            self._asked += 1
            found = await self._get(resource, owner.name)
            is_same = found is not None and found.uid == owner.uid
            self._known[owner.uid] = tuple(found.owner_references or ()) if found is not None and is_same else ()
        return self._known[owner.uid]

    def _resource_of(self, owner: OwnerReference) -> Resource | None:
        """What a kind lets stand between its objects and their pods; None: this is something else."""
        group = owner.api_version.rpartition("/")[0]
        return next((one for one in self._kind.pod_owners if (one.group, one.kind) == (group, owner.kind)), None)
