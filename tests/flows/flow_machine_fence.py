"""Fenced Jobs in random flows (D14), for hypothesis: leases that real Job controllers enforce, clocks that are set.

What holds always is checked always. That nothing of a fenced copy runs any more when the next one is made takes a
worker whose controllers and clock work: that is checked on *quiet days*, when a worker meets only what the day brings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

import msgspec
from doubles.managers import HOME, conditions
from flow_machine_base import NAMES, WAITS
from flow_machine_moves import LASTING, WORKER, Moving, MovingLaws, MovingWorld
from flow_progress import moves_of
from flow_world import LOST_AFTER_SECONDS, MANAGER, FlowWorld, has_ended, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mirror.decide.snapshot import Policy
from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.kinds import Loss
from mirror.embedded.faults.targets import Which
from mirror.model import fences, moves, names
from mirror.model.losses import OnLoss
from mirror.planes.api import Json

TTL_SECONDS = 300
KNOWN_SECONDS = 60.0
SLACK_SECONDS = 4.0
"""Of whole seconds, here and there."""
RENEWED_SECONDS = 230.0
"""By then a lease has been renewed, and the next renewal is not due yet."""
TROUBLES = (
    "",
    "the answers to renewals are lost",
    "the clock is set back",
    "the clock is set forward",
    "the manager restarts",
    "the manager restarts while it is away",
    "it is suspended and resumed",
    "it is fenced late",
    "it is not fenced any more",
    "somebody restarts it there",
    "somebody restarts it there after a renewal",
    "records are not written",
)
FENCE_AWAY = st.sampled_from((100.0, 330.0, 700.0))
"""Seconds: before its lease ends, when it just has, and after the margin."""

_BY_DEADLINE = (("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded"))
decoded = msgspec.json.Decoder(dict[str, Any]).decode


class FencingWorld(MovingWorld):
    """Leases of five minutes, on workers whose clocks are set, and of which it is said that they are dead."""

    EXPECTED_ERRORS: ClassVar[Collection[str]] = ("fence breached",)

    def __init__(self, *found: Any, **settings: Any) -> None:
        policy = Policy(lost_after_seconds=LOST_AFTER_SECONDS, move_limit=1000, fence_ttl_seconds=TTL_SECONDS)
        super().__init__(*found, policy=policy, **settings)
        self.quiet_worker = self.quiet_job = ""
        """The worker that meets nothing but what its quiet day brings, and the Job that has met nothing else there."""
        self.declared_dead: set[str] = set()
        """Workers of which an operator has said so, at any time."""

    def _mirroring_settings(self) -> Any:
        made = super()._mirroring_settings()
        transform = msgspec.structs.replace(made.transform, fence_ttl_seconds=TTL_SECONDS)
        return replace(made, transform=transform)


class FencingLaws(MovingLaws):
    """What a fence promises, beside what moving does."""

    def __init__(self, world: FlowWorld) -> None:
        super().__init__(world)
        self.mirrors: dict[str, Json] = {}
        """By uid, as they are now."""
        self.fenced_moves = 0
        self.breaches = 0
        """Copies that were promised not to run any more, and may have run when they were deleted."""
        self.deadlines: dict[str, tuple[int | None, float]] = {}
        """What a source's user has set, and when, by its uid."""

    def _may_move(self, before: str, old: Json, new: Json) -> bool:
        annotations = new["metadata"].get("annotations") or {}
        policy = annotations.get(names.ON_WORKER_LOSS)
        left = [one for one in moves_of(new).left_behind if one.worker == before]
        is_fenced = bool(left) and left[-1].promise == moves.FENCED
        if is_fenced and not fences.mark_of(old["status"]) and not self._has_lease(left[-1].uid):
            self._wrong(f"D14: {new['metadata']['name']} was moved as a fenced one, and had no lease")
        assert isinstance(self.world, FencingWorld)
        is_dead = before in self.world.declared_dead
        return policy == OnLoss.FENCE or is_fenced or is_dead or super()._may_move(before, old, new)

    def _has_lease(self, uid: str) -> bool:
        """A copy that was taken back has one that ends, whether its source says so again by then or not."""
        return names.FENCE in (self.mirrors.get(uid, {}).get("metadata", {}).get("annotations") or {})

    def _look_at_time(self, before: str, new: Json, request: Request) -> None:
        """One on a worker that is declared dead, or whose copy has ended by its lease, waits for nothing (14)."""
        assert isinstance(self.world, FencingWorld)
        left = [one.uid for one in moves_of(new).left_behind if one.worker == before]
        ended = conditions(self.mirrors.get(left[-1])) if left and self._has_lease(left[-1]) else {}
        if before not in self.world.declared_dead and not set(_BY_DEADLINE) & ended.items():
            super()._look_at_time(before, new, request)

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        if new is not None and new["spec"].get("activeDeadlineSeconds") is None and request.peer == MANAGER:
            ends = [one for one in conditions(new).items() if one in _BY_DEADLINE]
            if ends and not set(ends) <= set(conditions(old).items()):
                self._wrong(f"D14: {new['metadata']['name']} has failed by a deadline that its user never set")
        if new is not None:
            seconds = new["spec"].get("activeDeadlineSeconds")
            if uid not in self.deadlines or self.deadlines[uid][0] != seconds:
                self.deadlines[uid] = seconds, asyncio.get_running_loop().time()
        super()._look_at_source(uid, old, new, request)

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        self.mirrors.pop(uid, None)
        if new is not None:
            self.mirrors[uid] = new
            if request.peer == MANAGER and names.FENCE in (new["metadata"].get("annotations") or {}):
                self._look_at_lease(worker, old, new)
                self._look_at_users_deadline(old, new)
        if old is not None and request.peer == MANAGER and (new is None or "deletionTimestamp" in new["metadata"]):
            self._look_at_breach(worker, uid, old)
        super()._look_at_mirror(worker, uid, old, new, request)

    def _look_at_breach(self, worker: str, uid: str, copy: Json) -> None:
        """A copy that may run although nothing of it could is reported before it is deleted."""
        listed = moves_of(self.sources.get(self._source_of.get(uid, ""))).left_behind
        if not _may_run(copy) or not any(one.uid == uid and one.promise for one in listed):
            return
        self.breaches += 1
        metrics = self.world.metrics
        reported = sum(metrics.worker(name).fence_breaches._value.get() for name in self.world.workers)
        if reported < self.breaches:
            self._wrong(
                f"D14: {copy['metadata']['name']} ran on {worker} although it was to be over, and nobody says so"
            )

    def _look_at_lease(self, worker: str, old: Json | None, new: Json) -> None:
        """A lease that is sent is covered by what is stored, and is never above the deadline of its user."""
        seconds, name = new["spec"].get("activeDeadlineSeconds"), new["metadata"]["name"]
        before = old["spec"].get("activeDeadlineSeconds") if old is not None else None
        is_resumed = old is not None and old["spec"].get("suspend") and not new["spec"].get("suspend")
        if seconds is None or (seconds == before and not is_resumed):
            return
        start = new.get("status", {}).get("startTime")
        now = self.world.planes[worker].clock.now().timestamp()
        passed = now - datetime.fromisoformat(start).timestamp() if start and not is_resumed else 0.0
        left = seconds - passed
        if before is not None and start and not is_resumed and before - passed < 55 and seconds > before:
            self._wrong(f"D14: the lease of {name} on {worker} was renewed with {before - passed} s left")
        if self.world.quiet_worker != worker:
            return  # its clock may have been set a moment ago
        until = self._stored_until(worker)
        covered = until - self.world.clock.now().timestamp() if until else 0.0
        if covered < left - SLACK_SECONDS:
            self._wrong(f"D14: the lease of {name} on {worker} lasts {left:.0f} s, and {covered:.0f} are stored")

    def _look_at_users_deadline(self, old: Json | None, mirror: Json) -> None:
        seconds = mirror["spec"].get("activeDeadlineSeconds")
        source_uid = (mirror["metadata"].get("labels") or {}).get(names.SOURCE_UID, "")
        users, since = self.deadlines.get(source_uid, (None, 0.0))
        # A renewal may be on its way, or a worker be away, while its user changes it.
        is_known = asyncio.get_running_loop().time() > since + KNOWN_SECONDS
        if old is not None and old["spec"].get("activeDeadlineSeconds") == seconds:
            return
        if seconds is not None and users is not None and seconds > users and is_known:
            self._wrong(f"D14: the lease of {mirror['metadata']['name']} is {seconds} s, and its user set {users}")

    def _stored_until(self, worker: str) -> float:
        record = self.world.management.storage.get("configmaps", HOME, names.WORKERS_CONFIGMAP)
        entries = decoded(record.raw).get("data", {}) if record is not None else {}
        text = msgspec.json.decode(entries.get(worker, "{}")).get("fencedUntil", "")
        return datetime.fromisoformat(text).timestamp() if text else 0.0

    def _look_at_new_mirror(self, worker: str, uid: str, source_uid: str, body: Json) -> None:
        name, world = body["metadata"]["name"], self.world
        assert isinstance(world, FencingWorld)
        for left in moves_of(self.sources.get(source_uid)).left_behind:
            if left.promise == moves.FENCED and (left.worker, name) == (world.quiet_worker, world.quiet_job):
                self.fenced_moves += 1
                if (earlier := self.mirrors.get(left.uid)) is not None and _may_run(earlier):
                    self._wrong(f"D14: {name} is made on {worker}, and its fenced copy on {left.worker} still runs")
        super()._look_at_new_mirror(worker, uid, source_uid, body)


