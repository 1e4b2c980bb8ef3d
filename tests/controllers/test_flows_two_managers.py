"""Two installations on one management cluster, in two namespaces, with one ``managedBy``: each has its Lease (D2)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.drills import DRILLS, KINDS, definition, drill
from doubles.jobs import Body, job
from doubles.loglines import captured
from doubles.managers import HOME, worker_secret
from doubles.refusals import Refused
from doubles.world import RunningManager, World, manager_of, two_workers

from mirror.embedded.faults.targets import Which
from mirror.model import names

pytestmark = pytest.mark.looptime

THEIRS = "team-system"


def register_there(world: World, name: str, leads_to: str) -> None:
    """A worker of the other installation."""
    world.management.server.put("secrets", worker_secret(name, leads_to, {}, namespace=THEIRS))


def world_of_two() -> World:
    """Both call a cluster ``east``, and it is not the same one."""
    world = World()
    world.add_worker("east")
    world.add_cluster("south")
    world.management.server.put("namespaces", {"metadata": {"name": THEIRS}})
    register_there(world, "east", "south")
    return world


@asynccontextmanager
async def two_managers() -> AsyncIterator[tuple[World, RunningManager, RunningManager]]:
    world = world_of_two()
    async with manager_of(world) as ours, manager_of(world, namespace=THEIRS) as theirs:
        yield world, ours, theirs


async def test_no_job_runs_twice() -> None:
    async with two_managers() as (world, manager, _):
        for number in range(10):
            world.create(job(f"j{number}"))
        await manager.settle(5)
        for number in range(10):
            assert len(world.mirrors(f"j{number}")) == 1, number


def manager_of_job(world: World, name: str = "train") -> str:
    return str(world.annotation(names.MANAGER, name))


def theirs_of(world: World) -> list[str]:
    """The names of the Jobs that the other installation has placed."""
    jobs = [job["metadata"]["name"] for job in world.management.server.all("jobs")]
    return [name for name in jobs if manager_of_job(world, name) == THEIRS]


@asynccontextmanager
async def placed_there(**changes: Any) -> AsyncIterator[tuple[World, RunningManager, RunningManager]]:
    """One Job that the other installation has placed while ours was not there."""
    world = world_of_two()
    async with manager_of(world, namespace=THEIRS) as theirs:
        world.create(job())
        await theirs.settle()
        assert world.mirrors() == ["south"]
        async with manager_of(world, **changes) as ours:
            await ours.settle()
            yield world, ours, theirs


async def test_each_keeps_to_the_jobs_that_it_has_placed() -> None:
    """It runs there to its end, and its deletion deletes the mirror."""
    async with two_managers() as (world, ours, _):
        for number in range(10):
            world.create(job(f"j{number}"))
        await ours.settle(5)
        for number in range(10):
            name, on = f"j{number}", {HOME: "east", THEIRS: "south"}[manager_of_job(world, f"j{number}")]
            assert world.mirrors(name) == [on]
            world.controller(on).start(name)
        await ours.settle(130)
        for number in range(10):
            name = f"j{number}"
            (on,) = world.mirrors(name)
            world.controller(on).complete(name)
        await ours.settle(5)
        assert all("Complete" in world.conditions(f"j{number}") for number in range(10))
        for number in range(10):
            world.delete(f"j{number}")
        await ours.settle(5)
        assert not any(world.mirrors(f"j{number}") for number in range(10))


async def test_a_job_of_the_other_manager_is_left_alone_and_that_is_told() -> None:
    """An event on the Job, an error in the log, a metric; and nothing is written to the Job or for it."""
    with captured() as lines:
        async with placed_there() as (world, ours, _):
            await is_left_alone(world, ours)
    (line,) = [line for line in lines if line["event"] == "two managers"]
    assert line["level"] == "error"
    assert (line["other"], str(line["source"]), line["jobs"]) == (THEIRS, "Job default/train", 1)


async def is_left_alone(world: World, ours: RunningManager) -> None:
    world.controller("south").start("train")
    await ours.settle(5)
    source, writes = world.source(), world.writes()
    await ours.settle(300)
    assert world.source() == source
    text = (
        f"the manager in namespace {THEIRS} has placed it on its worker east, and this one, in namespace {HOME}, "
        "leaves it alone: each needs a managedBy, or namespaces, of its own; if it has moved here: "
        f"mirror take-over {THEIRS} --namespace {HOME}"
    )
    assert world.texts("OtherManager") == [text]
    assert world.writes() <= writes
    assert ours.mirroring.jobs_of_other_managers == 1
    world.controller("south").complete("train")
    await ours.settle(5)
    assert "Complete" in world.conditions()
    assert ours.mirroring.jobs_of_other_managers == 0


async def test_what_started_there_is_not_lost_here() -> None:
    """D11: worker east has no mirror of it, and is another cluster."""
    async with placed_there() as (world, ours, _):
        world.controller("south").start("train")
        await ours.settle(130)
        assert world.mirrors() == ["south"]
        assert "Failed" not in world.conditions()


async def test_a_mark_that_a_user_takes_away_is_put_back_and_meanwhile_nobody_else_follows() -> None:
    """``kubectl replace`` of the user's manifest drops every annotation of ours."""
    async with placed_there() as (world, ours, _):
        world.controller("south").start("train")
        await ours.settle(5)
        for _ in range(5):
            world.edit(lambda body: body["metadata"].update(annotations={}))
            await ours.settle(15)
        assert manager_of_job(world) == THEIRS
        assert world.mirrors() == ["south"]
        assert "Failed" not in world.conditions()


