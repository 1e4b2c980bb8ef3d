"""Managers that stand by or lead: each watches from the start, and works when it gets the lead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from doubles.clock import LoopClock
from doubles.managers import HOME
from doubles.world import RunningManager, World, standby_of
from mirror.controllers.mirroring import Mirroring
from mirror.kube.permits import WritePermit
from mirror.runtime.leadership import Leadership, LeadershipLost, LeaseSettings
from mirror.telemetry.logs import get_log
from mirror.workers.registry import Registry


@dataclass
class Candidate:
    """One manager. Cancelling what ``lead`` or ``run`` gives ends its work as a crash would; its watches go on."""

    name: str
    clock: LoopClock
    manager: RunningManager
    leadership: Leadership

    @property
    def mirroring(self) -> Mirroring:
        return self.manager.mirroring

    @property
    def registry(self) -> Registry:
        return self.manager.registry

    def lead(self) -> asyncio.Task[None]:
        """It has the lead from now on, without a Lease."""
        return self.manager.start(self.mirroring.lead(), f"{self.name} leads")

    def run(self) -> asyncio.Task[LeadershipLost | None]:
        """It leads when it gets the Lease; the task ends with what ended it."""

        async def until_ended() -> LeadershipLost | None:
            try:
                await self.leadership.run(self.mirroring.lead)
            except LeadershipLost as error:
                return error
            return None

        return self.manager.start(until_ended(), f"{self.name} runs")


@asynccontextmanager
async def candidate_for(
    world: World, name: str = "standby", *, elected: bool = False, **changes: Any
) -> AsyncIterator[Candidate]:
    """A manager that watches; with ``elected``, all that it writes needs the Lease. Its clients' peer is its name."""
    clock = LoopClock()
    permit = WritePermit(clock.boottime) if elected else None
    lease, log = LeaseSettings(HOME, "lease", name), get_log("mirror")
    async with standby_of(world, clock, who={"peer": name, "permit": permit}, **changes) as manager:
        yield Candidate(
            name, clock, manager, Leadership(manager.management, lease, clock=clock, log=log, permit=permit)
        )
