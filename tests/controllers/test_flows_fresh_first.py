"""A manager that has thousands of Jobs to look at: what a user changes meanwhile goes first, and no turn of the event
loop goes over all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import partial

import pytest
from doubles.candidates import candidate_for
from doubles.counting import Turns
from doubles.jobs import Body, job
from doubles.world import RunningManager, World

from mirror.controllers.mirroring import HOLD_SECONDS
from mirror.model import names
from mirror.model.keys import Key, SourceKey
from mirror.runtime.queue import LOOKS_A_TURN
from mirror.runtime.slices import SLICE
from mirror.workers.worker import Worker

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

FINISHED, RUNNING = 2500, 250
WORK_SECONDS = 0.05
"""That the work on one key takes here."""
MOST_AT_ONCE = 64
"""Keys of one worker that are in work."""


def add_like(world: World, model: Body, prefix: str, count: int, *, worker: str = "") -> None:
    """Jobs in the same state as one; with a worker, each has a mirror there like that one's."""
    here, mirror = world.management.server, world.mirror(worker, model["metadata"]["name"]) if worker else None
    for number in range(count):
        name = f"{prefix}-{number}"
        source = here.put("jobs", named(model, name))
        text = json.dumps({"status": model["status"], "notes": model["metadata"]["annotations"]})
        if mirror is not None:
            there, copied = world.workers[worker].server, named(mirror, name)
            copied["metadata"]["labels"][names.SOURCE_UID] = source["metadata"]["uid"]
            uid = there.put("jobs", copied)["metadata"]["uid"]
            there.edit("jobs", name, lambda body: body.update(status=mirror["status"]))
            text = text.replace(mirror["metadata"]["uid"], uid)
        shown: Body = json.loads(text)
        here.edit("jobs", name, partial(set_shown, shown))


def named(model: Body, name: str) -> Body:
    """A Job like another one, as it is created."""
    copied: Body = {"metadata": {"name": name}, "spec": deepcopy(model["spec"])}
    for part in ("labels", "annotations"):
        copied["metadata"][part] = {
            key: value for key, value in (model["metadata"].get(part) or {}).items() if "controller-uid" not in key
        }
        for label in ("job-name", "batch.kubernetes.io/job-name"):
            copied["metadata"][part].pop(label, None)
    copied["spec"].pop("selector")
    copied["spec"]["template"].pop("metadata")
    return copied


def set_shown(shown: Body, body: Body) -> None:
    body["status"], body["metadata"]["annotations"] = shown["status"], shown["notes"]


@asynccontextmanager
async def crowded() -> AsyncIterator[tuple[World, RunningManager]]:
    """Thousands of Jobs at rest, most of them over, on one worker of two, and a manager that knows them."""
    world = World()
    world.add_worker("east")
    async with candidate_for(world, "first") as leader:
        leading = leader.lead()
        for name in ("over", "model"):
            world.create(job(name))
        await asyncio.sleep(1)
        for name in ("over", "model"):
            world.controller("east").start(name)
        world.controller("east").complete("over")
        await asyncio.sleep(1)
        world.workers["east"].server.remove("jobs", "over")
        await asyncio.sleep(5)
        leading.cancel()
    add_like(world, world.source("over"), "over", FINISHED)
    add_like(world, world.source("model"), "job", RUNNING, worker="east")
    async with candidate_for(world, "second") as leader:
        leading = leader.lead()
        await asyncio.sleep(20)
        leading.cancel()
    async with candidate_for(world) as standby:
        await asyncio.sleep(5)
        yield world, standby.manager


def slow_down(manager: RunningManager) -> list[Key]:
    """Let the work on a key take so long; give the keys in the order in which they were worked on."""
    worked: list[Key] = []
    work: Callable[[Key], Awaitable[float | None]] = manager.mirroring._work_on

    async def work_slowly(key: Key) -> float | None:
        await asyncio.sleep(WORK_SECONDS)
        worked.append(key)
        return await work(key)

    vars(manager.mirroring)["_work_on"] = work_slowly
    return worked


async def until_looks_are_queued(manager: RunningManager, count: int) -> None:
    for _ in range(10_000):
        if manager.mirroring.queue.ready >= count:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("they never are")


