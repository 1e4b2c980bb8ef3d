"""A request that was understood: who asks for what, and what is to be said beside the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from mirror.embedded.apiserver import side_thread
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Update
from mirror.embedded.apiserver.messages import Request, User
from mirror.embedded.apiserver.request.negotiation import Format
from mirror.embedded.apiserver.side_thread import SideThread

T = TypeVar("T")


@dataclass(slots=True)
class RequestScope:
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
    thread: SideThread | None = None
    """Where steps run that take long; None: here."""

    async def pure(self, step: Callable[[], T], *more: bytes) -> T:
        """What a step gives that looks at nothing but what belongs to this call alone, and may take long.

        Args:
            more: bytes that the step looks at beside the request.
        """
        if self.thread is None:
            return step()
        return await side_thread.pure(self.thread, side_thread.size_of(self.request) + sum(map(len, more)), step)

    @property
    def user_agent(self) -> str:
        """What the client calls itself."""
        return self.request.headers.get("user-agent", "")

    @property
    def subresource_strategy(self) -> Update | None:
        """How the subresource is changed; None for the object itself."""
        return self.kind.strategy.subresources[self.subresource] if self.subresource else None