async def test_who_may_annotate_a_job_cannot_free_it_from_its_manager() -> None:
    """It would run on although a queue has suspended it, or its worker is emptied."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        (worker,) = world.mirrors()
        world.controller(worker).start("train")
        await manager.settle()
        for number in range(3):
            world.edit(lambda body: body["metadata"]["annotations"].update({names.MANAGER: THEIRS}))
            world.edit(lambda body, at=number: body["metadata"]["labels"].update(at=str(at)))
            world.edit(lambda body: body["metadata"]["annotations"].pop(names.MANAGER, None))
            world.edit(lambda body: body["metadata"]["annotations"].update({names.MANAGER: "of-a-third"}))
            await manager.settle(5)
            assert manager_of_job(world) == HOME
        world.edit(lambda body: body["spec"].update(suspend=True))
        world.edit(lambda body: body["metadata"]["annotations"].update({names.MANAGER: THEIRS}))
        await manager.settle(5)
        assert (world.mirror(worker) or {})["spec"]["suspend"] is True
        assert world.texts("OtherManager") == []
        assert manager.mirroring.jobs_of_other_managers == 0


async def test_a_job_is_taken_over_by_a_mark_of_ones_own() -> None:
    """A manager that has moved to another namespace: an operator's word, since the old one might live on."""
    world = World()
    world.add_worker("east")
    world.management.server.put("namespaces", {"metadata": {"name": THEIRS}})
    async with manager_of(world) as before:
        world.create(job())
        await before.settle()
        world.controller("east").start("train")
        await before.settle(5)
    register_there(world, "east", "east")
    async with manager_of(world, namespace=THEIRS) as after:
        await after.settle(30)
        assert manager_of_job(world) == HOME
        world.edit(lambda body: body["metadata"]["annotations"].update({names.MANAGER: THEIRS}))
        world.controller("east").complete("train")
        await after.settle(5)
        assert "Complete" in world.conditions()
        assert after.mirroring.jobs_of_other_managers == 0


async def test_jobs_from_before_marks_are_followed_and_marked() -> None:
    """The manager is upgraded."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
    world.edit(lambda body: body["metadata"]["annotations"].pop(names.MANAGER))
    async with manager_of(world) as manager:
        await manager.settle(15)
        assert manager_of_job(world) == HOME
        (worker,) = world.mirrors()
        world.controller(worker).start("train")
        world.controller(worker).complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_mark_on_a_job_that_nobody_has_placed_means_nothing() -> None:
    """A manifest was copied with its annotations."""
    async with two_workers() as (world, manager):
        world.create(job(annotations={names.MANAGER: THEIRS}))
        await manager.settle()
        assert manager_of_job(world) == HOME
        assert len(world.mirrors()) == 1
        assert world.texts("OtherManager") == []


async def test_a_fresh_mirror_of_the_other_manager_stays_on_a_worker_that_has_another_name_here() -> None:
    """Both have registered one cluster, as east and as north; its uid is recorded with its first status only (D10)."""
    world = World()
    world.add_cluster("shared")
    world.management.server.put("namespaces", {"metadata": {"name": THEIRS}})
    register_there(world, "north", "shared")
    world.register("east", leads_to="shared")
    async with manager_of(world, namespace=THEIRS) as theirs:
        world.create(job())
        await theirs.settle()
        before = world.mirror("shared")
        async with manager_of(world) as ours:
            await ours.settle(200)
            assert before is not None
            assert (world.mirror("shared") or {})["metadata"]["uid"] == before["metadata"]["uid"]


async def test_managers_that_share_no_namespace_say_nothing_of_each_other() -> None:
    """With ``namespaces`` two of them are as they should be: a sweep leaves the other's mirrors."""
    world = World()
    world.add_cluster("shared")
    for name in (THEIRS, "a", "b"):
        world.management.server.put("namespaces", {"metadata": {"name": name}})
        world.workers["shared"].server.put("namespaces", {"metadata": {"name": name}})
    register_there(world, "north", "shared")
    world.register("east", leads_to="shared")
    async with (
        manager_of(world, namespaces=("a",)) as ours,
        manager_of(world, namespace=THEIRS, namespaces=("b",)) as theirs,
    ):
        world.create(job(namespace="a"))
        world.create(job(namespace="b"))
        await ours.settle(200)
        assert world.mirrors(namespace="a") == ["shared"]
        assert world.mirrors(namespace="b") == ["shared"]
        assert ours.mirroring.jobs_of_other_managers == theirs.mirroring.jobs_of_other_managers == 0
        assert world.texts("OtherManager") == []


