"""A worker is drained by moving: what runs stops there, and goes on elsewhere, never twice (D14, D15)."""

from __future__ import annotations

import pytest
from doubles.drained import INDEXED, SEEDING, is_suspended_on_east, on_east, stop
from doubles.jobs import condition, job
from doubles.moving_jobs import moves_of
from doubles.refusals import Refused
from doubles.transport import Fault
from doubles.watched_pods import SPEC, watching
from doubles.world import World, manager_of, two_workers

from mirror.embedded.faults.targets import Which
from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = pytest.mark.looptime

MINUTE = 60.0


async def test_what_runs_stops_and_goes_on_elsewhere_with_consent() -> None:
    """54: suspended, its pods end, its last status is read, it is deleted, recorded, created there seeded."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        assert is_suspended_on_east(world)
        stop(world, terminating=1, completed="0-2")
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        stop(world)
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        mirror = world.mirror("west")
        assert mirror is not None
        assert (mirror["spec"]["suspend"], mirror["status"]["completedIndexes"]) == (False, "0-3")
        assert world.source()["status"]["completedIndexes"] == "0-3"
        assert world.texts("Moved") == ["moved from east to west (move 1); no copy is left on east"]
        assert "MirrorLost" not in world.events()
        counted = manager.metrics.registry.get_sample_value
        assert not counted("jobmirror_secondary_mirrors_total", {"why": "WorkerLost"})
        world.controller("west").set("train", mirror["status"] | {"startTime": world.management.clock.text()})
        await manager.settle(2)
        assert "Suspended" not in world.conditions()


async def test_without_consent_what_runs_stays() -> None:
    """54: it ends there."""
    async with two_workers() as (world, manager):
        uid = await on_east(world, manager)
        world.annotate_worker("east", drain="move")
        await manager.settle(5 * MINUTE)
        assert not is_suspended_on_east(world)
        assert world.mirror("east")["metadata"]["uid"] == uid
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_policy_that_moves_is_consent() -> None:
    """Who takes two copies takes one that is stopped before."""
    async with two_workers() as (world, manager):
        await on_east(world, manager, annotations={names.ON_WORKER_LOSS: OnLoss.RESCHEDULE.value})
        world.annotate_worker("east", drain="move")
        await manager.settle(3)
        assert is_suspended_on_east(world)


async def test_what_has_not_started_goes_without_consent() -> None:
    """54: but only once its controller has said that it will not start either."""
    async with two_workers() as (world, manager):
        await on_east(world, manager, runs=False)
        world.annotate_worker("east", drain="move")
        await manager.settle(10)
        assert is_suspended_on_east(world)
        assert world.mirrors() == ["east"]
        world.controller("east").suspend("train")
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert world.mirror("west")["spec"]["suspend"] is False


async def test_what_its_user_has_suspended_goes_and_stays_suspended() -> None:
    """54: recorded elsewhere, and created there once it is resumed."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        stop(world)
        await manager.settle(2)
        world.annotate_worker("east", drain="move")
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", [])
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(10)
        mirror = world.mirror("west")
        assert mirror is not None
        assert (mirror["spec"]["suspend"], mirror["status"]["completedIndexes"]) == (False, "0-3")


async def test_without_a_place_nothing_stops() -> None:
    """A full fleet drains nothing: it goes on where it is, and its status is followed."""
    async with two_workers() as (world, manager):
        await on_east(world, manager)
        world.annotate_worker("west", cordoned="true")
        world.annotate_worker("east", drain="move-started")
        await manager.settle(5 * MINUTE)
        assert not is_suspended_on_east(world)
        status = world.mirror("east")["status"]
        world.controller("east").set("train", status | {"succeeded": 4, "completedIndexes": "0-3"})
        await manager.settle(5)
        assert world.source()["status"]["succeeded"] == 4
        world.annotate_worker("west", cordoned=None)
        await manager.settle(90)
        assert is_suspended_on_east(world)


