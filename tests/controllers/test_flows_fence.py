"""Fenced Jobs: the lease of a mirror, kept and counted on (D14); numbers are of its scenarios."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from doubles.jobs import condition, job
from doubles.managers import HOME
from doubles.refusals import forbidden
from doubles.transport import Fault
from doubles.world import WAITING, RunningManager, World, two_workers

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.fences import FENCED, VOIDED, mark_of
from mirror.model.losses import OnLoss
from mirror.model.moves import parse_moves

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

TTL, MARGIN = 1800, 150
"""30 minutes; 120 s, and 30 s for the pods to end."""
FENCE = Policy(on_loss=OnLoss.FENCE, fence_ttl_seconds=TTL)
MINUTE = 60.0


def deadline(world: World, worker: str = "east", name: str = "train") -> int | None:
    found: int | None = (world.mirror(worker, name) or {"spec": {}})["spec"].get("activeDeadlineSeconds")
    return found


def left(world: World, worker: str = "east", name: str = "train") -> float:
    """Seconds until its worker ends it, by the worker's clock."""
    mirror = world.mirror(worker, name)
    assert mirror is not None
    started = datetime.fromisoformat(mirror["status"]["startTime"]).timestamp()
    wire = world.workers[worker]
    return started + mirror["spec"]["activeDeadlineSeconds"] - wire.clock.wall() - wire.clock_ahead_seconds


def covered(world: World, worker: str = "east") -> float:
    """For how many seconds leases there may last, as it is stored."""
    text = json.loads(world.record()[worker]).get("fencedUntil")
    clock = world.management.clock
    return datetime.fromisoformat(text).timestamp() - clock.wall() if text else 0.0


def mark(world: World, name: str = "train") -> str:
    return mark_of(world.source(name)["status"])


def start(world: World, worker: str = "east", name: str = "train") -> None:
    """Its worker runs it, by the worker's clock."""
    wire = world.workers[worker]
    at = datetime.fromtimestamp(wire.clock.wall() + wire.clock_ahead_seconds, UTC)
    running = {"active": 1, "ready": 1, "terminating": 0, "uncountedTerminatedPods": {}}
    world.controller(worker).set(name, running | {"startTime": at.strftime("%Y-%m-%dT%H:%M:%SZ")})


