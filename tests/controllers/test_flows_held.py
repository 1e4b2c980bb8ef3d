"""Jobs that our webhook holds: suspended until they have a place, and released exactly once (D16)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import Body, job
from doubles.refusals import Refused
from doubles.transport import Fault
from doubles.world import WAITING, World, manager_of, two_workers

from mirror.embedded.faults.kinds import Loss, Slow
from mirror.embedded.faults.targets import Which
from mirror.model import names

pytestmark = pytest.mark.looptime

RELEASE = Which("patch", "jobs", "train", "")
FAR = {names.WORKER_SELECTOR: "region=far"}


def held(name: str = "train", *, annotations: dict[str, str] | None = None, **spec: Any) -> Body:
    """As the webhook leaves a user's Job."""
    return job(name, annotations={names.HELD: "true"} | (annotations or {}), suspend=True, **spec)


def releases(world: World) -> list[str]:
    """Writes to a source that are none to its status."""
    return [sent.path for sent in world.management.writes() if sent.verb == "patch" and sent.path.endswith("/train")]


async def test_a_held_job_is_placed_released_and_mirrored() -> None:
    """Recorded, then unsuspended without its mark, then created on the worker: unsuspended from the start."""
    async with two_workers() as (world, manager):
        world.create(held())
        await manager.settle()
        source = world.source()
        assert world.placed() == "east"
        assert source["spec"]["suspend"] is False
        assert world.annotation(names.HELD) is None
        mirror = world.mirror("east")
        assert mirror is not None
        assert mirror["spec"]["suspend"] is False
        assert names.HELD not in mirror["metadata"]["annotations"]
        assert len(releases(world)) == 1

        world.controller("east").start("train")
        await manager.settle()
        world.controller("east").complete("train")
        await manager.settle()
        assert "Complete" in world.conditions()
        assert world.events() == ["Mirrored"]


async def test_a_held_job_without_a_place_waits_and_says_so() -> None:
    """It counts as waiting, is shown as suspended, and goes on by itself when there is a worker."""
    async with two_workers() as (world, manager):
        world.create(held(annotations=FAR))
        await manager.settle(20)
        assert manager.mirroring.assigner.waiting == 1
        assert world.conditions() == {"Suspended": "JobSuspended"}
        assert "east" in (world.annotation(WAITING) or "")
        assert world.source()["spec"]["suspend"] is True

        world.edit(lambda body: body["metadata"]["annotations"].pop(names.WORKER_SELECTOR))
        await manager.settle(20)
        assert world.mirrors() == ["east"]
        assert world.annotation(WAITING) is None
        world.controller("east").start("train")
        await manager.settle()
        assert world.source()["status"]["active"] == 1
        assert "Suspended" not in world.conditions()


async def test_a_user_who_takes_the_mark_away_keeps_it_suspended() -> None:
    """From then on it is the user's suspension: nothing but the user ends it."""
    async with two_workers() as (world, manager):
        world.create(held(annotations=FAR))
        await manager.settle(20)
        world.edit(lambda body: body["metadata"].update(annotations={}))
        await manager.settle(60)
        assert world.source()["spec"]["suspend"] is True
        assert world.placed() is None
        assert manager.mirroring.assigner.waiting == 0
        assert world.annotation(WAITING) is None

        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle()
        assert world.mirrors() == ["east"]


async def test_a_user_who_suspends_it_after_its_release_is_obeyed() -> None:
    """The mark went with the release."""
    async with two_workers() as (world, manager):
        world.create(held())
        await manager.settle()
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(60)
        mirror = world.mirror("east")
        assert mirror is not None
        assert (world.source()["spec"]["suspend"], mirror["spec"]["suspend"]) == (True, True)
        assert len(releases(world)) == 1


async def test_a_user_who_releases_it_first_may_suspend_it_again() -> None:
    """The mark of a Job that is not suspended is taken away: a later suspension is the user's."""
    async with two_workers() as (world, manager):
        world.create(held(annotations=FAR))
        await manager.settle(20)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(20)
        assert world.annotation(names.HELD) is None
        world.edit(lambda body: body["spec"].update(suspend=True))
        world.edit(lambda body: body["metadata"]["annotations"].pop(names.WORKER_SELECTOR))
        await manager.settle(60)
        assert world.source()["spec"]["suspend"] is True
        assert world.mirrors() == []


async def test_a_suspension_that_comes_while_it_is_released_wins() -> None:
    """The release is guarded by the version that was looked at: here the user's write comes first."""
    async with two_workers() as (world, manager):
        world.management.faults.arrange(Slow(0.5), RELEASE)
        world.create(held())
        await manager.settle(0.3)
        assert world.placed() == "east"
        assert len(releases(world)) == 1
        world.edit(lambda body: body["metadata"]["annotations"].pop(names.HELD))
        await manager.settle(120)
        assert world.source()["spec"]["suspend"] is True
        assert world.mirrors() == []


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.BREAK, Refused(409, "Conflict"), Refused(500, "Internal")])
async def test_whatever_happens_to_the_release_it_happens(fault: Fault | Refused) -> None:
    """And there is one mirror."""
    async with two_workers() as (world, manager):
        what = fault.value if isinstance(fault, Fault) else fault.answer()
        world.management.faults.arrange(what, RELEASE, times=3)
        world.create(held())
        await manager.settle(60)
        assert world.source()["spec"]["suspend"] is False
        assert world.mirrors() == ["east"]


async def test_a_manager_that_died_in_between_is_followed_up() -> None:
    """Recorded and not released: the next one releases."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        world.management.faults.arrange(Loss.HANG, RELEASE)
        world.create(held())
        await manager.settle()
        assert world.placed() == "east"
    world.management.restore()
    assert world.source()["spec"]["suspend"] is True
    async with manager_of(world) as manager:
        await manager.settle(30)
        assert world.source()["spec"]["suspend"] is False
        assert world.mirrors() == ["east"]


async def test_a_release_that_is_forbidden_is_told_and_tried_again() -> None:
    """The right to unsuspend comes with the webhook's Role, which may be missing."""
    async with two_workers() as (world, manager):
        world.management.faults.arrange(Refused(403, "Forbidden").answer(), RELEASE, times=2)
        world.create(held())
        await manager.settle(20)
        assert world.placed() == "east"
        assert "may not be unsuspended: not allowed" in (world.annotation(WAITING) or "")
        assert world.events() == ["ReleaseRefused"]
        assert world.mirrors() == []
        await manager.settle(150)
        assert world.mirrors() == ["east"]
        world.controller("east").start("train")
        await manager.settle(20)
        assert world.annotation(WAITING) is None
        assert len(releases(world)) == 3
