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
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp

from e2e import shipped
from e2e.chaos import history, storms
from e2e.chaos.breaches import Breach
from e2e.chaos.counting import summary
from e2e.chaos.faults import AHEAD_SECONDS, CLOSE_SECONDS, insist, start_what_has_ended
from e2e.chaos.history import BreachTold, ClockSet, Complaint, Opening, Phase
from e2e.chaos.judging import judge
from e2e.chaos.kinds import KINDS, MirroredKind
from e2e.chaos.operators import Operators
from e2e.chaos.recording import Recorder
from e2e.chaos.users import Users
from e2e.chaos.world import LOST_AFTER_SECONDS, MOVE_LIMIT, MOVE_RATE, NAMESPACE, World, built
from e2e.controlplane.client import Json, StatusError
from e2e.jobs import placed_on
from mirror.model import names

SETTLE_SECONDS = 300.0
"""After which what has not ended will not."""
_LOOK_AGAIN_SECONDS = 0.5
_LOOK_SECONDS = 20.0
_NEWS_SECONDS = 2.0
"""For the watches of the recorder to tell of what our own requests have seen."""

_BUG = re.compile(r"Traceback|\S+ (ERROR|CRITICAL) +mirror: (unexpected error|task failed|connection failed)")
"""What no fault excuses: errors that are news of the clusters, as a breached fence, are no bugs."""


_BREACH = re.compile(r"\S+ ERROR +mirror: fence breached .*\bworker=(\S+) mirror_uid=(\S+)")


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is asked for."""

    seconds: float
    seed: int
    workers: int
    path: Path
    """Of its history."""

    @property
    def seeds_progress(self) -> bool:
        """Whether what was counted goes along with a move: so it does in every other campaign."""
        return bool(self.seed % 2)

    @property
    def suspends_losers(self) -> bool:
        """Whether copies that lose are kept, suspended: so they are in two campaigns of four."""
        return bool(self.seed // 2 % 2)

    @property
    def clock_steps(self) -> tuple[int, ...]:
        """By how much the managers' clocks may be ahead of the clusters': in every other four campaigns they are close.

        Whoever sees a clock jump by 30 s, as it seems where leaders change, counts leases anew.
        """
        return CLOSE_SECONDS if self.seed // 4 % 2 else AHEAD_SECONDS

    @property
    def ahead_seconds(self) -> tuple[float, float]:
        """By how much the managers' clocks are ahead of the clusters' from the beginning: that of one of them is."""
        chance = random.Random(f"{self.seed}/clocks")
        wrong = float(chance.choice(self.clock_steps))
        return (wrong, 0.0) if chance.random() < 0.5 else (0.0, wrong)

    async def play(self, say: Callable[[str], None] = print) -> list[Breach]:
        """Play it, and judge its history."""
        recorder = Recorder(self.path)
        try:
            async with built(
                self.workers,
                seeds_progress=self.seeds_progress,
                suspends_losers=self.suspends_losers,
                ahead_seconds=self.ahead_seconds,
                clock_steps=self.clock_steps,
            ) as world:
                await self._play_in(world, recorder, say)
        finally:
            recorder.close()
        records = history.read(self.path)
        say(summary(records))
        return judge(records)

    async def _play_in(self, world: World, recorder: Recorder, say: Callable[[str], None]) -> None:
        workers = [site.name for site in world.workers]
        user = shipped.user_of(world.identity.namespace)
        identity = world.identity
        recorder.add(
            Opening(
                time.time(),
                self.seed,
                identity.origin,
                identity.managed_by,
                workers,
                [user],
                seeds_progress=self.seeds_progress,
                lost_after_seconds=LOST_AFTER_SECONDS,
                move_rate=MOVE_RATE,
                move_limit=MOVE_LIMIT,
                suspends_losers=self.suspends_losers,
                tells_breaches=True,
            )
        )
        for number, seconds in enumerate(self.ahead_seconds):
            recorder.add(ClockSet(time.time(), f"manager-{number}", seconds))
        users = Users(world, random.Random(f"{self.seed}/users"))
        operators = Operators(world, random.Random(f"{self.seed}/operators"))
        async with asyncio.TaskGroup() as scope:
            tasks = world.follow(recorder, scope)
            tasks.append(scope.create_task(world.keep_managers_running(), name="keep managers running"))
            await users.prepare()
            living = [
                scope.create_task(users.live(), name="users"),
                scope.create_task(operators.live(), name="operators"),
            ]
            say(f"seed {self.seed}: {self.seconds:.0f} s of faults, history in {self.path}")
            await storms.play(world, users, recorder, self.seconds, self.seed)
            for one in living:
                one.cancel()
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
    world.marks.clear()
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
    scene, lacking = world.scene, list[str]()
    for kind in KINDS.values():
        path = kind.resource.path(NAMESPACE)
        sources = await _sources(world, kind)
        going = [source for source in sources if not kind.end(source)]
        for source in filter(kind.is_suspended, going):
            await scene.client.merge(f"{path}/{source['metadata']['name']}", kind.suspension(False))
        places = {source["metadata"]["uid"]: placed_on(source) for source in sources}
        lacking += [f"{kind.name} {source['metadata']['name']} goes on" for source in going]
        for worker in scene.workers:
            await kind.hurry(scene.client_of(worker), NAMESPACE)
            for mirror in await _mirrors_on(world, kind, worker):
                uid = _source_of(mirror)
                is_kept = world.suspends_losers and uid in places and not kind.may_run(mirror)
                if places.get(uid) != worker and not is_kept:
                    name = f"{kind.name} {mirror['metadata']['name']}"
                    lacking.append(f"{name} is on {worker}, its source on {places.get(uid)}")
    return lacking[0] if lacking else ""


async def _what_is_left(world: World) -> str:
    """A source or a copy that is still there."""
    left: list[str] = []
    for kind in KINDS.values():
        left += [f"{kind.name} {one['metadata']['name']}" for one in await _sources(world, kind)]
        for worker in world.scene.workers:
            found = await _mirrors_on(world, kind, worker)
            left += [f"{kind.name} {one['metadata']['name']} on {worker}" for one in found]
    return f"{left[0]} is left" if left else ""


async def _sources(world: World, kind: MirroredKind) -> list[Json]:
    found = await world.scene.client.list(kind.resource.path(NAMESPACE))
    return [one for one in found if kind.managed_by(one) == world.identity.managed_by]


async def _mirrors_on(world: World, kind: MirroredKind, worker: str) -> list[Json]:
    selector = f"{names.ORIGIN}={world.identity.origin}"
    return await world.scene.client_of(worker).list(kind.resource.path(NAMESPACE), labelSelector=selector)


def _source_of(mirror: Json) -> str:
    """The uid of its source."""
    return str(mirror["metadata"]["labels"].get(names.SOURCE_UID, ""))


def _note_logs(world: World, recorder: Recorder) -> None:
    """What managers must never say, and what they have to; all that they say is kept beside the history."""
    for number, manager in enumerate(world.managers):
        name, lines = f"manager-{number}", manager.log_lines()
        recorder.path.with_suffix(f".{name}.log").write_text("\n".join(lines) + "\n")
        for line in lines:
            if _BUG.match(line):
                recorder.add(Complaint(time.time(), name, line))
            if (told := breach_told(line)) is not None:
                recorder.add(BreachTold(time.time(), name, *told))


def breach_told(line: str) -> tuple[str, str] | None:
    """The worker and the uid of a copy that a line of a manager's log says to run against a promise, if it says so."""
    found = _BREACH.match(line)
    return (found[1], found[2]) if found else None
