"""A Job on a worker that is drained by moving, and what that worker's controller says meanwhile (D14, D15)."""

from __future__ import annotations

from typing import Any

from doubles.jobs import condition, job
from doubles.world import RunningManager, World
from mirror.decide.snapshot import Policy

SEEDING = Policy(seed_progress=True)
INDEXED = {"completionMode": "Indexed", "completions": 10, "parallelism": 2}


async def on_east(world: World, manager: RunningManager, *, runs: bool = True, **more: Any) -> str:
    """A Job on east, which runs unless it says otherwise; the uid of its mirror."""
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(**(INDEXED | more)))
    await manager.settle()
    if runs:
        world.controller("east").start("train", active=2)
        await manager.settle()
        status = world.mirror("east")["status"]
        world.controller("east").set("train", status | {"succeeded": 3, "completedIndexes": "0-2", "failed": 1})
        await manager.settle()
    world.annotate_worker("west", cordoned=None)
    await manager.settle()
    return str(world.mirror("east")["metadata"]["uid"])


def stop(world: World, *, terminating: int = 0, completed: str = "0-3") -> None:
    """What east's controller says once it has seen that the mirror is suspended."""
    suspended = condition("Suspended", world.management.clock.text(), reason="JobSuspended", message="Job suspended")
    counted = {"succeeded": 4, "completedIndexes": completed, "failed": 1}
    world.controller("east").set("train", counted | {"terminating": terminating, "conditions": [suspended]})


def is_suspended_on_east(world: World, name: str = "train") -> bool:
    mirror = world.mirror("east", name)
    return mirror is not None and bool(mirror["spec"].get("suspend"))
