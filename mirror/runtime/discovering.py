"""Asks one cluster what it serves, in one request for all who wait for resources that it does not serve (D23).

Without it each informer of such a resource lists it every 15 s. An answer leads to nothing but a list: it decides when
an informer tries again, and what an informer knows by lists and watches stays as it is whatever discovery says. Run by
``informers``; those who wait are informers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from mirror.kube.aggregated import Sender, Served, discover
from mirror.kube.errors import KubeError, Unreachable
from mirror.kube.resources import Resource
from mirror.runtime import turns
from mirror.telemetry.logs import Log

INTERVAL_SECONDS = 15.0
"""Between two looks, while somebody waits."""
LISTED_ANYWAY_SECONDS = 600.0
"""Whoever has waited for so long lists, whatever discovery says: a cluster may be wrong about itself for ever."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    resource: Resource
    since: float


class Discovery:
    """What one cluster serves, while somebody waits for some of it.

    Invariant: ``_has_waiters`` is set exactly while ``_waiters`` has some.
    """

    def __init__(
        self,
        client: Callable[[], Sender],
        resources: Collection[Resource],
        *,
        of_workers: bool,
        log: Log,
    ) -> None:
        """Begin with nothing known.

        Args:
            client: gives the one in use; raises Unreachable where there is none.
            resources: that may be waited for.
            of_workers: the cluster is one of many workers, which share what a turn of the event loop may take.
            log: gets failures.
        """
        self._client = client
        self._resources = frozenset(resources)
        self._of_workers = of_workers
        self._log = log
        self._tag = ""
        self._served: Mapping[Resource, Served] = {}
        """What the document with this tag says."""
        self._waiters: dict[asyncio.Future[None], _Waiting] = {}
        self._has_waiters = asyncio.Event()
        self._is_due = asyncio.Event()

    async def wait_until_served(self, resource: Resource) -> None:
        """Return once it is worth a list: the cluster, asked after this call, serves a resource, or does not say.

        Or has denied it for ``LISTED_ANYWAY_SECONDS``. As long as the cluster is unreachable, it does not return: a
        list would fail, too.
        """
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters[waiter] = _Waiting(resource, loop.time())
        self._has_waiters.set()
        try:
            await waiter
        finally:
            del self._waiters[waiter]
            if not self._waiters:
                self._has_waiters.clear()

    def look_soon(self) -> None:
        """The cluster is known to answer again: do not wait for the interval to end."""
        if self._waiters:
            self._is_due.set()

    async def run(self) -> None:
        """Ask while somebody waits, until cancelled."""
        while True:
            await self._has_waiters.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL_SECONDS):
                    await self._is_due.wait()
            self._is_due.clear()
            if self._of_workers:
                await turns.reading().wait()
            if self._waiters:
                await self._look()

    async def _look(self) -> None:
        asked_before = dict(self._waiters)  # who comes while it is under way may know better than its answer
        try:
            found = await discover(self._client(), self._resources, tag=self._tag)
        except Unreachable:
            return
        except KubeError as error:
            self._log.debug("discovery failed", error=error)
            served: Mapping[Resource, Served] = {}
        else:
            if found is not None:
                self._tag, self._served = found.tag, found.served
            served = self._served
        long_ago = asyncio.get_running_loop().time() - LISTED_ANYWAY_SECONDS
        for waiter, waiting in asked_before.items():
            is_denied = served.get(waiting.resource, Served.UNKNOWN) is Served.NO and waiting.since > long_ago
            if not is_denied and not waiter.done():
                waiter.set_result(None)
