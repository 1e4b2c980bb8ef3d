"""A request that was understood: who asks for what, and what is to be said beside the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirror.embedded.apiserver.kinds import Kind
from mirror.embedded.apiserver.messages import Request, User
from mirror.embedded.apiserver.negotiation import Format

if TYPE_CHECKING:
    from mirror.embedded.apiserver.strategy import Update


@dataclass(slots=True)
class Call:
    """One request about objects of one kind."""

    request: Request
    user: User
    verb: str
    kind: Kind
    namespace: str
    name: str
    subresource: str
    format: Format
    warnings: list[str] = field(default_factory=list)
    """Become ``Warning`` headers of the answer, each text once."""

    @property
    def user_agent(self) -> str:
        """What the client calls itself."""
        return self.request.headers.get("user-agent", "")

    @property
    def way(self) -> Update | None:
        """How the subresource is changed; None for the object itself."""
        return self.kind.strategy.subresources[self.subresource] if self.subresource else None
