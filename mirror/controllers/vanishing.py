"""Deletions of sources whose whole kind may have vanished (D23): believed once the management cluster still serves it.

With a CustomResourceDefinition all its objects go, each with a DELETED event, and nothing may be deleted for that. So
a DELETED of such a kind is kept here until discovery, asked afterwards, says that the kind is served and takes new
objects. Where it is not, nothing follows: once it is served again, the sweep finds mirrors without a source (D10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mirror.kinds.base import Kind
from mirror.kube.discovery import Sender, is_creatable
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object
from mirror.runtime.slices import in_slices
from mirror.telemetry.logs import Log

SETTLE_SECONDS = 0.5
"""Discovery follows a definition that is being deleted in a moment of its own, on each API server."""
AGAIN_SECONDS = 1.0
MOST_ATTEMPTS = 5


class Vanishing:
    """Sources that went and whose kind is to be asked for; ``routes`` adds them.

    Invariant: ``_gone`` holds kinds with at least one source each.
    """

    def __init__(self, management: Sender, *, log: Log) -> None:
        self._management = management
        self._log = log
        self._gone: dict[str, tuple[Kind, list[Object]]] = {}
        self._has_some = asyncio.Event()

    def add(self, kind: Kind, source: Object) -> None:
        """A watch has shown the deletion of a source."""
        self._gone.setdefault(kind.name, (kind, []))[1].append(source)
        self._has_some.set()

    async def run(self, confirm: Callable[[Kind, Object], None]) -> None:
        """Ask for kinds, one question for all sources that went before it; until cancelled.

        Args:
            confirm: what is to be done for a source that was deleted for certain.
        """
        failed = 0
        while True:
            await self._has_some.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._has_some.clear()
            asked, self._gone = self._gone, {}
            for name, (kind, sources) in asked.items():
                try:
                    is_served = await is_creatable(self._management, kind.resource)
                except KubeError as error:
                    failed += 1
                    if failed <= MOST_ATTEMPTS:
                        self._gone[name] = (kind, [*sources, *self._gone.get(name, (kind, []))[1]])
                    else:
                        self._log.warning("deletions left to the sweep", kind=name, count=len(sources), error=error)
                    continue
                failed = 0
                if not is_served:
                    self._log.warning("kind is not served any more: its mirrors stay", kind=name, sources=len(sources))
                    continue
                async for source in in_slices(sources):
                    confirm(kind, source)
            if self._gone:
                await asyncio.sleep(AGAIN_SECONDS if failed else 0)
                self._has_some.set()
