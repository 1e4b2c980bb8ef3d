"""What is broken in each era: in a storm every scope has its faults, in a loss all but what is lost.

Not here: which eras there are (``eras``), and how a worker is lost (``losses``).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection

from e2e.chaos import faults
from e2e.chaos.eras import LEASES, Era, eras
from e2e.chaos.faults import Scope
from e2e.chaos.history import EraBegun
from e2e.chaos.losses import Loss
from e2e.chaos.recording import Recorder
from e2e.chaos.story import MANAGEMENT
from e2e.chaos.users import Users
from e2e.chaos.world import World

_LEAST_PAUSE, _MOST_PAUSE = 2.0, 20.0


async def play(world: World, users: Users, recorder: Recorder, seconds: float, seed: int) -> None:
    """Break things for so long; all is whole again at the end."""
    chance = random.Random(f"{seed}/eras")
    for number, era in enumerate(eras(seconds, seed)):
        victim = chance.choice(world.workers).name
        world.is_losing = era.is_loss
        if era.is_loss:
            victim = await users.submit_to(victim)
        recorder.add(EraBegun(time.time(), era.name, victim if era.is_loss else ""))
        await _play_era(world, recorder, era, random.Random(f"{seed}/{number}"), victim)


async def _play_era(world: World, recorder: Recorder, era: Era, chance: random.Random, victim: str) -> None:
    calm = spared(era, victim, [f"manager-{number}" for number in range(len(world.managers))])
    async with asyncio.TaskGroup() as scope:
        for one in scopes(world, recorder, chance):
            if one.target not in calm:
                own = random.Random(chance.random())
                scope.create_task(_storm(one, recorder, era.seconds, own), name=f"storm over {one.target}")
        if era.is_loss:
            scope.create_task(Loss(world, recorder, era, victim, chance).play(), name=era.name)


def spared(era: Era, victim: str, managers: Collection[str]) -> set[str]:
    """The scopes that storms leave alone in an era: those that a loss is about, and clocks where leases are to end."""
    if not era.is_loss:
        return set()
    clocks = {f"clock of {manager}" for manager in managers} if era in LEASES else set[str]()
    return {MANAGEMENT, *managers, victim, f"way to {victim}", *clocks}


def scopes(world: World, recorder: Recorder, chance: random.Random) -> list[Scope]:
    """Everything that can be broken."""
    return [
        *(faults.of_manager(world, number, random.Random(chance.random())) for number in range(len(world.managers))),
        faults.of_programs(world, world.management, recorder),
        *(faults.of_programs(world, site, recorder) for site in world.workers),
        *(faults.of_way_to(world, site, random.Random(chance.random())) for site in world.workers),
        *(faults.of_clock(world, number, recorder) for number in range(len(world.managers))),
    ]


async def _storm(scope: Scope, recorder: Recorder, seconds: float, chance: random.Random) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while True:
        pause = chance.uniform(_LEAST_PAUSE, _MOST_PAUSE)
        kind = chance.choice(scope.kinds)
        lasts = chance.uniform(kind.shortest, kind.longest)
        if loop.time() + pause >= until:
            await asyncio.sleep(max(0.0, until - loop.time()))
            return
        await asyncio.sleep(pause)
        async with recorder.fault(kind.name, scope.target), kind.breaks():
            await asyncio.sleep(min(lasts, max(0.0, until - loop.time())))
