"""Leases whose end is not what it seems, or that cannot be kept: nothing is counted on that is not known (D14)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from controllers.test_flows_fence import (
    FENCE,
    MARGIN,
    MINUTE,
    TTL,
    covered,
    deadline,
    expire,
    fenced_on_east,
    left,
    mark,
    start,
)
from doubles.admission import mutate_jobs
from doubles.jobs import condition, job
from doubles.managers import HOME
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault
from doubles.world import WAITING, World, manager_of, two_workers

from mirror.model import names
from mirror.model.fences import VOIDED

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

QUEUED = {"kueue.x-k8s.io/queue-name": "q"}


def suspended_there(world: World, *, is_suspended: bool) -> None:
    """A queue of east holds it, or lets it run: that is its spec alone."""
    spec = {"suspend": is_suspended}
    world.workers["east"].server.edit("jobs", "train", lambda body: body["spec"].update(spec), "default")


def admitted(body: dict[str, Any]) -> None:
    body["spec"]["suspend"] = False
    metadata = body["spec"]["template"].setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), names.POD_SET: "main"}


async def waits_on_east(world: World, manager: Any, why: str) -> None:
    """It stays there however long that is lost, and says why."""
    await manager.settle(90 * MINUTE)
    assert (world.placed(), world.mirrors()) == ("east", ["east"])
    assert f"it is not fenced: {why}" in (world.annotation(WAITING) or "")


# -- who else starts it ------------------------------------------------------------------------------------------------


async def test_what_a_queue_held_before_it_had_started_is_not_fenced() -> None:
    """10, 11: it may be admitted at any time while its worker is lost."""
    async with two_workers(policy=FENCE) as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.create(job(labels=QUEUED))
        await manager.settle()
        suspended_there(world, is_suspended=True)
        world.controller("east").suspend("train")
        await manager.settle(30)
        world.annotate_worker("west", cordoned=None)
        await manager.settle()
        world.workers["east"].go_down()
        await waits_on_east(world, manager, "it was not seen to start")


async def test_what_a_queue_of_its_worker_runs_is_not_fenced() -> None:
    """11: it may be suspended and admitted again while its worker is lost; it has its user's deadline."""
    async with two_workers(policy=FENCE) as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.create(job(labels=QUEUED))
        await manager.settle()
        world.workers["east"].server.edit("jobs", "train", admitted, "default")
        start(world)
        await manager.settle(5)
        assert (mark(world), deadline(world)) == (VOIDED, None)
        world.annotate_worker("west", cordoned=None)
        await manager.settle()
        world.workers["east"].go_down()
        await waits_on_east(world, manager, "queue q of worker east may start its mirror anew")


async def test_a_resume_that_was_not_answered_may_start_it() -> None:
    """It was suspended when it was seen last; whether it goes on is not known."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(5 * MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        world.controller("east").suspend("train")
        await manager.settle(5)
        east = world.workers["east"]
        for verb in ("patch", "get"):
            east.arrange(verb, "jobs", Fault.LOSE_ANSWER, times=100)
        east.mute_watches("jobs")
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(0.3)
        east.go_down()
        assert world.mirror("east")["spec"]["suspend"] is False
        await waits_on_east(world, manager, "it was not seen to start")


async def test_what_outlives_its_lease_is_not_fenced() -> None:
    """Its controller manager is down, which is seen: nothing is counted on the lease that it ignores."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        east = world.workers["east"]
        east.go_down()
        await manager.settle(left(world) + 300)
        east.restore()
        await manager.settle(MINUTE)
        world.annotate_worker("west", cordoned=None)
        await manager.settle(5)
        east.go_down()
        await waits_on_east(world, manager, "it had outlived its lease on worker east")


# -- when it ends ------------------------------------------------------------------------------------------------------


