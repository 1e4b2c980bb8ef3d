"""A server under test, as cases see it: a wire, and what no request can do. Where it comes from is in ``servers``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.contract.wire import Wire


@dataclass(frozen=True, slots=True)
class Server:
    """One server that is running."""

    name: str
    wire: Wire
    compact: Callable[[], Awaitable[None]]
    """Make it forget the past: older versions are answered with 410."""
    certified: Callable[[str, tuple[str, ...]], Awaitable[Wire]] | None = None
    """A wire for a user of these groups, who shows a client certificate; None: there is no such thing."""
