"""Who owns whom, as far as watches have shown it, and which objects to look at when that changes. Pure.

What is known here only says where to look: whether something is deleted is decided on what the server says at that
moment (``collecting``). An owner that no watch has shown yet is no reason for anything but a look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from mirror.kube.objects import Meta, OwnerReference
from mirror.kube.resources import Resource

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Node(msgspec.Struct, frozen=True, gc=False):
    """One object that watches have shown."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    owners: tuple[OwnerReference, ...] = ()
    is_deleting: bool = False
    waits_for_dependents: bool = False
    """It is deleted in the foreground: dependents that block it go first."""
    orphans_dependents: bool = False
    """It is deleted, and its dependents shall stay."""

    def is_meant_by(self, reference: OwnerReference, namespace: str) -> bool:
        """Whether a reference of somebody in that namespace names this object rightly."""
        resource = self.resource
        return (
            (reference.kind, reference.name) == (resource.kind, self.name)
            and reference.api_version == resource.api_version
            and (not resource.namespaced or self.namespace == namespace)
        )


def node_of(resource: Resource, meta: Meta) -> Node:
    """An object as the graph has it."""
    is_deleting = meta.deletion_timestamp is not None
    finalizers = meta.finalizers or ()
    return Node(
        resource,
        meta.namespace,
        meta.name,
        meta.uid,
        tuple(meta.owner_references or ()),
        is_deleting,
        is_deleting and FOREGROUND in finalizers,
        is_deleting and ORPHAN in finalizers,
    )


@dataclass(slots=True)
class Graph:
    """All objects by uid, and by owner.

    Invariant: ``_dependents[u]`` has the uids of exactly the nodes with an owner reference to u, be there such a node
    or not.
    """

    look_at: Callable[[str], None]
    """Told the uid of a node that should be looked at."""
    orphan: Callable[[str], None]
    """Told the uid of a node whose dependents shall lose it as their owner."""
    complain: Callable[[Node, OwnerReference], None]
    """Told of a reference to an owner that is in another namespace."""
    _nodes: dict[str, Node] = field(default_factory=dict)
    _dependents: dict[str, dict[str, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[Node]:
        """Everybody who names this one as an owner."""
        return [self._nodes[one] for one in self._dependents.get(uid, ())]

    def blockers(self, uid: str) -> list[Node]:
        """Dependents that an owner deleted in the foreground waits for."""
        return [one for one in self.dependents(uid) if any(_blocks(ref, uid) for ref in one.owners)]

    def unseen_owners(self, node: Node) -> Iterator[OwnerReference]:
        """References to what no watch has shown, at least not so."""
        for reference in node.owners:
            owner = self._nodes.get(reference.uid)
            if owner is None or not owner.is_meant_by(reference, node.namespace):
                yield reference

    def needs_look(self, node: Node) -> bool:
        """Whether any of its owners is unknown, or waits for it to go."""
        if any(True for _ in self.unseen_owners(node)):
            return True
        return any(self._nodes[ref.uid].waits_for_dependents for ref in node.owners)

    def put(self, node: Node) -> None:
        """A watch has shown it, new or changed."""
        old = self._nodes.get(node.uid)
        self._nodes[node.uid] = node
        before = old.owners if old is not None else ()
        if before != node.owners:
            self._relink(node, before)
        if old is None:
            # Those who knew it before us may have meant something else by its uid.
            for dependent in self.dependents(node.uid):
                self._check_references(dependent, (ref for ref in dependent.owners if ref.uid == node.uid))
        if node.orphans_dependents and not (old is not None and old.orphans_dependents):
            self.orphan(node.uid)
        elif node.waits_for_dependents and not (old is not None and old.waits_for_dependents):
            self._look_at_all(self._dependents.get(node.uid, ()))
            self.look_at(node.uid)

    def remove(self, uid: str) -> None:
        """A watch, or the server itself, says that it is gone."""
        node = self._nodes.pop(uid, None)
        self._look_at_all(self._dependents.get(uid, ()))
        if node is None:
            return
        for reference in node.owners:
            self._unlink(reference.uid, uid)
            owner = self._nodes.get(reference.uid)
            if owner is not None and owner.waits_for_dependents:
                self.look_at(owner.uid)

    def forget(self, resource: Resource) -> None:
        """A kind is served no more: nothing is known of its objects."""
        for uid in [one.uid for one in self._nodes.values() if one.resource == resource]:
            node = self._nodes.pop(uid)
            for reference in node.owners:
                self._unlink(reference.uid, uid)

    def _relink(self, node: Node, before: Iterable[OwnerReference]) -> None:
        """It has other owners than before, or is bound to them otherwise."""
        now = {ref.uid: ref for ref in node.owners}
        old = {ref.uid: ref for ref in before}
        for uid in old.keys() - now.keys():
            self._unlink(uid, node.uid)
        for uid in now.keys() - old.keys():
            self._dependents.setdefault(uid, {})[node.uid] = None
        self._check_references(node, (ref for uid, ref in now.items() if uid not in old or old[uid] != ref))
        for uid, reference in old.items():
            was_blocking = bool(reference.block_owner_deletion)
            if was_blocking and not (uid in now and now[uid].block_owner_deletion) and uid in self._nodes:
                self.look_at(uid)

    def _check_references(self, node: Node, references: Iterable[OwnerReference]) -> None:
        """Look at a dependent whose owner is unknown, or known otherwise."""
        for reference in references:
            owner = self._nodes.get(reference.uid)
            if owner is not None and owner.resource.namespaced and owner.namespace != node.namespace:
                self.complain(node, reference)
            if owner is None or not owner.is_meant_by(reference, node.namespace):
                self.look_at(node.uid)

    def _unlink(self, owner_uid: str, uid: str) -> None:
        dependents = self._dependents.get(owner_uid)
        if dependents is not None:
            dependents.pop(uid, None)
            if not dependents:
                del self._dependents[owner_uid]

    def _look_at_all(self, uids: Iterable[str]) -> None:
        for uid in list(uids):
            self.look_at(uid)


def _blocks(reference: OwnerReference, uid: str) -> bool:
    return reference.uid == uid and bool(reference.block_owner_deletion)
