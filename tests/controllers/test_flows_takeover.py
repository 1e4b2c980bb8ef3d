"""A manager that stood by for any time takes over: it works at once, and judges by nothing that it knew (D2, D13)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from doubles.candidates import Candidate, candidate_for
from doubles.jobs import Body, job
from doubles.transport import Sent
from doubles.world import HOME, WAITING, World

pytestmark = pytest.mark.looptime

AGES = [0.2, 9.0, 30.0]
"""For how long the standby has stood by, in seconds; workers have their first chance for ten."""


@asynccontextmanager
async def leader_and_standby(world: World, *, age: float) -> AsyncIterator[tuple[asyncio.Task[None], Candidate]]:
    """A leader at work, and one that has stood by so long."""
    async with candidate_for(world, "leader") as leader, candidate_for(world) as standby:
        leading = leader.lead()
        await asyncio.sleep(age)
        yield leading, standby


def writes_of(world: World, name: str = "standby") -> list[Sent]:
    wires = (world.management, *world.workers.values())
    return [sent for wire in wires for sent in wire.writes() if sent.peer == name]


@pytest.mark.parametrize("age", AGES)
async def test_a_standby_of_any_age_works_at_once(age: float) -> None:
    """Statuses, new Jobs and orphans wait for one list and one probe, not for the next look after a minute."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with leader_and_standby(world, age=age) as (leading, standby):
        world.create(job("running"))
        world.create(job("orphaned"))
        await asyncio.sleep(1)
        (where,) = world.mirrors("running")
        world.controller(where).start("running")
        await asyncio.sleep(1)
        leading.cancel()
        await asyncio.sleep(0.1)
        world.controller(where).complete("running")
        world.create(job("fresh"))
        world.delete("orphaned")
        await asyncio.sleep(3)
        standby.lead()
        await asyncio.sleep(0.2)
        assert "Complete" in world.conditions("running")
        assert world.mirrors("fresh") != []
        assert world.mirrors("orphaned") == []


@pytest.mark.parametrize("age", AGES)
async def test_taking_over_a_world_at_rest_writes_nothing(age: float) -> None:
    """Jobs that wait, run, are suspended or have ended, and the record of workers, are all as they should be."""
    world = World()
    world.add_worker("east", annotations={"capacity": "3"})
    async with leader_and_standby(world, age=age) as (leading, standby):
        for number in range(12):
            world.create(job(f"j{number}"))
        await asyncio.sleep(1)
        placed = [f"j{number}" for number in range(12) if world.mirrors(f"j{number}")]
        assert len(placed) == 3
        world.controller("east").start(placed[0])
        world.controller("east").start(placed[1])
        await asyncio.sleep(1)
        world.edit(lambda body: body["spec"].update(suspend=True), placed[1])
        world.controller("east").complete(placed[0])
        await asyncio.sleep(20)
        before = {f"j{number}": world.source(f"j{number}") for number in range(12)}
        assert world.annotation(WAITING, "j11") is not None
        leading.cancel()
        await asyncio.sleep(15)
        standby.lead()
        await asyncio.sleep(65)
        assert [sent.path for sent in writes_of(world)] == []
        assert {name: world.source(name) for name in before} == before


@pytest.mark.parametrize("age", [0.2, 30.0])
async def test_a_worker_that_hangs_delays_its_own_jobs_only(age: float) -> None:
    """D12: who takes over follows the others at once; what has no place yet waits for its first chance, ten seconds."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with leader_and_standby(world, age=age) as (leading, standby):
        world.create(job("a"))
        await asyncio.sleep(1)
        (where,) = world.mirrors("a")
        world.controller(where).start("a")
        await asyncio.sleep(1)
        leading.cancel()
        (other,) = world.workers.keys() - {where}
        world.workers[other].is_hung = True
        world.controller(where).complete("a")
        world.create(job("fresh"))
        standby.lead()
        await asyncio.sleep(0.2)
        assert "Complete" in world.conditions("a")
        await asyncio.sleep(10.5)
        assert world.mirrors("fresh") == [where]


async def test_an_ended_source_is_put_in_order_whatever_its_worker_does() -> None:
    """What it needs, it needs from the management cluster alone, and its worker's first verdict does not name it."""
    world = World()
    world.add_worker("east")
    async with leader_and_standby(world, age=2.0) as (leading, standby):
        world.create(job())
        await asyncio.sleep(1)
        world.controller("east").start("train")
        world.controller("east").complete("train")
        await asyncio.sleep(1)
        leading.cancel()
        world.workers["east"].is_hung = True
        world.edit(lambda body: body["metadata"]["annotations"].update({WAITING: "for someone else"}))
        standby.lead()
        await asyncio.sleep(20)
        assert "Complete" in world.conditions("train")
        assert world.annotation(WAITING) is None


