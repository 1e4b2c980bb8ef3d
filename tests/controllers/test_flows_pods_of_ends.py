"""Why the pods of a failed Job failed is reported with its end, whichever of the two is seen first (D22)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from doubles.candidates import candidate_for
from doubles.jobs import Body, condition, job
from doubles.transport import Fault
from doubles.watched_pods import disrupt, let_go, put_pod, set_status, watched, watching
from doubles.world import World, manager_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.workers import pods as watching_pods

pytestmark = pytest.mark.looptime

STARTS = {"phase": "Pending"}
TEXT = "worker east: pod train-a: container main: exit code 3"


def ended(code: int = 3, reason: str = "Error") -> Body:
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return {"phase": "Failed", "containerStatuses": [{"name": "main", "state": state}]}


def waits(reason: str, message: str) -> Body:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "main", "image": "nope:1", "state": state}]}


UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}],
}


def end(world: World, verdict: str = "Failed", reason: str = "BackoffLimitExceeded", **counted: Any) -> None:
    """Its controller says that the Job is over."""
    at = world.workers["east"].clock.text()
    target = {"Failed": "FailureTarget", "Complete": "SuccessCriteriaMet"}[verdict]
    started = (world.mirror("east") or {})["status"]["startTime"]
    status = {"startTime": started, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, **counted}
    if verdict == "Complete":
        status["completionTime"] = at
    ends = [condition(one, at, reason=reason) for one in (target, verdict)]
    world.controller("east").set("train", status | {"conditions": ends})


def said(world: World) -> list[tuple[str, str]]:
    """The warnings about the Job."""
    return [(one["reason"], one["message"]) for one in world.management.server.all("events") if one["type"] != "Normal"]


async def test_an_exit_code_that_is_seen_with_the_end_is_told_once() -> None:
    """The Job ends before its trouble could be shown by a condition; a finished Job's conditions stay as they are."""
    async with watched() as (world, manager):
        writes = world.writes()
        put_pod(world, "train-a", ended())
        end(world, failed=1)
        await manager.settle(1)
        assert said(world) == [("PodsFailing", TEXT)]
        status = world.source()["status"]
        assert names.PROGRESSING not in [one["type"] for one in status["conditions"]]
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"
        assert world.writes() == writes + 2  # one status, one event
        await manager.settle(1200)
        assert said(world) == [("PodsFailing", TEXT)]
        assert world.source()["status"] == status


async def test_an_exit_code_that_is_seen_after_the_end_is_told_once() -> None:
    """Two watches, and the one of Jobs was quicker."""
    async with watched() as (world, manager):
        put_pod(world, "train-a", STARTS)
        end(world, failed=1)
        await manager.settle(5)
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"
        assert said(world) == []
        status, writes = world.source()["status"], world.writes()
        set_status(world, "train-a", ended(137, "OOMKilled"))
        await manager.settle(1)
        text = "worker east: pod train-a: container main: OOMKilled, exit code 137"
        assert said(world) == [("OOMKilled", text)]
        put_pod(world, "train-b", ended(137, "OOMKilled"))
        await manager.settle(1200)
        assert said(world) == [("OOMKilled", text)]
        assert world.source()["status"] == status
        assert world.writes() == writes + 1


async def test_a_trouble_that_was_told_is_not_told_again_with_the_end() -> None:
    async with watched() as (world, manager):
        put_pod(world, "train-a", ended())
        world.workers["east"].server.edit("jobs", "train", lambda body: body["status"].update(failed=2), "default")
        await manager.settle(1)
        assert said(world) == [("PodsFailing", TEXT)]
        put_pod(world, "train-b", ended())
        end(world, failed=3)
        await manager.settle(1200)
        assert said(world) == [("PodsFailing", TEXT)]


async def test_a_trouble_that_had_gone_and_comes_back_at_the_end_is_told_once() -> None:
    """One event for each Job and reason: its pods were being deleted when the verdict came."""
    async with watched() as (world, manager):
        put_pod(world, "train-a", waits("ErrImagePull", "not found"))
        await manager.settle(1)
        assert [reason for reason, _ in said(world)] == ["ImagePullBackOff"]
        world.workers["east"].server.remove("pods", "train-a")
        await manager.settle(15)
        end(world, reason="DeadlineExceeded")
        await manager.settle(5)
        assert [reason for reason, _ in said(world)] == ["ImagePullBackOff"]


async def test_what_pods_waited_for_until_they_were_deleted_is_told_with_the_end() -> None:
    """A deadline: the Job controller deletes the pods first, and another trouble was shown only just before."""
    async with watched() as (world, manager):
        put_pod(world, "train-a", UNSCHEDULABLE)
        await manager.settle(1)
        assert [reason for reason, _ in said(world)] == ["Unschedulable"]
        set_status(world, "train-a", waits("ErrImagePull", "not found"))
        await manager.settle(1)
        world.workers["east"].server.remove("pods", "train-a")
        end(world, reason="DeadlineExceeded")
        await manager.settle(1)
        text = "worker east: pod train-a: container main: image nope:1: not found"
        assert said(world)[1:] == [("ImagePullBackOff", text)]