async def world_of_drills() -> World:
    world = world_of_two()
    for server in (world.management.server, *(wire.server for wire in world.workers.values())):
        server.put("customresourcedefinitions", definition())
    await asyncio.sleep(1)
    return world


def drills_on(world: World, name: str) -> list[str]:
    """The workers that have a mirror of it."""
    return [at for at, wire in world.workers.items() if wire.server.find(DRILLS.plural, name) is not None]


def reason_of(world: World, name: str) -> str:
    listed = world.management.server.get(DRILLS.plural, name)["status"]["conditions"]
    return str(next(one["reason"] for one in listed if one["type"] == names.PLACED))


REFUSED = [
    pytest.param(None, id="it comes right after it"),
    pytest.param(Refused(500, "InternalError", 'failed calling webhook "drills": connection refused'), id="later"),
    pytest.param(Refused(403, "Forbidden", 'admission webhook "drills" denied the request'), id="never"),
]


@pytest.mark.parametrize("refused", REFUSED)
async def test_a_kind_whose_mark_follows_its_record_runs_once(refused: Refused | None) -> None:
    """D25: its /status takes no annotation, so that the record itself says whose it is."""
    world = await world_of_drills()
    async with (
        manager_of(world, kinds=KINDS) as ours,
        manager_of(world, kinds=KINDS, namespace=THEIRS) as theirs,
    ):
        if refused is not None:
            marking = Which("patch", DRILLS.plural, subresource="")
            world.management.faults.arrange(refused.answer(), marking, times=math.inf)
        for number in range(10):
            world.management.server.put(DRILLS.plural, drill(f"d{number}"))
        await ours.settle(60)
        for number in range(10):
            assert len(drills_on(world, f"d{number}")) == 1, number
            assert reason_of(world, f"d{number}") in ("PlacedBy_jobmirror_system", "PlacedBy_team_system")
        assert ours.mirroring.jobs_of_other_managers + theirs.mirroring.jobs_of_other_managers == 10


async def test_a_record_is_renamed_once_it_was_taken_over() -> None:
    """The annotation of ``mirror take-over`` goes before what the record says, which follows it."""
    world = await world_of_drills()
    server = world.management.server
    async with manager_of(world, kinds=KINDS, namespace=THEIRS) as theirs:
        server.put(DRILLS.plural, drill())
        await theirs.settle()
        assert reason_of(world, "train") == "PlacedBy_team_system"
    mark = {names.MANAGER: HOME}
    server.edit(DRILLS.plural, "train", lambda body: body["metadata"]["annotations"].update(mark))
    server.remove("secrets", "east", HOME)
    world.register("east", leads_to="south")
    async with manager_of(world, kinds=KINDS) as ours:
        await ours.settle(30)
        assert reason_of(world, "train") == "PlacedBy_jobmirror_system"
        assert ours.mirroring.jobs_of_other_managers == 0


async def test_a_record_of_an_earlier_version_is_followed_and_named_with_the_next_status() -> None:
    """It says nothing; the annotation does, or after ten seconds nobody."""
    world = await world_of_drills()
    server = world.management.server
    async with manager_of(world, kinds=KINDS) as before:
        server.put(DRILLS.plural, drill())
        await before.settle()

    def as_before(body: Body) -> None:
        for one in body["status"]["conditions"]:
            one["reason"] = one["reason"].partition("By_")[0]
        del body["metadata"]["annotations"][names.MANAGER]

    server.edit(DRILLS.plural, "train", as_before)
    async with manager_of(world, kinds=KINDS) as ours:
        await ours.settle(15)
        status = {"rounds": 1}
        world.workers["east"].server.edit(DRILLS.plural, "train", lambda body: body.update(status=status))
        await ours.settle(5)
        assert reason_of(world, "train") == "PlacedBy_jobmirror_system"
        assert drills_on(world, "train") == ["east"]
