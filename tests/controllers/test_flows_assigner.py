"""Who assigns workers, beside two slots: three instances of mirroring, as three replicas have them (S1, S2, S6)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from doubles.jobs import job
from doubles.refusals import forbidden
from doubles.slots import SLOTS, WORKERS, assigner_of, holder_of, index_of, reason_of, replicas, world_of
from doubles.world import WAITING, manager_of

from mirror.model import names

pytestmark = pytest.mark.looptime


async def test_jobs_are_spread_over_workers_of_all_slots_and_run_to_their_end() -> None:
    world = world_of()
    async with replicas(world):
        for number in range(6):
            world.create(job(f"train-{number}"))
        await asyncio.sleep(5)
        placed = [world.placed(f"train-{number}") for number in range(6)]
        assert sorted(map(str, placed)) == ["east"] * 3 + ["north"] * 3
        assert [world.mirrors(f"train-{number}") for number in range(6)] == [[worker] for worker in placed]
        for number, worker in enumerate(placed):
            controller = world.controller(str(worker))
            controller.start(f"train-{number}")
            controller.complete(f"train-{number}")
        await asyncio.sleep(5)
        assert all("Complete" in world.conditions(f"train-{number}") for number in range(6))


async def test_who_assigns_asks_no_worker_and_writes_nothing_of_any() -> None:
    """But which number of slots is in force (S10)."""
    world = world_of()
    async with replicas(world, slots=()):
        world.create(job("train"))
        await asyncio.sleep(60)
        assert world.placed() is None
        assert [wire.writes() for wire in world.workers.values()] == [[], []]
        assert all(not wire.sent for wire in world.workers.values())
        assert world.record() == {}
        (record,) = world.management.server.all("configmaps")
        assert record["metadata"]["annotations"][names.SLOTS].startswith(f"{SLOTS} ")


async def test_capacity_is_kept_over_all_slots_and_what_waits_says_why() -> None:
    world = world_of(capacity="1")
    async with replicas(world) as assigner:
        for number in range(3):
            world.create(job(f"train-{number}"))
        await asyncio.sleep(30)
        placed = {name: world.placed(name) for name in ("train-0", "train-1", "train-2")}
        waiting = [name for name, worker in placed.items() if worker is None]
        assert len(waiting) == 1
        assert "capacity" in (world.annotation(WAITING, waiting[0]) or "")
        assert assigner.mirroring.assigner.waiting == 1
        ended = next(name for name, worker in placed.items() if worker)
        controller = world.controller(str(placed[ended]))
        controller.start(ended)
        controller.complete(ended)
        await asyncio.sleep(10)
        assert world.placed(waiting[0]) == placed[ended]


async def test_what_a_worker_refuses_goes_to_one_of_another_slot() -> None:
    """S6: its holder takes the record away and says why; who assigns tries there again when its turn comes."""
    world = world_of()
    world.workers["east"].arrange("create", "jobs", forbidden(), times=999)
    async with replicas(world):
        names_of = [f"train-{number}" for number in range(4)]
        for name in names_of:
            world.create(job(name))
        await asyncio.sleep(30)
        assert [world.placed(name) for name in names_of] == ["north"] * 4
        assert [world.mirrors(name) for name in names_of] == [["north"]] * 4


async def test_a_worker_whose_definition_lacks_fields_gets_no_new_jobs() -> None:
    """Its holder has written it down, with the fields; what is there stays."""
    world = world_of()
    async with (
        assigner_of(world),
        holder_of(world, index_of("east")) as holder,
        holder_of(world, index_of("north")),
    ):
        for number in range(2):
            world.create(job(f"early-{number}"))
        await asyncio.sleep(5)
        assert {world.placed(f"early-{number}") for number in range(2)} == {"east", "north"}
        holder.registry.workers["east"].note_incomplete("Job", "spec.suspend")
        await asyncio.sleep(5)
        for number in range(2):
            world.create(job(f"late-{number}"))
        pinned = job("pinned", annotations={names.WORKER_SELECTOR: "name=east"})
        world.create(pinned)
        await asyncio.sleep(10)
        assert {world.placed(f"early-{number}") for number in range(2)} == {"east", "north"}
        assert [world.placed(f"late-{number}") for number in range(2)] == ["north", "north"]
        text = "east: its definition lacks required fields (spec.suspend)"
        assert text in (world.annotation(WAITING, "pinned") or "")
        holder.registry.workers["east"].note_incomplete("Job", "")
        await asyncio.sleep(10)
        assert world.placed("pinned") == "east"


async def test_a_worker_that_is_lost_gets_no_new_jobs() -> None:
    """How it is, its holder has written down."""
    world = world_of()
    async with replicas(world):
        await asyncio.sleep(5)
        world.workers["east"].go_down()
        await asyncio.sleep(60)
        for number in range(3):
            world.create(job(f"train-{number}"))
        await asyncio.sleep(10)
        assert {world.placed(f"train-{number}") for number in range(3)} == {"north"}


async def test_a_mirror_whose_record_was_erased_gets_it_back_from_who_holds_its_worker() -> None:
    """D2, D5: nobody else can know where it is, so who assigns must not be first; here it has not begun."""
    world = world_of()
    async with AsyncExitStack() as stack:
        for index in range(SLOTS):
            await stack.enter_async_context(holder_of(world, index))
        async with assigner_of(world):
            world.create(job("train"))
            await asyncio.sleep(5)
        (worker,) = world.mirrors()
        uid = (world.mirror(worker) or {})["metadata"]["uid"]

        def erase(body: dict[str, object]) -> None:
            body["status"] = {}

        world.edit(erase)
        await asyncio.sleep(120)
        assert world.placed() == worker
        assert (world.mirror(worker) or {})["metadata"]["uid"] == uid


async def test_a_suspended_job_is_shown_as_such_and_begins_when_it_is_resumed() -> None:
    world = world_of()
    async with replicas(world):
        world.create(job("train", suspend=True))
        await asyncio.sleep(5)
        assert "Suspended" in world.conditions()
        assert world.mirrors() == []

        def resume(body: dict[str, dict[str, object]]) -> None:
            body["spec"]["suspend"] = False

        world.edit(resume)
        await asyncio.sleep(5)
        assert world.mirrors() == [world.placed()]
        assert world.source()["metadata"].get("annotations", {}).get(names.WAITING_BECAUSE) is None


async def test_a_record_of_an_earlier_term_is_touched_before_anything_is_created() -> None:
    """S7: and what is refused then stays where it is, since the one before may have sent a create that is late."""
    world = world_of()
    world.workers["east"].arrange("create", "jobs", forbidden(), times=999)
    world.workers["north"].arrange("create", "jobs", forbidden(), times=999)
    async with assigner_of(world, "t1"):
        async with holder_of(world, 0, "t0"), holder_of(world, 1, "t0"):
            await asyncio.sleep(3)  # how workers are is written down
        world.create(job("train"))
        await asyncio.sleep(5)
        placed = world.placed()
        assert placed in WORKERS
        assert reason_of(world) == "Placed:t1"
        async with holder_of(world, 0, "t2"), holder_of(world, 1, "t2"):
            await asyncio.sleep(60)
            assert (world.placed(), reason_of(world)) == (placed, "Placed:t2")
            world.workers["east"].restore()
            world.workers["north"].restore()
            await asyncio.sleep(60)
            assert world.mirrors() == [placed]
            assert reason_of(world) == "Placed:t2"


async def test_what_holders_write_is_no_foreign_status_to_who_assigns() -> None:
    """D20, S2: or every Job would look as if another controller ran it."""
    world = world_of()
    async with replicas(world) as assigner:
        world.create(job("train"))
        await asyncio.sleep(5)
        controller = world.controller(str(world.placed()))
        controller.start("train")
        await asyncio.sleep(5)
        controller.complete("train")
        await asyncio.sleep(5)
        assert "Complete" in world.conditions()
        assert assigner.metrics.registry.get_sample_value("jobmirror_foreign_status_writes_total", {"kind": "Job"}) == 0


async def test_without_slots_nothing_is_said_of_terms() -> None:
    world = world_of()
    async with manager_of(world):
        world.create(job("train"))
        await asyncio.sleep(5)
        assert reason_of(world) == "Placed"
