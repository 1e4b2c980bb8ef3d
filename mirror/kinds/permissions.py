"""What a manager may do with a kind on each cluster, as a Role says it. Pure.

The shipped manifests (``config/rbac``) grant exactly this for every kind of the table, which a test compares.
"""

from __future__ import annotations

from collections.abc import Iterable

from mirror.kinds.base import Kind
from mirror.kube.permissions import Permission
from mirror.kube.resources import JOBS

MIRROR_VERBS = ("get", "list", "watch", "create", "patch", "delete")
SOURCE_VERBS = ("get", "list", "watch")

Right = tuple[str, str, str]
"""Group, resource with its subresource, verb."""

_ORDER = (*MIRROR_VERBS,)


def permissions(rights: Iterable[Right], namespace: str = "") -> list[Permission]:
    """The same as access reviews ask for it, in all namespaces or in one; in an order that people expect."""
    found = []
    for (group, resource), verbs in verbs_by_resource(rights).items():
        plural, _, subresource = resource.partition("/")
        found += [Permission(verb, group, plural, subresource, namespace=namespace) for verb in verbs]
    return found


def on_management(kind: Kind) -> frozenset[Right]:
    """Sources are watched and their status is written.

    Annotations go with the status, or, where the API server drops them there, in a request of their own (D25).
    Sources whose time to live is over are deleted, where their own controller does not.
    """
    resource = kind.resource
    rights = {*_rights(kind, resource.plural, SOURCE_VERBS), (resource.group, f"{resource.plural}/status", "patch")}
    if not kind.keeps_metadata_in_status:
        rights.add((resource.group, resource.plural, "patch"))
    if kind.has_time_to_live:
        rights.add((resource.group, resource.plural, "delete"))
    return frozenset(rights)


def of_webhook(kind: Kind) -> frozenset[Right]:
    """What the manager needs beside ``on_management`` where the webhook holds sources, to release them (D16)."""
    return frozenset(_rights(kind, kind.resource.plural, ("patch",)))


def on_worker(kind: Kind) -> frozenset[Right]:
    """Mirrors are followed, made, changed and deleted; their status is only read, with them."""
    return frozenset(_rights(kind, kind.resource.plural, MIRROR_VERBS))


def of_pod_owners(kind: Kind) -> frozenset[Right]:
    """What it takes beside ``on_worker`` to see whose a pod is, so that users get no other's: Jobs can be read anyway.

    Also to see of which mirror something is a part that may not create pods, where these are watched.
    Where a mirror has many pods, those that control them are read at once, the others always by name.
    """
    rights: set[Right] = set()
    for number, one in enumerate(kind.pod_owners):
        if one != JOBS:
            rights |= {(one.group, one.plural, verb) for verb in (("get",) if number else ("get", "list"))}
    return frozenset(rights)


def of_needs(kind: Kind) -> frozenset[Right]:
    """What it takes beside ``on_worker`` to see whether what its objects name is there, for ``diff``."""
    return frozenset((one.group, one.plural, "get") for one in kind.needed)


def verbs_by_resource(rights: Iterable[Right]) -> dict[tuple[str, str], list[str]]:
    """The verbs for each group and resource, as the rules of a Role have them."""
    found: dict[tuple[str, str], list[str]] = {}
    for group, resource, verb in sorted(rights, key=lambda one: (one[0], one[1], _ORDER.index(one[2]))):
        found.setdefault((group, resource), []).append(verb)
    return found


def _rights(kind: Kind, resource: str, verbs: Iterable[str]) -> set[Right]:
    return {(kind.resource.group, resource, verb) for verb in verbs}
