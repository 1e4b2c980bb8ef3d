"""What a Namespace says of lost workers holds for its Jobs that say nothing (D14)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from doubles.jobs import job
from doubles.refusals import forbidden
from doubles.world import WAITING, RunningManager, World, manager_of, two_workers

from mirror.controllers.observing import Observer
from mirror.decide.snapshot import Policy, Snapshot
from mirror.model import names
from mirror.model.fences import FENCED, mark_of
from mirror.model.keys import SourceKey
from mirror.model.losses import OnLoss
from mirror.runtime.informer import Informer

pytestmark = pytest.mark.looptime

MINUTE = 60.0
ALWAYS = 1_000_000
READ: dict[str, Any] = {"on_loss_of_namespaces": True}


def say(world: World, text: str | None, namespace: str = "default") -> None:
    """What the annotation of the Namespace is from now on."""

    def change(body: dict[str, Any]) -> None:
        annotations = body["metadata"].setdefault("annotations", {})
        annotations.pop(names.ON_WORKER_LOSS, None)
        if text is not None:
            annotations[names.ON_WORKER_LOSS] = text

    world.management.server.edit("namespaces", namespace, change)


async def running_on_east(world: World, manager: RunningManager, **more: Any) -> None:
    """A Job that runs there, and may be moved to west."""
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(**more))
    await manager.settle()
    world.controller("east").start("train")
    await manager.settle()
    world.annotate_worker("west", cordoned=None)
    await manager.settle()


async def placed_after_loss(world: World, manager: RunningManager) -> str | None:
    world.workers["east"].go_down()
    await manager.settle(16 * MINUTE)
    return world.placed()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("on_job", "on_namespace", "setting", "to"),
    [
        pytest.param(None, "Reschedule", OnLoss.WAIT, "west", id="the Namespace before the setting"),
        pytest.param(None, "Wait", OnLoss.RESCHEDULE, "east", id="also where it waits"),
        pytest.param("Wait", "Reschedule", OnLoss.WAIT, "east", id="the Job before the Namespace"),
        pytest.param("Reschedule", "Wait", OnLoss.WAIT, "west", id="also where it moves"),
        pytest.param(None, None, OnLoss.RESCHEDULE, "west", id="the setting where neither says anything"),
    ],
)
async def test_the_job_decides_before_its_namespace_and_that_before_the_setting(
    on_job: str | None, on_namespace: str | None, setting: OnLoss, to: str
) -> None:
    async with two_workers(policy=Policy(on_loss=setting), **READ) as (world, manager):
        say(world, on_namespace)
        await running_on_east(world, manager, annotations={names.ON_WORKER_LOSS: on_job} if on_job else {})
        assert await placed_after_loss(world, manager) == to


@pytest.mark.slow
async def test_it_is_read_at_the_decision() -> None:
    """Changed while the worker is lost, it holds; taken away, the setting does."""
    async with two_workers(**READ) as (world, manager):
        await running_on_east(world, manager)
        assert await placed_after_loss(world, manager) == "east"
        say(world, "Reschedule")
        await manager.settle(MINUTE)
        assert world.placed() == "west"
    async with two_workers(**READ) as (world, manager):
        say(world, "Reschedule")
        await running_on_east(world, manager)
        say(world, None)
        assert await placed_after_loss(world, manager) == "east"


async def test_another_namespace_says_nothing_of_it() -> None:
    async with two_workers(**READ) as (world, manager):
        world.management.server.put("namespaces", {"metadata": {"name": "other"}})
        say(world, "Reschedule", "other")
        await running_on_east(world, manager)
        assert await placed_after_loss(world, manager) == "east"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("Reschedule", "the namespace's policy Reschedule is not allowed here", id="60: not allowed"),
        pytest.param("Pray", "the namespace's policy 'Pray' is unknown", id="unknown"),
        pytest.param("", "the namespace's policy '' is unknown", id="empty"),
    ],
)
async def test_what_is_not_allowed_or_understood_is_wait_and_is_told_where_its_author_looks(
    text: str, told: str
) -> None:
    """60: an event in the namespace, about it; and each Job whose worker is lost says it. The setting does not hold."""
    policy = Policy(on_loss=OnLoss.FENCE, on_loss_allowed=frozenset((OnLoss.WAIT, OnLoss.FENCE)))
    async with two_workers(policy=policy, **READ) as (world, manager):
        say(world, text)
        await running_on_east(world, manager)
        events = [one for one in world.management.server.all("events") if one["involvedObject"]["kind"] == "Namespace"]
        (event,) = events
        assert event["metadata"]["namespace"] == event["involvedObject"]["name"] == "default"
        assert (event["reason"], event["type"]) == ("UnknownAnnotation", "Warning")
        assert event["message"] == f"annotation {names.ON_WORKER_LOSS}: {told}; Wait holds"
        assert mark_of(world.source()["status"]) == ""
        assert await placed_after_loss(world, manager) == "east"
        assert f"({told}: treated as Wait)" in (world.annotation(WAITING) or "")


async def test_a_misspelt_annotation_of_a_namespace_is_told_there() -> None:
    """D22: its author looks there; what is another's, or ours and for Jobs, is none."""
    async with two_workers(**READ) as (world, manager):
        annotations = {names.PREFIX + "on-workers-loss": "Fence", names.CARRY: "", "acme.io/on-worker-loss": "x"}
        world.management.server.edit(
            "namespaces", "default", lambda body: body["metadata"].update(annotations=annotations)
        )
        await running_on_east(world, manager)
        events = [one for one in world.management.server.all("events") if one["involvedObject"]["kind"] == "Namespace"]
        assert [(one["reason"], one["message"]) for one in events] == [
            (
                "UnknownAnnotation",
                "unknown annotation jobmirror.io/on-workers-loss (did you mean jobmirror.io/on-worker-loss?)",
            )
        ]
        assert mark_of(world.source()["status"]) == ""