async def test_a_deadline_that_has_passed_leaves_its_pods_their_grace_period() -> None:
    """Its user makes it shorter than it has run; from then on its pods have an hour to end."""
    template = {
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 3600,
            "containers": [{"name": "main", "image": "busybox"}],
        }
    }
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager, template=template)
        await manager.settle(60 * MINUTE)
        world.edit(lambda body: body["spec"].update(activeDeadlineSeconds=600))
        await manager.settle(2)
        assert left(world) < -2900
        world.workers["east"].go_down()
        await manager.settle(60 * MINUTE)
        assert world.placed() == "east"
        await manager.settle(5 * MINUTE)
        assert world.placed() == "west"


async def test_a_record_of_before_is_no_bound() -> None:
    """The record is from a backup; a lease that was sent before the loss lasts for the TTL from then on."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world, policy=FENCE) as manager:
        await fenced_on_east(world, manager)
        await manager.settle(9 * MINUTE)
        world.workers["east"].go_down()
        await manager.settle(MINUTE)
    ends_in = left(world)
    bound = {"fencedUntil": "2026-01-01T00:00:00Z"}

    def restore(body: dict[str, Any]) -> None:
        body["data"]["east"] = json.dumps(json.loads(body["data"]["east"]) | bound)

    world.management.server.edit("configmaps", names.WORKERS_CONFIGMAP, restore, HOME)
    async with manager_of(world, policy=FENCE) as manager:
        await manager.settle(ends_in - 5)
        assert world.placed() == "east"
        await manager.settle(9 * MINUTE + MARGIN + MINUTE)
        assert world.placed() == "west"


async def test_a_copy_that_has_ended_late_is_a_breach() -> None:
    """8: its controller manager was away over its end and ended it after the next copy had begun."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(TTL * 4 / 3 + MARGIN + 60)
        assert world.placed() == "west"
        await manager.settle(60)
        expire(world)
        world.workers["east"].restore()
        await manager.settle(20)
        assert world.mirrors() == ["west"]
        (text,) = world.texts("FenceBreached")
        assert "the copy on worker east ended only after the Job was moved" in text


async def test_one_that_was_never_made_is_moved_as_any() -> None:
    """Nothing is known to have been created, so that nothing can run."""
    async with two_workers(policy=FENCE) as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.workers["east"].faults.refuse_connections()
        world.create(job())
        await manager.settle(3)
        world.annotate_worker("west", cordoned=None)
        world.workers["east"].go_down()
        await manager.settle(20 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])


# -- keeping it --------------------------------------------------------------------------------------------------------


async def test_it_is_resumed_once_it_has_stopped() -> None:
    """Until its controller has seen it suspended its start stays, from which a lease would be over at once."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(45 * MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(30)
        assert left(world) > 0
        assert world.mirror("east")["spec"]["suspend"] is True
        await manager.settle(MINUTE)
        assert world.annotation(WAITING) == "worker east keeps it suspended"
        world.controller("east").suspend("train")
        await manager.settle(2)
        assert world.mirror("east")["spec"]["suspend"] is False
        assert deadline(world) == TTL


async def test_it_is_renewed_although_statuses_cannot_be_stored() -> None:
    """What is refused on the management cluster is no reason to let it end."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        world.management.arrange("patch", "jobs", forbidden(), times=100_000)
        world.controller("east").set("train", world.mirror("east")["status"] | {"failed": 1})
        await manager.settle(35 * MINUTE)
        assert left(world) > TTL / 2


