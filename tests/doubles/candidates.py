"""Managers that stand by or lead: each watches from the start, and works when it gets the lead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from doubles.clock import LoopClock
from doubles.transport import client_of
from doubles.world import HOME, World, one_error, settings_of
from mirror.controllers.mirroring import Mirroring
from mirror.kube.permits import WritePermit
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import Leadership, LeadershipLost, LeaseSettings
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.wiring import build_mirroring
from mirror.workers.registry import Registry


@dataclass
class Candidate:
    """One manager. ``stop`` ends its work as a crash would; its watches go on."""

    name: str
    clock: LoopClock
    registry: Registry
    mirroring: Mirroring
    leadership: Leadership
    scope: asyncio.TaskGroup
    tasks: list[asyncio.Task[Any]]

    def lead(self) -> asyncio.Task[None]:
        """It has the lead from now on, without a Lease."""
        task = self.scope.create_task(self.mirroring.lead(), name=f"{self.name} leads")
        self.tasks.append(task)
        return task

    def run(self) -> asyncio.Task[LeadershipLost | None]:
        """It leads when it gets the Lease; the task ends with what ended it."""

        async def until_ended() -> LeadershipLost | None:
            try:
                await self.leadership.run(self.mirroring.lead)
            except LeadershipLost as error:
                return error
            return None

        task = self.scope.create_task(until_ended(), name=f"{self.name} runs")
        self.tasks.append(task)
        return task


@asynccontextmanager
async def candidate_for(world: World, name: str = "standby", *, elected: bool = False) -> AsyncIterator[Candidate]:
    """A manager that watches; with ``elected``, all that it writes needs the Lease. Its clients' peer is its name."""
    clock, log, metrics = LoopClock(), get_log("mirror"), Metrics()
    permit = WritePermit(clock.boottime) if elected else None
    management = client_of(world.management, peer=name, permit=permit)
    connect = partial(world.connect, peer=name, permit=permit)
    settings = settings_of(world.origin)
    environment = Environment(clock, log, metrics)
    mirroring = build_mirroring(management, settings, connector=connect, environment=environment)
    leadership = Leadership(management, LeaseSettings(HOME, "lease", name), clock=clock, log=log, permit=permit)
    async with one_error(), asyncio.TaskGroup() as scope:
        tasks = [
            scope.create_task(work(), name=work.__qualname__) for work in (mirroring.watch, mirroring.registry.run)
        ]
        try:
            yield Candidate(name, clock, mirroring.registry, mirroring, leadership, scope, tasks)
        finally:
            for task in tasks:
                task.cancel()
    await management.close()
