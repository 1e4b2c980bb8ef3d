"""A world whose manager tries Jobs elsewhere after ten minutes, and one of which no pod starts on east."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from doubles.jobs import Body, condition, job
from doubles.refusals import Refused
from doubles.transport import Fault
from doubles.world import RunningManager, World, manager_of
from mirror.decide.snapshot import Policy
from mirror.kinds.base import MirrorTransform
from mirror.model import names

MINUTE = 60.0
AFTER = 10 * MINUTE
ALWAYS = 1_000_000
"""So many times a fault is met."""
SPEC = {"containers": [{"name": "main", "image": "nope:1"}], "restartPolicy": "Never"}
PENDING = {"phase": "Pending"}
PULLING = {
    "phase": "Pending",
    "containerStatuses": [{"name": "main", "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull"}}}],
}
LOST = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None}
UNSTARTED = {
    "phase": "Failed",
    "containerStatuses": [{"name": "main", "restartCount": 0, "state": {"terminated": LOST}}],
}
RUNNING = {
    "phase": "Running",
    "containerStatuses": [
        {"name": "main", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    ],
}


def settings_of_retries(world: World, **policy: Any) -> dict[str, Any]:
    return {
        "policy": Policy(retry_after_seconds=AFTER, **policy),
        "transform": MirrorTransform(world.origin, label_pods=True),
    }


def world_of_two() -> World:
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    return world


@asynccontextmanager
async def waiting_on_east(**more: Any) -> AsyncIterator[tuple[World, RunningManager]]:
    """A Job is on east, with one pod that no node has; west is free."""
    world = world_of_two()
    async with manager_of(world, **settings_of_retries(world)) as manager:
        await place_on_east(world, manager, **more)
        yield world, manager


async def place_on_east(world: World, manager: RunningManager, **more: Any) -> None:
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(**more))
    await manager.settle()
    start(world, "east")
    put_pod(world)
    world.annotate_worker("west", cordoned=None)
    await manager.settle()


async def drain(world: World, manager: RunningManager) -> None:
    """Until the mirror on east is suspended."""
    await manager.settle(AFTER)
    assert (record(world) or ("",))[0] == "Unknown"
    assert is_suspended(world)


async def prove(world: World, manager: RunningManager) -> None:
    """Until it is known that nothing ran; the mirror cannot be deleted for now."""
    world.workers["east"].arrange("delete", "jobs", Fault.LOSE_REQUEST, times=ALWAYS)
    await drain(world, manager)
    remove_pod(world)
    stop(world)
    await manager.settle(30)
    assert (record(world) or ("",))[0] == "True"


async def empty(world: World, manager: RunningManager) -> None:
    """Until the mirror is gone; the record stays for now."""
    await prove(world, manager)
    world.management.arrange("patch", "jobs", Refused(503, "ServiceUnavailable"), times=ALWAYS)
    world.workers["east"].restore()
    await manager.settle(40)
    assert (world.placed(), world.mirrors()) == ("east", [])


def start(world: World, worker: str, *, of: str = "train", ready: int = 0, active: int = 1, **more: Any) -> None:
    """Its controller has made its pods."""
    at = world.workers[worker].clock.text()
    world.controller(worker).set(of, {"active": active, "ready": ready, "terminating": 0, "startTime": at, **more})


def put_pod(
    world: World,
    name: str = "train-x",
    status: Body = PENDING,
    node: str = "",
    worker: str = "east",
    *,
    of: str = "train",
) -> None:
    """A pod of the mirror, as its controller makes it."""
    mirror = world.mirror(worker, of)
    assert mirror is not None
    labels = dict(mirror["spec"]["template"]["metadata"]["labels"])
    labels["batch.kubernetes.io/controller-uid"] = mirror["metadata"]["uid"]
    spec = SPEC | ({"nodeName": node} if node else {})
    server = world.workers[worker].server
    server.put("pods", {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec})
    set_pod(world, status, name, worker)


def set_pod(world: World, status: Body, name: str = "train-x", worker: str = "east") -> None:
    world.workers[worker].server.edit("pods", name, lambda body: body.update(status=status))


def remove_pod(world: World, name: str = "train-x") -> None:
    """It is gone from the API server."""
    server = world.workers["east"].server
    server.edit("pods", name, lambda body: body["metadata"].update(deletionTimestamp=world.management.clock.text()))


def stop(world: World, worker: str = "east", *, of: str = "train", **more: Any) -> None:
    """Its controller has seen that the mirror is suspended, and has no pod any more."""
    at = world.workers[worker].clock.text()
    suspended = condition("Suspended", at, reason="JobSuspended", message="Job suspended")
    world.controller(worker).set(of, {"terminating": 0, "ready": 0, "conditions": [suspended], **more})


def is_suspended(world: World, worker: str = "east", *, of: str = "train") -> bool:
    mirror = world.mirror(worker, of)
    return mirror is not None and bool(mirror["spec"].get("suspend"))


def record(world: World) -> tuple[str, str] | None:
    """Status and message of the condition."""
    listed = world.source().get("status", {}).get("conditions", ())
    found = next((one for one in listed if one["type"] == names.RETRYING), None)
    return (found["status"], found["message"]) if found else None


def outcomes(manager: RunningManager, outcome: str, worker: str = "east") -> float:
    labels = {"worker": worker, "outcome": outcome}
    return manager.metrics.registry.get_sample_value("jobmirror_retries_total", labels) or 0.0