async def test_what_waits_for_its_turn_is_followed_meanwhile() -> None:
    """D6: ``workers.moveRate`` may let it wait for hours."""
    async with two_workers(policy=SEEDING, move_rate=0.01) as (world, manager):
        await on_east(world, manager)
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        world.create(job("later", **INDEXED))
        await manager.settle()
        world.controller("east").start("later", active=2)
        await manager.settle()
        world.annotate_worker("west", cordoned=None)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(5)
        first, later = sorted(("train", "later"), key=lambda name: is_suspended_on_east(world, name), reverse=True)
        assert [is_suspended_on_east(world, name) for name in (first, later)] == [True, False]
        status = world.mirror("east", later)["status"]
        world.controller("east").set(later, status | {"succeeded": 4, "completedIndexes": "0-3"})
        await manager.settle(2)
        assert world.source(later)["status"]["completedIndexes"] == "0-3"
        world.edit(lambda body: body["spec"].update(parallelism=3), later)
        await manager.settle(2)
        assert world.mirror("east", later)["spec"]["parallelism"] == 3
        assert not is_suspended_on_east(world, later)
        await manager.settle(2 * MINUTE)
        assert is_suspended_on_east(world, later)


async def test_whose_turn_it_is_takes_the_place() -> None:
    """D14, D21: where there is less room than wants to go, those who came first do not take all of it."""
    async with two_workers(policy=SEEDING, move_rate=1.0) as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        for name in "abcde":
            world.create(job(name, annotations={names.PRIORITY: "100"} if name == "c" else {}))
            await manager.settle()
        world.annotate_worker("west", cordoned=None, capacity="2")
        await manager.settle()
        world.annotate_worker("east", drain="move")
        await manager.settle(20)
        stopped = [one for one in "abcde" if is_suspended_on_east(world, one)]
        assert len(stopped) == 2  # who asks first has the first turn
        assert "c" in stopped


async def test_one_that_the_next_worker_refuses_goes_to_another_one() -> None:
    """57: nothing of it is left anywhere; the condition names where it is."""
    async with two_workers(policy=SEEDING) as (world, manager):
        world.add_worker("north")
        world.annotate_worker("north", cordoned="true")
        await manager.settle()
        await on_east(world, manager, annotations={names.WORKER_ORDER: "west,north"})
        world.annotate_worker("north", cordoned=None)
        foreign = world.workers["west"].server.put("jobs", job(managed_by=None))
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        stop(world)
        await manager.settle(10)
        assert (world.placed(), world.mirror("west")) == ("north", foreign)
        messages = {one["type"]: one["message"] for one in world.source()["status"]["conditions"]}
        assert messages[names.MOVED] == "move 1, from east to north"
        assert messages["Suspended"] == "Worker east is drained; the Job starts again on north"
        told = [f"moved from east to {to} (move 1); no copy is left on east" for to in ("north", "west")]
        assert sorted(world.texts("Moved")) == told


@pytest.mark.parametrize("moment", ["stopping", "stopped, deletes fail", "deleted, records fail"])
async def test_a_drain_that_is_cancelled(moment: str) -> None:
    """56: what is not deleted resumes on east; what is deleted and not recorded elsewhere is made there again."""
    async with two_workers(policy=SEEDING) as (world, manager):
        uid = await on_east(world, manager)
        if moment == "stopped, deletes fail":
            world.workers["east"].arrange("delete", "jobs", Refused(500, "InternalError"), times=100_000)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        if moment == "deleted, records fail":
            gone = Which("get", "jobs")
            world.workers["east"].faults.arrange(Fault.LOSE_REQUEST.value, gone, times=1_000)
        if moment != "stopping":
            stop(world)
            await manager.settle(10)
            assert world.placed() == "east"
            assert world.conditions()["Suspended"] == "WorkerDrained"
        world.annotate_worker("east", drain=None)
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        mirror = world.mirror("east")
        assert mirror is not None
        assert mirror["spec"]["suspend"] is False
        assert (mirror["metadata"]["uid"] == uid) is (moment != "deleted, records fail")
        assert "Failed" not in world.conditions()
        if moment == "deleted, records fail":
            assert mirror["status"]["completedIndexes"] == "0-3"


