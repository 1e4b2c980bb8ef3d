"""What holds moves back (D14), in random flows for hypothesis: the limit, the rate, most workers lost, Namespaces.

With three workers, so that two of them are most; a few moves a Job at most, one in ten seconds; copies that lose stay,
suspended; and Namespaces say what holds for Jobs that say nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from doubles.managers import placed
from flow_machine_base import WAITS
from flow_machine_moves import AWAY, LASTING, WORKER, Moving, MovingLaws, MovingWorld
from flow_progress import drains_of, moves_of
from flow_world import LOST_AFTER_SECONDS, MANAGER, FlowWorld, has_ended, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mirror.decide.snapshot import Policy
from mirror.embedded.apiserver.messages import Request
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.planes.api import Json

MOVE_LIMIT = 2
MOVE_SECONDS = 10.0
"""From one move to the next."""
WRITE_SECONDS = 15.0
"""A move that was decided when fewer workers were lost has been written within."""
HEARD_SECONDS = 300.0
"""What a Namespace says is known within: a watch may be silent for so long."""
CLOSE_SECONDS = 0.5
ON_NAMESPACE = (None, "Wait", "Reschedule", "Reschedule", "reschedule")


class GuardedWorld(MovingWorld):
    """The settings have all guards."""

    def __init__(self, *found: Any, **settings: Any) -> None:
        policy = Policy(lost_after_seconds=LOST_AFTER_SECONDS, move_limit=MOVE_LIMIT, seed_progress=True)
        guards = {"move_rate": 1.0 / MOVE_SECONDS, "suspends_losers": True, "on_loss_of_namespaces": True}
        super().__init__(*found, policy=policy, **guards, **settings)
        self.namespace_said: list[tuple[float, str | None]] = [(0.0, None)]
        """What the Namespace of all Jobs said, and since when."""
        self.is_quiet = False
        """Nothing disturbs but what was done to workers: moves are written at once."""

    async def say(self, policy: str | None) -> None:
        """Have the Namespace say what is to become of Jobs whose worker is lost."""
        self.namespace_said.append((asyncio.get_running_loop().time(), policy))
        patch = {"metadata": {"annotations": {names.ON_WORKER_LOSS: policy}}}
        await self.management.api.merge("/api/v1/namespaces/default", patch)

    def said_of_late(self) -> list[str | None]:
        """All that the manager may believe the Namespace to say."""
        then = asyncio.get_running_loop().time() - HEARD_SECONDS
        ends = [since for since, _ in self.namespace_said[1:]] + [float("inf")]
        return [said for (_, said), end in zip(self.namespace_said, ends, strict=True) if end > then]


class GuardLaws(MovingLaws):
    """Beside what moving promises: that it is held back."""

    world: GuardedWorld

    def __init__(self, world: FlowWorld) -> None:
        super().__init__(world)
        self._last_move = float("-inf")
        self.suspended = 0
        """Copies that were left behind, and suspended."""

    def _may_move(self, before: str, old: Json, new: Json) -> bool:
        said = (new["metadata"].get("annotations") or {}).get(names.ON_WORKER_LOSS)
        return said == OnLoss.RESCHEDULE or (said is None and OnLoss.RESCHEDULE in self.world.said_of_late())

    def _look_at_time(self, before: str, new: Json, request: Request) -> None:
        super()._look_at_time(before, new, request)
        name = new["metadata"]["name"]
        found = [one for one in self.sources.values() if one["metadata"]["name"] == name]
        count = next((moves_of(one).count - drains_of(one) for one in found), 0)
        if count >= MOVE_LIMIT:
            self._wrong(f"D14: {name} was moved although it has been moved {count} times")
        registry, now = self.world.registry_of(request), self.world.clock.now()
        workers = list(registry.workers.values()) if registry is not None else []
        lost = [one.name for one in workers if one.connection.lost_for_seconds(now) > WRITE_SECONDS]
        if len(lost) > 1 and 2 * len(lost) > len(workers):
            self._wrong(f"D14: {name} was moved while {lost} were lost, of {len(workers)}")
        self._look_at_rate(name)

    def _look_at_rate(self, name: str) -> None:
        now = asyncio.get_running_loop().time()
        if self.world.is_quiet and now < self._last_move + MOVE_SECONDS - CLOSE_SECONDS:
            self._wrong(f"D14: {name} was moved {now - self._last_move:.1f} s after another one")
        self._last_move = now

    def _look_at_deletion(self, worker: str, uid: str, source_uid: str, name: str) -> None:
        super()._look_at_deletion(worker, uid, source_uid, name)
        source = self.sources.get(source_uid)
        is_over = source is None or "deletionTimestamp" in source["metadata"]
        is_left = uid in [left.uid for left in moves_of(source).left_behind]
        # Suspended a work queue would be complete, and win.
        may_stay = is_left and not is_over and source["spec"].get("completions") is not None
        if may_stay and placed(source) != worker:
            self._wrong(f"D14: the copy of {name} that was left on {worker} was deleted, and is to be suspended")

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        if old is not None and new is not None and request.peer == MANAGER:
            source = self.sources.get(self._source_of.get(uid, ""))
            is_stopped = new["spec"].get("suspend") and not old["spec"].get("suspend")
            self.suspended += bool(is_stopped and uid in [left.uid for left in moves_of(source).left_behind])
        super()._look_at_mirror(worker, uid, old, new, request)


class Guarded(Moving):
    """All that ``Moving`` does, where moves are held back."""

    WORKERS: ClassVar[tuple[str, ...]] = (*Moving.WORKERS, "north")
    WORLD: ClassVar[type[FlowWorld]] = GuardedWorld
    LAWS: ClassVar[type[MovingLaws]] = GuardLaws
    world: GuardedWorld

    async def _disagreements(self) -> list[str]:
        """A copy that has lost stays where it is, and does not run."""
        problems = await super()._disagreements()
        left = await self._left()
        kept = [one for one in problems if not any(one.startswith(f"{name} ended on ") for name in left)]
        running = {name: where for name, where in left.items() if where}
        return [*kept, *(f"{name} was moved, and what it left runs on {where}" for name, where in running.items())]

    async def _left(self) -> dict[str, list[str]]:
        """Of each Job that has left something on workers: where that still runs."""
        left: dict[str, list[str]] = {}
        for source in await self.world.sources():
            name, running = source["metadata"]["name"], list[str]()
            for one in moves_of(source).left_behind:
                found = await self.world.mirror(one.worker, name) if one.worker != placed(source) else None
                is_it = found is not None and one.uid in ("", found["metadata"]["uid"])
                if found is not None and is_it and not has_ended(found) and not found["spec"].get("suspend"):
                    running.append(one.worker)
                left[name] = running
        return left

    @rule(policy=st.sampled_from(ON_NAMESPACE), wait=WAITS)
    def an_operator_has_the_namespace_say(self, policy: str | None, wait: float) -> None:
        self._do(self._and_wait(self.world.say(policy), wait))

    @rule(kind=st.sampled_from(sorted(LASTING)), worker=WORKER, other=st.sampled_from(("", "west", "north")),
          apart=st.sampled_from((0.0, 20.0, 62.0)), seconds=AWAY, wait=WAITS)  # fmt: skip
    def workers_with_several_jobs_are_lost(
        self, kind: str, worker: str, other: str, apart: float, seconds: float, wait: float
    ) -> None:
        """On a quiet day, one or two of them; both come back."""
        self._do(self._lose(kind, worker, other, apart, seconds, wait))

    async def _lose(self, kind: str, worker: str, other: str, apart: float, seconds: float, wait: float) -> None:
        jobs = ("a", "b", "c")
        annotations = {names.WORKER_ORDER: worker, names.ON_WORKER_LOSS: "Reschedule"}
        for name in jobs[1:]:
            await self.world.delete(name)
        await self._quiet_day(job("a", annotations=annotations, **LASTING[kind]), worker)
        for name in jobs[1:]:
            await tolerant(
                self.world.management.api.create(path(""), job(name, annotations=annotations, **LASTING[kind]))
            )
        await asyncio.sleep(2.0)
        self.world.is_quiet = True
        try:
            for each in (worker, other):
                if each:
                    self.world.workers[each].faults.go_down(MANAGER)
                    await asyncio.sleep(apart)
            await asyncio.sleep(seconds)
            for each in {worker, other} - {""}:
                self.world.workers[each].faults.restore()
            await asyncio.sleep(wait)
        finally:
            self.world.is_quiet = False
