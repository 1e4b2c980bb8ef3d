"""Scenarios of lost workers that no other file plays; numbers of ``docs/loss-scenarios.md`` (D13, D14)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import condition, job
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault
from doubles.world import HOME, RunningManager, World, manager_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

RESCHEDULE = Policy(on_loss=OnLoss.RESCHEDULE)
FENCE = Policy(on_loss=OnLoss.FENCE)
MINUTE = 60.0
ALWAYS = 1_000_000


async def running_on_east(world: World, manager: RunningManager, name: str = "train", **more: Any) -> str:
    """A Job that runs on east, where alone it may be at first; the uid of its mirror."""
    others = [one for one in world.workers if one != "east"]
    for other in others:
        world.annotate_worker(other, cordoned="true")
    await manager.settle()
    world.create(job(name, **more))
    await manager.settle()
    world.controller("east").start(name)
    await manager.settle()
    for other in others:
        world.annotate_worker(other, cordoned=None)
    await manager.settle()
    return uid_on(world, "east", name)


def uid_on(world: World, worker: str, name: str = "train") -> str:
    return str((world.mirror(worker, name) or {"metadata": {"uid": ""}})["metadata"]["uid"])


async def test_nothing_moves_while_the_management_cluster_is_away() -> None:
    """23, 58: for an hour; workers go on, and nothing was lost but time."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await running_on_east(world, manager)
        world.management.go_down()
        await manager.settle(60 * MINUTE)
        assert world.mirrors() == ["east"]
        world.management.restore()
        await manager.settle(2 * MINUTE)
        assert (world.placed(), world.mirrors(), uid_on(world, "east")) == ("east", ["east"], uid)
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_leases_end_while_the_management_cluster_is_away() -> None:
    """23: none is renewed past what is written down for its worker; it starts again, and has not failed."""
    async with two_workers(policy=FENCE) as (world, manager):
        await running_on_east(world, manager)
        world.management.go_down()
        before = [one for one in world.workers["east"].sent if one.writes]
        await manager.settle(60 * MINUTE)
        renewed = [one for one in world.workers["east"].sent if one.writes][len(before) :]
        assert len(renewed) <= 1  # what was covered before
        at = world.management.clock.text()
        ends = [condition(one, at, reason="DeadlineExceeded") for one in ("FailureTarget", "Failed")]
        status = world.mirror("east")["status"]
        world.controller("east").set("train", status | {"active": 0, "ready": 0, "failed": 1, "conditions": ends})
        world.management.restore()
        await manager.settle(3 * MINUTE)
        assert "Failed" not in world.conditions()
        assert world.source()["status"].get("failed", 0) == 0
        assert len(world.mirrors()) == 1
        assert "Failed" not in str((world.mirror(world.mirrors()[0]) or {}).get("status", {}).get("conditions"))


async def test_a_secret_that_is_put_back_moves_nothing() -> None:
    """29: deleted, and made again five minutes later."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await running_on_east(world, manager)
        world.management.server.remove("secrets", "east", HOME)
        await manager.settle(5 * MINUTE)
        world.register("east")
        await manager.settle(30 * MINUTE)
        assert (world.placed(), world.mirrors(), uid_on(world, "east")) == ("east", ["east"], uid)
        assert "Moved" not in world.events()


@pytest.mark.parametrize("how", ["30: its token is revoked", "41: half-open", "its Secret is gone"])
async def test_a_loss_is_a_loss_whatever_the_cause(how: str) -> None:
    """30, 41: moved after the grace, and what was left goes on its return, as where the network is gone."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager)
        east = world.workers["east"]
        if "token" in how:
            east.arrange("", "", Refused(401, "Unauthorized"), times=ALWAYS)
            east.break_watches()
        elif "half" in how:
            east.is_hung = True
        else:
            world.management.server.remove("secrets", "east", HOME)
        await manager.settle(14 * MINUTE)
        assert world.placed() == "east"
        await manager.settle(6 * MINUTE)
        assert (world.placed(), sorted(world.mirrors())) == ("west", ["east", "west"])
        assert world.texts("Moved") == ["moved from east to west (move 1); the copy on east may still run"]
        east.is_hung = False
        east.restore()
        if "Secret" in how:
            world.register("east")
        await manager.settle(2 * MINUTE)
        assert world.mirrors() == ["west"]


