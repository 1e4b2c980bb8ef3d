"""Which kind, namespace, object and subresource a path names. Pure.

The grammar is kube-apiserver's: ``/api/v1`` and ``/apis/GROUP/VERSION``, then resources, with or without a namespace;
``watch`` may stand before them, as it did in old clients.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from mirror.embedded.apiserver.kinds import Kind, Registry

NAMESPACE_SUBRESOURCES = ("status", "finalize")
_COLLECTION, _OBJECT, _SUBRESOURCE = 1, 2, 3


class Target(NamedTuple):
    """What a path is about. ``namespace`` is empty for kinds without, and for all namespaces together."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False


def target_of(path: str, registry: Registry) -> Target | None:
    """What the path names; None: nothing that is served as objects are."""
    parts = (unquote(path) if "%" in path else path).strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    is_watch = rest[0] == "watch" and len(rest) > 1
    if is_watch:
        rest = rest[1:]
    if "" in rest:
        return None
    found = _of_resource(group, version, rest, registry)
    return found._replace(is_watch=True) if found is not None and is_watch else found


def _of_resource(group: str, version: str, parts: list[str], registry: Registry) -> Target | None:
    namespace = ""
    is_in_namespace = parts[0] == "namespaces" and len(parts) > 2 and not (group == "" and _is_of_namespace(parts))
    if is_in_namespace:
        namespace, parts = parts[1], parts[2:]
    kind = registry.find(group, version, parts[0])
    if kind is None or len(parts) > _SUBRESOURCE:
        return None
    if kind.is_namespaced != is_in_namespace and (is_in_namespace or len(parts) > _COLLECTION):
        return None
    name = parts[1] if len(parts) >= _OBJECT else ""
    return Target(kind, namespace, name, parts[2] if len(parts) == _SUBRESOURCE else "")


def _is_of_namespace(parts: list[str]) -> bool:
    """Whether it is a subresource of the namespace itself, not a resource in it."""
    return len(parts) == _SUBRESOURCE and parts[2] in NAMESPACE_SUBRESOURCES
