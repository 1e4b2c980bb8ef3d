"""Random managers for hypothesis: several come and go, freeze and wake, are cut off and late; Leases meet trouble."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from flow_machine_base import FAULTS, WAITS, Machine
from flow_world import MANAGER
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from replica_world import ReplicaWorld
from replicas import OF_LEASES, ProcessLoop, Replica

from mirror.embedded.faults.targets import Which

WHICH = st.integers(0, 4)
"""Of the managers that are there."""
FROZEN = st.sampled_from((0.5, 5.0, 16.0, 22.0, 28.0, 34.0, 40.0, 400.0))
LATE = st.sampled_from((2.0, 9.0, 30.0, 60.0))
"""Seconds; no API server carries out what was sent longer ago than the last (S8)."""
MOMENT_SECONDS, LONG_SECONDS = 3.0, 60.0
WAYS = {
    "leases": (OF_LEASES,),
    "management": ("management",),
    "workers": ("east", "west"),
    "east": ("east",),
    "west": ("west",),
    "all": ("management", "east", "west"),
}


class Managers(Machine):
    """What may happen to managers, whatever their world."""

    WORLD: ClassVar[type[ReplicaWorld]] = ReplicaWorld
    LOOP: ClassVar[type[ProcessLoop]] = ProcessLoop
    world: ReplicaWorld

    def __init__(self) -> None:
        super().__init__()
        self._loop.on_spinning = self._on_spinning

    def _on_spinning(self) -> None:
        self.laws._wrong("rate: a manager goes on and on, and no time passes")

    def _manager(self, which: int) -> Replica:
        return self.world.replicas[which % len(self.world.replicas)]

    def calm_managers(self) -> None:
        """Whoever is there works, and reaches all clusters."""
        for replica in self.world.replicas:
            replica.wake()
            replica.heal()

    @rule(wait=WAITS)
    def a_manager_joins(self, wait: float) -> None:
        self._do(self._at_once(self.world.start_replica, wait))

    @precondition(lambda self: self.world.replicas)
    @rule(which=WHICH, wait=WAITS)
    def a_manager_is_killed(self, which: int, wait: float) -> None:
        self._do(self._and_wait(self.world.kill(self._manager(which)), wait))

    @precondition(lambda self: self.world.replicas)
    @rule(which=WHICH, wait=WAITS)
    def a_manager_is_stopped(self, which: int, wait: float) -> None:
        self._do(self._and_wait(self.world.end_well(self._manager(which)), wait))

    @precondition(lambda self: self.world.replicas)
    @rule(which=WHICH, seconds=FROZEN, wait=WAITS)
    def a_manager_freezes(self, which: int, seconds: float, wait: float) -> None:
        """And wakes after so long, whatever happens meanwhile."""
        self._do(self._at_once(lambda: self._freeze(self._manager(which), seconds), wait))

    @staticmethod
    def _freeze(replica: Replica, seconds: float) -> None:
        replica.is_frozen = True
        asyncio.get_running_loop().call_later(seconds, replica.wake)

    async def _end_manager(self, replica: Replica, how: str) -> None:
        """Killed, frozen, frozen for a moment, or cut off from all clusters."""
        if how == "killed":
            await self.world.kill(replica)
        elif how.startswith("frozen"):
            self._freeze(replica, MOMENT_SECONDS if how.endswith("moment") else LONG_SECONDS)
        else:
            for cluster in self.world.planes:
                replica.cut_off(cluster)

    @precondition(lambda self: self.world.replicas)
    @rule(which=WHICH, ways=st.sampled_from(sorted(WAYS)), wait=WAITS)
    def a_manager_is_cut_off(self, which: int, ways: str, wait: float) -> None:
        def cut() -> None:
            for cluster in WAYS[ways]:
                self._manager(which).cut_off(cluster)

        self._do(self._at_once(cut, wait))

    @precondition(lambda self: self.world.replicas)
    @rule(which=WHICH, ways=st.sampled_from(sorted(WAYS)), seconds=LATE, wait=WAITS)
    def what_a_manager_writes_comes_late(self, which: int, ways: str, seconds: float, wait: float) -> None:
        late = dict.fromkeys(WAYS[ways], seconds)
        self._do(self._at_once(lambda: self._be_late(self._manager(which), late), wait))

    def _be_late(self, replica: Replica, late: dict[str, float]) -> None:
        replica.late.update(late)

    @precondition(lambda self: self.world.replicas)
    @rule(which=WHICH, seconds=st.sampled_from((3.0, 8.0)), wait=WAITS)
    def a_manager_hears_late_of_leases(self, which: int, seconds: float, wait: float) -> None:
        replica = self._manager(which)
        replica.hears_late_seconds = seconds
        self._do(asyncio.sleep(wait))

    @rule(wait=WAITS)
    def all_managers_are_healed(self, wait: float) -> None:
        self._do(self._at_once(lambda: [replica.heal() for replica in self.world.replicas], wait))

    @rule(
        fault=st.sampled_from(sorted(FAULTS)),
        verb=st.sampled_from(("", "create", "update", "get", "watch")),
        times=st.integers(1, 8),
        wait=WAITS,
    )
    def requests_for_leases_will_fail(self, fault: str, verb: str, times: int, wait: float) -> None:
        """Carried out or not: who asks does not know."""
        which = Which(verb, "leases", peer=MANAGER)
        self.world.management.faults.arrange(FAULTS[fault], which, times=times)
        self._do(asyncio.sleep(wait))
