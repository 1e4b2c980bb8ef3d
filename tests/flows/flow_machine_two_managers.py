"""Two installations in two namespaces with one ``managedBy``, in random flows (D2), for hypothesis.

The other one has a worker of the same name, ``east``, which is another cluster. Each Job runs once, whoever places it,
whoever dies; what either has placed is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from doubles.managers import HOME, worker_secret
from flow_invariants import Invariants
from flow_machine import Everybody
from flow_machine_base import WAITS
from flow_world import FlowWorld, tolerant
from hypothesis.stateful import precondition, rule

from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.embedded.apiserver.messages import Request
from mirror.planes.api import Json

THEIRS = "team-system"
SOUTH = "south"
"""The cluster that the other manager calls east."""


class WorldOfTwo(FlowWorld):
    """The other manager may be killed and started on its own; both come back when all is mended."""

    EXPECTED_ERRORS: ClassVar[Collection[str]] = ("two managers",)
    MANAGERS: ClassVar[Collection[str]] = (HOME, THEIRS)

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._other: asyncio.Task[None] | None = None

    @property
    def has_other_manager(self) -> bool:
        return self._other is not None

    async def stop(self) -> None:
        """Without both."""
        await self.kill_other_manager()
        await super().stop()

    def start_manager(self) -> None:
        """Start those that do not run."""
        super().start_manager()
        self.start_other_manager()

    def start_other_manager(self) -> None:
        """Start it, unless it runs."""
        if self._other is None:
            self._other = self._scope.create_task(self._manage(self._other_settings()), name="other manager")

    async def kill_other_manager(self) -> None:
        """End it in the middle of whatever it does."""
        other, self._other = self._other, None
        if other is not None:
            other.cancel()
            await asyncio.wait({other})

    def _other_settings(self) -> MirroringSettings:
        return replace(self._mirroring_settings(), namespace=THEIRS, closed_namespaces=("kube-*", THEIRS))

    async def _write_secret(self, name: str, leads_to: str, annotations: Mapping[str, str]) -> None:
        if name == SOUTH:
            await tolerant(self.management.api.create("/api/v1/namespaces", {"metadata": {"name": THEIRS}}))
            await self._put_secret(worker_secret("east", SOUTH, annotations, namespace=THEIRS))
        else:
            await super()._write_secret(name, leads_to, annotations)

    def worker_name(self, cluster: str) -> str:
        return "east" if cluster == SOUTH else cluster


class LawsOfTwo(Invariants):
    """A cluster is known by the name that is recorded on sources."""

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_mirror(self.world.worker_name(worker), uid, old, new, request)


class TwoManagers(Everybody):
    """All that ``Everybody`` does, with another manager that has the same ``managedBy``."""

    WORKERS: ClassVar[tuple[str, ...]] = (*Everybody.WORKERS, SOUTH)
    WORLD: ClassVar[type[FlowWorld]] = WorldOfTwo

    world: WorldOfTwo

    def _laws(self) -> Invariants:
        return LawsOfTwo(self.world)

    @precondition(lambda self: self.world.has_other_manager)
    @rule(wait=WAITS)
    def the_other_manager_dies(self, wait: float) -> None:
        self._do(self._and_wait(self.world.kill_other_manager(), wait))

    @precondition(lambda self: not self.world.has_other_manager)
    @rule(wait=WAITS)
    def the_other_manager_starts(self, wait: float) -> None:
        self._do(self._at_once(self.world.start_other_manager, wait))