async def test_what_a_user_changes_goes_before_thousands_of_looks() -> None:
    """A new Job, a suspension, and a status of its worker, while a manager that took over looks at all Jobs."""
    async with crowded() as (world, manager):
        worked, before = slow_down(manager), world.writes()
        manager.start(manager.mirroring.lead(), "lead")
        await until_looks_are_queued(manager, FINISHED // 2)
        world.create(job("new"))
        world.edit(lambda body: body["spec"].update(suspend=True), f"job-{RUNNING - 1}")
        world.controller("east").complete(f"job-{RUNNING - 2}")
        await asyncio.sleep(6 * WORK_SECONDS)
        assert world.mirrors("new") == ["east"]
        mirror = world.mirror("east", f"job-{RUNNING - 1}")
        assert mirror is not None
        assert mirror["spec"]["suspend"]
        assert "Complete" in world.conditions(f"job-{RUNNING - 2}")
        assert manager.mirroring.queue.ready > FINISHED // 2
        await asyncio.sleep(20)
        assert {key.name for key in worked if isinstance(key, SourceKey)} == {
            body["metadata"]["name"] for body in world.management.server.all("jobs")
        }
        assert world.writes() < before + 20
        assert manager.mirroring.queue.ready == 0


async def test_those_who_wait_are_not_looked_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """D21: nobody is placed before they were, so a few at a time go with what has changed."""
    async with crowded() as (world, manager):
        waiting = [f"waits-{number}" for number in range(100)]
        for name in waiting:
            world.create(job(name, annotations={names.WORKER_SELECTOR: "name=nowhere"}))
        await asyncio.sleep(1)
        intake, named_first, forward = manager.mirroring._state.intake, set[str](), list[int]()
        add, worked = intake.add, slow_down(manager)

        def note(key: Key) -> None:
            named_first.add(key.name)
            forward.append(len(named_first - {key.name for key in worked}))
            add(key)

        monkeypatch.setattr(intake, "add", note)
        manager.start(manager.mirroring.lead(), "lead")
        await asyncio.sleep(5)
        world.create(job("new"))
        await asyncio.sleep(1)
        assert named_first <= {*waiting, "new"}
        assert len(named_first) > LOOKS_A_TURN
        assert max(forward) <= LOOKS_A_TURN  # they are not before what has changed since
        assert world.mirrors("new") == ["east"]


async def test_a_reconnect_lets_changes_go_first() -> None:
    """A worker that comes back has all its Jobs looked at."""
    async with crowded() as (world, manager):
        worked = slow_down(manager)
        manager.start(manager.mirroring.lead(), "lead")
        await asyncio.sleep(20)
        world.workers["east"].go_down()
        await asyncio.sleep(60)
        world.workers["east"].restore()
        await until_looks_are_queued(manager, RUNNING // 2)
        changed = next(reversed(manager.mirroring.queue._looks))
        worked.clear()
        world.edit(lambda body: body["spec"].update(suspend=True), changed.name)
        await asyncio.sleep(20)
        assert worked.index(changed) <= MOST_AT_ONCE
        assert len(set(worked)) > RUNNING // 2
        mirror = world.mirror("east", changed.name)
        assert mirror is not None
        assert mirror["spec"]["suspend"]


def turns_of(manager: RunningManager) -> Turns:
    """Counts how many objects each turn of the event loop goes over, by what is done with them."""
    turns, parts = Turns(), manager.mirroring._parts
    turns.count(manager.mirroring.queue, "look")
    turns.count(manager.mirroring, "_work_on")
    turns.count(parts.routes, "_name_keys")
    turns.count(parts.sweeper, "_judge")
    turns.count(parts.sweeper, "_is_in_place")
    turns.count(manager.mirroring.sources, "worker_of")
    return turns


async def test_no_turn_of_the_event_loop_goes_over_all_jobs() -> None:
    """Neither when a manager takes over, nor when a worker is drained, goes, comes back, or is swept."""
    async with crowded() as (world, manager):
        turns = turns_of(manager)
        manager.start(manager.mirroring.lead(), "lead")
        await asyncio.sleep(20)
        assert turns.most["look"] > 0
        world.annotate_worker("east", drain="true")
        await asyncio.sleep(20)
        world.workers["east"].go_down()
        await asyncio.sleep(60)
        world.workers["east"].restore()
        await asyncio.sleep(60)
        manager.mirroring._parts.sweeper._due.add("east")
        await asyncio.sleep(20)
        assert 0 < turns.most["_is_in_place"] <= SLICE
        assert turns.most["_judge"] <= SLICE
        assert turns.most["_name_keys"] <= SLICE
        assert turns.most["look"] <= 2 * SLICE
        assert turns.most["_work_on"] <= 2 * LOOKS_A_TURN


async def test_no_turn_sweeps_many_workers() -> None:
    """A slice of the mirrors of each would be all that there are."""
    world, count, each = World(), 8, 30
    for number in range(count):
        world.add_worker(f"worker-{number}")
    async with candidate_for(world, "first") as leader:
        leading = leader.lead()
        for number in range(count):
            world.create(job(f"model-{number}", annotations={names.WORKER_ORDER: f"worker-{number}"}))
        await asyncio.sleep(2)
        for number in range(count):
            world.controller(f"worker-{number}").start(f"model-{number}")
        await asyncio.sleep(2)
        leading.cancel()
    for number in range(count):
        add_like(world, world.source(f"model-{number}"), f"job-{number}", each, worker=f"worker-{number}")
    async with candidate_for(world) as standby:
        await asyncio.sleep(5)
        turns = turns_of(standby.manager)
        sweeper, swept = standby.manager.mirroring._parts.sweeper, set[str]()
        sweep = sweeper._sweep

        async def noted(worker: Worker) -> None:
            await sweep(worker)
            swept.add(worker.name)

        vars(sweeper)["_sweep"] = noted
        standby.lead()
        await asyncio.sleep(60)
        assert len(swept) == count
        assert each < turns.most["_is_in_place"] <= SLICE


async def test_passes_end_with_the_lead() -> None:
    """Who leads no more names no keys."""
    async with crowded() as (_, manager):
        leading = manager.start(manager.mirroring.lead(), "lead")
        queue, named_keys = manager.mirroring.queue, list[Key]()

        def lose_the_lead(key: Key) -> None:
            named_keys.append(key)
            if len(named_keys) == 3 * SLICE:
                leading.cancel()

        vars(queue)["look"] = lose_the_lead
        await asyncio.sleep(20)
        assert leading.cancelled()
        assert 3 * SLICE <= len(named_keys) <= 4 * SLICE
        assert len(manager.mirroring._state.intake.passes) == 0


async def test_a_job_that_has_just_come_does_not_overtake_those_who_wait() -> None:
    """D21: a worker has room again when a manager takes over, which knows only later who has waited for it."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})
    async with candidate_for(world, "leader") as leader, candidate_for(world) as standby:
        leading = leader.lead()
        world.create(job("running"))
        await asyncio.sleep(2)
        for number in range(100):
            world.create(job(f"waits-{number}"))
        await asyncio.sleep(2)
        world.create(job("waits-in-front", annotations={names.PRIORITY: "5"}))
        await asyncio.sleep(2)
        leading.cancel()
        world.controller("east").complete("running")
        worked = slow_down(standby.manager)
        standby.lead()
        await until_looks_are_queued(standby.manager, 50)
        worked.clear()
        world.create(job("new"))
        world.management.server.remove("jobs", "waits-7")
        await asyncio.sleep(5)
        place = worked.index(SourceKey("Job", "default", "new"))
        assert place < worked.index(SourceKey("Job", "default", "waits-in-front"))
        assert world.mirrors("waits-in-front") == ["east"]
        assert world.mirrors("new") == []


async def test_what_cannot_be_looked_at_holds_up_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits may be one of those for as long as it likes."""
    world = World()
    world.add_worker("east")
    async with candidate_for(world) as standby:
        world.create(job("hangs"))
        world.create(job("waits"))
        await asyncio.sleep(1)
        mirroring = standby.mirroring
        add = mirroring._state.intake.add
        monkeypatch.setattr(mirroring._state.intake, "look", lambda key: None)
        monkeypatch.setattr(mirroring._state.intake, "add", lambda key: add(key) if key.name == "new" else None)
        standby.lead()
        await asyncio.sleep(1)
        world.create(job("new"))
        await asyncio.sleep(1)
        assert world.mirrors("new") == []
        await asyncio.sleep(HOLD_SECONDS)
        assert world.mirrors("new") == ["east"]