async def test_a_standby_that_was_cut_off_from_a_worker_does_not_call_it_lost() -> None:
    """The leader reached it all the time; only the standby did not, for hours, and now it does."""
    world = World()
    world.add_worker("east")
    async with leader_and_standby(world, age=2.0) as (leading, standby):
        world.create(job())
        await asyncio.sleep(1)
        world.controller("east").start("train")
        await asyncio.sleep(1)
        world.workers["east"].faults.cut_off("standby")
        await asyncio.sleep(1000)
        assert standby.registry.workers["east"].connection.lost_since is not None
        leading.cancel()
        standby.lead()
        await asyncio.sleep(20)
        assert standby.registry.workers["east"].connection.lost_for_seconds(standby.clock.now()) < 30
        world.workers["east"].faults.heal("standby")
        await asyncio.sleep(20)
        about_jobs = [
            event for event in world.management.server.all("events") if event["involvedObject"]["kind"] == "Job"
        ]
        assert (world.annotation(WAITING), [event["reason"] for event in about_jobs]) == (None, ["Mirrored"])


async def test_what_the_leader_could_not_reach_is_lost_since_then() -> None:
    """D13: counted from the first loss that is recorded; the standby reached it, until it took over."""
    world = World()
    world.add_worker("east")
    async with leader_and_standby(world, age=2.0) as (leading, standby):
        world.create(job())
        await asyncio.sleep(1)
        world.workers["east"].faults.cut_off("leader")
        await asyncio.sleep(600)
        assert json.loads(world.record()["east"])["state"] == "Lost"
        leading.cancel()
        world.workers["east"].faults.cut_off()
        standby.lead()
        await asyncio.sleep(20)
        lost_for = standby.registry.workers["east"].connection.lost_for_seconds(standby.clock.now())
        assert 500 < lost_for < 700


async def test_a_standby_whose_watches_went_silent_sees_what_is_there() -> None:
    """Its connections looked alive and brought nothing: sources, Secrets and mirrors are listed anew."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with leader_and_standby(world, age=20.0) as (leading, standby):
        world.create(job("running"))
        await asyncio.sleep(1)
        (where,) = world.mirrors("running")
        for wire, plural in ((world.management, "jobs"), (world.management, "secrets"), (world.workers[where], "jobs")):
            wire.mute_watches(plural)
        leading.cancel()
        await asyncio.sleep(0.1)
        (other,) = world.workers.keys() - {where}
        world.annotate_worker(other, cordoned="true")
        world.create(job("fresh"))
        world.controller(where).start("running")
        world.controller(where).complete("running")
        standby.lead()
        await asyncio.sleep(0.2)
        assert "Complete" in world.conditions("running")
        assert world.mirrors("fresh") == [where]


async def test_a_standby_forgets_workers_that_are_no_more() -> None:
    """Weeks of Secrets that come and go leave nothing behind in who only stands by."""
    world = World()
    world.add_worker("east")
    async with leader_and_standby(world, age=2.0) as (_, standby):
        for number in range(20):
            world.register(f"w{number}", leads_to="nowhere")
            await asyncio.sleep(2)
            world.management.server.remove("secrets", f"w{number}", "jobmirror-system")
        await asyncio.sleep(130)
        assert list(standby.registry.workers) == ["east"]
        assert len(standby.registry._tasks) == 1
        assert set(standby.mirroring._parts.routes._last_reported) == {"east"}


async def test_a_late_write_of_the_leader_before_does_not_change_the_record_of_workers() -> None:
    """D28: what an API server carries out after its sender has gone meets another version; an edit by hand stays."""
    world = World()
    world.add_worker("east")
    async with leader_and_standby(world, age=2.0) as (leading, standby):
        await asyncio.sleep(5)
        late = world.record()["east"]
        leading.cancel()
        standby.lead()
        await asyncio.sleep(1)

        def edit(body: Body) -> None:
            body["data"] |= {"east": json.dumps(json.loads(late) | {"uid": "another"}), "byhand": "{}"}

        world.management.server.edit("configmaps", "jobmirror-workers", edit, HOME)
        world.workers["east"].is_hung = True
        await asyncio.sleep(30)
        record = world.record()
        assert json.loads(record["east"])["uid"] == world.workers["east"].server.uid
        assert (json.loads(record["east"])["state"], record["byhand"]) == ("Lost", "{}")


async def test_what_a_definition_lacks_is_known_to_who_takes_over() -> None:
    """Before it has read any itself; of kinds that it does not mirror nothing is kept."""
    world = World()
    world.add_worker("east")
    async with candidate_for(world, "leader") as leader, candidate_for(world) as standby:
        leading = leader.lead()
        await asyncio.sleep(9)
        for kind in ("Job", "Unmirrored"):
            leader.registry.workers["east"].note_incomplete(kind, "spec.suspend")
        await asyncio.sleep(3)
        leading.cancel()
        await asyncio.sleep(0.1)
        world.create(job("train"))
        standby.lead()
        await asyncio.sleep(30)
        assert world.placed() is None
        assert "its definition lacks required fields (spec.suspend)" in (world.annotation(WAITING) or "")
        assert standby.registry.workers["east"].incomplete_kinds == {"Job": "spec.suspend"}
        standby.registry.workers["east"].note_incomplete("Job", "")
        await asyncio.sleep(5)
        assert world.placed() == "east"
        (record,) = world.management.server.all("configmaps")
        assert "incomplete" not in json.loads(record["data"]["east"])