async def test_what_a_cancelled_drain_has_deleted_has_not_vanished() -> None:
    """56: pods that it had run, of which we have deleted the mirror, are no proof that it ran on without us (D11)."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world, policy=SEEDING, **watching(world.origin)) as manager:
        uid = await on_east(world, manager)
        labels = {"job-name": "train", "controller-uid": uid}
        world.workers["east"].server.put("pods", {"metadata": {"name": "train-0", "labels": labels}, "spec": SPEC})
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        world.workers["east"].faults.arrange(Fault.LOSE_REQUEST.value, Which("get", "jobs"), times=1_000)
        stop(world)
        await manager.settle(10)
        assert world.mirrors() == []
        world.annotate_worker("east", drain=None)
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert "Failed" not in world.conditions()
        assert (world.placed(), world.mirrors()) == ("east", ["east"])


@pytest.mark.parametrize("is_suspended", [False, True])
async def test_a_drain_that_is_cancelled_before_its_deletion_is_heard_of(is_suspended: bool) -> None:
    """56: what the cache still has may be gone: nothing of it is stored, or it would have vanished (D11)."""
    async with two_workers(policy=SEEDING) as (world, manager):
        uid, east = await on_east(world, manager), world.workers["east"]
        if is_suspended:
            world.edit(lambda body: body["spec"].update(suspend=True))
            await manager.settle(1)
            stop(world)
            await manager.settle(2)
        east.mute_watches("jobs")
        world.annotate_worker("east", drain="move-started")
        if not is_suspended:
            await manager.settle(2)
            stop(world)
            east.restore()
            await manager.settle(0.01)
            east.mute_watches("jobs")
        while world.mirrors():
            await manager.settle(0.02)
        world.annotate_worker("east", drain=None)
        await manager.settle(20)
        east.restore()
        await manager.settle(MINUTE)
        assert "Failed" not in world.conditions()
        assert world.placed() == "east"
        assert [one["metadata"]["uid"] for one in (world.mirror("east"),) if one] != [uid]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST], ids=["answer", "request"])
@pytest.mark.parametrize("step", ["stop", "intent", "delete", "record", "create"])
async def test_killed_between_any_two_steps(step: str, fault: Fault) -> None:
    """It ends as if not killed: one mirror at a time, and nothing is lost."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    which, at = {
        "stop": (Which("patch", "jobs", subresource=""), "east"),
        "intent": (Which("patch", "jobs", subresource="status"), ""),
        "delete": (Which("delete", "jobs"), "east"),
        "record": (Which("patch", "jobs", subresource="status"), ""),
        "create": (Which("create", "jobs"), "west"),
    }[step]
    async with manager_of(world, policy=SEEDING) as manager:
        await on_east(world, manager)
        wire = world.workers[at] if at else world.management
        if step in ("stop", "delete", "create"):
            wire.faults.arrange(fault.value, which, times=1_000)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        if step == "intent":
            wire.faults.arrange(fault.value, which, times=1_000)
        if step == "record":
            world.workers["east"].faults.arrange(Fault.HANG.value, Which("get", "jobs"), times=1)
        if is_suspended_on_east(world):
            stop(world)
        await manager.settle(2)
        if step == "record":
            wire.faults.arrange(fault.value, which, times=1_000)
        await manager.settle(20)
    for one in (world.management, *world.workers.values()):
        one.restore()
    async with manager_of(world, policy=SEEDING) as manager:
        await manager.settle(30)
        if world.mirrors() == ["east"] and not is_suspended_on_east(world):
            world.controller("east").resume("train")  # it had no place in the first minute, and was let run again
            await manager.settle(5)
        if is_suspended_on_east(world):
            stop(world)
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert world.mirror("west")["status"]["completedIndexes"] == "0-3"
        assert "Failed" not in world.conditions()


