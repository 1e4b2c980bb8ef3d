"""Where Jobs of a lost worker go, in which order, and what becomes of those for which there is no place (D14, D21)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from controllers.test_flows_moves import MINUTE, RESCHEDULE, moved_message, running_on_east
from doubles.jobs import Body, condition, job
from doubles.managers import HOME
from doubles.refusals import Refused
from doubles.world import WAITING, RunningManager, World, manager_of, two_workers

from mirror.model import names

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

NAMESPACES = {"team-a": 24, "team-b": 8, "team-c": 8, "team-d": 2}
"""How many Jobs each has."""
CAPACITY = 30


def make_namespaces(world: World) -> None:
    for wire in (world.management, *world.workers.values()):
        for name in NAMESPACES:
            wire.server.put("namespaces", {"metadata": {"name": name}})


def made_on_west(world: World) -> list[tuple[float, str]]:
    """When mirrors were created there, in which namespaces."""
    creates = (one for one in world.workers["west"].sent if one.verb == "create" and one.path.endswith("/jobs"))
    return [(one.at, one.path.split("/")[-2]) for one in creates]


async def test_moves_go_one_after_the_other() -> None:
    """24: so many a second, namespaces in turn, and as many as the next worker takes."""
    async with two_workers(policy=RESCHEDULE, move_rate=2.0) as (world, manager):
        make_namespaces(world)
        world.annotate_worker("west", cordoned="true")
        await manager.settle()
        for namespace, count in NAMESPACES.items():
            for number in range(count):
                world.create(job(f"train-{number}", namespace=namespace))
            await manager.settle(2)
        world.annotate_worker("west", cordoned=None, capacity=str(CAPACITY))
        world.workers["east"].go_down()
        await manager.settle(17 * MINUTE)
        made = made_on_west(world)
        assert len(made) == len(world.workers["west"].server.all("jobs")) == CAPACITY
        assert all(later - before >= 0.45 for (before, _), (later, _) in pairwise(made))
        moved = Counter[str]()
        for _, namespace in made:
            moved[namespace] += 1
            rest = [moved[one] for one, count in NAMESPACES.items() if moved[one] < count]
            assert max(moved.values()) - min(rest, default=0) <= 1 or not rest, moved
        assert moved == {"team-a": 12, "team-b": 8, "team-c": 8, "team-d": 2}
        world.workers["east"].restore()
        await manager.settle(2 * MINUTE)
        placed = Counter(
            world.placed(f"train-{number}", namespace)
            for namespace, count in NAMESPACES.items()
            for number in range(count)
        )
        assert placed == {"west": CAPACITY, "east": sum(NAMESPACES.values()) - CAPACITY}


def without_what_it_waits_for(body: Body) -> Body:
    """A source but for the text that says why it waits, and what changes with each write."""
    metadata = {
        key: value for key, value in body["metadata"].items() if key not in ("resourceVersion", "managedFields")
    }
    metadata["annotations"] = {key: value for key, value in metadata["annotations"].items() if key != WAITING}
    status = body["status"] | {
        "conditions": [one for one in body["status"]["conditions"] if one["type"] != names.PROGRESSING]
    }
    return body | {"metadata": metadata, "status": status}


async def fill_west(world: World, manager: RunningManager) -> None:
    """Its only place is taken."""
    world.annotate_worker("west", capacity="1")
    world.create(job("other", annotations={names.WORKER_SELECTOR: "name=west"}))
    await manager.settle()
    assert world.mirrors("other") == ["west"]


NO_PLACE = [
    pytest.param("", "west: at capacity", id="25: full"),
    pytest.param("name=east", "labels do not match worker-selector", id="26: not selected"),
]


async def running_where_alone_it_may(world: World, manager: RunningManager, selector: str) -> str:
    """West is full, or not selected; the uid of the mirror on east."""
    await fill_west(world, manager)
    return await running_on_east(world, manager, annotations={names.WORKER_SELECTOR: selector} if selector else {})


@pytest.mark.parametrize(("selector", "why"), NO_PLACE)
async def test_without_a_place_there_is_no_move(selector: str, why: str) -> None:
    """25, 26: it stays recorded and says why; east is back first, and it goes on there with the same mirror."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await running_where_alone_it_may(world, manager, selector)
        world.workers["east"].go_down()
        await manager.settle(30 * MINUTE)
        assert world.placed() == "east"
        assert "worker east is lost; the Job waits for another worker: " in (world.annotation(WAITING) or "")
        assert why in (world.annotation(WAITING) or "")
        assert "Suspended" not in world.conditions()
        world.workers["east"].restore()
        await manager.settle(20)
        assert (world.placed(), world.mirrors(), world.annotation(WAITING)) == ("east", ["east"], None)
        assert world.mirror("east")["metadata"]["uid"] == uid
        world.annotate_worker("west", capacity=None)
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors("other")) == ("east", ["west"])


