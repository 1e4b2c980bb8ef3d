"""Who uses the management cluster in a campaign: people who submit, suspend, edit and delete, CronJobs, and neighbours.

What a request does that meets a fault is not known to them, as to any user: they go on. Not here: whether Jobs end
well (``judging``).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from contextlib import suppress

import aiohttp

from e2e.chaos.world import NAMESPACE, World
from e2e.controlplane.client import Json, StatusError
from e2e.jobs import indexed, job
from mirror.model import names

CRON_JOBS = {"allow": "Allow", "forbid": "Forbid", "replace": "Replace"}
CRON = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
_PATIENCE_SECONDS = 8.0
_LEAST_PAUSE, _MOST_PAUSE = 0.2, 1.2
_RUN_FOR = {"200ms": 20, "1s": 20, "4s": 20, "15s": 20, "40s": 10, "120s": 6, "never": 3}
"""How many in a hundred or so run so long; those that never end do so once all is healed."""
_POLICIES: tuple[dict[str, str], ...] = ({}, {"on-worker-loss": "Reschedule"}, {"on-worker-loss": "Fence"})
_TRIED = (StatusError, aiohttp.ClientError, TimeoutError)


class Users:
    """All of them."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._scene = world.scene
        self._chance = chance
        self._alive: list[str] = []
        self._made = 0

    async def prepare(self) -> None:
        """What is there before: CronJobs, and Jobs of others, some of which have names that sources will want."""
        for name, policy in CRON_JOBS.items():
            template = job(name, self._world.identity.managed_by, run_for="20s")
            spec = {"schedule": "* * * * *", "concurrencyPolicy": policy, "jobTemplate": {"spec": template["spec"]}}
            await self._scene.client.create(CRON, {"metadata": {"name": name}, "spec": spec})
        await self._scene.create(job("unmanaged", suspend=True))
        for number, site in enumerate(self._world.workers):
            client = self._scene.client_of(site.name)
            others = {names.ORIGIN: "somebody-else", names.SOURCE_UID: "11111111-2222-3333-4444-555555555555"}
            await client.create(self._scene.jobs(site.name), job(f"taken-{number}", run_for="never"))
            await client.create(self._scene.jobs(site.name), job(f"others-{number}", run_for="never", labels=others))

    async def live(self) -> None:
        """Do something every now and then, until cancelled."""
        for number in range(len(self._world.workers)):
            for name in (f"taken-{number}", f"others-{number}"):
                await self._try(self._create(name))
        while True:
            await asyncio.sleep(self._chance.uniform(_LEAST_PAUSE, _MOST_PAUSE))
            await self._try(self._one_request())

    async def submit_to(self, worker: str) -> None:
        """Jobs of each policy that run on a worker for long, for who is about to lose it."""
        for number, policy in enumerate(("Reschedule", "Reschedule", "Reschedule", "Fence", "Fence", "Wait")):
            self._made += 1
            body = (indexed if number == 1 else job)(
                f"{policy.lower()}-{self._made}",
                self._world.identity.managed_by,
                run_for="900s",
                annotations={"on-worker-loss": policy, "worker-order": worker},
            )
            await self._try(self._scene.create(body))

    async def stop_schedules(self) -> None:
        """No new Jobs come from CronJobs."""
        for name in CRON_JOBS:
            await self._scene.client.merge(f"{CRON}/{name}", {"spec": {"suspend": True}})

    async def delete_all(self) -> None:
        """Every source goes, and the CronJobs."""
        for name in CRON_JOBS:
            with suppress(StatusError):
                await self._scene.client.delete(f"{CRON}/{name}")
        for source in await self._scene.client.list(self._scene.jobs()):
            if source["spec"].get("managedBy") == self._world.identity.managed_by:
                with suppress(StatusError):
                    await self._scene.delete(source["metadata"]["name"])

    async def _try(self, request: Awaitable[object]) -> None:
        with suppress(*_TRIED):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await request

    async def _one_request(self) -> None:
        chance = self._chance
        if not self._alive or chance.random() < 0.45:
            self._made += 1
            await self._create(f"job-{self._made}")
            return
        name = chance.choice(self._alive)
        match chance.choices(("suspend", "resume", "edit", "policy", "delete", "again"), (3, 4, 2, 2, 2, 2))[0]:
            case "suspend":
                await self._scene.patch(name, {"spec": {"suspend": True}})
            case "resume":
                await self._scene.patch(name, {"spec": {"suspend": False}})
            case "edit":
                label = {"team": chance.choice("abc")}
                await self._scene.patch(name, {"metadata": {"labels": label, "annotations": {"note": str(self._made)}}})
            case "policy":
                policy = {names.ON_WORKER_LOSS: chance.choice(("Wait", "Reschedule", "Fence", None))}
                await self._scene.patch(name, {"metadata": {"annotations": policy}})
            case "delete":
                self._alive.remove(name)
                await self._scene.delete(name, propagation=chance.choice(("Background", "Foreground")))
            case _:
                await self._scene.delete(name)
                await self._create(name)

    async def _create(self, name: str) -> None:
        chance = self._chance
        if name not in self._alive:
            self._alive.append(name)
        annotations = dict(chance.choice(_POLICIES))
        if chance.random() < 0.2:
            annotations["on-mirror-loss"] = "Recreate"
        fields: Json = {"backoffLimit": chance.choice((0, 2))}
        if chance.random() < 0.1:
            fields["suspend"] = True
        kind = indexed if chance.random() < 0.3 else job
        body = kind(
            name,
            self._world.identity.managed_by,
            run_for=chance.choices(list(_RUN_FOR), list(_RUN_FOR.values()))[0],
            exit_code=int(chance.random() < 0.15),
            annotations=annotations,
            **fields,
        )
        await self._scene.create(body)
