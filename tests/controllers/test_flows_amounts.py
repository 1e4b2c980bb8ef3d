"""A worker that sends too much: what is kept of it is bounded, and nothing is concluded from what is not (D11, D29)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import job
from doubles.world import World, manager_of

from mirror.kinds.registry import JOB
from mirror.kube.objects import Partial, size_of
from mirror.model import names
from mirror.workers import mirrors

pytestmark = pytest.mark.looptime

MIB = 2**20


def stranger(world: World, name: str, *, bytes_: int = 0, uid: str = "x") -> dict[str, Any]:
    """A Job on a worker that carries our labels and has no source."""
    labels = {names.ORIGIN: world.origin, names.SOURCE_UID: uid}
    body = job(name, managed_by=None, suspend=True, labels=labels)
    body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "x" * bytes_}]
    return body


@pytest.mark.slow
async def test_of_objects_without_a_source_only_their_metadata_is_kept() -> None:
    """Who may create Jobs on a worker may create forty of a MiB each with our label (D12)."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(40):
            east.server.put("jobs", stranger(world, f"big-{number}", bytes_=MIB))
        await manager.settle(60)
        kept = manager.registry.workers["east"].mirrors_of(JOB)
        assert len(kept) == 40
        assert sum(size_of(found) for found in kept) < MIB


async def test_a_mirror_that_was_seen_before_its_source_is_read_whole_once_it_is_needed() -> None:
    """Its status was left out, which does not mean that it has none."""
    world = World()
    east = world.add_worker("east")
    source = job("train")
    async with manager_of(world) as manager:
        uid = world.create(source | {"spec": source["spec"] | {"managedBy": "example.com/not-yet"}})["metadata"]["uid"]
        east.server.put("jobs", stranger(world, "train", uid=uid))
        await manager.settle(5)
        kept = manager.registry.workers["east"].mirrors_of(JOB)
        assert isinstance(kept.get("default", "train"), Partial)
        world.edit(lambda body: body["spec"].update(managedBy=names.DEFAULT_MANAGED_BY))
        world.controller("east").start("train")
        await manager.settle(5)
        assert not isinstance(kept.get("default", "train"), Partial)
        assert world.placed() == "east"
        assert world.source()["status"]["active"] == 1


async def test_a_mirror_stays_whole_while_its_source_exists() -> None:
    """Within bounds status flows as ever."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job("train"))
        await manager.settle(5)
        world.controller("east").start("train")
        await manager.settle(5)
        assert not isinstance(manager.registry.workers["east"].mirrors_of(JOB).get("default", "train"), Partial)
        assert world.source()["status"]["active"] == 1


async def test_mirrors_that_grow_beyond_what_is_kept_are_reported_and_never_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker says more of a mirror than we keep: the Job is neither failed nor created again."""
    monkeypatch.setattr(mirrors, "MOST_SURPLUS_BYTES", MIB // 4)
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job("train"))
        await manager.settle(5)
        world.controller("east").start("train")
        await manager.settle(5)
        uid = (world.mirror("east") or {})["metadata"]["uid"]

        def grow(body: dict[str, Any]) -> None:
            body["metadata"]["annotations"] = {"a": "x" * (MIB // 2)}

        east.server.edit("jobs", "train", grow)
        await manager.settle(90)
        assert isinstance(manager.registry.workers["east"].mirrors_of(JOB).get("default", "train"), Partial)
        assert world.conditions().get("Failed") is None
        assert (world.mirror("east") or {})["metadata"]["uid"] == uid
        assert "MirrorsTooLarge" in world.events()
        assert "too large to be kept" in world.record()["east"]
        assert manager.metrics.registry.get_sample_value("jobmirror_mirrors_too_large_total", {"worker": "east"})
        east.server.edit("jobs", "train", lambda body: body["metadata"].update(annotations={}))
        await manager.settle(5)
        world.controller("east").complete("train")
        await manager.settle(30)
        assert "Complete" in world.conditions()


async def test_mirrors_whose_source_is_gone_shrink_although_the_worker_keeps_them() -> None:
    """Else a worker that never deletes anything makes us remember every Job that it ever had."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world) as manager:
        body = job("train")
        body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "x" * MIB}]
        world.create(body)
        await manager.settle(5)
        east.server.edit("jobs", "train", lambda body: body["metadata"].update(finalizers=["example.com/stays"]))
        await manager.settle(5)
        world.delete()
        await manager.settle(300)
        found = manager.registry.workers["east"].mirrors_of(JOB).get("default", "train")
        assert isinstance(found, Partial)