@pytest.mark.parametrize(("selector", "why"), NO_PLACE)
async def test_nothing_but_the_text_is_written_while_there_is_no_place(selector: str, why: str) -> None:
    """25, 26: why it waits, once for each reason; of the record, and of the mirror, nothing changes."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_where_alone_it_may(world, manager, selector)
        before, texts = without_what_it_waits_for(world.source()), list[str]()
        asked, done = len(world.management.sent), len(world.workers["east"].writes())
        world.workers["east"].go_down()
        for _ in range(30 * 12):
            await manager.settle(5)
            assert without_what_it_waits_for(world.source()) == before
            text = world.annotation(WAITING)
            if text is not None and text not in texts:
                texts.append(text)
        assert why in texts[-1]
        patches = [one for one in world.management.sent[asked:] if one.writes and "/jobs/train" in one.path]
        assert (len(patches), len(world.workers["east"].writes())) == (len(texts), done)


async def test_a_foreign_job_has_the_name_on_the_next_worker() -> None:
    """57: refused there, so it goes to a third one; neither the foreign Job nor the copy on east is touched."""
    world = World()
    for name in ("east", "west", "north"):
        world.add_worker(name)
    async with manager_of(world, policy=RESCHEDULE) as manager:
        world.annotate_worker("north", cordoned="true")
        uid = await running_on_east(world, manager, annotations={names.WORKER_ORDER: "west,north"})
        world.annotate_worker("north", cordoned=None)
        foreign = world.workers["west"].server.put("jobs", job(managed_by=None, parallelism=2))
        left = world.mirror("east")
        world.workers["east"].go_down()
        await manager.settle(17 * MINUTE)
        assert [namespace for _, namespace in made_on_west(world)] == ["default"]
        assert (world.placed(), sorted(world.mirrors())) == ("north", ["east", "north", "west"])
        assert (world.mirror("west"), world.mirror("east")) == (foreign, left)
        assert moved_message(world) == f"move 1, from east to north; left behind: east (uid {uid})"
        shown = {one["type"]: one["message"] for one in world.source()["status"]["conditions"]}
        assert shown["Suspended"] == "Worker east is lost; the Job starts again on north"
        told = [f"moved from east to {to} (move 1); the copy on east may still run" for to in ("north", "west")]
        assert sorted(world.texts("Moved")) == told
        world.controller("north").start("train")
        await manager.settle()
        assert "Suspended" not in world.conditions()
        world.workers["east"].restore()
        await manager.settle(2 * MINUTE)
        assert sorted(world.mirrors()) == ["north", "west"]
        world.controller("north").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()
        world.delete()
        await manager.settle(2 * MINUTE)
        assert world.mirrors() == ["west"]
        assert world.mirror("west") == foreign


async def test_a_foreign_job_has_the_name_on_the_only_other_worker() -> None:
    """57: there is no third one: the copy on east is the only one, and counts again once it is back."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await running_on_east(world, manager)
        foreign = world.workers["west"].server.put("jobs", job(managed_by=None))
        world.workers["east"].go_down()
        await manager.settle(17 * MINUTE)
        world.workers["east"].restore()
        await manager.settle(20)
        assert (world.placed(), world.mirror("west")) == ("east", foreign)
        assert world.mirror("east")["metadata"]["uid"] == uid
        assert moved_message(world) == ""
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_copies_that_were_left_behind_take_places_until_they_are_gone() -> None:
    """A worker that is back has the old copies for a while: what it may hold is not more for that."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager)
        world.annotate_worker("east", capacity="1")
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        assert world.placed() == "west"
        world.workers["east"].restore()
        world.workers["east"].arrange("delete", "jobs", Refused(500, "InternalError"), times=10_000)
        world.create(job("next", annotations={names.WORKER_SELECTOR: "name=east"}))
        await manager.settle(30)
        assert world.mirrors("train") == ["east", "west"]
        assert (world.placed("next"), world.annotation(WAITING, "next")) == (
            None,
            "east: at capacity; …and 1 more: labels do not match worker-selector",
        )
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert world.mirrors("train") == ["west"]
        assert world.placed("next") == "east"


@pytest.mark.parametrize("how", ["its Secret goes and comes back", "its copies end", "its copies are suspended"])
async def test_what_runs_there_no_more_takes_no_place(how: str) -> None:
    """Copies that are suspended may stay for long (``workers.losers``)."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        world.workers["east"].restore()
        world.workers["east"].arrange("delete", "jobs", Refused(500, "InternalError"), times=10_000)
        world.annotate_worker("east", capacity="1")
        await manager.settle(2)
        if how == "its copies end":
            at = world.management.clock.text()
            ends = [condition(one, at, reason="BackoffLimitExceeded") for one in ("FailureTarget", "Failed")]
            status = world.mirror("east")["status"]
            world.controller("east").set("train", status | {"active": 0, "ready": 0, "failed": 1, "conditions": ends})
        elif how == "its copies are suspended":
            world.workers["east"].server.edit("jobs", "train", lambda body: body["spec"].update(suspend=True))
        else:
            world.management.server.remove("secrets", "east", HOME)
            await manager.settle(2)
            world.workers["east"].server.remove("jobs", "train")
            world.register("east", annotations={"capacity": "1"})
        world.create(job("next", annotations={names.WORKER_SELECTOR: "name=east"}))
        await manager.settle(20)
        assert world.placed("next") == "east"
