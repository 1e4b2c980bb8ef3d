"""The user of a page, with a login (setting page.login), and what they may see: the reviews behind it.

``http_services`` answers with ``access``' own reviews and pages; this room does not know them. Nothing of OIDC is here:
a token is typed, or comes with each request from a proxy that has logged somebody in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from mirror.model.keys import SourceKey
from mirror.page.query import Query
from mirror.page.scope import Scope

MOST_PLACES = 100
"""Namespaces and kinds that somebody's rights are asked for, where they may not list everything."""


class Refused(Exception):
    """Somebody may not, or it cannot be found out."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Visitor(msgspec.Struct, frozen=True):
    """Who looks; the token is theirs, and is never shown or logged."""

    name: str
    token: str
    peer: str

    def __repr__(self) -> str:
        return f"Visitor({self.name!r})"


class Bodies(msgspec.Struct, frozen=True, kw_only=True):
    """A source and its mirror, whole."""

    source: Mapping[str, Any]
    mirror: Mapping[str, Any] | None = None
    worker: str = ""
    because: str = ""
    """Why there is no mirror."""


class LogOut(Protocol):
    """Where a log goes."""

    async def begin(self, headers: Mapping[str, str]) -> None:
        """Text follows."""
        ...

    async def write(self, piece: bytes) -> None:
        """Some of it; waits while the reader is slow."""
        ...


class Visitors(Protocol):
    """What a page with a login needs. All of it may raise ``Refused``."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of all mirrored kinds."""
        ...

    @property
    def has_inside(self) -> bool:
        """Whether pods, events, logs and manifests can be requested."""
        ...

    async def visitor(self, token: str, peer: str) -> Visitor:
        """Whose token it is."""
        ...

    async def may(self, visitor: Visitor, verb: str, key: SourceKey) -> bool:
        """Whether they may; a key without a name means all of its namespace, without a namespace all there are."""
        ...

    async def ask(self, visitor: Visitor, key: SourceKey, what: str) -> Mapping[str, Any]:
        """``pods`` or ``events`` of a mirror."""
        ...

    async def bodies(self, visitor: Visitor, key: SourceKey) -> Bodies:
        """A source and its mirror."""
        ...

    async def log(self, visitor: Visitor, key: SourceKey, wanted: Mapping[str, str], out: LogOut) -> None:
        """Hand on a log."""
        ...


async def scope_of(
    visitors: Visitors, visitor: Visitor, query: Query, places: Callable[[], Awaitable[tuple[tuple[str, str], ...]]]
) -> Scope | None:
    """What a user may list; None: everything.

    Raises:
        Refused: it cannot be found out.
    """
    everywhere = {kind for kind in visitors.kinds if await visitors.may(visitor, "list", SourceKey(kind, "", ""))}
    if everywhere == set(visitors.kinds):
        return None
    found = list((await places())[:MOST_PLACES])
    if query.namespace:
        found += [(kind, query.namespace) for kind in visitors.kinds]
    allowed = {
        (kind, namespace)
        for kind, namespace in found
        if kind in everywhere or await visitors.may(visitor, "list", SourceKey(kind, namespace, ""))
    }
    return Scope(frozenset(allowed))
