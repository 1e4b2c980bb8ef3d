"""Two management clusters that were given one ``origin`` share a worker, by mistake (D1, D10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.jobs import job
from doubles.transport import wire_to
from doubles.world import WAITING, RunningManager, World, manager_of

from mirror.kinds.base import MirrorTransform
from mirror.kinds.dependencies import DependencyPolicy
from mirror.model import names

pytestmark = pytest.mark.looptime

Body = dict[str, Any]
ORIGIN = "prod"
TWO_SWEEPS = 130


def transform_of(world: World, **more: Any) -> MirrorTransform:
    """As the setting ``origin`` makes it."""
    return MirrorTransform(ORIGIN, management_uid=world.origin, **more)


@asynccontextmanager
async def two_clusters(**more: Any) -> AsyncIterator[tuple[World, World, RunningManager, RunningManager]]:
    """Two management clusters, each with a manager, and one worker that both have registered."""
    one, other = World(), World(wire_to("another-management"))
    one.add_worker("east")
    other.workers = one.workers
    other.register("east")
    async with (
        manager_of(one, transform=transform_of(one, **more)) as first,
        manager_of(other, transform=transform_of(other, **more)) as second,
    ):
        yield one, other, first, second


def uid_of(body: Body | None) -> str:
    return str(body["metadata"]["uid"]) if body else ""


async def test_neither_deletes_what_the_other_made() -> None:
    """D10: a mirror whose source is in another management cluster is no mirror without a source."""
    async with two_clusters() as (one, other, manager, _):
        one.create(job("ours"))
        other.create(job("theirs"))
        await manager.settle()
        before = {name: uid_of(one.mirror("east", name)) for name in ("ours", "theirs")}
        assert all(before.values())
        for name in before:
            one.controller("east").start(name)
        await manager.settle(TWO_SWEEPS)
        assert {name: uid_of(one.mirror("east", name)) for name in before} == before
        for world, name in ((one, "ours"), (other, "theirs")):
            assert world.source(name)["status"]["active"] == 1
            assert len(world.texts("OriginShared")) == 1
        assert f"({other.origin}): they are left alone" in one.texts("OriginShared")[0]
        one.delete("ours")
        other.delete("theirs")
        await manager.settle(5)
        assert one.mirrors("ours") == one.mirrors("theirs") == []


async def test_namesakes_do_not_take_each_other_for_an_earlier_job() -> None:
    """D1: the name is taken there, as by anybody's Job; the one that runs is not touched."""
    async with two_clusters() as (one, other, manager, _):
        one.create(job())
        await manager.settle()
        uid = uid_of(one.mirror("east"))
        one.controller("east").start("train")
        other.create(job())
        await manager.settle(TWO_SWEEPS)
        assert uid_of(one.mirror("east")) == uid
        assert other.placed() is None
        assert other.annotation(WAITING) == "east: the name is taken there"
        other.delete()
        await manager.settle(TWO_SWEEPS)
        assert uid_of(one.mirror("east")) == uid
        assert one.source()["status"]["active"] == 1


async def test_a_restart_of_either_deletes_nothing() -> None:
    """What is known of the other's mirrors is on them: no memory is needed."""
    async with two_clusters() as (one, other, manager, _):
        one.create(job("ours"))
        other.create(job("theirs"))
        await manager.settle()
    async with manager_of(other, transform=transform_of(other)) as manager:
        await manager.settle(TWO_SWEEPS)
        assert one.mirrors("ours") == one.mirrors("theirs") == ["east"]


async def test_what_went_while_nobody_looked_is_still_found() -> None:
    """D10: a mirror of this management cluster without a source goes with the sweep, as ever."""
    world = World()
    world.add_worker("east")
    async with manager_of(world, transform=transform_of(world)) as manager:
        world.create(job())
        await manager.settle()
    world.delete()
    async with manager_of(world, transform=transform_of(world)) as manager:
        await manager.settle(TWO_SWEEPS)
        assert world.mirrors() == []
        assert world.texts("OriginShared") == []


async def test_mirrors_of_an_older_manager_are_labeled_once() -> None:
    """One that goes on gets the label, in one write; its pods are not touched. One without a source goes."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world, transform=MirrorTransform(ORIGIN)) as manager:
        world.create(job())
        world.create(job("gone"))
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
    uid = uid_of(world.mirror("east"))
    assert names.MANAGEMENT_UID not in world.mirror("east")["metadata"]["labels"]
    world.delete("gone")
    before = len(east.writes())
    async with manager_of(world, transform=transform_of(world)) as manager:
        await manager.settle(TWO_SWEEPS)
        mirror = world.mirror("east")
        assert uid_of(mirror) == uid
        assert mirror["metadata"]["labels"][names.MANAGEMENT_UID] == world.origin
        assert world.mirrors("gone") == []
        assert len(east.writes()) - before == 2


@pytest.mark.parametrize("value", [None, "another"], ids=["removed", "changed"])
async def test_the_label_on_a_recorded_mirror_is_put_back(value: str | None) -> None:
    """D1: what is recorded counts more than labels."""
    world = World()
    east = world.add_worker("east")
    async with manager_of(world, transform=transform_of(world)) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        uid = uid_of(world.mirror("east"))

        def change(body: Body) -> None:
            labels = body["metadata"]["labels"]
            labels.pop(names.MANAGEMENT_UID)
            if value is not None:
                labels[names.MANAGEMENT_UID] = value

        east.server.edit("jobs", "train", change)
        await manager.settle(TWO_SWEEPS)
        mirror = world.mirror("east")
        assert (uid_of(mirror), mirror["metadata"]["labels"][names.MANAGEMENT_UID]) == (uid, world.origin)
        assert world.source()["status"]["active"] == 1


async def test_what_goes_along_is_not_shared_by_mistake() -> None:
    """D27: another management cluster's copy is foreign: it is neither changed nor deleted."""
    policy = DependencyPolicy(frozenset(("ConfigMap",)))
    async with two_clusters(dependencies=policy) as (one, other, manager, _):
        for world, text in ((one, "ours"), (other, "theirs")):
            body = {"metadata": {"name": "conf", "namespace": "default"}, "data": {"of": text}}
            world.management.server.put("configmaps", body)
        for world, name in ((one, "train"), (other, "other")):
            wanted = job(name, annotations={names.CARRY: "configmaps"})
            spec = wanted["spec"]["template"]["spec"]
            spec["containers"][0]["envFrom"] = [{"configMapRef": {"name": "conf"}}]
            world.create(wanted)
            await manager.settle(2)
        await manager.settle(TWO_SWEEPS)
        copy = one.workers["east"].server.get("configmaps", "conf", "default")
        assert copy["data"] == {"of": "ours"}
        assert copy["metadata"]["labels"] == {names.ORIGIN: ORIGIN, names.MANAGEMENT_UID: one.origin}
        assert "exists there with other contents" in (other.annotation(WAITING, "other") or "")
