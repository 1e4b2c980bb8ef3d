"""Which requests a fault is for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from mirror.embedded.apiserver.messages import Request

EVERYBODY = ""
"""As a peer: all clients."""
INSIDER = "insider"
"""The peer of requests that no fault meets: those of the test itself."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about, as far as faults distinguish it."""

    verb: str
    """As RBAC has it; empty where the path is none of an object."""
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @staticmethod
    def of(request: Request) -> Target:
        place = _place(request.path)
        return _NOWHERE if place is None else _target(_verb(request, place[2]), *place)


_NOWHERE = Target("")
_target = lru_cache(4096)(Target)


@lru_cache(4096)
def _place(path: str) -> tuple[str, str, str, str] | None:
    """Plural, namespace, name and subresource, of the same few paths all the time; None: it is none of an object."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    skipped = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    rest = parts[skipped:]
    if not rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    return plural, namespace, name, subresource


def _verb(request: Request, name: str) -> str:
    if request.method == "GET":
        # Reading a whole query takes longer than all the rest.
        is_watch = "watch" in request.query and request.parameters.get("watch", "false") not in ("false", "0")
        return "watch" if is_watch else "get" if name else "list"
    if request.method == "DELETE":
        return "delete" if name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(request.method, "")


@dataclass(frozen=True, slots=True)
class Which:
    """The requests that a fault is for; what is empty is the same to it."""

    verb: str = ""
    plural: str = ""
    name: str = ""
    subresource: str | None = None
    peer: str = EVERYBODY

    def suits(self, request: Request, target: Target) -> bool:
        return (
            self.verb in ("", target.verb)
            and self.plural in ("", target.plural)
            and self.name in ("", target.name)
            and self.subresource in (None, target.subresource)
            and self.peer in (EVERYBODY, request.peer)
        )
