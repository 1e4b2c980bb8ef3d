"""Random operators and failovers: workers under other names, prefixes and kubeconfigs, managers under one Lease.

What is decided by a moment (an end that is seen just before its mirror is lost) is arranged: a trap waits for it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from flow_invariants import MANAGEMENT
from flow_machine import WORKER
from flow_machine_base import WAITS
from flow_machine_edits import CLUSTERS, PREFIX, Edits
from flow_world import MANAGER, has_ended, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from replicas import Replica

from mirror.embedded.faults.kinds import Slow, unavailable
from mirror.embedded.faults.targets import Which
from mirror.model import names

WHEN = st.sampled_from(
    ("while it runs", "while it is down", "while it is down, sources late", "while its leader is killed")
)
"""Sources late: the next manager knows its workers before it knows its sources."""
ALIASES = {"east": ("east", "east-2"), "west": ("west", "west-2")}
STANDING_BY = st.sampled_from((0.0, 2.0, 15.0, 40.0, 600.0))
"""Seconds."""
FROZEN = st.sampled_from((0.5, 5.0, 16.0, 40.0, 400.0))
TAKE_OVER_SECONDS = 25.0
"""The Lease is taken within: it lasts 15 s, and is looked at every 4 s."""
FLOWING_SECONDS = 6.0
"""A new Job is mirrored, and an end is stored, within, on a quiet day."""
WORKERS_SECONDS = 120.0
"""A worker's own controller, which may have been cut off, runs Jobs again within."""
ON_END = ("the mirror is deleted", "the worker is down", "the leader is killed")


