"""When what is broken: storms, in which each scope has its faults, and long losses of a worker, in which Jobs move.

A new leader moves nothing in its first minute, so managers and the management cluster are left alone in a loss.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass

from e2e.chaos import faults
from e2e.chaos.faults import Scope
from e2e.chaos.recording import Recorder
from e2e.chaos.users import Users
from e2e.chaos.world import World

STORM_SECONDS = 75.0
LOSS_SECONDS = 110.0
FENCE_SECONDS = 510.0
"""A lease of five minutes, its margin of two, the pods' grace period, and time to see it."""
WITH_A_FENCE_SECONDS = 1_500.0
"""Campaigns that take so long see a lease end."""
START_SECONDS = 8.0
"""For Jobs to run where they will be lost."""
_LEAST_PAUSE, _MOST_PAUSE = 2.0, 20.0


@dataclass(frozen=True, slots=True)
class Era:
    """A part of the campaign; ``is_loss``: one worker is lost in all of it."""

    seconds: float
    is_loss: bool = False


def eras(seconds: float) -> Iterator[Era]:
    """Storms and losses in turns, together so long; the second loss of a long campaign outlasts leases."""
    left, number = seconds, 0
    while left > 0:
        length = STORM_SECONDS
        if number % 2:
            length = FENCE_SECONDS if number == 3 and seconds >= WITH_A_FENCE_SECONDS else LOSS_SECONDS
        yield Era(min(left, length), is_loss=bool(number % 2) and left >= length)
        left -= length
        number += 1


async def play(world: World, users: Users, recorder: Recorder, seconds: float, seed: int) -> None:
    """Break things for so long; all is whole again at the end."""
    chance = random.Random(f"{seed}/eras")
    for number, era in enumerate(eras(seconds)):
        victim = chance.choice(world.workers).name
        if era.is_loss:
            await users.submit_to(victim)
            await asyncio.sleep(START_SECONDS)
        await _play_era(world, recorder, era, random.Random(f"{seed}/{number}"), victim)


async def _play_era(world: World, recorder: Recorder, era: Era, chance: random.Random, victim: str) -> None:
    calm = {"management", "manager-0", "manager-1", victim, f"way to {victim}"} if era.is_loss else set()
    async with asyncio.TaskGroup() as scope:
        for one in scopes(world, recorder, chance):
            if one.target not in calm:
                own = random.Random(chance.random())
                scope.create_task(_storm(one, recorder, era.seconds, own), name=f"storm over {one.target}")
        if era.is_loss:
            scope.create_task(_loss(world, recorder, victim, era.seconds, chance), name=f"loss of {victim}")


def scopes(world: World, recorder: Recorder, chance: random.Random) -> list[Scope]:
    """Everything that can be broken."""
    return [
        *(faults.of_manager(world, number, random.Random(chance.random())) for number in range(len(world.managers))),
        faults.of_programs(world, world.management, recorder),
        *(faults.of_programs(world, site, recorder) for site in world.workers),
        *(faults.of_way_to(world, site, random.Random(chance.random())) for site in world.workers),
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


async def _loss(world: World, recorder: Recorder, victim: str, seconds: float, chance: random.Random) -> None:
    """One worker is out of reach all the time, while what runs there goes on; or its API server hangs."""
    site = next(one for one in world.workers if one.name == victim)
    ways = {kind.name: kind for kind in faults.of_way_to(world, site, chance).kinds}
    programs = {kind.name: kind for kind in faults.of_programs(world, site, recorder).kinds}
    kind = chance.choice([ways["refuse"], ways["stall"], ways["credentials"], programs["freeze kube-apiserver"]])
    target = victim if kind.name in programs else f"way to {victim}"
    async with recorder.fault(kind.name, target), kind.breaks():
        await asyncio.sleep(seconds)