def expire(
    world: World, worker: str = "east", name: str = "train", *, has_ended: bool = True, ago: float = 0.0, **more: Any
) -> None:
    """Its worker's Job controller ends it by its deadline, or has done so some seconds ago."""
    at = datetime.fromtimestamp(world.management.clock.wall() - ago, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ends = ("FailureTarget", "Failed") if has_ended else ("FailureTarget",)
    listed = [condition(one, at, reason="DeadlineExceeded", message="Job was active too long") for one in ends]
    before = world.mirror(worker, name)["status"]
    pods = {"active": 0, "ready": 0, "terminating": 0 if has_ended else 1, "failed": 1}
    world.controller(worker).set(name, before | pods | more | {"conditions": listed})


async def fenced_on_east(world: World, manager: RunningManager, **spec: Any) -> str:
    """A Job that runs on east, where alone it may be at first; the uid of its mirror."""
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(job(**spec))
    await manager.settle()
    start(world)
    await manager.settle()
    world.annotate_worker("west", cordoned=None)
    await manager.settle()
    return str(world.mirror("east")["metadata"]["uid"])


async def test_a_lease_is_kept() -> None:
    """Created with the lease, covered before, and renewed by one PATCH each third of it; the source is not written."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        assert (deadline(world), mark(world)) == (TTL, FENCED)
        assert covered(world) >= left(world)
        await manager.settle(5)
        mirror_version = world.source()["metadata"]["resourceVersion"]
        sent = len(world.workers["east"].writes())
        for minute in range(60):
            await manager.settle(MINUTE)
            assert TTL * 2 / 3 - 1 <= left(world) <= TTL + 2, minute
            assert covered(world) >= left(world)
        assert len(world.workers["east"].writes()) - sent == 6
        assert world.source()["metadata"]["resourceVersion"] == mirror_version
        assert "activeDeadlineSeconds" not in world.source()["spec"]
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_fenced_job_is_moved_after_its_lease() -> None:
    """4, 35: at the end of the lease and the margin, not before; what was left goes without a breach if it ended."""
    async with two_workers(policy=FENCE) as (world, manager):
        uid = await fenced_on_east(world, manager)
        await manager.settle(13 * MINUTE)
        ends_in = left(world)
        world.workers["east"].go_down()
        await manager.settle(2 * MINUTE)
        assert "; the Job is moved to another one at " in (world.annotation(WAITING) or "")
        assert "(its lease ends at " in (world.annotation(WAITING) or "")
        await manager.settle(ends_in + MARGIN - 2 * MINUTE - 5)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        assert "stays assigned to it until " in (world.annotation(WAITING) or "")
        await manager.settle(25)
        assert (world.placed(), sorted(world.mirrors())) == ("west", ["east", "west"])
        found = parse_moves(
            next(c["message"] for c in world.source()["status"]["conditions"] if c["type"] == names.MOVED)
        )
        assert [str(one) for one in found.left_behind] == [f"east (uid {uid}, fenced)"]
        assert world.texts("Moved") == ["moved from east to west (move 1); the copy on east has ended by its lease"]
        assert deadline(world, "west") == TTL
        expire(world, ago=MARGIN)
        world.workers["east"].restore()
        await manager.settle(20)
        assert world.mirrors() == ["west"]
        assert "FenceBreached" not in world.events()
        assert "Failed" not in world.conditions()
        sample = manager.metrics.registry.get_sample_value
        assert sample("jobmirror_secondary_mirrors_total", {"why": "Fenced"}) == 1


async def test_it_is_back_before_its_lease_has_ended() -> None:
    """5: renewed, and not moved."""
    async with two_workers(policy=FENCE) as (world, manager):
        uid = await fenced_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(20 * MINUTE)
        world.workers["east"].restore()
        await manager.settle(20)
        assert left(world) > TTL - 30
        await manager.settle(40 * MINUTE)
        assert world.mirror("east")["metadata"]["uid"] == uid
        assert world.mirrors() == ["east"]


async def test_it_is_back_too_late_to_be_renewed() -> None:
    """6: with less than a minute left it ends, and is placed anew when its worker says that it has."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(left(world) - 40)
        world.workers["east"].restore()
        await manager.settle(20)
        assert deadline(world) == TTL
        expire(world, has_ended=False)
        await manager.settle(20)
        assert world.mirrors() == ["east"]
        assert "the lease on worker east has expired" in (world.annotation(WAITING) or "")
        assert "FailureTarget" not in world.conditions()
        expire(world)
        await manager.settle(20)
        assert len(world.mirrors()) == 1
        assert "Failed" not in world.conditions()
        assert world.source()["status"].get("failed", 0) == 0
        assert world.texts("Moved")[0].endswith("; the copy on east has ended by its lease")
        placed = world.placed()
        assert placed is not None
        start(world, placed)
        await manager.settle(5)
        assert world.annotation(WAITING) is None
        world.controller(placed).complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_renewal_counts_from_its_sending() -> None:
    """7: the answer to the last renewal is lost, and it had arrived."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(19 * MINUTE)
        world.workers["east"].arrange("patch", "jobs", Fault.LOSE_ANSWER, times=1)
        while left(world) < TTL - 5:
            await manager.settle(1)
        world.workers["east"].go_down()
        ends_in = left(world)
        await manager.settle(ends_in + MARGIN - 5)
        assert world.placed() == "east"
        await manager.settle(60)
        assert world.placed() == "west"


@pytest.mark.parametrize("hangs", [False, True], ids=["8: still runs", "9: hangs in terminating"])
async def test_a_copy_that_still_runs_is_a_breach(hangs: bool) -> None:
    """8, 9: its worker did not end it: an event, the metric, and it is deleted."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(45 * MINUTE)
        assert world.placed() == "west"
        if hangs:
            expire(world, has_ended=False)
        world.workers["east"].restore()
        await manager.settle(30)
        assert world.mirrors() == ["west"]
        text = "still had pods that were to end" if hangs else "still ran"
        assert world.texts("FenceBreached") == [
            f"the copy on worker east {text} although its lease was over: it may have run beside another one"
        ]
        assert manager.metrics.registry.get_sample_value("jobmirror_fence_breaches_total", {"worker": "east"}) == 1


async def test_what_was_not_seen_to_start_is_not_fenced() -> None:
    """10: created, and lost before anything of it was seen: it waits, and says why."""
    async with two_workers(policy=FENCE) as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.create(job())
        await manager.settle()
        world.annotate_worker("west", cordoned=None)
        world.workers["east"].go_down()
        await manager.settle(90 * MINUTE)
        assert world.placed() == "east"
        assert "it is not fenced: it was not seen to start" in (world.annotation(WAITING) or "")


async def test_what_a_queue_of_its_worker_restarts_is_not_fenced() -> None:
    """11: the end moves by the whole value with each start there (F4): it waits, and has its user's deadline again."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        east = world.workers["east"].server
        east.edit("jobs", "train", lambda body: body["spec"].update(suspend=True), "default")
        world.controller("east").suspend("train")
        await manager.settle(5)
        assert mark(world) == VOIDED
        east.edit("jobs", "train", lambda body: body["spec"].update(suspend=False), "default")
        world.controller("east").resume("train")
        await manager.settle(5)
        assert deadline(world) is None
        world.workers["east"].go_down()
        await manager.settle(90 * MINUTE)
        assert world.placed() == "east"
        assert "it is not fenced: its mirror was restarted on worker east" in (world.annotation(WAITING) or "")


async def test_a_lease_is_never_above_the_users_deadline() -> None:
    """12, 13: it follows that deadline, which fails the Job where it ends it."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager, activeDeadlineSeconds=600)
        assert deadline(world) == 600
        world.edit(lambda body: body["spec"].update(activeDeadlineSeconds=1200))
        await manager.settle(5)
        assert deadline(world) == 1200
        world.edit(lambda body: body["spec"].update(activeDeadlineSeconds=700))
        await manager.settle(5)
        assert deadline(world) == 700
        expire(world)
        await manager.settle(5)
        assert world.conditions()["Failed"] == "DeadlineExceeded"


async def test_a_worker_whose_clock_is_another() -> None:
    """16: five minutes ahead from the start: what counts is its own time."""
    async with two_workers(policy=FENCE) as (world, manager):
        world.workers["east"].clock_ahead_seconds = 300
        await manager.settle(15)
        await fenced_on_east(world, manager)
        await manager.settle(35 * MINUTE)
        assert TTL * 2 / 3 - 2 <= left(world) <= TTL + 2
        ends_in = left(world)
        world.workers["east"].go_down()
        await manager.settle(ends_in + MARGIN - 5)
        assert world.placed() == "east"
        await manager.settle(MINUTE)
        assert world.placed() == "west"


@pytest.mark.parametrize("ahead", [-200, 120, -7200])
async def test_a_clock_that_has_moved(ahead: float) -> None:
    """17: not fenced until every lease there was set anew, which one that is now before its start cannot be."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(5 * MINUTE)
        world.workers["east"].clock_ahead_seconds = ahead
        await manager.settle(30)
        assert left(world) <= TTL + 60 or ahead == -7200
        assert covered(world) >= left(world)
        world.workers["east"].go_down()
        await manager.settle(60 * MINUTE)
        assert world.placed() == "east"
        assert "it is not fenced: the clock of worker east had moved" in (world.annotation(WAITING) or "")


async def test_a_clock_that_has_settled() -> None:
    """17: every lease was set anew since."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(5 * MINUTE)
        world.workers["east"].clock_ahead_seconds = -120
        await manager.settle(15 * MINUTE)
        ends_in = left(world)
        world.workers["east"].go_down()
        await manager.settle(ends_in + MARGIN - 5)
        assert world.placed() == "east"
        await manager.settle(30)
        assert world.placed() == "west"


async def test_a_policy_that_becomes_fence_and_goes_again() -> None:
    """18, 19: the deadline is patched and marked; on the way back unmarked and restored."""
    async with two_workers() as (world, manager):
        await fenced_on_east(world, manager)
        assert deadline(world) is None
        world.edit(lambda body: body["metadata"]["annotations"].update({names.ON_WORKER_LOSS: "Fence"}))
        await manager.settle(5)
        assert mark(world) == FENCED
        assert TTL - 10 < left(world) <= TTL + 2
        assert covered(world) >= left(world)
        world.edit(lambda body: body["metadata"]["annotations"].update({names.ON_WORKER_LOSS: "Wait"}))
        await manager.settle(5)
        assert (mark(world), deadline(world)) == ("", None)
        assert names.FENCE not in world.mirror("east")["metadata"]["annotations"]
        world.workers["east"].go_down()
        await manager.settle(2 * MINUTE)
        world.edit(lambda body: body["metadata"]["annotations"].update({names.ON_WORKER_LOSS: "Fence"}))
        await manager.settle(90 * MINUTE)
        assert world.placed() == "east"
        assert "it is not fenced: it had no lease" in (world.annotation(WAITING) or "")


async def test_suspended_and_resumed() -> None:
    """F4: a resume begins the lease anew, in the same write; one that is seen suspended is fenced as it is."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(25 * MINUTE)
        assert (deadline(world) or 0) > TTL
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        world.controller("east").suspend("train")
        await manager.settle(5)
        assert (deadline(world), mark(world)) == (TTL, FENCED)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(2)
        world.controller("east").resume("train")
        await manager.settle(5)
        assert mark(world) == FENCED
        assert TTL - 15 <= left(world) <= TTL + 2
        assert covered(world) >= left(world)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        world.controller("east").suspend("train")
        await manager.settle(5)
        world.workers["east"].go_down()
        await manager.settle(50 * MINUTE)
        assert world.placed() == "east"
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(MINUTE)
        assert world.placed() == "west"


async def test_nothing_is_sent_that_is_not_covered() -> None:
    """What may last longer is stored before: while that cannot be, no lease is created and none is renewed."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        world.management.arrange("patch", "configmaps", forbidden(), times=100_000)
        await manager.settle(25 * MINUTE)
        assert left(world) <= covered(world)
        world.management.restore()
        await manager.settle(2 * MINUTE)
        assert left(world) > TTL - 3 * MINUTE


async def test_a_worker_that_rejects_renewals() -> None:
    """It is said once, and tried again."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        world.workers["east"].arrange("patch", "jobs", forbidden(), times=100_000)
        await manager.settle(15 * MINUTE)
        assert len(world.texts("LeaseNotRenewed")) == 1
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert left(world) > TTL - 2 * MINUTE


async def test_other_policies_cost_nothing() -> None:
    """With Wait no deadline, no mark, and nothing in the record of workers."""
    async with two_workers() as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(30 * MINUTE)
        assert (deadline(world), mark(world), covered(world)) == (None, "", 0.0)


async def test_a_worker_that_is_declared_dead() -> None:
    """28: whatever the policy, at once; one that is alive all the same is a breach."""
    async with two_workers() as (world, manager):
        uid = await fenced_on_east(world, manager)
        world.annotate_worker("east", gone="true")
        await manager.settle(90)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        assert any("but it is reachable" in text for text in world.texts("BadAnnotation"))
        world.workers["east"].go_down()
        await manager.settle(10)
        assert (world.placed(), sorted(world.mirrors())) == ("west", ["east", "west"])
        assert world.texts("Moved") == ["moved from east to west (move 1); the copy on east is declared dead"]
        assert uid
        world.workers["east"].restore()
        await manager.settle(20)
        assert world.mirrors() == ["west"]
        assert world.texts("FenceBreached") == [
            "the copy on worker east still ran although it was declared gone: it may have run beside another one"
        ]


async def test_losers_may_be_kept() -> None:
    """The setting ``workers.losers``: suspended, and deleted with their source or where the name is needed."""
    policy = Policy(on_loss=OnLoss.RESCHEDULE)
    async with two_workers(policy=policy, suspends_losers=True) as (world, manager):
        await fenced_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        world.workers["east"].restore()
        await manager.settle(3 * MINUTE)
        assert sorted(world.mirrors()) == ["east", "west"]
        assert world.mirror("east")["spec"]["suspend"] is True
        assert world.texts("LeftBehindSuspended") == ["the copy that was left on east was suspended"]
        world.delete()
        await manager.settle(3 * MINUTE)
        assert world.mirrors() == []


async def test_a_worker_without_a_secret_is_declared_dead() -> None:
    """28: as ``mirror worker forget`` does it, one without a kubeconfig takes its place."""
    async with two_workers() as (world, manager):
        await fenced_on_east(world, manager)
        world.management.server.remove("secrets", "east", HOME)
        await manager.settle(MINUTE)
        assert world.placed() == "east"
        metadata = {"name": "east", "namespace": HOME, "labels": {names.WORKER: "true"}}
        world.management.server.put("secrets", {"metadata": {**metadata, "annotations": {names.GONE: "true"}}})
        await manager.settle(10)
        assert world.placed() == "west"