def _may_run(mirror: Json) -> bool:
    status = mirror.get("status") or {}
    if has_ended(mirror) or "startTime" not in status:
        return False
    has_pods = bool(status.get("active") or status.get("terminating"))
    return has_pods or not mirror["spec"].get("suspend")


class Fencing(Moving):
    """All that ``Moving`` does, with Jobs that are fenced."""

    WORLD: ClassVar[type[FlowWorld]] = FencingWorld
    LAWS: ClassVar[type[MovingLaws]] = FencingLaws

    @rule(name=NAMES, policy=st.sampled_from(("Fence", "Fence", "fence", None)), wait=WAITS)
    def a_user_wants_a_fence(self, name: str, policy: str | None, wait: float) -> None:
        patch = {"metadata": {"annotations": {names.ON_WORKER_LOSS: policy}}}
        self._do(self._and_wait(self.world.change(name, patch), wait))

    @rule(name=NAMES, seconds=st.sampled_from((None, 40, 400)), wait=WAITS)
    def a_user_sets_a_deadline(self, name: str, seconds: int | None, wait: float) -> None:
        self._do(self._and_wait(self.world.change(name, {"spec": {"activeDeadlineSeconds": seconds}}), wait))

    @rule(worker=WORKER, is_gone=st.booleans(), wait=WAITS)
    def an_operator_declares_it_dead(self, worker: str, is_gone: bool, wait: float) -> None:
        marks = {"gone": "true"} if is_gone else {}
        assert isinstance(self.world, FencingWorld)
        if is_gone:
            self.world.declared_dead.add(worker)
        self._do(self._and_wait(self.world.register(worker, **marks), wait))

    @rule(
        name=NAMES,
        kind=st.sampled_from(sorted(LASTING)),
        worker=WORKER,
        trouble=st.sampled_from(TROUBLES),
        after=st.sampled_from((1.0, 20.0, 150.0)),
        seconds=FENCE_AWAY,
        is_back=st.booleans(),
        wait=WAITS,
    )
    def a_worker_with_a_fenced_job_is_lost(
        self, name: str, kind: str, worker: str, trouble: str, after: float, seconds: float, is_back: bool, wait: float
    ) -> None:
        """With a Job on it that has a lease, on a day that brings but one thing."""
        world = self.world
        assert isinstance(world, FencingWorld)
        policy = "Wait" if trouble == "it is fenced late" else "Fence"
        annotations = {names.WORKER_ORDER: worker, names.ON_WORKER_LOSS: policy}
        self._do(self._quiet_day(job(name, annotations=annotations, **LASTING[kind]), worker))
        world.quiet_worker, world.quiet_job = worker, name
        try:
            self._do(self._meet(name, worker, trouble))
            self._do(asyncio.sleep(after))
            if trouble == "the manager restarts while it is away":
                self._do(self._restart(worker))
            self._do(self._away(worker, seconds, wait, is_back=is_back))
        finally:
            world.quiet_worker = world.quiet_job = ""

    async def _restart(self, worker: str) -> None:
        self.world.workers[worker].faults.go_down(MANAGER)
        await self.world.kill_manager()
        await asyncio.sleep(5)
        self.world.start_manager()

    async def _meet(self, name: str, worker: str, trouble: str) -> None:
        world, there = self.world, self.world.workers[worker]
        if trouble == "the answers to renewals are lost":
            there.faults.arrange(Loss.LOSE_ANSWER, Which("patch", "jobs", peer=MANAGER), times=3)
        elif trouble == "the clock is set back":
            there.clock.ahead_seconds = -120.0
        elif trouble == "the clock is set forward":
            there.clock.ahead_seconds = 90.0
        elif trouble == "the manager restarts":
            await world.kill_manager()
            await asyncio.sleep(5)
            world.start_manager()
        elif trouble == "it is suspended and resumed":
            await world.change(name, {"spec": {"suspend": True}})
            await asyncio.sleep(15)
            await world.change(name, {"spec": {"suspend": False}})
        elif trouble in ("it is fenced late", "it is not fenced any more"):
            policy = "Fence" if trouble == "it is fenced late" else "Reschedule"
            await world.change(name, {"metadata": {"annotations": {names.ON_WORKER_LOSS: policy}}})
        elif trouble.startswith("somebody restarts it there"):
            if trouble.endswith("renewal"):
                await asyncio.sleep(RENEWED_SECONDS)
            for value in (True, False):
                await tolerant(there.api.merge(path(name), {"spec": {"suspend": value}}))
                await asyncio.sleep(3)
        elif trouble == "records are not written":
            lost = Which("patch", "configmaps", peer=MANAGER)
            world.management.faults.arrange(Loss.LOSE_REQUEST, lost, times=30)
