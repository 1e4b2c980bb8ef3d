"""Random users and strangers who have Drills beside Jobs, of the same names in the same namespace, for hypothesis."""

from __future__ import annotations

from typing import ClassVar

from doubles.drills import DRILLS, drill
from flow_drills import DrillInvariants, DrillWorld, settle_drills
from flow_machine import WORKER, Everybody
from flow_machine_base import NAMES, WAITS
from flow_world import FlowWorld, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule


class BothKinds(Everybody):
    """All that may happen, to two kinds at once."""

    WORLD: ClassVar[type[FlowWorld]] = DrillWorld

    def _laws(self) -> DrillInvariants:
        return DrillInvariants(self.world)

    async def _settle(self) -> None:
        await super()._settle()
        assert isinstance(self.world, DrillWorld)
        await settle_drills(self.world)

    @rule(name=NAMES, is_paused=st.booleans(), wait=WAITS)
    def a_user_creates_a_drill(self, name: str, is_paused: bool, wait: float) -> None:
        body = drill(name, paused=is_paused)
        self._do(self._and_wait(tolerant(self.world.management.api.create(DRILLS.path("default"), body)), wait))

    @rule(name=NAMES, is_paused=st.booleans(), wait=WAITS)
    def a_user_pauses_or_resumes_a_drill(self, name: str, is_paused: bool, wait: float) -> None:
        patch = {"spec": {"run": {"paused": is_paused}}}
        self._do(self._and_wait(tolerant(self.world.management.api.merge(DRILLS.path("default", name), patch)), wait))

    @rule(name=NAMES, wait=WAITS)
    def a_user_deletes_a_drill(self, name: str, wait: float) -> None:
        self._do(self._and_wait(tolerant(self.world.management.api.delete(DRILLS.path("default", name))), wait))

    @rule(worker=WORKER, name=NAMES, wait=WAITS)
    def a_stranger_deletes_a_drill(self, worker: str, name: str, wait: float) -> None:
        request = self.world.workers[worker].api.delete(DRILLS.path("default", name))
        self._do(self._and_wait(tolerant(request), wait))
