"""A world whose manager watches pods, with one worker and one Job that runs there; and pods of it, by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from doubles.jobs import Body, job
from doubles.world import RunningManager, World, manager_of
from mirror.kinds.base import MirrorTransform

SPEC = {"containers": [{"name": "main", "image": "nope:1"}]}


def watching(world_origin: str) -> dict[str, Any]:
    return {"transform": MirrorTransform(world_origin, label_pods=True)}


@asynccontextmanager
async def watched(**changes: Any) -> AsyncIterator[tuple[World, RunningManager]]:
    world = World()
    world.add_worker("east")
    async with manager_of(world, **watching(world.origin), **changes) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        yield world, manager


def put_pod(world: World, name: str, status: Body, **metadata: Any) -> Body:
    """A pod of the mirror, as its controller makes it: with the labels of the template."""
    mirror = world.mirror("east")
    assert mirror is not None
    labels = mirror["spec"]["template"]["metadata"]["labels"]
    metadata = {"name": name, "namespace": "default", "labels": labels, **metadata}
    made = world.workers["east"].server.put("pods", {"metadata": metadata, "spec": SPEC})
    set_status(world, name, status, metadata["namespace"])
    return made


def set_status(world: World, name: str, status: Body, namespace: str = "default") -> None:
    world.workers["east"].server.edit("pods", name, lambda body: body.update(status=status), namespace)


def disrupt(world: World, name: str, why: str, **status: Any) -> None:
    """A pod is evicted, preempted, or its node gone: the condition is written, then the pod is deleted, and ends."""
    server = world.workers["east"].server
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": why}
    set_status(world, name, {"phase": "Running", "conditions": [condition]})
    going = {
        "deletionTimestamp": world.workers["east"].clock.text(),
        "finalizers": ["batch.kubernetes.io/job-tracking"],
    }
    server.edit("pods", name, lambda body: body["metadata"].update(going), "default")
    if status:
        set_status(world, name, {"conditions": [condition], **status})


def let_go(world: World, name: str) -> None:
    """The Job controller has counted a pod that was deleted."""
    world.workers["east"].server.edit("pods", name, lambda body: body["metadata"].update(finalizers=[]), "default")