async def test_a_lease_is_put_on_and_taken_off_when_the_namespace_changes() -> None:
    """18, 19: while the worker is reachable, at once."""
    async with two_workers(**READ) as (world, manager):
        await running_on_east(world, manager, activeDeadlineSeconds=7200)
        say(world, "Fence")
        await manager.settle(5)
        assert mark_of(world.source()["status"]) == FENCED
        assert world.mirror("east")["spec"]["activeDeadlineSeconds"] < 1900
        say(world, None)
        await manager.settle(5)
        assert mark_of(world.source()["status"]) == ""
        assert world.mirror("east")["spec"]["activeDeadlineSeconds"] == 7200


async def test_a_mirror_is_made_with_its_lease() -> None:
    """Also right after taking over: nothing is placed before Namespaces are read."""
    world = World()
    world.add_worker("east")
    say(world, "Fence")
    world.create(job())
    async with manager_of(world, **READ) as manager:
        await manager.settle(5)
        assert mark_of(world.source()["status"]) == FENCED
        creates = [one for one in world.workers["east"].sent if one.verb == "create"]
        patches = [one for one in world.workers["east"].sent if one.verb == "patch"]
        assert (len(creates), len(patches)) == (1, 0)


@pytest.mark.slow
async def test_what_may_not_be_read_is_wait_and_a_lease_stays() -> None:
    """Without the permission: Jobs are placed all the same, and wait; one that has a lease keeps it."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    say(world, "Fence")
    async with manager_of(world, **READ) as manager:
        await running_on_east(world, manager)
        assert mark_of(world.source()["status"]) == FENCED
    for verb in ("list", "watch"):
        world.management.arrange(verb, "namespaces", forbidden(), times=ALWAYS)
    async with manager_of(world, policy=Policy(on_loss=OnLoss.RESCHEDULE), **READ) as manager:
        world.create(job("second"))
        await manager.settle(20)
        assert world.placed("second") is not None
        assert mark_of(world.source()["status"]) == FENCED
        assert await placed_after_loss(world, manager) == "east"
        assert "(the policy of its namespace is not known: treated as Wait)" in (world.annotation(WAITING) or "")
        world.management.restore()
        await manager.settle(30 * MINUTE)
        assert world.placed() == "west"


async def test_started_jobs_of_a_namespace_that_moves_leave_a_drained_worker() -> None:
    """54: the consent may be the Namespace's."""
    async with two_workers(**READ) as (world, manager):
        say(world, "Reschedule")
        await running_on_east(world, manager)
        world.annotate_worker("east", drain="move")
        await manager.settle(10)
        assert world.mirror("east")["spec"]["suspend"] is True


@pytest.mark.slow
async def test_where_they_are_not_read_nothing_is_asked() -> None:
    """The default: no request, no permission, and the annotation means nothing."""
    async with two_workers() as (world, manager):
        say(world, "Reschedule")
        await running_on_east(world, manager)
        assert await placed_after_loss(world, manager) == "east"
        assert not [one for one in world.management.sent if one.verb in ("list", "watch") and "namespaces?" in one.path]
        assert not [one for one in world.management.sent if one.path == "/api/v1/namespaces"]


async def test_only_sources_of_the_namespace_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Namespace that changes costs its own Jobs a look, and nobody a request."""
    looked: list[str] = []
    async with two_workers(**READ) as (world, manager):
        world.management.server.put("namespaces", {"metadata": {"name": "other"}})
        for worker in ("east", "west"):
            world.workers[worker].server.put("namespaces", {"metadata": {"name": "other"}})
        world.create(job("here"))
        world.create(job("there", namespace="other"))
        await manager.settle(5)
        look = Observer.look

        def noted(self: Observer, key: SourceKey) -> Snapshot | None:
            looked.append(key.namespace)
            return look(self, key)

        monkeypatch.setattr(Observer, "look", noted)
        before = world.writes()
        say(world, "Reschedule", "other")
        await manager.settle(5)
        assert set(looked) == {"other"}
        assert world.writes() == before


async def test_who_takes_over_reads_them_anew() -> None:
    """What a standby, or a leader before, has known is not taken for granted."""
    world = World()
    world.add_worker("east")
    async with manager_of(world, **READ) as manager:
        policies = manager.mirroring._parts.namespace_policies
        assert policies is not None
        assert isinstance(policies._informer, Informer)
        say(world, "Reschedule")
        await asyncio.sleep(2)
        assert policies.of("default") == "Reschedule"
        assert policies.of("kube-system") is None
