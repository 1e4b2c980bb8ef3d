"""Who uses the management cluster in a campaign: people who submit, suspend, edit and delete, CronJobs, and neighbours.

They have all kinds, of the same names in one namespace, each with a life of its own.

What a request does that meets a fault is not known to them, as to any user: they go on. Not here: whether Jobs end
well (``judging``).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Mapping
from contextlib import suppress

import aiohttp

from e2e.chaos.kinds import JOB, KINDS, MirroredKind
from e2e.chaos.world import NAMESPACE, World
from e2e.controlplane.client import Json, StatusError
from e2e.jobs import job, placed_on
from mirror.model import names

CRON_JOBS: Mapping[str, tuple[str, Json]] = {
    "allow": ("Allow", {names.ON_WORKER_LOSS: "Reschedule"}),
    "forbid": ("Forbid", {names.ON_WORKER_LOSS: "Fence"}),
    "replace": ("Replace", {names.ON_MIRROR_LOSS: "Recreate"}),
}
"""By name: the concurrency policy, and the annotations that its Jobs have from their template."""
CRON = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
_PATIENCE_SECONDS = 8.0
_PLACED_SECONDS = 40.0
_LOOK_SECONDS = 1.0
_START_SECONDS = 3.0
"""For copies to run where they will be lost."""
_LEAST_PAUSE, _MOST_PAUSE = 0.2, 1.2
_OTHERS = {names.ORIGIN: "somebody-else", names.SOURCE_UID: "11111111-2222-3333-4444-555555555555"}
_RESIZED_SHARE = 0.12
"""Of requests about what is there."""
_MOST = 120
"""Names in use, of all kinds: with more of them, nearly all would wait for a place in a long campaign."""
LOST_PREFIX = "lost-"
"""Of the names of what is submitted to who is about to be lost."""
_LOST = ("Reschedule", "Wait", "Fence", "Reschedule", "Fence", "Fence", "Reschedule", "Reschedule")
"""The policies of what runs on a worker that is about to be lost; a kind that is not moved has one of each.

