"""Jobs that are tried elsewhere while several managers share the workers (D31, S2), for hypothesis."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from doubles.managers import placed
from flow_invariants import Invariants
from flow_machine_managers import Managers
from flow_machine_retry import (
    MOMENTS,
    PENDING,
    PULLS,
    RETRY_AFTER_SECONDS,
    Retrying,
    RetryLaws,
    RetryWorld,
    retries_of,
)
from flow_machine_slots import Slots
from flow_world import MANAGER, FlowWorld, has_ended, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule
from replicas import Replica
from slot_laws import SlotLaws
from slot_world import SlotWorld, lease_of_worker

from mirror.embedded.apiserver.messages import Request
from mirror.model.move_requests import Step, Why
from mirror.model.terms import request_in
from mirror.planes.api import Json


class RetriesBySlots(RetryWorld, SlotWorld):
    """As of ``SlotWorld``: who holds a slot requests places to be tried on, and who assigns keeps them."""

    async def kill_all_managers(self) -> None:
        for replica in tuple(self.replicas):
            await self.kill(replica)


class RetryingSlotLaws(SlotLaws, RetryLaws):
    """What retries promise, and slots."""

    world: RetriesBySlots

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_source(uid, old, new, request)
        if request.peer == MANAGER and old is not None and new is not None:
            self._look_at_begin(old, new)

    def _look_at_begin(self, old: Json, new: Json) -> None:
        """A mirror is stopped for another place only once who assigns has said that there is one."""
        if retries_of(old).is_under_way or not retries_of(new).is_under_way:
            return
        requested = request_in(old.get("status") or {})
        if requested is None or (requested.step, requested.why) != (Step.FOUND, Why.RETRIED):
            self._wrong(f"S2, D31: {new['metadata']['name']} is to leave {placed(old)} with request {requested}")


class RetryingSlots(Slots, Retrying):
    """All that both do."""

    WORLD: ClassVar[type[FlowWorld]] = RetriesBySlots
    world: RetriesBySlots

    def _laws(self) -> Invariants:
        return RetryingSlotLaws(self.world)

    async def _settle(self) -> None:
        for worker in self.world.workers:
            await self._world.close_nodes(worker, is_closed=False)
        await Slots._settle(self)

    async def _disagreements(self) -> list[str]:
        """What is kept in the end, when all pods may run: nobody needs another place."""
        found = await super()._disagreements()
        for source in await self.world.sources():
            request = request_in(source.get("status") or {})
            if request is not None and request.why is Why.RETRIED and not has_ended(source):
                found.append(f"{source['metadata']['name']} has {request.text}, although all pods may run")
        return found

    async def _quiet_day(
        self, kind: str, pull: str, event: str, moment: float, seconds: float, *, is_closed: bool
    ) -> None:
        self.calm_managers()
        await super()._quiet_day(kind, pull, event, moment, seconds, is_closed=is_closed)

    @rule(
        kind=st.sampled_from(sorted(PENDING)),
        pull=st.sampled_from(PULLS),
        who=st.sampled_from(("who assigns", "its holder", "both")),
        how=st.sampled_from(("killed", "frozen", "frozen for a moment", "cut off")),
        moment=MOMENTS,
        seconds=st.sampled_from((20.0, 60.0, 120.0)),
        others=st.integers(0, 2),
    )
    def managers_end_as_one_is_tried_elsewhere(
        self, kind: str, pull: str, who: str, how: str, moment: float, seconds: float, others: int
    ) -> None:
        """At some moment of its retry; and then so many others come, who want the place that it has."""
        self._do(self._lose_managers(kind, pull, who, how, moment, seconds, others))

    async def _lose_managers(
        self, kind: str, pull: str, who: str, how: str, moment: float, seconds: float, others: int
    ) -> None:
        world = self.world
        await self._steady_day("q")
        for name in ("r", "s"):
            await world.delete(name)
        await world.close_nodes("east", is_closed=True)
        await world.close_nodes("west", is_closed=False)
        await tolerant(self._create("q", kind, "east", pull))
        await asyncio.sleep(RETRY_AFTER_SECONDS + moment)
        for replica in self._those(who):
            await self._end_manager(replica, how)
        for name in ("r", "s")[:others]:
            await tolerant(self._create(name, "one", "west", "0s"))
        await asyncio.sleep(seconds)
        Managers.calm_managers(self)

    def _those(self, who: str) -> list[Replica]:
        holder = self.world.lease_holder(lease_of_worker("east"))
        found = [] if who == "who assigns" else [one for one in self.world.replicas if one.identity == holder]
        leader = self.world.leader
        if leader is not None and who != "its holder" and leader not in found:
            found.append(leader)
        return found
