"""The namespace prefix of a worker: the one in use is recorded and followed; which namespaces it reaches (D18, D19)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.world import HOME, WAITING, World, manager_of, standby_of

from mirror.embedded.faults.kinds import Slow
from mirror.embedded.faults.targets import Which
from mirror.model import names

pytestmark = pytest.mark.looptime

KEY = "metadata.annotations[jobmirror.io/namespace-prefix]"


def world_with(prefix: str | None, **more: Mapping[str, str]) -> World:
    world = World()
    east = world.add_worker("east", annotations={"namespace-prefix": prefix} if prefix else {}, **more)
    for namespace in ("a-default", "b-default"):
        east.server.put("namespaces", {"metadata": {"name": namespace}})
    return world


def places(world: World, name: str = "train") -> list[str]:
    """The namespaces on east that have a Job of this name."""
    return [ns for ns in ("a-default", "b-default", "default") if world.mirror("east", name, ns) is not None]


@pytest.mark.slow
@pytest.mark.parametrize("namespaces", [(), ("default",)], ids=["one watch", "a watch per namespace"])
@pytest.mark.parametrize("is_slow", [False, True], ids=["", "sources are known late"])
@pytest.mark.parametrize("change", ["b-", None], ids=["another", "none"])
async def test_a_prefix_that_changes_while_no_manager_runs_takes_effect_when_nothing_is_left(
    change: str | None, is_slow: bool, namespaces: tuple[str, ...]
) -> None:
    """D2: until then mirrors are where they were made, their status comes back, and the Secret says what is wrong."""
    world = world_with("a-")
    async with manager_of(world, namespaces=namespaces) as manager:
        for name in ("started", "fresh"):
            world.create(job(name))
        await manager.settle()
        world.controller("east").start("started", namespace="a-default")
        await manager.settle()
    uids = {name: world.mirror("east", name, "a-default")["metadata"]["uid"] for name in ("started", "fresh")}
    world.annotate_worker("east", **{"namespace-prefix": change})
    if is_slow:
        world.management.faults.arrange(Slow(1.0), Which("watch", "jobs"), times=1)
    async with manager_of(world, namespaces=namespaces) as manager:
        world.create(job("new"))
        await manager.settle(130)
        for name, uid in uids.items():
            assert places(world, name) == ["a-default"]
            assert world.mirror("east", name, "a-default")["metadata"]["uid"] == uid
            assert "Failed" not in world.conditions(name)
        assert (world.annotation(WAITING, "new") or "").startswith(f"east: misconfigured ({KEY}: is ")
        assert KEY in world.texts("BadAnnotation")[0]
        world.controller("east").complete("started", namespace="a-default")
        await manager.settle()
        assert "Complete" in world.conditions("started")
        world.delete("started")
        world.delete("fresh")
        await manager.settle(60)
        assert places(world, "new") == [f"{change or ''}default"]
        world.controller("east").complete("new", namespace=f"{change or ''}default")
        await manager.settle()
        assert "Complete" in world.conditions("new")


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_prefix_that_is_put_back_changes_nothing(restarts: bool) -> None:
    """D2: refused while Jobs are there, and mended as the documents say."""
    world = world_with("a-")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train", namespace="a-default")
        if not restarts:
            world.annotate_worker("east", **{"namespace-prefix": "b-"})
            await manager.settle(30)
            world.annotate_worker("east", **{"namespace-prefix": "a-"})
            await manager.settle(30)
    if restarts:
        world.annotate_worker("east", **{"namespace-prefix": "b-"})
        async with manager_of(world) as manager:
            await manager.settle(30)
        world.annotate_worker("east", **{"namespace-prefix": "a-"})
    async with manager_of(world) as manager:
        await manager.settle(30)
        assert places(world) == ["a-default"]
        assert "Failed" not in world.conditions()
        world.create(job("other"))
        await manager.settle()
        assert places(world, "other") == ["a-default"]


@pytest.mark.parametrize(("old", "new"), [("", "b-"), ("a-", "b-"), ("a-", "")])
async def test_mirrors_of_finished_jobs_keep_the_prefix_in_use_and_go_with_their_sources(old: str, new: str) -> None:
    """D8, D10: nothing is left behind under the old prefix."""
    world = world_with(old)
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").complete("train", namespace=f"{old}default")
        await manager.settle()
        world.annotate_worker("east", **{"namespace-prefix": new or None})
        await manager.settle(30)
    async with manager_of(world) as manager:
        await manager.settle(70)
        assert places(world) == [f"{old}default"]
        world.delete()
        await manager.settle(30)
        assert places(world) == []
        world.create(job("next"))
        await manager.settle(5)
        assert places(world, "next") == [f"{new}default"]


async def test_a_standby_that_met_a_cluster_before_it_was_forgotten_follows_the_record_of_where_its_mirrors_live() -> (
    None
):
    """D19: what is recorded of a cluster is what is followed, at once, whatever was known while standing by."""
    world = world_with(None)
    async with manager_of(world) as manager:
        await manager.settle(1)
        world.management.server.remove("secrets", "east", HOME)
        await manager.settle(1300)
    assert "east" not in world.record()
    world.register("east", annotations={"namespace-prefix": "b-"})
    async with standby_of(world, LoopClock()) as manager:
        await manager.settle(5)
        manager.start(manager.mirroring.lead(), "lead")
        world.create(job())
        await manager.settle(60)
        [place] = places(world)
        assert place == f"{json.loads(world.record()['east']).get('namespacePrefix', '')}default"


@pytest.mark.slow
async def test_a_recorded_mirror_under_another_prefix_is_kept_whatever_its_labels_say() -> None:
    """D8: its worker has another name and another prefix now, and its label names another source."""
    world = world_with("b-")
    server = world.workers["east"].server
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").complete("train", namespace="b-default")
        await manager.settle()
        assert "Complete" in world.conditions()
    server.edit(
        "jobs", "train", lambda body: body["metadata"]["labels"].update({names.SOURCE_UID: "policy"}), "b-default"
    )
    world.management.server.remove("secrets", "east", HOME)
    world.management.server.remove("configmaps", "jobmirror-workers", HOME)
    world.register("east-2", leads_to="east")
    async with manager_of(world) as manager:
        await manager.settle(3600)
        assert places(world) == ["b-default"]
        world.delete()
        await manager.settle(3600)
        assert places(world) == []


async def test_a_mirror_that_is_under_another_prefix_than_expected_is_not_given_up() -> None:
    """D11: the record of workers was lost, and the prefix changed at the same time."""
    world = world_with("a-")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train", namespace="a-default")
        await manager.settle()
    world.management.server.remove("configmaps", "jobmirror-workers", HOME)
    world.annotate_worker("east", **{"namespace-prefix": "b-"})
    async with manager_of(world) as manager:
        await manager.settle(60)
        assert "Failed" not in world.conditions()
        assert world.annotation(WAITING) == "the mirror on worker east is not in the expected namespace"
        assert places(world) == ["a-default"]


@pytest.mark.slow
@pytest.mark.parametrize("namespaces", [None, "*", "system,kube-system"], ids=["default", "any", "named"])
@pytest.mark.parametrize(("prefix", "source"), [("jobmirror-", "system"), ("kube-", "system"), ("kube-", "public")])
async def test_a_prefix_leads_to_no_closed_namespace(prefix: str, source: str, namespaces: str | None) -> None:
    """D18: the target namespace is judged, too; that of our own account is closed in any case."""
    world = World()
    annotations = {"namespace-prefix": prefix} | ({"namespaces": namespaces} if namespaces else {})
    world.register("home", annotations=annotations, leads_to="management")
    world.management.server.put("namespaces", {"metadata": {"name": source}})
    async with manager_of(world) as manager:
        body = job("evil", namespace=source)
        body["spec"]["template"]["spec"]["serviceAccountName"] = "jobmirror"
        world.create(body)
        await manager.settle(5)
        assert world.management.server.find("jobs", "evil", prefix + source) is None
        assert world.annotation(WAITING, "evil", source) == "home: does not accept the namespace"


async def test_the_namespace_of_our_own_account_is_closed_whatever_the_secret_says() -> None:
    """D18: without a prefix, too."""
    world = World()
    world.add_worker("east", annotations={"namespaces": f"{HOME},default"})
    async with manager_of(world) as manager:
        world.create(job("evil", namespace=HOME))
        world.create(job("good"))
        await manager.settle(5)
        assert world.mirror("east", "evil", HOME) is None
        assert world.mirror("east", "good") is not None