async def test_a_worker_that_is_lost_meanwhile_is_a_loss() -> None:
    """55: lost after the suspend: by the policy for losses; nothing is deleted unseen, and the drain goes on later."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        world.workers["east"].go_down()
        await manager.settle(20 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        assert "stays assigned to it" in (world.annotation(names.WAITING_BECAUSE) or "")
        world.workers["east"].restore()
        await manager.settle(20)
        stop(world)
        await manager.settle(10)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])


@pytest.mark.parametrize("has_stopped", [False, True], ids=["stopping", "stopped"])
async def test_a_worker_that_is_lost_meanwhile_and_jobs_that_are_moved_then(has_stopped: bool) -> None:
    """55: by Reschedule it is moved as from any lost worker; what was suspended there is left behind, not forgotten."""
    async with two_workers(policy=SEEDING) as (world, manager):
        uid = await on_east(world, manager, annotations={names.ON_WORKER_LOSS: OnLoss.RESCHEDULE.value})
        world.annotate_worker("east", drain="move")
        await manager.settle(3)
        assert is_suspended_on_east(world)
        if has_stopped:
            world.workers["east"].arrange("delete", "jobs", Refused(500, "InternalError"), times=100_000)
            stop(world)
            await manager.settle(10)
            assert world.conditions()["Suspended"] == "WorkerDrained"
        world.workers["east"].go_down()
        await manager.settle(14 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        await manager.settle(3 * MINUTE)
        assert (world.placed(), sorted(world.mirrors())) == ("west", ["east", "west"])
        assert world.mirror("east")["metadata"]["uid"] == uid
        assert [one.uid for one in moves_of(world.source()).left_behind] == [uid]
        counted = "0-3" if has_stopped else "0-2"
        mirror = world.mirror("west")
        assert mirror is not None
        assert (mirror["spec"]["suspend"], mirror["status"]["completedIndexes"]) == (False, counted)
        world.controller("west").set("train", mirror["status"] | {"startTime": world.management.clock.text()})
        if not has_stopped:
            stop(world)  # its controller goes on while nobody sees it
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert world.source()["status"]["completedIndexes"] == counted
        assert moves_of(world.source()).count == 1


async def test_what_changes_after_it_was_stored_is_stored_before_it_goes() -> None:
    """The delete names the version whose status is stored: one that says more is read first."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager)
        world.workers["east"].arrange("delete", "jobs", Refused(500, "InternalError"), times=100_000)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        stop(world)
        await manager.settle(0.2)
        stop(world, completed="0-4")
        await manager.settle(1)
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert world.source()["status"]["completedIndexes"] == "0-4"


async def test_one_that_completes_meanwhile_is_complete() -> None:
    """Its pods end well while they are stopped: that is the end, and no move."""
    async with two_workers(policy=SEEDING) as (world, manager):
        await on_east(world, manager)
        world.annotate_worker("east", drain="move-started")
        await manager.settle(3)
        world.controller("east").complete("train")
        await manager.settle(10)
        assert "Complete" in world.conditions()
        assert (world.placed(), world.mirrors()) == ("east", ["east"])


async def test_a_worker_cannot_say_that_a_job_leaves() -> None:
    """A hostile status with our reasons: a mirror that vanishes afterwards is lost all the same (D7, D11)."""
    async with two_workers() as (world, manager):
        await on_east(world, manager)
        status = world.mirror("east")["status"]
        ours = condition("Suspended", world.management.clock.text(), reason="WorkerDrained", message="leave")
        world.controller("east").set("train", status | {"conditions": [ours]})
        await manager.settle(2)
        assert world.conditions()["Suspended"] == "JobSuspended"
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(20)
        assert world.conditions()["Failed"] == "MirrorLost"
