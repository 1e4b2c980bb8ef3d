"""Random losses of workers under policies that move (D14), for hypothesis; what moving promises, at each write."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

from doubles.managers import conditions, placed
from flow_invariants import Invariants
from flow_machine import KINDS, WORKER, Everybody
from flow_machine_base import NAMES, WAITS
from flow_progress import StartOverLaws, is_leaving, moves_of
from flow_settled import disagreements, mend, wait_until_settled
from flow_world import LOST_AFTER_SECONDS, MANAGER, FlowWorld, has_ended, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mirror.controllers.move_turns import AFTER_TAKING_OVER_SECONDS
from mirror.decide.snapshot import Policy
from mirror.embedded.apiserver.apimachinery.errors import forbidden
from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.kinds import Loss, internal_error
from mirror.embedded.faults.targets import Which
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.planes.api import Json
from mirror.workers.registry import Registry

POLICIES = (None, "Wait", "Reschedule", "Reschedule", "reschedule")
LASTING: dict[str, dict[str, Any]] = {
    "long": {"run_for": "200s"},
    "endless": {"run_for": "1000s"},
    "indexed": {"parallelism": 2, "completions": 4, "completionMode": "Indexed", "run_for": "90s"},
    "failing": {"exit_code": 1, "backoffLimit": 1, "run_for": "100s"},
    "counting": {"parallelism": 1, "completions": 200, "completionMode": "Indexed", "run_for": "1s"},
}
TROUBLES = (
    "",
    "the answers to records are lost",
    "the answer to the create is lost",
    "creates are refused",
    "creates fail",
    "the answers to seeds are lost",
    "seeds are refused",
    "the answers to changes of mirrors are lost",
    "changes of mirrors fail",
)
COUNTED_SECONDS = 12.0
"""So much a Job that counts runs before its worker is lost."""
SEED = Which("patch", "jobs", subresource="status", peer=MANAGER)
AWAY = st.sampled_from((30.0, 61.0, 75.0, 130.0, 400.0))
"""Seconds; jobs are moved after ``LOST_AFTER_SECONDS``."""


class MovingWorld(FlowWorld):
    """The settings say ``Wait``; each Job may say otherwise."""

    def __init__(self, *found: Any, **settings: Any) -> None:
        policy = Policy(lost_after_seconds=LOST_AFTER_SECONDS, move_limit=1000, seed_progress=True)
        super().__init__(*found, **{"policy": policy, **settings})
        self.led_since = float("inf")

    def start_manager(self) -> None:
        if not self.has_manager:
            self.led_since = asyncio.get_running_loop().time()
        super().start_manager()

    def led_for_seconds(self, request: Request) -> float:
        """For how long who sent this has led; a long time where that cannot be told."""
        del request
        return asyncio.get_running_loop().time() - self.led_since

    def registry_of(self, request: Request) -> Registry | None:
        """The workers as who sent this knows them; None: that cannot be told."""
        del request
        return self.registry


class MovingLaws(StartOverLaws):
    """What holds of every move, beside what holds for all."""

    def __init__(self, world: FlowWorld) -> None:
        super().__init__(world)
        self.moved: Counter[str] = Counter()
        """Moves, by the uid of the source."""
        self.overlaps = 0
        """Mirrors made while another one of their source was live."""
        self._complete: set[str] = set()
        """Uids of mirrors that have completed."""
        self._suspended: set[str] = set()
        """Uids of mirrors whose spec suspends them."""
        self._moved_back: set[tuple[str, str]] = set()
        """Uids of sources and the workers that they were moved to, or placed on anew where no mirror of theirs is left,
        until they have a mirror there since."""
        self.on_move: Callable[[str], None] = lambda name: None
        """Told of each Job that is moved since its worker is lost, at that moment."""

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        before, worker = placed(old), placed(new)
        if _waits_after_move(old) and conditions(new).get("Failed") == "MirrorLost":
            self._wrong(f"D14: {uid} is failed for what ran before it was moved")
        if old is not None and new is not None and request.peer == MANAGER and worker not in (None, before) and before:
            self._look_at_move(uid, before, str(worker), old, new, request)
            old = {
                **old,
                "status": {**old["status"], "conditions": []},
            }  # the rest is judged as for one without a place
        elif worker is not None and before is None and worker not in [there for there, _ in self.live[uid]]:
            self._moved_back.add((uid, worker))  # its mirror there went, in a drain, before it was refused elsewhere
        if new is not None and request.peer == MANAGER and worker not in (None, before) and not has_ended(new):
            self._look_at_places(uid, str(worker), new, request)
        super()._look_at_source(uid, old, new, request)

    def _look_at_places(self, uid: str, worker: str, new: Json, request: Request) -> None:
        """D14, D21: of what is recorded there, and of what others have left there and still runs."""
        world = self.world
        assert isinstance(world, MovingWorld)
        registry = world.registry_of(request)
        known = registry.workers.get(worker) if registry is not None else None
        if known is None or known.spec is None or known.spec.capacity is None:
            return
        others = {one: body for one, body in self.sources.items() if one != uid and not _is_over(body)}
        there = sorted(body["metadata"]["name"] for body in others.values() if placed(body) == worker)
        left = [
            f"a copy of {body['metadata']['name']}" for one, body in others.items() if self._runs_on(worker, one, body)
        ]
        if len(there) + len(left) >= known.spec.capacity:
            name = new["metadata"]["name"]
            self._wrong(f"D21: {name} is placed on {worker}, which takes {known.spec.capacity}: {[*there, *left]}")

    def _runs_on(self, worker: str, uid: str, source: Json) -> bool:
        """Whether a source has left a copy on this worker, which is not suspended, has not ended and is not gone."""
        return any(
            (worker, copy.uid) in self.live[uid] and copy.uid not in self._suspended
            for copy in moves_of(source).left_behind
            if copy.worker == worker
        )

    def _look_at_move(self, uid: str, before: str, worker: str, old: Json, new: Json, request: Request) -> None:
        name, moves = new["metadata"]["name"], moves_of(new)
        if {"Complete"} & conditions(new).keys():
            if before not in [left.worker for left in moves.left_behind] and self._was_created(uid, before):
                self._wrong(f"D14: {name} has ended on {worker}, and does not say what it left on {before}")
            return
        self.moved[uid] += 1
        self._moved_back.add((uid, worker))
        if conditions(new).get("Suspended") == "WorkerDrained":
            self._look_at_drain(uid, before, new)
            return
        if not self._may_move(before, old, new):
            annotations = new["metadata"].get("annotations") or {}
            self._wrong(f"D14: {name} was moved from {before} to {worker} under {annotations}")
        if self._was_created(uid, before) and before not in [left.worker for left in moves.left_behind]:
            self._wrong(f"D14: {name} was moved from {before}, and does not say that it has a mirror there")
        if conditions(new).get("Suspended") != "WorkerLost" or new["status"].get("active"):
            self._wrong(f"D14: {name} was moved, and its status says {new['status']}")
        if old["spec"].get("suspend"):
            self._wrong(f"D14: {name} was moved although its user has suspended it")
        if {"FailureTarget", "SuccessCriteriaMet"} & conditions(old).keys():
            self._wrong(f"D14: {name} was moved although its end was decided")
        self._look_at_time(before, new, request)
        self.on_move(name)

    def _may_move(self, before: str, old: Json, new: Json) -> bool:
        """Whether somebody has asked for it."""
        annotations = new["metadata"].get("annotations") or {}
        return annotations.get(names.ON_WORKER_LOSS) == OnLoss.RESCHEDULE

    def _look_at_time(self, before: str, new: Json, request: Request) -> None:
        world, name = self.world, new["metadata"]["name"]
        assert isinstance(world, MovingWorld)
        if (led_for := world.led_for_seconds(request)) < AFTER_TAKING_OVER_SECONDS:
            self._wrong(f"D14: {name} was moved {led_for} s after its manager began")
        registry = world.registry_of(request)
        known = registry.workers.get(before) if registry is not None else None
        lost_for = known.connection.lost_for_seconds(world.clock.now()) if known is not None else 0.0
        if known is not None and not known.is_reachable and lost_for < LOST_AFTER_SECONDS - 1:
            self._wrong(f"D14: {name} was moved from {before} after {lost_for} s")

    def _look_at_new_mirror(self, worker: str, uid: str, source_uid: str, body: Json) -> None:
        source = self.sources.get(source_uid)
        left = moves_of(source).left_behind if source is not None else ()
        others = self.live[source_uid]
        # What was left behind is the overlap that was asked for, and counted: it is the only one.
        allowed = {other for other in others if any(other == (one.worker, one.uid or other[1]) for one in left)}
        self.overlaps += bool(allowed)
        made = self.world.metrics.secondary_mirrors
        counted = sum(made.labels(why)._value.get() for why in ("WorkerLost", "Fenced", "Gone"))
        if counted < self.overlaps:
            self._wrong(f"D14: {body['metadata']['name']} overlaps on {worker}: {self.overlaps}, counted {counted}")
        self.live[source_uid] = others - allowed
        self._moved_back.discard((source_uid, worker))
        super()._look_at_new_mirror(worker, uid, source_uid, body)
        self.live[source_uid] |= allowed

    def _was_created(self, source_uid: str, worker: str) -> bool:
        """What it left there when it was moved from there before does not count."""
        return (source_uid, worker) not in self._moved_back and super()._was_created(source_uid, worker)

    def _look_at_deletion(self, worker: str, uid: str, source_uid: str, name: str) -> None:
        source = self.sources.get(source_uid)
        if is_leaving(source, worker):
            return
        is_over = source is None or "deletionTimestamp" in source["metadata"] or has_ended(source)
        is_left_behind = uid in [left.uid for left in moves_of(source).left_behind]
        if not is_over and is_left_behind and uid in self._complete:
            self._wrong(f"D14: {name} on {worker} was Complete, and was deleted while its source goes on")
        if not is_left_behind:  # it goes first where its source is moved back to that worker
            super()._look_at_deletion(worker, uid, source_uid, name)

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        # Without our labels it does not count: whoever takes them away may have written its status, too (D1).
        is_ours = bool(((new or {}).get("metadata", {}).get("labels") or {}).get(names.SOURCE_UID))
        if "Complete" in conditions(new) and is_ours:
            self._complete.add(uid)
        elif new is not None:
            self._complete.discard(uid)
        if new is not None and new["spec"].get("suspend"):
            self._suspended.add(uid)
        else:
            self._suspended.discard(uid)
        super()._look_at_mirror(worker, uid, old, new, request)


class Moving(Everybody):
    """All that ``Everybody`` does, with Jobs that may be moved and workers that are away for long."""

    WORLD: ClassVar[type[FlowWorld]] = MovingWorld
    LAWS: ClassVar[type[MovingLaws]] = MovingLaws

    def _laws(self) -> Invariants:
        return self.LAWS(self.world)

    async def _settle(self) -> None:
        await mend(self.world)
        await wait_until_settled(self.world, self.laws, self._disagreements)

    async def _disagreements(self) -> list[str]:
        """A Job that was moved has counted what each of its copies did: it differs from each."""
        moved = {one["metadata"]["name"] for one in await self.world.sources() if moves_of(one).count}
        problems = await disagreements(self.world)
        return [one for one in problems if not any(one.startswith(f"{name} tells ") for name in moved)]

    @rule(name=NAMES, kind=st.sampled_from(sorted(KINDS)), policy=st.sampled_from(POLICIES), wait=WAITS)
    def a_user_creates_with_a_policy(self, name: str, kind: str, policy: str | None, wait: float) -> None:
        annotations = {names.ON_WORKER_LOSS: policy} if policy is not None else {}
        body = job(name, annotations=annotations, **KINDS[kind])
        self._do(self._and_wait(tolerant(self.world.management.api.create(path(""), body)), wait))

    @rule(name=NAMES, policy=st.sampled_from(POLICIES), wait=WAITS)
    def a_user_changes_the_policy(self, name: str, policy: str | None, wait: float) -> None:
        patch = {"metadata": {"annotations": {names.ON_WORKER_LOSS: policy}}}
        self._do(self._and_wait(self.world.change(name, patch), wait))

    @rule(name=NAMES, worker=WORKER, wait=WAITS)
    def a_person_resumes_a_mirror(self, name: str, worker: str, wait: float) -> None:
        """Somebody on the worker, who does not know why it is suspended."""
        resume = {"spec": {"suspend": False}}
        self._do(self._and_wait(self.world.change(name, resume, cluster=worker), wait))

    @rule(worker=WORKER, how=st.sampled_from(("move", "move-started")), wait=WAITS)
    def an_operator_drains_a_worker_by_moving(self, worker: str, how: str, wait: float) -> None:
        """It ends when the Secret is written anew, as others do."""
        self._do(self._and_wait(self.world.register(worker, drain=how), wait))

    @rule(worker=WORKER, seconds=AWAY, is_back=st.booleans(), wait=WAITS)
    def a_worker_is_away(self, worker: str, seconds: float, is_back: bool, wait: float) -> None:
        self._do(self._away(worker, seconds, wait, is_back=is_back))

    async def _away(self, worker: str, seconds: float, wait: float, *, is_back: bool) -> None:
        faults = self.world.workers[worker].faults
        faults.go_down(MANAGER)
        await asyncio.sleep(seconds)
        if is_back:
            faults.restore()
        await asyncio.sleep(wait)

    @rule(
        name=NAMES,
        kind=st.sampled_from(sorted(LASTING)),
        policy=st.sampled_from(POLICIES),
        worker=WORKER,
        trouble=st.sampled_from(TROUBLES),
        seconds=AWAY,
        is_back=st.booleans(),
        wait=WAITS,
    )
    def a_worker_is_lost_on_a_quiet_day(
        self,
        name: str,
        kind: str,
        policy: str | None,
        worker: str,
        trouble: str,
        seconds: float,
        is_back: bool,
        wait: float,
    ) -> None:
        """With a Job on it, and a manager that has led for long; something may go wrong just when it is moved."""
        annotations = {names.WORKER_ORDER: worker} | ({names.ON_WORKER_LOSS: policy} if policy is not None else {})
        body = job(name, annotations=annotations, **LASTING[kind])
        self._do(self._quiet_day(body, worker))
        self._do(self._trouble(worker, trouble))
        self._do(self._away(worker, seconds, wait, is_back=is_back))

    @rule(kind=st.sampled_from(sorted(LASTING)), worker=WORKER, wait=WAITS)
    def a_worker_without_room_is_back(self, kind: str, worker: str, wait: float) -> None:
        """It fails to change what was left there, which so runs on, and another Job wants to go there."""
        self._do(self._back_without_room(kind, worker, wait))

    async def _back_without_room(self, kind: str, worker: str, wait: float) -> None:
        world, faults = self.world, self.world.workers[worker].faults
        annotations = {names.WORKER_ORDER: worker, names.ON_WORKER_LOSS: "Reschedule"}
        await world.delete("b")
        await self._quiet_day(job("a", annotations=annotations, **LASTING[kind]), worker)
        faults.go_down(MANAGER)
        await asyncio.sleep(75.0)
        await world.register(worker, capacity="1")
        faults.restore()
        for verb in ("patch", "delete"):
            faults.arrange(internal_error(), Which(verb, "jobs", peer=MANAGER), times=20)
        pinned = job("b", annotations={names.WORKER_SELECTOR: f"name={worker}"}, run_for="30s")
        await self._and_wait(tolerant(world.management.api.create(path(""), pinned)), 10.0 + wait)

    async def _quiet_day(self, body: Json, worker: str) -> None:
        world = self.world
        for plane in world.planes.values():
            plane.start()
            plane.clock.ahead_seconds = 0.0
            plane.faults.random_faults = None
            plane.faults.restore()
        for name in world.workers:
            await world.register(name)
        world.start_manager()
        await world.delete(body["metadata"]["name"])
        await asyncio.sleep(AFTER_TAKING_OVER_SECONDS + 2)
        await tolerant(world.management.api.create(path(""), body))
        await asyncio.sleep(COUNTED_SECONDS if body["spec"].get("completions", 1) > 10 else 2)

    async def _trouble(self, worker: str, trouble: str) -> None:
        """From when the worker is lost on, in the writes that moving takes."""
        other = next(name for name in self.world.workers if name != worker)
        here, there = self.world.management.faults, self.world.workers[other].faults
        if trouble == "the answers to records are lost":
            here.arrange(Loss.LOSE_ANSWER, Which("patch", "jobs", subresource="status", peer=MANAGER), times=4)
        elif trouble == "the answer to the create is lost":
            there.arrange(Loss.LOSE_ANSWER, Which("create", "jobs", peer=MANAGER), times=1)
        elif trouble == "creates are refused":
            there.arrange(forbidden("jobs", "batch", "a", "not here"), Which("create", "jobs", peer=MANAGER), times=3)
        elif trouble == "creates fail":
            there.arrange(internal_error(), Which("create", "jobs", peer=MANAGER), times=20)
        elif trouble == "the answers to seeds are lost":
            there.arrange(Loss.LOSE_ANSWER, SEED, times=3)
        elif trouble == "seeds are refused":
            there.arrange(forbidden("jobs", "batch", "a", "not here"), SEED, times=3)
        elif trouble == "the answers to changes of mirrors are lost":
            there.arrange(Loss.LOSE_ANSWER, Which("patch", "jobs", subresource="", peer=MANAGER), times=3)
        elif trouble == "changes of mirrors fail":
            there.arrange(internal_error(), Which("patch", "jobs", peer=MANAGER), times=8)


def _is_over(source: Json) -> bool:
    return has_ended(source) or "deletionTimestamp" in source["metadata"]


def _waits_after_move(source: Json | None) -> bool:
    """Not where the move was undone: the copy that had started is the recorded one again."""
    reason = conditions(source).get("Suspended")
    return reason == "WorkerDrained" or (reason == "WorkerLost" and names.MOVED in conditions(source))
