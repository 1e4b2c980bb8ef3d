"""Random users, strangers and operators of a kind that the settings declare, for hypothesis.

People tamper with its record, hand objects over and take them back; a controller here writes their statuses; and
definitions go and come back on either side.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

from declared_world import PATH
from doubles.drills import definition, drill
from flow_declared import DEFINITION, AnnotatedWorld, DeclaredInvariants, MortalWorld, tidy, workers_with
from flow_drills import DEFINITIONS
from flow_machine import WORKER
from flow_machine_base import CLUSTER, NAMES, WAITS
from flow_machine_kinds import BothKinds
from flow_world import FlowWorld, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mirror.model import names
from mirror.planes.plane import NotRunning

OTHERS = "example.com/operator"
AT = "2026-01-01T00:00:00Z"
ENDLESS = 1_000_000


def forged(text: str | None) -> str | None:
    """A record that somebody makes up: of a worker, or nonsense."""
    if text not in ("east", "west", "nowhere"):
        return text
    placed = {"type": names.PLACED, "status": "True", "reason": "Placed", "message": text, "lastTransitionTime": AT}
    return json.dumps([placed])


class Declared(BothKinds):
    """All that may happen to Jobs and to Drills by settings, whose record is a condition."""

    WORLD: ClassVar[type[FlowWorld]] = MortalWorld

    def _laws(self) -> DeclaredInvariants:
        return DeclaredInvariants(self.world)

    async def _settle(self) -> None:
        for plane in self.world.planes.values():
            plane.start()
            plane.faults.random_faults = None
            plane.faults.restore()
        for name in self.world.workers:
            await self.world.register(name)
        self.world.start_manager()
        await tidy(self.world)
        await super()._settle()

    async def _patch(self, name: str, patch: dict[str, Any], *, subresource: str = "") -> None:
        path = f"{PATH}/{name}{subresource}"
        await tolerant(self.world.management.api.merge(path, patch))

    @rule(name=NAMES, seconds=st.sampled_from((0, 5, 60)), wait=WAITS)
    def a_user_creates_a_drill_with_a_time_to_live(self, name: str, seconds: int, wait: float) -> None:
        body = drill(name, ttl=seconds)
        self._do(self._and_wait(tolerant(self.world.management.api.create(PATH, body)), wait))

    @rule(name=NAMES, rounds=st.sampled_from((2, 9, 60)), wait=WAITS)
    def a_user_changes_what_cannot_follow(self, name: str, rounds: int, wait: float) -> None:
        """What runs there goes on as it was made, and so its status does not tell of this generation."""
        self._do(self._and_wait(self._patch(name, {"spec": {"rounds": rounds}}), wait))

    @rule(name=NAMES, text=st.sampled_from((None, "nonsense", "[]", "east", "west", "nowhere")), wait=WAITS)
    def a_user_tampers_with_a_record(self, name: str, text: str | None, wait: float) -> None:
        patch = {"metadata": {"annotations": {names.CONDITIONS: forged(text)}}}
        self._do(self._and_wait(self._patch(name, patch), wait))

    @rule(name=NAMES, value=st.sampled_from((None, OTHERS, names.DEFAULT_MANAGED_BY)), wait=WAITS)
    def a_user_names_another_manager(self, name: str, value: str | None, wait: float) -> None:
        self._do(self._and_wait(self._patch(name, {"spec": {"run": {"managedBy": value}}}), wait))

    @rule(name=NAMES, times=st.integers(1, 6), wait=WAITS)
    def a_controller_here_writes_statuses(self, name: str, times: int, wait: float) -> None:
        self._do(self._write_statuses(name, times, wait))

    async def _write_statuses(self, name: str, times: int, wait: float) -> None:
        for number in range(times):
            await self._patch(name, {"status": {"rounds": 500 + number}}, subresource="/status")
            await asyncio.sleep(wait)

    @rule(cluster=CLUSTER, seconds=st.sampled_from((0.1, 3.0, 20.0, 100.0)), wait=WAITS)
    def a_definition_goes_and_comes_back(self, cluster: str, seconds: float, wait: float) -> None:
        self._do(self._define_anew(cluster, seconds, wait))

    async def _define_anew(self, cluster: str, seconds: float, wait: float) -> None:
        api = self._plane(cluster).api
        try:
            await tolerant(api.delete(DEFINITION))
            await asyncio.sleep(seconds)
            await tolerant(api.create(DEFINITIONS, definition()))
        except NotRunning:
            return
        await asyncio.sleep(wait)

    @rule(worker=WORKER, how=st.sampled_from(("handed over", "run here")), wait=WAITS)
    def a_kind_is_run_here_on_a_quiet_day(self, worker: str, how: str, wait: float) -> None:
        """One that names another manager now loses its mirror; one that a controller here writes stops its kind."""
        self._do(self._run_here(worker, how, wait))

    async def _run_here(self, worker: str, how: str, wait: float) -> None:
        world = self.world
        for plane in world.planes.values():
            plane.start()
            plane.faults.random_faults = None
            plane.faults.restore()
        world.start_manager()
        for name in world.workers:
            await world.register(name)
        await tidy(world)
        for name in ("mine", "other"):
            await tolerant(world.management.api.delete(f"{PATH}/{name}"))
        body = drill("mine")
        body["spec"]["rounds"] = ENDLESS
        body["metadata"]["annotations"] = {names.WORKER_SELECTOR: f"name={worker}"}
        await asyncio.sleep(700)  # for as long as a kind may be stopped by what was before
        await world.management.api.create(PATH, body)
        await asyncio.sleep(20)
        if not await workers_with(world, "mine"):
            return  # a mirror of that name is in the way, or there is something else that histories may bring
        try:
            await self._hand_over("mine") if how == "handed over" else await self._run_both("mine", "other")
        finally:
            for name in ("mine", "other"):
                await tolerant(world.management.api.delete(f"{PATH}/{name}"))
        await asyncio.sleep(wait)

    async def _hand_over(self, name: str) -> None:
        await self._patch(name, {"spec": {"run": {"managedBy": OTHERS}}})
        await asyncio.sleep(20)
        assert await workers_with(self.world, name) == [], "D20: the mirror of one that is handed over stays"

    async def _run_both(self, name: str, other: str) -> None:
        await self._write_statuses(name, 6, 1.0)
        await self.world.management.api.create(PATH, drill(other))
        await asyncio.sleep(20)
        assert await workers_with(self.world, other) == [], "D20: one of a kind that is run here is placed"


class Annotated(Declared):
    """The same where the record is an annotation, which users can write."""

    WORLD: ClassVar[type[FlowWorld]] = AnnotatedWorld