class Interference(Edits):
    """All that ``Edits`` does, with the operators of workers and managers."""

    # -- workers -------------------------------------------------------------------------------------------------------

    @rule(worker=WORKER, annotations=st.sampled_from(({}, {"cordoned": "true"}, {"capacity": "1"}, {"drain": "wait"})),
          wait=WAITS)  # fmt: skip
    def an_operator_annotates_a_worker(self, worker: str, annotations: dict[str, str], wait: float) -> None:
        if worker in self.world.registrations:
            self._do(self._and_wait(self.world.register(worker, **annotations), wait))

    @rule(worker=WORKER, prefix=PREFIX, when=WHEN, wait=WAITS, then=WAITS)
    def an_operator_changes_a_prefix(self, worker: str, prefix: str, when: str, wait: float, then: float) -> None:
        if worker in self.world.registrations:
            self._do(self._changed(when, wait, then, lambda: self.world.register(worker, prefix=prefix)))

    @rule(worker=WORKER, prefix=PREFIX, when=WHEN, wait=WAITS, then=WAITS)
    def an_operator_changes_a_prefix_and_puts_it_back(
        self, worker: str, prefix: str, when: str, wait: float, then: float
    ) -> None:
        if worker in self.world.registrations:
            before = self.world.registrations[worker].prefix
            self._do(self._changed(when, wait, then, lambda: self.world.register(worker, prefix=prefix)))
            self._do(self._and_wait(self.world.register(worker, prefix=before), wait))

    @rule(cluster=WORKER, when=WHEN, wait=WAITS, then=WAITS)
    def an_operator_renames_a_worker(self, cluster: str, when: str, wait: float, then: float) -> None:
        """Its Secret is deleted, and written under another name."""
        self._do(self._changed(when, wait, then, lambda: self._rename(cluster)))

    async def _rename(self, cluster: str) -> None:
        now = next((one for one in ALIASES[cluster] if one in self.world.registrations), ALIASES[cluster][1])
        other = next(one for one in ALIASES[cluster] if one != now)
        before = self.world.registrations.get(now)
        await self.world.unregister(now)
        await self.world.register(other, leads_to=cluster, prefix=before.prefix if before else "")

    @rule(when=WHEN, wait=WAITS, then=WAITS)
    def an_operator_swaps_kubeconfigs(self, when: str, wait: float, then: float) -> None:
        self._do(self._changed(when, wait, then, self._swap))

    async def _swap(self) -> None:
        for worker, other in (("east", "west"), ("west", "east")):
            found = self.world.registrations.get(worker)
            if found is not None:
                await self.world.register(worker, leads_to=other if found.leads_to == worker else worker)

    @rule(worker=WORKER, when=WHEN, chance=st.integers(0, 9), wait=WAITS, then=WAITS)
    def a_cluster_is_replaced_by_an_empty_one(
        self, worker: str, when: str, chance: int, wait: float, then: float
    ) -> None:
        if chance == 0:  # it ends all that runs there
            self._do(self._changed(when, wait, then, lambda: self.world.replace_cluster(worker)))

    async def _changed(
        self, when: str, wait: float, then: float, change: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Do it while managers run, while none does, or while they change."""
        if when.startswith("while it is down"):
            for replica in tuple(self.world.replicas):
                await self.world.kill(replica)
        elif when == "while its leader is killed":
            await self.world.kill_manager()
        await change()
        await asyncio.sleep(wait)
        if when.endswith("late"):
            self.world.management.faults.arrange(Slow(1.5), Which("watch", "jobs", peer=MANAGER))
        self.world.start_manager()
        await asyncio.sleep(then)

    # -- managers ------------------------------------------------------------------------------------------------------

    @rule(wait=WAITS)
    def a_standby_starts(self, wait: float) -> None:
        self._do(self._at_once(self.world.start_replica, wait))

    @rule(which=st.integers(0, 2), seconds=FROZEN, wait=WAITS)
    def a_manager_is_frozen_and_wakes(self, which: int, seconds: float, wait: float) -> None:
        if self.world.replicas:
            replica = self.world.leader if which else self.world.replicas[0]
            if replica is not None:
                self._do(self._freeze(replica, seconds, wait))

    async def _freeze(self, replica: Replica, seconds: float, wait: float) -> None:
        replica.is_frozen = True
        await asyncio.sleep(seconds)
        replica.wake()
        await asyncio.sleep(wait)

    @precondition(lambda self: self.world.leader is not None)
    @rule(standing_by=STANDING_BY, is_frozen=st.booleans(), is_deaf=st.booleans())
    def a_standby_takes_over_on_a_quiet_day(self, standing_by: float, is_frozen: bool, is_deaf: bool) -> None:
        """Whatever its age, a new Job is mirrored and an end is stored within seconds of its taking the Lease.

        Its condition Placed is never False meanwhile. The standby may have heard nothing of late (``is_deaf``).
        """
        self._do(self._take_over(standing_by, is_frozen=is_frozen, is_deaf=is_deaf))

    async def _take_over(self, standing_by: float, *, is_frozen: bool, is_deaf: bool) -> None:
        for plane in self.world.planes.values():
            plane.start()
            plane.faults.random_faults = None
            plane.faults.restore()
        self.world.start_replica()
        self.laws.shown_unplaced.clear()
        await asyncio.sleep(20.0 + standing_by)
        leader = self.world.leader
        try:
            if leader is not None and await self._do_workers_run_jobs() and await self._is_flowing("probe-1"):
                if is_deaf:
                    for plane in self.world.planes.values():
                        plane.faults.mute_watches(MANAGER)
                await self._replace_leader(leader, standing_by, is_frozen=is_frozen)
        finally:
            for name in ("probe-1", "probe-2", "probe-3"):
                await self.world.delete(name)

    async def _do_workers_run_jobs(self) -> bool:
        """Whether each worker's own controller does: one that was cut off takes its time, which is none of ours."""
        probe = job("probe-there", managed_by=None)
        for plane in self.world.workers.values():
            await tolerant(plane.api.create(path(""), probe))
        try:
            return await self._wait(self._has_ended_there, WORKERS_SECONDS)
        finally:
            for plane in self.world.workers.values():
                await tolerant(plane.api.delete(path("probe-there")))

    def _has_ended_there(self) -> bool:
        found = [plane.storage.get("jobs.batch", "default", "probe-there") for plane in self.world.workers.values()]
        return all(one is not None and has_ended(msgspec.json.decode(one.raw)) for one in found)

    async def _replace_leader(self, leader: Replica, standing_by: float, *, is_frozen: bool) -> None:
        if is_frozen:
            leader.is_frozen = True
        else:
            await self.world.kill(leader)
        self.world.start_replica()
        await self._create_probe("probe-2")
        taken = await self._wait(lambda: self._is_taken_from(leader), TAKE_OVER_SECONDS)
        flows = taken and await self._wait(lambda: self._has_ended("probe-2"), FLOWING_SECONDS)
        leader.wake()
        if taken and not flows and self._is_watchable("probe-2") and await self._is_flowing("probe-3", seconds=120.0):
            self.laws._wrong(f"failover: nothing flows {FLOWING_SECONDS} s after it, {standing_by} s old")
        if flows and {"probe-1", "probe-2"} & self.laws.shown_unplaced == {"probe-2"}:
            self.laws._wrong(f"failover: Placed is False although workers take the Job, {standing_by} s old")

    def _is_watchable(self, name: str) -> bool:
        """Whether no admission has taken labels off its mirror, which is then read now and again."""
        planes = self.world.workers.values()
        found = (one for plane in planes for one in plane.storage.records("jobs.batch", None) if one.name == name)
        return all(names.ORIGIN in one.labels for one in found if names.CARRIED.encode() in one.raw)

    async def _create_probe(self, name: str) -> None:
        await tolerant(self.world.management.api.create(path(""), job(name)))

    async def _is_flowing(self, name: str, seconds: float = FLOWING_SECONDS) -> bool:
        """Whether a Job runs to its end in that time."""
        await self._create_probe(name)
        return await self._wait(lambda: self._has_ended(name), seconds)

    def _has_ended(self, name: str) -> bool:
        found = [one for one in self.laws.sources.values() if one["metadata"]["name"] == name]
        return bool(found) and has_ended(found[0])

    def _is_taken_from(self, leader: Replica) -> bool:
        return self.world.lease_holder() not in ("", leader.identity)

    @staticmethod
    async def _wait(is_so: Callable[[], bool], seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        while not is_so() and loop.time() < ends_at:  # noqa: ASYNC110 - in virtual time
            await asyncio.sleep(0.25)
        return is_so()

    # -- ends that are seen before losses ------------------------------------------------------------------------------

    @rule(cluster=CLUSTERS, what=st.sampled_from(ON_END), is_stored=st.booleans(),
          delay=st.sampled_from((0.0005, 0.0015, 0.003, 0.02, 0.3)), wait=WAITS)  # fmt: skip
    def something_happens_at_the_next_end(
        self, cluster: str, what: str, is_stored: bool, delay: float, wait: float
    ) -> None:
        """Just after a mirror has ended on this cluster; what is not stored is refused until then, and for a while."""
        self._do(self._trap(cluster, what, is_stored, delay, wait))

    async def _trap(self, cluster: str, what: str, is_stored: bool, delay: float, wait: float) -> None:
        here = self.world.management.faults
        if not is_stored:
            here.arrange(unavailable(1), Which("patch", "jobs", subresource="status", peer=MANAGER), times=math.inf)
        name = await self._next_end(cluster)
        if name:
            await asyncio.sleep(delay)
            if what == "the worker is down" and cluster != MANAGEMENT:
                self.world.planes[cluster].faults.go_down(MANAGER)
            elif what == "the leader is killed":
                await self.world.kill_manager()
            if what != "the worker is down":
                await self.world.delete(name, cluster=cluster)
            await asyncio.sleep(wait)
        if not is_stored:
            here.restore()

    async def _next_end(self, cluster: str) -> str:
        """The name of the next mirror that ends there; empty: none does soon."""
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def on_end(where: str, mirror: str) -> None:
            if where == cluster and not ended.done():
                ended.set_result(mirror)

        self.laws.on_end = on_end
        try:
            async with asyncio.timeout(20.0):
                return await ended
        except TimeoutError:
            return ""
        finally:
            self.laws.on_end = lambda where, mirror: None
