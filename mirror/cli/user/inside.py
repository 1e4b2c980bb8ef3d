"""What goes on inside a mirror, whoever is asked: the manager's server, or the worker itself by the user's own rights.

Used by ``logs``, ``pods`` and ``events``. Both ways give the same objects, and both are sure that they are of this
source's mirror: the manager checks it, and so does ``direct``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from mirror.cli.user import direct
from mirror.cli.user.cluster import management, worker
from mirror.cli.user.logtexts import LogRequest
from mirror.cli.user.server import AccessEndpoint, manager
from mirror.cli.user.where import Where

Json = Mapping[str, object]


class Mirror(Protocol):
    """A mirror that can be asked. Every method raises ``Failure`` in words."""

    async def pods(self) -> list[Json]:
        """Its pods."""
        ...

    async def events(self) -> list[Json]:
        """Events about it and its pods."""
        ...

    def log(self, wanted: LogRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Text as it comes; raises ``NotYet`` while the container has not begun."""
        ...


@dataclass(frozen=True, slots=True)
class OfManager:
    """``Mirror`` by the manager's server."""

    asked: AccessEndpoint
    namespace: str
    name: str

    async def pods(self) -> list[Json]:
        """Its pods."""
        return await self.asked.pods(self.namespace, self.name)

    async def events(self) -> list[Json]:
        """Events about it and its pods."""
        return await self.asked.events(self.namespace, self.name)

    def log(self, wanted: LogRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Text as it comes."""
        return self.asked.log(self.namespace, self.name, wanted)


@asynccontextmanager
async def inside(where: Where, job: str) -> AsyncIterator[Mirror]:
    """The mirror of a Job.

    Raises:
        Failure: nobody can be asked, or there is no mirror.
    """
    async with management(where) as cluster:
        if not where.worker_context:
            async with manager(where, cluster) as asked:
                yield OfManager(asked, cluster.namespace, job)
            return
        source = await cluster.job(job, namespace=cluster.namespace)
    async with worker(where) as there:
        yield await direct.find(there, source)
