"""What the manager knows, as people see it: states, reasons, and how far behind it is."""

from __future__ import annotations

import msgspec
import pytest
from doubles.jobs import condition, job
from doubles.refusals import Refused
from doubles.world import RunningManager, World, manager_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.kinds.registry import JOB
from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.model.losses import OnLoss
from mirror.model.views import JobView, Known
from mirror.page.health import judged

pytestmark = pytest.mark.looptime

TRAIN = SourceKey("Job", "default", "train")


def known(manager: RunningManager) -> Known:
    return manager.mirroring.known()


def view(manager: RunningManager, name: str = "train") -> JobView:
    found = known(manager).job(SourceKey("Job", "default", name))
    assert found is not None
    return found


async def test_a_job_has_one_of_few_states() -> None:
    """Suspended, Placed, Running, Complete; then it is gone."""
    async with two_workers(keep_history=True) as (world, manager):
        world.create(job(suspend=True))
        await manager.settle()
        assert (view(manager).state, view(manager).worker) == ("Suspended", "")
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle()
        assert (view(manager).state, view(manager).worker) == ("Placed", "east")
        world.controller("east").start("train")
        await manager.settle()
        assert view(manager).state == "Running"
        world.controller("east").complete("train")
        await manager.settle()
        seen = view(manager)
        assert (seen.state, bool(seen.started), bool(seen.finished)) == ("Complete", True, True)
        assert seen.because == "CompletionsReached"
        world.delete()
        await manager.settle()
        assert known(manager).job(TRAIN) is None
        assert known(manager).timeline(TRAIN) == ()


async def test_a_job_that_the_webhook_holds_waits_like_any_other() -> None:
    """It is suspended only until it has a worker; and it says that it was held."""
    async with two_workers(keep_history=True) as (world, manager):
        for name in ("east", "west"):
            world.annotate_worker(name, cordoned="true")
        await manager.settle()
        held = job(suspend=True)
        held["metadata"].setdefault("annotations", {})[names.HELD] = "true"
        world.create(held)
        await manager.settle()
        assert (view(manager).state, view(manager).because) == ("Waiting", "east: cordoned; west: cordoned")
        assert known(manager).placement_obstacles(TRAIN) == {"east": "cordoned", "west": "cordoned"}
        assert [moment.kind for moment in known(manager).timeline(TRAIN)][:2] == ["Created", "Held"]


async def test_a_worker_out_of_reach_is_the_reason() -> None:
    """Of the Jobs on it; and it is told with since when."""
    async with two_workers(keep_history=True) as (world, manager):
        world.create(job())
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(30)
        (east, _) = known(manager).workers()
        assert view(manager).because.startswith("worker east is unreachable: ")
        assert (east.name, east.state, bool(east.lost_since), east.jobs) == ("east", "Lost", True, 1)


@pytest.mark.parametrize(
    ("policy", "seconds", "follows"),
    [
        (Policy(on_loss=OnLoss.RESCHEDULE), 120, "; the Job is moved to another one at "),
        (Policy(on_loss=OnLoss.FENCE), 120, " (its lease ends at "),
        (Policy(on_loss=OnLoss.RESCHEDULE, move_limit=0), 1000, "(it was moved as often as workers.moveLimit allows)"),
        (Policy(), 1000, "; the Job stays assigned to it"),
    ],
    ids=["moved later", "once its lease has ended", "moveLimit", "Wait"],
)
async def test_what_follows_of_a_loss_is_told_with_its_cause(policy: Policy, seconds: float, follows: str) -> None:
    """D14: when it is moved, or why it is not; the cause as it is now. The page shows it, too."""
    async with two_workers(policy=policy, keep_history=True) as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(seconds)
        told = view(manager).because
        assert told.startswith("worker east is unreachable: ")
        assert follows in told
        shown = judged(view(manager), known(manager).workers()[0])
        assert shown.because.startswith("east unreachable; ")
        assert follows.removeprefix("; ") in shown.because


