"""Deletes what has no owner any more, frees owners that wait for their dependents, and makes orphans.

As kube-controller-manager's garbage collector: the graph says where to look, the server what is true.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from mirror.embedded.controllers.client import Api, Json
from mirror.embedded.controllers.discovering import Kinds, Unknown
from mirror.embedded.controllers.garbage.graph import FOREGROUND, ORPHAN, Graph, Node
from mirror.kube.errors import Conflict, NotFound
from mirror.kube.resources import Resource
from mirror.runtime.backoff import Backoff

_MOST_ABSENT = 500
_AT_ONCE = 20
_MOST_TRIES = 5
UNSEEN = Backoff(first=2.0, most=600.0)
"""When to look again at something whose owner exists, though no watch has shown it yet."""
_UNKNOWN_SECONDS = 60.0


class BadScope(Exception):
    """A cluster-scoped object names a namespaced owner: nothing can be said about that, now or later."""


@dataclass(slots=True)
class _Sorted:
    """The owner references of an object, by what became of the owners."""

    solid: list[Json] = field(default_factory=list)
    dangling: list[Json] = field(default_factory=list)
    waiting: list[Json] = field(default_factory=list)
    """Owners that are deleted in the foreground, and wait."""

    @property
    def to_drop(self) -> set[str]:
        return {one["uid"] for one in (*self.dangling, *self.waiting)}


class Collector:
    """Looks at one object at a time. All may raise ``KubeError``: to be tried again."""

    def __init__(self, api: Api, graph: Graph, kinds: Kinds) -> None:
        self._api = api
        self._graph = graph
        self._kinds = kinds
        self._absent: OrderedDict[tuple[str, str, str, str, str], None] = OrderedDict()
        """Owners that were found not to exist; uids are never used again, so this stays true."""
        self._looks: dict[str, int] = {}
        """Of objects that wait for a watch to show their owner, how often they were looked at."""

    async def look_at(self, uid: str) -> float | None:
        """Delete an object if it should go; gives seconds after which to look again."""
        node = self._graph.get(uid)
        if node is None or (node.is_deleting and not node.waits_for_dependents):
            self._looks.pop(uid, None)
            return None
        if not node.waits_for_dependents and not self._graph.needs_look(node):
            return None
        latest = await self._latest(node)
        if latest is None:
            self._graph.remove(uid)
            return None
        if node.waits_for_dependents:
            await self._free_owner(node, latest)
            return None
        owners: list[Json] = latest["metadata"].get("ownerReferences") or []
        if not owners:
            return None
        try:
            found = await self._sort(node, owners)
        except BadScope:
            return None
        except Unknown:
            return _UNKNOWN_SECONDS  # nobody may be taken for absent whose kind is not known
        await self._judge(node, latest, found)
        if not any(self._graph.get(one["uid"]) is None for one in found.solid):
            self._looks.pop(uid, None)
            return None
        self._looks[uid] = self._looks.get(uid, 0) + 1
        return UNSEEN.delay(self._looks[uid])

    def saw_end_of(self, node: Node) -> None:
        """A watch has shown that an owner is gone: nobody need ask for it, and its kind may be gone, too."""
        if self._graph.dependents(node.uid):
            resource = node.resource
            self._remember_absent((resource.api_version, resource.kind, node.name, node.uid, node.namespace))

    async def orphan(self, uid: str) -> None:
        """Take an owner out of its dependents, then let it go."""
        owner = self._graph.get(uid)
        if owner is None:
            return
        room = asyncio.Semaphore(_AT_ONCE)

        async def release(dependent: Node) -> None:
            async with room:
                await self._drop_owners(dependent, {uid})

        releases = (release(dependent) for dependent in self._graph.dependents(uid))
        for outcome in await asyncio.gather(*releases, return_exceptions=True):
            if outcome is not None:
                raise outcome  # a ``KubeError``, not a group of them: whichever it is, the key is tried again
        await self._remove_finalizer(owner, ORPHAN)

    # -- what is decided -----------------------------------------------------------------------------------------------

    async def _judge(self, node: Node, latest: Json, found: _Sorted) -> None:
        if found.solid:
            if found.to_drop:
                await self._drop_owners(node, found.to_drop)
            return
        if found.waiting and self._graph.dependents(node.uid):
            if any(one.waits_for_dependents for one in self._graph.dependents(node.uid)):
                await self._unblock(node)  # they might wait for each other
            await self._delete(node, latest, "Foreground")
            return
        finalizers = latest["metadata"].get("finalizers") or ()
        policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
        await self._delete(node, latest, policy)

    async def _free_owner(self, node: Node, latest: Json) -> None:
        """Dependents that block it go first; without any, it may go."""
        blockers = self._graph.blockers(node.uid)
        if not blockers:
            await self._remove_finalizer(node, FOREGROUND, latest)
        for one in blockers:
            if not one.waits_for_dependents:
                self._graph.look_at(one.uid)

    async def _sort(self, node: Node, owners: list[Json]) -> _Sorted:
        found = _Sorted()
        for reference in owners:
            owner = await self._owner(node, reference)
            if owner is None:
                found.dangling.append(reference)
                continue
            meta = owner["metadata"]
            waits = meta.get("deletionTimestamp") is not None and FOREGROUND in (meta.get("finalizers") or ())
            (found.waiting if waits else found.solid).append(reference)
        return found

    async def _owner(self, node: Node, reference: Json) -> Json | None:
        """The owner that a reference means; None if there is none."""
        where = (reference["apiVersion"], reference["kind"], reference["name"], reference["uid"])
        if (*where, node.namespace) in self._absent or (*where, "") in self._absent:
            return None
        resource = self._kinds.find(reference["apiVersion"], reference["kind"])
        if resource.namespaced and not node.namespace:
            raise BadScope
        namespace = node.namespace if resource.namespaced else None
        try:
            owner = await self._api.get(resource, reference["name"], namespace=namespace)
        except NotFound:
            owner = None
        if owner is not None and owner["metadata"].get("uid") == reference["uid"]:
            return owner
        self._remember_absent((*where, namespace or ""))
        return None

    def _remember_absent(self, who: tuple[str, str, str, str, str]) -> None:
        self._absent[who] = None
        if len(self._absent) > _MOST_ABSENT:
            self._absent.popitem(last=False)

    # -- what is written -----------------------------------------------------------------------------------------------

    async def _latest(self, node: Node) -> Json | None:
        """The object as it is now; None if it is gone."""
        try:
            found = await self._api.get(node.resource, node.name, namespace=_namespace(node.resource, node.namespace))
        except NotFound:
            return None
        return found if found["metadata"].get("uid") == node.uid else None

    async def _delete(self, node: Node, latest: Json, policy: str) -> None:
        """Delete exactly what was looked at: its owners must not have changed meanwhile."""
        version = latest["metadata"].get("resourceVersion", "")
        for _ in range(_MOST_TRIES):
            try:
                await self._api.delete(
                    node.resource,
                    node.name,
                    namespace=_namespace(node.resource, node.namespace),
                    uid=node.uid,
                    version=version,
                    propagation=policy,
                )
            except NotFound:
                self._graph.remove(node.uid)
            except Conflict:
                newest = await self._latest(node)
                if newest is None:
                    self._graph.remove(node.uid)
                    return
                if newest["metadata"].get("ownerReferences") != latest["metadata"].get("ownerReferences"):
                    raise
                version = ""
                continue
            return

    async def _drop_owners(self, node: Node, uids: set[str]) -> None:
        """Take owners out of an object's references; one that is gone needs none."""
        for attempt in range(_MOST_TRIES):
            latest = await self._latest(node)
            if latest is None:
                return
            owners = latest["metadata"].get("ownerReferences") or []
            rest = [one for one in owners if one["uid"] not in uids]
            if len(rest) == len(owners) or await self._write_owners(node, latest, rest, attempt):
                return

    async def _unblock(self, node: Node) -> None:
        """Let no owner wait for this object."""
        for attempt in range(_MOST_TRIES):
            latest = await self._latest(node)
            if latest is None:
                return
            owners = latest["metadata"].get("ownerReferences") or []
            rest = [one | {"blockOwnerDeletion": False} if one.get("blockOwnerDeletion") else one for one in owners]
            if rest == owners or await self._write_owners(node, latest, rest, attempt):
                return

    async def _write_owners(self, node: Node, latest: Json, owners: list[Json], attempt: int) -> bool:
        """Whether that is done; a conflict is tried again."""
        patch = {
            "metadata": {
                "uid": node.uid,
                "resourceVersion": latest["metadata"]["resourceVersion"],
                "ownerReferences": owners,
            }
        }
        return await self._patch(node, patch, attempt)

    async def _remove_finalizer(self, node: Node, finalizer: str, latest: Json | None = None) -> None:
        for attempt in range(_MOST_TRIES):
            latest = latest if latest is not None and attempt == 0 else await self._latest(node)
            if latest is None:
                return
            finalizers = latest["metadata"].get("finalizers") or []
            if finalizer not in finalizers:
                return
            rest = [one for one in finalizers if one != finalizer]
            version = latest["metadata"]["resourceVersion"]
            if await self._patch(node, {"metadata": {"resourceVersion": version, "finalizers": rest}}, attempt):
                return

    async def _patch(self, node: Node, patch: Json, attempt: int) -> bool:
        try:
            await self._api.merge(node.resource, node.name, patch, namespace=_namespace(node.resource, node.namespace))
        except NotFound:
            return True
        except Conflict:
            if attempt + 1 == _MOST_TRIES:
                raise
            return False
        return True


def _namespace(resource: Resource, namespace: str) -> str | None:
    return namespace if resource.namespaced else None
