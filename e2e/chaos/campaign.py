"""One campaign from its beginning to its judgement: users live, everything breaks, all is healed, all has to end.

Called by ``python -m e2e.chaos`` and ``test_chaos``. Not here: what is broken when (``storms``, ``faults``).
"""

from __future__ import annotations

import asyncio
import random
import re
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp

from e2e import shipped
from e2e.chaos import history, storms
from e2e.chaos.breaches import Breach
from e2e.chaos.faults import insist, start_what_has_ended
from e2e.chaos.history import Complaint, Opening, Phase
from e2e.chaos.judging import judge, summary
from e2e.chaos.recording import Recorder
from e2e.chaos.users import Users
from e2e.chaos.world import NAMESPACE, World, built
from e2e.controlplane.client import Json, StatusError
from e2e.jobs import RUN_FOR_KEY, is_over, placed_on
from mirror.model import names

SETTLE_SECONDS = 300.0
"""After which what has not ended will not."""
_LOOK_AGAIN_SECONDS = 0.5
_LOOK_SECONDS = 20.0
_NEWS_SECONDS = 2.0
"""For the watches of the recorder to tell of what our own requests have seen."""

_BUG = re.compile(r"Traceback|\S+ (ERROR|CRITICAL) +mirror: (unexpected error|task failed|connection failed)")
"""What no fault excuses: errors that are news of the clusters, as a breached fence, are no bugs."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is asked for."""

    seconds: float
    seed: int
    workers: int
    path: Path
    """Of its history."""

    async def play(self, say: Callable[[str], None] = print) -> list[Breach]:
        """Play it, and judge its history."""
        recorder = Recorder(self.path)
        try:
            async with built(self.workers) as world:
                await self._play_in(world, recorder, say)
        finally:
            recorder.close()
        records = history.read(self.path)
        say(summary(records))
        return judge(records)

    async def _play_in(self, world: World, recorder: Recorder, say: Callable[[str], None]) -> None:
        workers = [site.name for site in world.workers]
        user = shipped.user_of(world.identity.namespace)
        recorder.add(Opening(time.time(), self.seed, world.identity.origin, world.identity.managed_by, workers, [user]))
        users = Users(world, random.Random(f"{self.seed}/users"))
        async with asyncio.TaskGroup() as scope:
            tasks = world.follow(recorder, scope)
            tasks.append(scope.create_task(world.keep_managers_running(), name="keep managers running"))
            await users.prepare()
            living = scope.create_task(users.live(), name="users")
            say(f"seed {self.seed}: {self.seconds:.0f} s of faults, history in {self.path}")
            await storms.play(world, users, recorder, self.seconds, self.seed)
            living.cancel()
            await _heal(world)
            recorder.add(Phase(time.time(), "healed"))
            say("all is healed")
            await insist(users.stop_schedules)
            await _reach(recorder, "settled", partial(_what_has_not_settled, world), say)
            await insist(users.delete_all)
            await _reach(recorder, "emptied", partial(_what_is_left, world), say)
            for task in tasks:
                task.cancel()
        _note_logs(world, recorder)
        for site in world.sites:
            recorder.add_requests(site.name, site.cluster.directory / "audit.log", [user])


async def _heal(world: World) -> None:
    """Whatever faults have left behind: programs that ended by themselves, and API servers that are not ready yet."""
    for manager in world.managers:
        manager.send(signal.SIGCONT)
    for site in world.sites:
        start_what_has_ended(site)
        client = world.scene.client if site is world.management else world.scene.client_of(site.name)
        await insist(partial(client.get, "/readyz"))
    for site in world.workers:
        await insist(partial(world.give_credentials, site))


async def _reach(
    recorder: Recorder, name: str, missing: Callable[[], Awaitable[str]], say: Callable[[str], None]
) -> None:
    """Wait for a step, and write down that it is over, reached or not: the judge sees what is missing."""
    until, still_open = time.monotonic() + SETTLE_SECONDS, "nothing was seen"
    while time.monotonic() < until:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                still_open = await missing()
        except (StatusError, aiohttp.ClientError, TimeoutError) as error:
            still_open = repr(error)
        if not still_open:
            break
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    await asyncio.sleep(_NEWS_SECONDS)
    recorder.add(Phase(time.time(), name))
    say(f"{name}, but {still_open}" if still_open else name)


async def _what_has_not_settled(world: World) -> str:
    """One source that goes on, or a copy that is not where its source is; whoever can is helped to its end."""
    scene = world.scene
    sources = [one for one in await scene.client.list(scene.jobs()) if _is_ours(world, one)]
    for source in sources:
        if source["spec"].get("suspend") and not is_over(source):
            await scene.patch(source["metadata"]["name"], {"spec": {"suspend": False}})
    places = {source["metadata"]["uid"]: placed_on(source) for source in sources}
    lacking = [f"{source['metadata']['name']} goes on" for source in sources if not is_over(source)]
    for worker in scene.workers:
        await _end_pods(world, worker)
        for uid, name in await _mirrors_on(world, worker):
            if places.get(uid) != worker:
                lacking.append(f"{name} is on {worker}, its source on {places.get(uid)}")
    return lacking[0] if lacking else ""


async def _what_is_left(world: World) -> str:
    """A source or a copy that is still there."""
    scene = world.scene
    left = [one["metadata"]["name"] for one in await scene.client.list(scene.jobs()) if _is_ours(world, one)]
    for worker in scene.workers:
        left += [f"{name} on {worker}" for _, name in await _mirrors_on(world, worker)]
    return f"{left[0]} is left" if left else ""


def _is_ours(world: World, source: Json) -> bool:
    return bool(source["spec"].get("managedBy") == world.identity.managed_by)


async def _mirrors_on(world: World, worker: str) -> list[tuple[str, str]]:
    """The uids of their sources, and their names."""
    selector = f"{names.ORIGIN}={world.identity.origin}"
    found = await world.scene.client_of(worker).list(world.scene.jobs(worker), labelSelector=selector)
    return [(one["metadata"]["labels"].get(names.SOURCE_UID, ""), one["metadata"]["name"]) for one in found]


async def _end_pods(world: World, worker: str) -> None:
    """No pod runs longer than it has."""
    client, path = world.scene.client_of(worker), f"/api/v1/namespaces/{NAMESPACE}/pods"
    now = {"metadata": {"annotations": {RUN_FOR_KEY: "0s"}}}
    for pod in await client.list(path, fieldSelector="status.phase=Running"):
        if pod["metadata"]["annotations"].get(RUN_FOR_KEY) != "0s":
            with suppress(StatusError):
                await client.merge(f"{path}/{pod['metadata']['name']}", now)


def _note_logs(world: World, recorder: Recorder) -> None:
    """What managers must never say; all that they say is kept beside the history."""
    for number, manager in enumerate(world.managers):
        name, lines = f"manager-{number}", manager.log_lines()
        recorder.path.with_suffix(f".{name}.log").write_text("\n".join(lines) + "\n")
        for line in lines:
            if _BUG.match(line):
                recorder.add(Complaint(time.time(), name, line))
