"""Job controllers of all workers at work, and what must hold of Jobs that are moved, at every look (D14)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import count
from typing import Any

from doubles.jobs import Body, condition, job
from doubles.managers import placed
from doubles.transport import Wire
from doubles.world import World, one_error
from mirror.model import names
from mirror.model.losses import OnLoss
from mirror.model.moves import Moves, parse_moves


class JobControllers:
    """Those of all workers, whoever reaches them: they start, stop and end what is there, by its deadline as well."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def run(self) -> None:
        seen: dict[str, int] = {}
        for tick in count():
            for worker, wire in self.world.workers.items():
                # Whatever has changed, and now and then deadlines.
                if seen.get(worker) != version_of(wire) or tick % 5 == 0:
                    for body in wire.server.all("jobs"):
                        self._sync(worker, body)
                    seen[worker] = version_of(wire)
            await asyncio.sleep(1.0)

    def _sync(self, worker: str, body: Body) -> None:
        name, status, controller = body["metadata"]["name"], body.get("status") or {}, self.world.controller(worker)
        if is_over(body):
            return
        is_stopped = any(one["type"] == "Suspended" and one["status"] == "True" for one in status.get("conditions", ()))
        if body["spec"].get("suspend"):
            if not is_stopped:
                controller.suspend(name)
        elif not status.get("startTime"):
            (controller.resume if is_stopped else controller.start)(name)
        elif (seconds := body["spec"].get("activeDeadlineSeconds")) is not None:
            clock = self.world.workers[worker].clock
            if clock.wall() >= datetime.fromisoformat(status["startTime"]).timestamp() + seconds:
                ends = [condition(one, clock.text(), reason="DeadlineExceeded") for one in ("FailureTarget", "Failed")]
                over = {"active": 0, "ready": 0, "terminating": 0, "failed": 1, "conditions": ends}
                controller.set(name, status | over)


def is_over(body: Body) -> bool:
    listed = (body.get("status") or {}).get("conditions", ())
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in listed)


class Laws:
    """What must hold at every look, whatever happens."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.moves: Counter[str] = Counter()
        """Of each Job, how often it was moved."""

    async def run(self) -> None:
        seen: list[int] = []
        for tick in count():
            now = [version_of(wire) for wire in self.world.workers.values()]
            if now != seen or tick % 20 == 0:
                self.check()
            seen = now
            await asyncio.sleep(0.25)

    def check(self) -> None:
        live: dict[str, list[tuple[str, str]]] = {}
        for worker, wire in self.world.workers.items():
            for found in wire.server.all("jobs"):
                if not found["spec"].get("suspend") and not is_over(found):
                    uid = found["metadata"]["labels"][names.SOURCE_UID]
                    live.setdefault(uid, []).append((worker, found["metadata"]["uid"]))
        for source in self.world.management.server.all("jobs"):
            name, moves = source["metadata"]["name"], moves_of(source)
            self.moves[name] = max(self.moves[name], moves.count)
            found_on = live.get(source["metadata"]["uid"], [])
            if source["metadata"]["annotations"][names.ON_WORKER_LOSS] != OnLoss.RESCHEDULE:
                assert len(found_on) <= 1, f"{name} runs twice: {found_on}, {moves.message}"
            counted = {(one.worker, one.uid) for one in moves.left_behind}
            for worker, uid in found_on:
                is_named = bool(counted & {(worker, uid), (worker, "")})
                assert is_named or worker == (placed(source) or worker), f"{name} on {worker}: {moves.message}"


def version_of(wire: Wire) -> int:
    """Of what was written last on a cluster."""
    return wire.server.inner.storage.version


def moves_of(source: Body) -> Moves:
    listed = (source.get("status") or {}).get("conditions", ())
    return parse_moves(next((one["message"] for one in listed if one["type"] == names.MOVED), ""))


@asynccontextmanager
async def watched(world: World) -> AsyncIterator[Laws]:
    """With Job controllers at work, and the laws looked at all the time."""
    laws = Laws(world)
    async with one_error(), asyncio.TaskGroup() as scope:
        tasks = [scope.create_task(work, name="beside") for work in (JobControllers(world).run(), laws.run())]
        try:
            yield laws
        finally:
            for task in tasks:
                task.cancel()


def a_job(name: str, policy: OnLoss, **more: Any) -> Body:
    """One whose policy is on it."""
    return job(name, annotations={names.ON_WORKER_LOSS: policy.value}, **more)
