"""A worker is lost for long, so that Jobs move, and what is struck meanwhile; or nobody manages for longer than leases.

Called by ``storms``, which goes on over all that is not lost here. Not here: when (``eras``).
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from functools import partial
from typing import assert_never

from e2e.chaos import faults
from e2e.chaos.eras import BREACHED, LEASES, UNANSWERED, UNMANAGED, Era, Moment
from e2e.chaos.faults import Kind, Scope, insist
from e2e.chaos.history import Json, Version
from e2e.chaos.reading import annotation, moves_of
from e2e.chaos.recording import Change, Recorder
from e2e.chaos.story import MANAGEMENT
from e2e.chaos.world import World
from mirror.model import names

_EARLY_SECONDS = 30.0
_MIDDLE_SECONDS = (100.0, 200.0)
_AFTER_MOVE_SECONDS = 0.3
_AFTER_RETURN_SECONDS = 1.0
_DECLARED_SECONDS, _TAKEN_BACK_SECONDS, _TAKEN_OFF_SECONDS = (20.0, 100.0), (1.0, 20.0), (2.0, 9.0)
_FROZEN_SECONDS, _FROZEN_ON_SECONDS = (100.0, 190.0), (0.0, 0.0, 4.0, 20.0)
"""A lease has 200 s at least when its worker is lost: what would end it is frozen before that, and until the return."""
_ANSWER_SECONDS = 1.0
"""An answer that takes so long is on its way when what it answers has been seen."""


class Loss:
    """One era in which a worker is lost, or managers are."""

    def __init__(self, world: World, recorder: Recorder, era: Era, victim: str, chance: random.Random) -> None:
        """``victim``: the worker that is lost."""
        self._world = world
        self._recorder = recorder
        self._era = era
        self._site = next(site for site in world.workers if site.name == victim)
        self._chance = chance
        self._striking = asyncio.Lock()

    async def play(self) -> None:
        """All of it, once, until all is whole again."""
        era, now = self._era, asyncio.get_running_loop().time()
        whole_at, ends_at = now + era.away_seconds, now + era.seconds
        async with asyncio.TaskGroup() as scope:
            for moment, name in era.strikes.items():
                if moment is not Moment.AT_RETURN:
                    scope.create_task(self._strike_at(moment, name, whole_at), name=f"{name} {moment.value}")
            if era.is_forgotten:
                scope.create_task(self._declare_dead(whole_at), name=f"{self._site.name} is declared dead")
            if era.name == BREACHED:
                scope.create_task(self._keep_from_ending(whole_at), name=f"nobody ends Jobs on {self._site.name}")
            if era.name == UNMANAGED:
                await self._leave_alone(whole_at)
            else:
                await self._lose(whole_at)
            if (last := era.strikes.get(Moment.AT_RETURN)) is not None:
                await self._strike_at(Moment.AT_RETURN, last, ends_at)
        await _until(ends_at)

    async def _lose(self, until: float) -> None:
        """The worker is out of reach until then, while what runs there goes on; or its API server hangs."""
        kind, target = self._absence()
        if self._era.name == UNANSWERED:
            async with self._recorder.fault("slow", target):
                self._site.proxies[0].delay_seconds = _ANSWER_SECONDS
                await self._sees(is_renewed_on(self._site.name), until)
                self._site.proxies[0].delay_seconds = 0.0
        async with self._recorder.fault(kind.name, target), kind.breaks():
            await _until(until)

    def _absence(self) -> tuple[Kind, str]:
        """How it is lost, and what the history calls that; what could keep it from ending leases is left out there."""
        way = faults.of_way_to(self._world, self._site, self._chance)
        programs = faults.of_programs(self._world, self._site, self._recorder)
        chosen = [(way, "refuse"), (way, "stall")]
        if self._era.name != UNANSWERED:  # an account takes a while to go, in which an answer comes
            chosen.append((way, "credentials"))
        if self._era not in LEASES:
            chosen.append((programs, "freeze kube-apiserver"))
        scope, name = self._chance.choice(chosen)
        return scope.kind(name), scope.target

    async def _keep_from_ending(self, whole_at: float) -> None:
        """The worker's controller manager, which enforces leases there, is frozen while they end."""
        await asyncio.sleep(self._chance.uniform(*_FROZEN_SECONDS))
        kind = faults.of_programs(self._world, self._site, self._recorder).kind("freeze kube-controller-manager")
        async with self._recorder.fault(kind.name, self._site.name), kind.breaks():
            await _until(whole_at + self._chance.choice(_FROZEN_ON_SECONDS))

    async def _leave_alone(self, until: float) -> None:
        """Both managers are killed, and nobody starts them before then."""
        async with AsyncExitStack() as stack:
            for number in range(len(self._world.managers)):
                await stack.enter_async_context(self._recorder.fault("away", f"manager-{number}"))
            async with self._world.without_managers():
                await _until(until)

    async def _declare_dead(self, whole_at: float) -> None:
        """An operator does so though all runs there; that is taken back before the worker returns, or after it."""
        chance, mark = self._chance, partial(self._world.mark, self._site, names.GONE)
        await asyncio.sleep(chance.uniform(*_DECLARED_SECONDS))
        await insist(partial(mark, "true"))
        if chance.random() < 0.5:
            await asyncio.sleep(chance.uniform(*_TAKEN_BACK_SECONDS))
            await insist(partial(mark, "false"))
        await _until(whole_at + chance.uniform(*_TAKEN_OFF_SECONDS))
        await insist(partial(mark, None))

    # -- strikes -------------------------------------------------------------------------------------------------------

    async def _strike_at(self, moment: Moment, name: str, until: float) -> None:
        """Strike when its moment has come; one that does not come in this time is left out."""
        match moment:
            case Moment.EARLY:
                await asyncio.sleep(self._chance.uniform(0, _EARLY_SECONDS))
            case Moment.MIDDLE:
                await asyncio.sleep(self._chance.uniform(*_MIDDLE_SECONDS))
            case Moment.AT_FIRST_MOVE:
                if not await self._sees(is_move_from(self._site.name), until):
                    return
                await asyncio.sleep(self._chance.uniform(0, _AFTER_MOVE_SECONDS))
            case Moment.AT_RETURN:
                await asyncio.sleep(self._chance.uniform(0, _AFTER_RETURN_SECONDS))
            case _:
                assert_never(moment)
        async with self._striking:
            scope = await self._struck(name)
            kind = scope.kind(name)
            async with self._recorder.fault(name, scope.target), kind.breaks():
                await asyncio.sleep(self._chance.uniform(kind.shortest, kind.longest))

    async def _struck(self, name: str) -> Scope:
        """The leader, or the management cluster if this is a fault of it."""
        management = faults.of_programs(self._world, self._world.management, self._recorder)
        if any(kind.name == name for kind in management.kinds):
            return management
        return faults.of_manager(self._world, await self._world.leader(), self._chance)

    async def _sees(self, wanted: Change, until: float) -> bool:
        """Wait until the history has such a change; False: it had none in this time."""
        try:
            async with asyncio.timeout_at(until):
                await self._recorder.sees(wanted)
        except TimeoutError:
            return False
        return True


async def _until(at: float) -> None:
    await asyncio.sleep(max(0.0, at - asyncio.get_running_loop().time()))


def is_move_from(worker: str) -> Change:
    """Whether a source counts one more move, away from this worker since that is lost."""

    def is_it(version: Version, before: Json) -> bool:
        if version.cluster != MANAGEMENT or version.body is None:
            return False
        moves = moves_of(version.body)
        return moves.count > moves_of(before).count and moves.origin == worker and moves.why != "drained"

    return is_it


def is_renewed_on(worker: str) -> Change:
    """Whether the lease of a fenced copy on this worker ends later than before."""

    def is_it(version: Version, before: Json) -> bool:
        if version.cluster != worker or version.body is None or not annotation(before, names.FENCE):
            return False
        ends, ended = (one.get("spec", {}).get("activeDeadlineSeconds", 0) for one in (version.body, before))
        return bool(ended) and ends > ended

    return is_it
