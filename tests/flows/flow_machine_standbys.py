"""Jobs that are moved while managers change (D14, D28), for hypothesis: standbys, or several at once by slots."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, ClassVar

from flow_machine_base import NAMES, WAITS
from flow_machine_managers import Managers
from flow_machine_moves import AWAY, LASTING, WORKER, Moving, MovingLaws, MovingWorld
from flow_machine_slots import Slots
from flow_requests import WatchedLaws
from flow_world import MANAGER, FlowWorld, job
from hypothesis import strategies as st
from hypothesis.stateful import rule
from replica_world import ReplicaWorld
from replicas import Replica, identity_of, lease_of
from slot_laws import SlotLaws
from slot_world import FASTEST, SlotWorld

from mirror.controllers.move_turns import AFTER_TAKING_OVER_SECONDS
from mirror.embedded.apiserver.messages import Request
from mirror.model import names
from mirror.model.move_requests import MoveRequest
from mirror.model.terms import request_in
from mirror.planes.api import Json
from mirror.workers.registry import Registry

ENDS = ("killed", "frozen", "frozen for a moment", "cut off", "late")
LONGER_SECONDS = 100.0
"""After which a worker's Jobs have been moved, if they are at all: also by who has taken over meanwhile."""
LATEST_SECONDS = 120.0
"""What was sent by who was late has been carried out, and the next moment of the same leader is judged again."""


class MovesByReplicas(MovingWorld, ReplicaWorld):
    """Moves are judged by who sent them; not in time what may come late."""

    late_since = float("-inf")

    def led_for_seconds(self, request: Request) -> float:
        now, lease = self.clock.now(), self.lease(lease_of(request))
        spec = (lease or {}).get("spec") or {}
        if self._is_late() or spec.get("holderIdentity") != identity_of(request):
            return float("inf")
        return (now - datetime.fromisoformat(spec["acquireTime"])).total_seconds()

    def registry_of(self, request: Request) -> Registry | None:
        sender = next((one for one in self.replicas if one.identity == identity_of(request)), None)
        if self._is_late() or sender is None or sender.mirroring is None:
            return None
        return sender.mirroring.registry

    def _is_late(self) -> bool:
        return asyncio.get_running_loop().time() < self.late_since + LATEST_SECONDS


class StandbyLaws(WatchedLaws, MovingLaws):
    """What moves promise, and that only who holds the Lease writes."""


class MovingStandbys(Managers, Moving):
    """All that ``Moving`` does, with managers of which one leads at a time."""

    WORLD: ClassVar[type[FlowWorld]] = MovesByReplicas
    LAWS: ClassVar[type[MovingLaws]] = StandbyLaws
    world: MovesByReplicas
    laws: MovingLaws

    async def _settle(self) -> None:
        self.calm_managers()
        await super()._settle()

    async def _quiet_day(self, body: Json, worker: str) -> None:
        self.calm_managers()
        self.world.start_manager()
        self.world.start_replica()
        await super()._quiet_day(body, worker)

    def _be_late(self, replica: Replica, late: dict[str, float]) -> None:
        self.world.late_since = asyncio.get_running_loop().time()
        super()._be_late(replica, late)

    @rule(
        name=NAMES,
        kind=st.sampled_from(sorted(LASTING)),
        worker=WORKER,
        how=st.sampled_from(ENDS),
        delay=st.sampled_from((0.0, 0.0005, 0.0015, 0.003, 0.01, 0.5, 5.0)),
        seconds=AWAY,
        is_back=st.booleans(),
        wait=WAITS,
    )
    def a_manager_ends_as_a_job_is_moved(
        self,
        name: str,
        kind: str,
        worker: str,
        how: str,
        delay: float,
        seconds: float,
        is_back: bool,
        wait: float,
    ) -> None:
        """So long after the write that moves it, or as long after the worker is lost if none does."""
        annotations = {names.WORKER_ORDER: worker, names.ON_WORKER_LOSS: "Reschedule"}
        self._do(self._quiet_day(job(name, annotations=annotations, **LASTING[kind]), worker))
        self._do(self._meet_the_move(worker, how, delay))
        self._do(self._away(worker, seconds, wait, is_back=is_back))

    async def _meet_the_move(self, worker: str, how: str, delay: float) -> None:
        moved: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.laws.on_move = lambda name: None if moved.done() else moved.set_result(name)
        self.world.workers[worker].faults.go_down(MANAGER)
        try:
            async with asyncio.timeout(LONGER_SECONDS):
                await moved
        except TimeoutError:
            pass
        finally:
            self.laws.on_move = lambda name: None
        await asyncio.sleep(delay)
        for replica in self._movers(worker):
            await self._end_mover(replica, how)

    def _movers(self, worker: str) -> list[Replica]:
        """Who may have a hand in a move from there."""
        return [one for one in (self.world.leader,) if one is not None]

    async def _end_mover(self, replica: Replica, how: str) -> None:
        self.world.start_replica()
        if how == "late":
            self._be_late(replica, dict.fromkeys(self.world.planes, 30.0))
        else:
            await self._end_manager(replica, how)


class MovesBySlots(MovesByReplicas, SlotWorld):
    """As of ``SlotWorld``, in which moves are requested by who holds a slot, and made by who assigns."""

    def registry_of(self, request: Request) -> Registry | None:
        return None  # of the instances of a process, it is not known which has requested it

    def led_for_seconds(self, request: Request) -> float:
        return float("inf")  # who requests it waits for its first minute: see the laws


class MovingSlotLaws(SlotLaws, MovingLaws):
    """What moves promise, and slots."""

    world: MovesBySlots

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_source(uid, old, new, request)
        before = request_in((old or {}).get("status") or {})
        after = request_in((new or {}).get("status") or {})
        if before is None and after is not None and new is not None:
            self._look_at_request(new, after, request)

    def _look_at_request(self, new: Json, found: MoveRequest, request: Request) -> None:
        """No move from a lost worker is requested in the first minute of holding a slot (S8)."""
        held_for = MovesByReplicas.led_for_seconds(self.world, request)
        if found.why.name in ("LOST", "FENCED") and held_for < AFTER_TAKING_OVER_SECONDS / FASTEST:
            self._wrong(f"S8: {new['metadata']['name']} is to be moved, {held_for} s after its slot was taken")

    def _look_at_counters(self, old: Json, new: Json) -> None:
        if not self.moved[new["metadata"]["uid"]]:
            super()._look_at_counters(old, new)


class MovingSlots(Slots, MovingStandbys):
    """All that both do."""

    WORLD: ClassVar[type[FlowWorld]] = MovesBySlots
    LAWS: ClassVar[type[MovingLaws]] = MovingSlotLaws

    def _laws(self) -> Any:
        return self.LAWS(self.world)

    async def _disagreements(self) -> list[str]:
        return await Moving._disagreements(self)

    def _movers(self, worker: str) -> list[Replica]:
        holder = self._holder_beside_the_assigner(worker)
        return [one for one in (self.world.leader, holder) if one is not None]
