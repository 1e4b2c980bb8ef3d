"""A kind that the settings declare, through whole managers: its life, and clusters that do not serve it (D23, D24).

It is the Drill of the tests, which has an implementation of its own elsewhere; here six lines of settings stand for it.
"""

from __future__ import annotations

import asyncio

import pytest
from declared_world import PATH, DeclaredWorld, in_world, stored, told
from doubles.drills import definition, drill
from flow_drills import DEFINITIONS
from flow_world import HOME, FlowWorld, has_ended

from mirror.kinds.declared.recorded import kinds_in
from mirror.model import names

DEFINITION = f"{DEFINITIONS}/{definition()['metadata']['name']}"


class LateWorld(DeclaredWorld):
    """In which Drills are not served yet on one worker."""

    undefined = frozenset(("east",))


class UnservedWorld(DeclaredWorld):
    """In which nobody serves Drills."""

    undefined = frozenset(("management", "east", "west"))


async def is_over(world: FlowWorld) -> bool:
    return "Succeeded" in told(await stored(world))


async def has_counted(world: FlowWorld, rounds: int) -> bool:
    """What its controller counts after the end is told, too (D7)."""
    found = await stored(world) or {}
    return bool(found["status"]["rounds"] == rounds)


@in_world(DeclaredWorld)
async def test_it_lives_beside_a_job_of_its_name(world: FlowWorld) -> None:
    """Placed, mirrored, followed to its end and deleted; the Job of its name stays."""
    await world.create(run_for="5s")
    await world.management.api.create(PATH, drill())

    async def are_over() -> bool:
        return has_ended(await world.source()) and await is_over(world)

    await world.until(are_over)
    source = await stored(world)
    said = told(source)
    mirror = await stored(world, said[names.PLACED])
    assert source is not None
    assert mirror is not None
    assert said[names.MIRRORED] == mirror["metadata"]["uid"]
    assert source["status"]["rounds"] == 3
    assert "managedBy" not in mirror["spec"]["run"]
    await world.planes[said[names.PLACED]].api.merge(f"{PATH}/train/status", {"status": {"rounds": 4}})
    await world.until(lambda: has_counted(world, 4))
    await world.management.api.delete(f"{PATH}/train")

    async def is_gone() -> bool:
        return await stored(world, said[names.PLACED]) is None

    await world.until(is_gone)
    assert await world.mirrors()


@in_world(DeclaredWorld)
async def test_a_suspension_is_said_and_followed(world: FlowWorld) -> None:
    """D3: no mirror before it may run; the mirror stays, paused, and goes on."""
    endless = drill(paused=True)
    endless["spec"]["rounds"] = 100_000
    await world.management.api.create(PATH, endless)

    async def is_paused() -> bool:
        return "Paused" in told(await stored(world))

    await world.until(is_paused)
    assert [await stored(world, worker) for worker in ("east", "west")] == [None, None]
    await world.management.api.merge(f"{PATH}/train", {"spec": {"run": {"paused": False}}})

    async def runs() -> bool:
        return bool(((await stored(world) or {}).get("status") or {}).get("rounds"))

    await world.until(runs)
    worker = told(await stored(world))[names.PLACED]
    await world.management.api.merge(f"{PATH}/train", {"spec": {"run": {"paused": True}}})
    await asyncio.sleep(10)
    mirror = await stored(world, worker)
    assert mirror is not None
    assert mirror["spec"]["run"]["paused"] is True
    await world.management.api.delete(f"{PATH}/train")


@in_world(LateWorld)
async def test_a_worker_that_does_not_serve_it_is_passed_over_until_it_does(world: FlowWorld) -> None:
    """D23: with a reason where it was asked for by name; it starts by itself, and Jobs go there all the while."""
    pinned = drill()
    pinned["metadata"]["annotations"] = {names.WORKER_SELECTOR: "name=east"}
    await world.management.api.create(PATH, pinned)
    await world.management.api.create(PATH, drill("other"))

    async def other_is_over() -> bool:
        return "Succeeded" in told(await stored(world, name="other"))

    await world.until(other_is_over)
    assert told(await stored(world, name="other"))[names.PLACED] == "west"
    source = await stored(world)
    assert source is not None
    (waiting,) = source["status"]["conditions"]
    assert (waiting["type"], waiting["status"], waiting["reason"]) == (names.PLACED, "False", "KindNotServed")
    assert "no worker that worker-selector name=east selects serves Drill" in waiting["message"]
    await world.create(annotations={names.WORKER_SELECTOR: "name=east"}, run_for="1s")

    async def job_is_over() -> bool:
        return has_ended(await world.source())

    await world.until(job_is_over)
    await world.planes["east"].api.create(DEFINITIONS, definition())
    await world.until(lambda: is_over(world))
    assert told(await stored(world))[names.PLACED] == "east"


@in_world(UnservedWorld)
async def test_a_kind_that_nobody_serves_holds_up_nothing_and_starts_by_itself(world: FlowWorld) -> None:
    """D23: the manager is ready, Jobs run."""
    await world.create(run_for="1s")

    async def job_is_over() -> bool:
        return has_ended(await world.source())

    await world.until(job_is_over)
    for plane in world.planes.values():
        await plane.api.create(DEFINITIONS, definition())
    await asyncio.sleep(5)  # until it is served
    await world.management.api.create(PATH, drill())
    await world.until(lambda: is_over(world))


@pytest.mark.slow
@in_world(DeclaredWorld)
async def test_a_definition_that_is_deleted_here_deletes_no_mirror(world: FlowWorld) -> None:
    """CR9, D23: its objects go with it; mirrors stay until the kind is served again, and go then."""
    endless = drill()
    endless["spec"]["rounds"] = 100_000
    await world.management.api.create(PATH, endless)

    async def is_mirrored() -> bool:
        return names.MIRRORED in told(await stored(world))

    await world.until(is_mirrored)
    worker = told(await stored(world))[names.PLACED]
    await world.management.api.delete(DEFINITION)
    await asyncio.sleep(200)
    assert await stored(world) is None
    assert await stored(world, worker) is not None

    await world.management.api.create(DEFINITIONS, definition())

    async def is_gone() -> bool:
        return await stored(world, worker) is None

    await world.until(is_gone)


@pytest.mark.slow
@in_world(DeclaredWorld)
async def test_a_definition_that_is_deleted_on_a_worker_fails_nothing(world: FlowWorld) -> None:
    """CR9, CR11, D23: what is missing there proves nothing while the kind is not served."""
    endless = drill()
    endless["spec"]["rounds"] = 100_000
    await world.management.api.create(PATH, endless)

    async def runs() -> bool:
        return bool(((await stored(world) or {}).get("status") or {}).get("rounds"))

    await world.until(runs)
    await world.planes[told(await stored(world))[names.PLACED]].api.delete(DEFINITION)
    await asyncio.sleep(200)
    said = told(await stored(world))
    assert "Broken" not in said
    assert names.PLACED in said
    await world.management.api.delete(f"{PATH}/train")


@pytest.mark.slow
@in_world(DeclaredWorld)
async def test_operators_commands_find_the_kinds_in_the_record_of_workers(world: FlowWorld) -> None:
    """They are written beside the origin, and read as what the settings said."""
    path = f"/api/v1/namespaces/{HOME}/configmaps/{names.WORKERS_CONFIGMAP}"
    found = (await world.management.api.get(path))["metadata"]["annotations"]
    assert [kind.name for kind in kinds_in(found[names.KINDS])] == ["Job", "Drill"]
    assert found[names.ORIGIN] == world.origin
