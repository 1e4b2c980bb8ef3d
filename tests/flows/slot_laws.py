"""What several managers at once promise, at each request and write (S1–S8), and of their slots once all is quiet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from doubles.managers import placed
from flow_invariants import counters_that_fell
from flow_progress import moves_of
from flow_requests import Traffic, WatchedLaws
from flow_world import MANAGER, has_ended
from replicas import Replica, lease_of
from slot_world import CAPACITY, LEASE_SECONDS, SLOTS, SLOWEST, SlotWorld, lease_of_worker

from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.targets import Target
from mirror.model import names
from mirror.model.terms import request_in, term_of
from mirror.planes.api import Json
from mirror.sharding.claims import STEADY_SECONDS

HELD_SECONDS = 2 * LEASE_SECONDS
SHARED_SECONDS = STEADY_SECONDS / SLOWEST + SLOTS * LEASE_SECONDS
"""Within which members have made room for each other: one slot at a time, and each time nothing is free."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class SlotTraffic(Traffic):
    """Each write by who holds the Lease that gives the right to it, and each create in its term."""

    _world: SlotWorld
    sources: Mapping[str, Json]
    """By uid, as stored now."""

    def _look_at_write(self, replica: Replica, cluster: str, target: Target, request: Request) -> None:
        lease = lease_of(request)
        if self._world.is_excused(lease):
            return
        super()._look_at_write(replica, cluster, target, request)
        if cluster == self._world.management.name:
            return
        if lease != lease_of_worker(cluster):
            self._wrong(f"S2: {replica.identity} writes to {cluster} as who holds {lease}")
        if target.verb == "create":
            self._look_at_create(replica, cluster, lease, _decode(request.body))

    def _look_at_create(self, replica: Replica, cluster: str, lease: str, sent: Json) -> None:
        source = self.sources.get(sent["metadata"]["labels"].get(names.SOURCE_UID, ""))
        if source is None or placed(source) != cluster:
            return  # that has just changed
        recorded, held = term_of(source["status"]), self._world.term_of(lease)
        if recorded != held:
            name = sent["metadata"]["name"]
            self._wrong(f"S7: {replica.identity} creates {name} of term {recorded} on {cluster} in term {held}")


class SlotLaws(WatchedLaws):
    """Those of all flows, and what slots promise."""

    TRAFFIC: ClassVar[type[Traffic]] = SlotTraffic
    world: SlotWorld
    traffic: SlotTraffic

    def __init__(self, world: SlotWorld) -> None:
        super().__init__(world)
        self.traffic.sources = self.sources

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_source(uid, old, new, request)
        if request.peer == MANAGER and old is not None and new is not None:
            self._look_at_right(old, new, lease_of(request))
            self._look_at_capacity(old, new)
            self._look_at_counters(old, new)

    def _look_at_counters(self, old: Json, new: Json) -> None:
        for text in counters_that_fell(old, new):
            self._wrong(f"D7: {new['metadata']['name']}: {text}")

    def _look_at_right(self, old: Json, new: Json, lease: str) -> None:
        """A status is written by who assigns, of what has no worker or is to get another, or else by its holder."""
        before, after = placed(old), placed(new)
        if (old.get("status") or {}) == (new.get("status") or {}) or self.world.is_excused(lease):
            return
        if lease == names.LEASE:
            is_right = before is None or request_in(old["status"]) is not None
        else:
            theirs = {before or after or "", *(left.worker for left in moves_of(old).left_behind)}
            is_right = lease in {lease_of_worker(worker) for worker in theirs if worker}
        if not is_right:
            self._wrong(f"S2: the status of {new['metadata']['name']}, placed on {before}, is written under {lease}")

    def _look_at_capacity(self, old: Json, new: Json) -> None:
        if placed(new) != "west" or placed(old) == "west":
            return
        there = [one["metadata"]["name"] for one in self.sources.values() if placed(one) == "west" and _counts(one)]
        if len(there) > CAPACITY:
            self._wrong(f"D21: west has {sorted(there)}, and its capacity is {CAPACITY}")


def _counts(source: Json) -> bool:
    return not has_ended(source) and "deletionTimestamp" not in source["metadata"]


async def wait_until_shared(world: SlotWorld) -> None:
    """Wait until each slot has one holder, and all managers have as many as any other, or one less.

    Raises:
        AssertionError: that takes too long.
    """
    await _until(world, _not_held, HELD_SECONDS / SLOWEST)
    await _until(world, _not_shared, SHARED_SECONDS)


async def _until(world: SlotWorld, problem: Any, seconds: float) -> None:
    for _ in range(int(seconds)):
        if not problem(world):
            return
        await asyncio.sleep(1.0)
    assert not problem(world), f"after {seconds:g} s {problem(world)}"


def _not_held(world: SlotWorld) -> str:
    own, stored = world.holders(), world.stored_holders()
    wrong = {index: (stored[index], own[index]) for index in range(SLOTS) if own[index] != [stored[index]]}
    obstacles = sorted({process.coordinator.obstacle for process in world.processes.values()} - {""})
    return f"S3: not held: {wrong}, {obstacles}" if wrong else ""


def _not_shared(world: SlotWorld) -> str:
    held = list(world.stored_holders().values())
    counts = {one.identity: held.count(one.identity) for one in world.replicas}
    is_uneven = max(counts.values()) - min(counts.values()) > 1
    return f"S4: not shared: {counts}" if is_uneven else _not_held(world)