async def test_it_is_renewed_although_others_write_its_status() -> None:
    """D20: it is not fought over, and its mirror goes on."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        for number in range(35 * 3):
            at = world.management.clock.text()

            def write(body: dict[str, Any], said: str = str(number), at: str = at) -> None:
                listed = [one for one in body["status"]["conditions"] if one["type"] != "example.com/Seen"]
                body["status"]["conditions"] = [*listed, condition("example.com/Seen", at, message=said)]

            world.management.server.edit("jobs", "train", write, "default")
            await manager.settle(20)
        assert left(world) > TTL / 2


async def test_a_worker_that_changes_leases_is_not_written_to_without_end() -> None:
    """Admission there caps deadlines: that is said, and tried again twice a minute at most."""
    async with two_workers(policy=FENCE) as (world, manager):

        def cap(body: dict[str, Any]) -> None:
            body["spec"]["activeDeadlineSeconds"] = min(600, body["spec"].get("activeDeadlineSeconds") or 600)

        mutate_jobs(world.workers["east"], cap)
        await fenced_on_east(world, manager)
        sent = len(world.workers["east"].writes())
        await manager.settle(4 * MINUTE)
        assert len(world.workers["east"].writes()) - sent <= 10
        assert world.texts("LeaseNotRenewed") == ["worker east changes the lease of the mirror"]


async def test_a_lease_without_its_annotation_is_no_verdict() -> None:
    """Admission there drops what it does not know; a deadline that its user never wanted has ended the mirror."""
    async with two_workers(policy=FENCE) as (world, manager):

        def drop(body: dict[str, Any]) -> None:
            (body["metadata"].get("annotations") or {}).pop(names.FENCE, None)

        mutate_jobs(world.workers["east"], drop, "UPDATE")
        await fenced_on_east(world, manager)
        sent = len(world.workers["east"].writes())
        await manager.settle(15 * MINUTE)
        assert len(world.workers["east"].writes()) - sent <= 40
        expire(world)
        await manager.settle(30)
        assert "Failed" not in world.conditions()
        assert len(world.texts("Moved")) == 1


async def test_a_lease_that_cannot_be_recorded_is_said() -> None:
    """Nothing is created until it is, and its Job says why."""
    async with two_workers(policy=FENCE) as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle(5)
        world.management.arrange("patch", "configmaps", forbidden(), times=100_000)
        world.create(job())
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", [])
        assert "the lease of the mirror on worker east cannot be recorded: " in (world.annotation(WAITING) or "")
        world.management.restore()
        await manager.settle(2 * MINUTE)
        assert world.mirrors() == ["east"]
        assert world.annotation(WAITING) is None


async def test_a_lease_that_is_about_to_end_for_errors_is_said() -> None:
    """Whatever the error is."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        failing = Refused(500, "InternalError", 'failed calling webhook "x": connection refused')
        world.workers["east"].arrange("patch", "jobs", failing, times=100_000)
        await manager.settle(12 * MINUTE)
        assert world.texts("LeaseNotRenewed") == []
        await manager.settle(6 * MINUTE)
        (text,) = world.texts("LeaseNotRenewed")
        assert text.startswith("worker east does not take the lease of the mirror: its admission webhook x fails")


async def test_the_resume_of_a_seeded_copy_is_covered() -> None:
    """Its lease begins with the resume, long after the create that was covered."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    world.annotate_worker("west", cordoned="true")
    async with manager_of(world, policy=msgspec.structs.replace(FENCE, seed_progress=True)) as manager:
        await manager.settle()
        world.create(job(completionMode="Indexed", completions=10, parallelism=2))
        await manager.settle()
        start(world)
        counted = {"succeeded": 5, "completedIndexes": "0-4"}
        world.controller("east").set("train", world.mirror("east")["status"] | counted)
        await manager.settle()
        world.annotate_worker("west", cordoned=None)
        world.workers["east"].go_down()
        west = world.workers["west"]
        west.arrange("patch", "jobs", Fault.BREAK, times=10_000)
        await manager.settle(TTL * 4 / 3 + MARGIN + 60)
        assert world.mirror("west")["spec"]["suspend"] is True
        west.go_down()
        await manager.settle(2500)
        assert covered(world, "west") < 0
        west.restore()
        await manager.settle(5)
        assert world.mirror("west")["spec"]["suspend"] is False
        assert covered(world, "west") >= TTL - 10
