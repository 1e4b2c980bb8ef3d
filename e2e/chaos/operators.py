"""Who operates the clusters in a campaign: they cordon and drain workers, give Namespaces policies, and delete mirrors.

What they write on a worker's Secret they take off again, and a drain is cancelled half way as often as not. Beside
``users``. Not here: who declares a lost worker dead (``losses``), and whether managers do as they say (``judging``).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import aiohttp

from e2e.chaos.faults import insist
from e2e.chaos.kinds import KINDS
from e2e.chaos.users import LOST_PREFIX
from e2e.chaos.world import NAMESPACE, Site, World
from e2e.controlplane.client import StatusError
from mirror.model import names

_LEAST_PAUSE, _MOST_PAUSE = 4.0, 16.0
_PATIENCE_SECONDS = 8.0
_DRAIN_SECONDS = (0.5, 3.0, 12.0, 25.0)
"""Those that are short are cancelled while copies stop."""
_DRAINS = ("move", "move-started", "move-started", "wait")
_CORDON_SECONDS = 10.0
_POLICIES = ("Wait", "Reschedule", "Fence", "Reschedul", None, None)
"""One is misspelt, which is no policy."""
_PROPAGATIONS = ("Background", "Foreground", "Orphan")


class Operators:
    """All of them. ``heal`` of the campaign takes back what they were about to."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance

    async def live(self) -> None:
        """Do something every now and then, one thing at a time, until cancelled."""
        things: list[Callable[[], Awaitable[None]]] = [self._drain, self._set_policy, *[self._delete_mirror] * 3]
        while True:
            await asyncio.sleep(self._chance.uniform(_LEAST_PAUSE, _MOST_PAUSE))
            # Where a worker is lost, or about to be, the others are to take what it had, mostly.
            is_calm = not self._world.is_losing
            await self._chance.choice([*things, self._cordon, self._drain] if is_calm else [*things, *things[1:]])()

    async def _cordon(self) -> None:
        async with self._marked(names.CORDONED, "true"):
            await asyncio.sleep(self._chance.uniform(0, _CORDON_SECONDS))

    async def _drain(self) -> None:
        async with self._marked(names.DRAIN, self._chance.choice(_DRAINS)):
            await asyncio.sleep(self._chance.choice(_DRAIN_SECONDS))

    async def _set_policy(self) -> None:
        policy = {names.ON_WORKER_LOSS: self._chance.choice(_POLICIES)}
        namespace = f"/api/v1/namespaces/{NAMESPACE}"
        await insist(partial(self._world.scene.client.merge, namespace, {"metadata": {"annotations": policy}}))

    async def _delete_mirror(self) -> None:
        """Somebody who does not know whose it is deletes one on a worker."""
        site, kind = self._chance.choice(self._world.workers), self._chance.choice(list(KINDS.values()))
        path, client = kind.resource.path(NAMESPACE), self._world.scene.client_of(site.name)
        propagation = self._chance.choice(_PROPAGATIONS)
        with suppress(StatusError, aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                found = await client.list(path, labelSelector=f"{names.ORIGIN}={self._world.identity.origin}")
                running = [one["metadata"]["name"] for one in found if kind.may_run(one)]
                if self._world.is_losing:  # what waits for its lease to end, or to be moved, would do so no more
                    running = [name for name in running if not name.startswith(LOST_PREFIX)]
                if running:
                    name = self._chance.choice(running)
                    await client.delete(f"{path}/{name}", propagation=propagation)

    @asynccontextmanager
    async def _marked(self, name: str, value: str) -> AsyncIterator[Site]:
        """A worker has this annotation while the block lasts."""
        site = self._chance.choice(self._world.workers)
        await insist(partial(self._world.mark, site, name, value))
        try:
            yield site
        finally:
            await insist(partial(self._world.mark, site, name, None))