They meet the forms of ``endless`` in turns, so that some of ``Reschedule`` and some of ``Fence`` count meanwhile.
"""
_POLICIES: tuple[dict[str, str], ...] = (
    {},
    {names.ON_WORKER_LOSS: "Reschedule"},
    {names.ON_WORKER_LOSS: "Fence"},
)
_TRIED = (StatusError, aiohttp.ClientError, TimeoutError)


class Users:
    """All of them."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._scene = world.scene
        self._chance = chance
        self._alive: list[tuple[MirroredKind, str]] = []
        self._resizable: dict[str, tuple[MirroredKind, Json]] = {}
        """What may get another size, by name, as it was submitted last."""
        self._made = 0
        self._lost: list[tuple[MirroredKind, str]] = []
        """What was submitted to who was about to be lost, since the last time."""

    async def prepare(self) -> None:
        """What is there before: CronJobs, and objects of others, some of which have names that sources will want."""
        for name, (policy, choices) in CRON_JOBS.items():
            made = job(name, self._world.identity.managed_by, run_for="20s")
            template = {"metadata": {"annotations": choices}, "spec": made["spec"]}
            spec = {"schedule": "* * * * *", "concurrencyPolicy": policy, "jobTemplate": template}
            await self._scene.client.create(CRON, {"metadata": {"name": name}, "spec": spec})
        for kind in KINDS.values():
            path, (endless, *_) = kind.resource.path(NAMESPACE), kind.endless
            await self._scene.client.create(path, kind.suspended(endless("unmanaged")))
            for number, site in enumerate(self._world.workers):
                client, others = self._scene.client_of(site.name), endless(f"others-{number}")
                others["metadata"]["labels"] = _OTHERS
                await client.create(path, endless(f"taken-{number}"))
                await client.create(path, others)

    async def live(self) -> None:
        """Do something every now and then, until cancelled."""
        for number in range(len(self._world.workers)):
            for name in (f"taken-{number}", f"others-{number}"):
                for kind in KINDS.values():
                    await self._try(self._create(kind, name))
        while True:
            await asyncio.sleep(self._chance.uniform(_LEAST_PAUSE, _MOST_PAUSE))
            await self._try(self._one_request())

    async def submit_to(self, worker: str) -> str:
        """Sources of each policy that run on a worker for long; returns where most of them are, which is to be lost.

        Those of the time before are deleted: workers that are full of them would run little else. A leader may be new,
        and a worker full, or cordoned.
        """
        for kind, name in self._lost:
            await self._try(self._delete(kind, name))
        self._lost.clear()
        before = self._made
        self._made += len(_LOST)
        for kind in KINDS.values():
            for number, policy in enumerate(_LOST if kind.can_move else dict.fromkeys(_LOST)):
                name, endless = f"{LOST_PREFIX}{before + number}", kind.endless[number % len(kind.endless)]
                body = endless(name, self._world.identity.managed_by)
                annotations = {names.ON_WORKER_LOSS: policy, names.WORKER_ORDER: worker}
                self._lost.append((kind, name))
                await self._try(self._submit(kind, body, annotations))
        until, places = time.monotonic() + _PLACED_SECONDS, list[str]()
        while len(places) < len(self._lost) and time.monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._try(self._find_lost(places))
        await asyncio.sleep(_START_SECONDS)
        return Counter(places).most_common(1)[0][0] if places else worker

    async def _find_lost(self, places: list[str]) -> None:
        """Where those are that have a place."""
        found = list[str]()
        for kind in KINDS.values():
            for source in await self._scene.client.list(kind.resource.path(NAMESPACE)):
                is_one = (kind, source["metadata"]["name"]) in self._lost
                found += [place] if is_one and (place := placed_on(source)) else []
        places[:] = found

    async def stop_schedules(self) -> None:
        """No new Jobs come from CronJobs."""
        for name in CRON_JOBS:
            await self._scene.client.merge(f"{CRON}/{name}", {"spec": {"suspend": True}})

    async def delete_all(self) -> None:
        """Every source goes, and the CronJobs."""
        for name in CRON_JOBS:
            with suppress(StatusError):
                await self._scene.client.delete(f"{CRON}/{name}")
        for kind in KINDS.values():
            for source in await self._scene.client.list(kind.resource.path(NAMESPACE)):
                if kind.managed_by(source) == self._world.identity.managed_by:
                    with suppress(StatusError):
                        await self._delete(kind, source["metadata"]["name"])

    async def _try(self, request: Awaitable[object]) -> None:
        with suppress(*_TRIED):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await request

    async def _one_request(self) -> None:
        chance = self._chance
        if not self._alive or (len(self._alive) < _MOST and chance.random() < 0.45):
            self._made += 1
            every = list(KINDS.values())
            for kind in chance.choice(([JOB], [JOB], every, every, every[1:])):
                await self._create(kind, f"job-{self._made}")
            return
        if self._resizable and chance.random() < _RESIZED_SHARE:
            await self._resize(chance.choice(list(self._resizable)))
            return
        kind, name = chance.choice(self._alive)
        match chance.choices(("suspend", "resume", "edit", "policy", "delete", "again"), (3, 4, 2, 2, 2, 2))[0]:
            case "suspend":
                await self._patch(kind, name, kind.suspension(True))
            case "resume":
                await self._patch(kind, name, kind.suspension(False))
            case "edit":
                label = {"team": chance.choice("abc")}
                edit = {"metadata": {"labels": label, "annotations": {"note": str(self._made)}}}
                await self._patch(kind, name, edit)
            case "policy":
                policy = {names.ON_WORKER_LOSS: chance.choice(("Wait", "Reschedule", "Fence", None))}
                await self._patch(kind, name, {"metadata": {"annotations": policy}})
            case "delete":
                self._alive.remove((kind, name))
                if kind.resized is not None:
                    self._resizable.pop(name, None)
                await self._delete(kind, name, propagation=chance.choice(("Background", "Foreground")))
            case _:
                await self._delete(kind, name)
                await self._create(kind, name)

    async def _create(self, kind: MirroredKind, name: str) -> None:
        chance = self._chance
        if (kind, name) not in self._alive:
            self._alive.append((kind, name))
        annotations = dict(chance.choice(_POLICIES))
        if chance.random() < 0.2:
            annotations[names.ON_MIRROR_LOSS] = "Recreate"
        body = kind.made(name, self._world.identity.managed_by, chance)
        if kind.resized is not None:
            self._resizable.pop(name, None)
            if kind.resized(body, chance) is not None:
                self._resizable[name] = kind, body
        await self._submit(kind, kind.suspended(body) if chance.random() < 0.1 else body, annotations)

    async def _resize(self, name: str) -> None:
        """Another size, whether it runs, is suspended, or has ended."""
        kind, body = self._resizable[name]
        if kind.resized is not None and (patch := kind.resized(body, self._chance)) is not None:
            await self._patch(kind, name, patch)

    async def _submit(self, kind: MirroredKind, body: Json, annotations: Mapping[str, str]) -> None:
        body["metadata"]["annotations"] = dict(annotations)
        await self._scene.client.create(kind.resource.path(NAMESPACE), body)

    async def _patch(self, kind: MirroredKind, name: str, body: Json) -> None:
        await self._scene.client.merge(f"{kind.resource.path(NAMESPACE)}/{name}", body)

    async def _delete(self, kind: MirroredKind, name: str, *, propagation: str = "Background") -> None:
        await self._scene.client.delete(f"{kind.resource.path(NAMESPACE)}/{name}", propagation=propagation)