async def test_a_worker_that_is_another_cluster_now_stays_lost() -> None:
    """31: restored with another uid: refused, and its Jobs are moved by their policy; nothing is done there."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager)
        world.add_cluster("restored")
        world.management.server.edit(
            "secrets", "east", lambda body: body["data"].update(kubeconfig="cmVzdG9yZWQ="), HOME
        )
        await manager.settle(16 * MINUTE)
        assert world.placed() == "west"
        assert "another cluster" in world.record()["east"]
        assert [one for one in world.workers["restored"].sent if one.writes] == []


async def test_an_unknown_create_on_a_lost_worker_leads_to_no_third_place() -> None:
    """39: no answer from west, which is lost too: it stays with west until that is lost for the grace."""
    world = World()
    for name in ("east", "west", "north", "south", "other"):
        world.add_worker(name)
    async with manager_of(world, policy=RESCHEDULE) as manager:
        await running_on_east(world, manager)
        for name in ("north", "south", "other"):
            world.annotate_worker(name, cordoned="true")
        world.workers["east"].go_down()
        world.workers["west"].arrange("create", "jobs", Fault.LOSE_ANSWER, times=1)
        await manager.settle(14 * MINUTE + 50)
        while world.placed() != "west":
            await manager.settle(0.1)
        world.workers["west"].go_down()
        for name in ("north", "south", "other"):
            world.annotate_worker(name, cordoned=None)
        await manager.settle(14 * MINUTE)
        assert world.placed() == "west"
        assert not set(world.mirrors()) & {"north", "south", "other"}
        await manager.settle(3 * MINUTE)
        assert world.placed() in ("north", "south", "other")
        for name in ("east", "west"):
            world.workers[name].restore()
        await manager.settle(2 * MINUTE)
        assert world.mirrors() == [world.placed()]


async def test_a_worker_that_refuses_creates_is_not_lost() -> None:
    """42: what runs there goes on, for as long as it likes."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await running_on_east(world, manager)
        world.workers["east"].arrange("create", "jobs", forbidden(), times=ALWAYS)
        world.create(job("second", annotations={names.WORKER_SELECTOR: "name=east"}))
        await manager.settle(40 * MINUTE)
        assert (world.placed(), uid_on(world, "east")) == ("east", uid)
        assert "Moved" not in world.events()
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_an_index_that_failed_before_and_succeeds_after_is_complete() -> None:
    """47: failedIndexes "0" is stored, the new copy is not seeded, and 0 succeeds there: no status is refused (V27)."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 0}
        template = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
        await running_on_east(world, manager, **spec, **template)
        status = world.mirror("east")["status"]
        world.controller("east").set("train", status | {"active": 1, "ready": 1, "failed": 1, "failedIndexes": "0"})
        await manager.settle()
        assert world.source()["status"]["failedIndexes"] == "0"
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        world.controller("west").start("train")
        await manager.settle(2)
        status = world.mirror("west")["status"]
        done = {"active": 1, "ready": 1, "succeeded": 1, "completedIndexes": "0", "failedIndexes": ""}
        world.controller("west").set("train", status | done)
        await manager.settle(2)
        stored = world.source()["status"]
        assert (stored["completedIndexes"], stored.get("failedIndexes", "")) == ("0", "")
        assert "StatusRefused" not in world.events()


async def test_a_namesake_waits_until_the_old_mirror_is_gone() -> None:
    """52: deleted and created anew while its worker is lost; on the return the old mirror goes first."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        old = await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(2 * MINUTE)
        world.delete()
        await manager.settle()
        world.create(job(annotations={names.WORKER_SELECTOR: "name=east"}))
        await manager.settle(2 * MINUTE)
        assert uid_on(world, "east") == old
        world.workers["east"].restore()
        await manager.settle(2 * MINUTE)
        assert uid_on(world, "east") not in ("", old)
        mirror = world.mirror("east")
        assert mirror is not None
        assert mirror["metadata"]["labels"][names.SOURCE_UID] == world.source()["metadata"]["uid"]


async def test_the_management_cluster_is_never_lost_alone_as_a_worker() -> None:
    """58: as a worker of its own it is away when all is; nothing moves then, nor when it is back."""
    world = World()
    world.register("self", leads_to="management", annotations={"namespace-prefix": "run-"})
    world.add_worker("west", annotations={"cordoned": "true"})
    world.management.server.put("namespaces", {"metadata": {"name": "run-default"}})
    async with manager_of(world, policy=RESCHEDULE) as manager:
        world.create(job())
        await manager.settle(5)
        mirror = world.management.server.get("jobs", "train", "run-default")
        world.annotate_worker("west", cordoned=None)
        await manager.settle(2)
        world.management.go_down()
        await manager.settle(60 * MINUTE)
        world.management.restore()
        await manager.settle(2 * MINUTE)
        assert world.placed() == "self"
        assert (
            world.management.server.get("jobs", "train", "run-default")["metadata"]["uid"] == mirror["metadata"]["uid"]
        )
        assert "Moved" not in world.events()