async def test_an_eviction_is_told_with_the_end_that_it_brings() -> None:
    """Its pod is deleted, and the one that took its place with the Job's end."""
    async with watched() as (world, manager):
        put_pod(world, "train-a", {"phase": "Running"})
        await manager.settle(1)
        disrupt(world, "train-a", "Taint manager: deleting due to NoExecute taint", **ended(143))
        put_pod(world, "train-b", STARTS)
        let_go(world, "train-a")
        world.workers["east"].server.remove("pods", "train-b")
        end(world, failed=1)
        await manager.settle(1)
        text = "worker east: pod train-a: Taint manager: deleting due to NoExecute taint"
        assert said(world) == [("Evicted", text)]


async def test_a_pod_that_was_deleted_and_replaced_is_of_the_past() -> None:
    """The next one runs until the deadline: what the first one waited for has nothing to do with the end."""
    async with watched() as (world, manager):
        put_pod(world, "train-a", waits("ErrImagePull", "not found"))
        await manager.settle(11)
        world.workers["east"].server.remove("pods", "train-a")
        put_pod(world, "train-b", {"phase": "Running"})
        await manager.settle(11)
        end(world, reason="DeadlineExceeded")
        await manager.settle(5)
        assert [reason for reason, _ in said(world)] == ["ImagePullBackOff"]
        pods = manager.registry.workers["east"].pods
        assert pods is not None
        assert pods.failure_of(world.source()["metadata"]["uid"], "default") is None


async def test_a_job_that_completes_is_told_nothing_of_pods_that_failed_on_the_way() -> None:
    async with watched() as (world, manager):
        put_pod(world, "train-a", ended())
        end(world, "Complete", "CompletionsReached", failed=1, succeeded=1)
        await manager.settle(30)
        assert "Complete" in world.conditions()
        assert said(world) == []


async def test_a_manager_that_takes_over_tells_no_end_that_another_has_stored() -> None:
    """A thousand failed Jobs would be reported again at each restart; an end that is not stored yet is reported."""
    world = World()
    world.add_worker("east")
    async with manager_of(world, **watching(world.origin)) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
    put_pod(world, "train-a", ended())
    end(world, failed=1)
    async with manager_of(world, **watching(world.origin)) as manager:
        await manager.settle(30)
        assert said(world) == [("PodsFailing", TEXT)]
    for event in world.management.server.all("events"):
        world.management.server.remove("events", event["metadata"]["name"], event["metadata"]["namespace"])
    async with manager_of(world, **watching(world.origin)) as manager:
        await manager.settle(30)
        assert said(world) == []


async def test_a_standby_tells_no_end_that_the_leader_has_stored() -> None:
    """It has seen the same mirrors end, and is the leader later."""
    world = World()
    world.add_worker("east")
    options = watching(world.origin)
    async with candidate_for(world, "leader", **options) as leader, candidate_for(world, **options) as standby:
        leading = leader.lead()
        world.create(job())
        await asyncio.sleep(1)
        world.controller("east").start("train")
        await asyncio.sleep(15)
        put_pod(world, "train-a", ended())
        end(world, failed=1)
        await asyncio.sleep(5)
        assert said(world) == [("PodsFailing", TEXT)]
        leading.cancel()
        standby.lead()
        await asyncio.sleep(30)
        assert said(world) == [("PodsFailing", TEXT)]


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST, Fault.BREAK])
async def test_an_end_whose_write_has_no_answer_is_told_once(fault: Fault) -> None:
    async with watched() as (world, manager):
        world.management.arrange("patch", "jobs/status", fault)
        put_pod(world, "train-a", ended())
        end(world, failed=1)
        await manager.settle(90)
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"
        assert said(world) == [("PodsFailing", TEXT)]


async def test_the_mirror_that_is_deleted_at_once_keeps_nothing_from_being_told() -> None:
    """``mirrors.retention: 0s``."""
    async with watched(policy=Policy(retention_seconds=0)) as (world, manager):
        put_pod(world, "train-a", STARTS)
        end(world, failed=1)
        await manager.settle(1)
        assert world.mirrors() == []
        set_status(world, "train-a", ended())
        await manager.settle(1)
        assert said(world) == [("PodsFailing", TEXT)]


async def test_without_watching_pods_an_end_is_told_as_it_is() -> None:
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        worker = str(world.placed())
        world.controller(worker).start("train")
        await manager.settle()
        at = world.workers[worker].clock.text()
        ends = [condition(one, at, reason="BackoffLimitExceeded") for one in ("FailureTarget", "Failed")]
        started = (world.mirror(worker) or {})["status"]["startTime"]
        world.controller(worker).set("train", {"startTime": started, "failed": 1, "conditions": ends})
        await manager.settle(130)
        assert world.conditions()["Failed"] == "BackoffLimitExceeded"
        assert said(world) == []


async def test_what_pods_of_the_past_waited_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """D29: whoever may create pods on a worker may create and delete any number, with any label."""
    monkeypatch.setattr(watching_pods, "MOST_PAST", 10)
    async with watched() as (world, manager):
        labels = {names.ORIGIN: world.origin}
        for number in range(30):
            name = f"spoof-{number}"
            put_pod(world, name, ended(), labels=labels | {names.SOURCE_UID: f"u-{number}"})
            world.workers["east"].server.remove("pods", name)
        await manager.settle(1)
        pods = manager.registry.workers["east"].pods
        assert pods is not None
        assert len(pods._past) == 10