async def test_a_move_is_part_of_the_story() -> None:
    """D14: with what became of the copy; who takes over reads it in the condition."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world, policy=Policy(on_loss=OnLoss.RESCHEDULE), keep_history=True) as manager:
        world.create(job(annotations={names.WORKER_ORDER: "east,west"}))
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(1000)
        assert view(manager).worker == "west"
        assert moves_in(manager) == [MOVED]
    async with manager_of(world, keep_history=True) as manager:
        await manager.settle()
        assert moves_in(manager) == [MOVED]


MOVED = "moved from east to west (move 1); the copy on east may still run"


def moves_in(manager: RunningManager) -> list[str]:
    """What the timeline says of moves."""
    found = known(manager).timeline(TRAIN)
    assert not [one for one in found if one.kind == "Error" and "moved from" in one.text]
    return [one.text for one in found if one.kind == "Moved"]


async def test_a_worker_that_is_lost_later_is_no_part_of_an_ended_job() -> None:
    """Its story ends with its end; that its pods are gone is not told as if there had never been any."""
    async with two_workers(keep_history=True) as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        at = world.workers["east"].clock.text()
        ends = [condition(kind, at, reason="DeadlineExceeded") for kind in ("FailureTarget", "Failed")]
        for listed in (ends[:1], ends):
            status = {"startTime": at, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
            world.controller("east").set("train", status | {"conditions": listed})
            await manager.settle()
        await manager.settle()
        world.workers["east"].go_down()
        await manager.settle(120)
        moments = known(manager).timeline(TRAIN)
        assert known(manager).workers()[0].state == "Lost"
        assert moments[-1].kind == "Finished"
        assert not any(moment.kind == "Lost" or moment.text == "no pods yet" for moment in moments[4:])


async def test_a_lost_mirror_ends_a_story_once() -> None:
    """The event of that reason is not an error after the end."""
    async with two_workers(keep_history=True) as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(60)
        moments = known(manager).timeline(TRAIN)
        assert moments[-1].kind == "Finished"
        assert moments[-1].text.startswith("Failed: MirrorLost")


async def test_what_cannot_be_stored_yet_is_lag() -> None:
    """From when the change was seen until it is stored; None where nothing is outstanding."""
    async with two_workers(keep_history=True) as (world, manager):
        world.create(job())
        await manager.settle()
        assert view(manager).lag_seconds is None
        world.management.arrange("patch", "jobs", Refused(503, "ServiceUnavailable"), times=1000)
        world.controller("east").start("train")
        await manager.settle(5)
        assert (view(manager).lag_seconds or 0) > 3
        error = [moment for moment in known(manager).timeline(TRAIN) if moment.kind == "Error"]
        assert [one for one in error if "503" in one.text]


async def test_lists_are_newest_first_and_as_long_as_wanted() -> None:
    """By creation, then by name."""
    async with two_workers(keep_history=True) as (world, manager):
        for name in ("a", "b", "c"):
            world.create(job(name))
            await manager.settle(2)
        seen = known(manager)
        assert [one.name for one in seen.jobs()] == ["c", "b", "a"]
        assert [one.name for one in seen.jobs("default", most=2)] == ["c", "b"]
        assert seen.jobs("other") == ()
        assert sorted(seen.keys(), key=str) == [SourceKey("Job", "default", name) for name in "abc"]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00Z", "x"])
async def test_times_that_a_worker_invents_spoil_no_story(at: str) -> None:
    """A time that no calendar has is none; a Job's story can be told all the same."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        stamps = {"creationTimestamp": at}
        world.workers["east"].server.edit("jobs", "train", lambda body: body["metadata"].update(stamps))
        await manager.settle()
        assert [moment.kind for moment in known(manager).timeline(TRAIN) if moment.at]


async def test_a_draft_with_the_uid_of_another_job_is_told_nothing_of_that() -> None:
    """Whoever writes a draft may write any uid into it; what a worker said of a Job is for who may read that one."""
    async with two_workers(keep_history=True) as (world, manager):
        world.workers["east"].arrange("create", "jobs", Refused(403, "Forbidden", "no"), times=1000)
        world.workers["west"].arrange("create", "jobs", Refused(403, "Forbidden", "no"), times=1000)
        theirs = world.create(job())
        await manager.settle()
        mine = job("mine", namespace="other")
        mine["metadata"]["uid"] = theirs["metadata"]["uid"]
        draft = manager.mirroring.known().obstacles_of_draft(JOB, decode_object(msgspec.json.encode(mine)))
        assert known(manager).placement_obstacles(TRAIN)
        assert draft == {}
