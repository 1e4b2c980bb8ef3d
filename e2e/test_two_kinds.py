"""A second kind beside Jobs on real control planes, with the same names in the same namespaces (D24, D25).

The manager is the program with one more line in its table of kinds (``drill_manager``), and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from e2e import drills
from e2e.controlplane.client import Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.drills import has, true_conditions
from e2e.jobs import Scene, annotation, is_complete, job, until
from e2e.manager import ManagerProcess
from mirror.model import names
from tests.doubles.drills import DRILLS, drill

WAVE = 12
KILLS = 4


@pytest_asyncio.fixture(loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """One that knows Drills, on clusters that serve and run them."""
    workers = {"east": east, "west": west}
    async with (
        drills.served(management, east, west),
        ManagerProcess.start(management, workers, command=drills.MANAGER) as running,
    ):
        yield running


def mine(manager: ManagerProcess, name: str, **run: object) -> Json:
    return drill(name, managedBy=manager.managed_by, **run)


def rounds(found: Json | None) -> int:
    """How far it is."""
    return int(((found or {}).get("status") or {}).get("rounds", 0))


def is_paused(found: Json) -> bool:
    return bool(found["spec"]["run"].get("paused"))


def path_of(scene: Scene, name: str = "") -> str:
    return DRILLS.path(scene.namespace, name) if name else DRILLS.path(scene.namespace)


async def mirrors(scene: Scene, name: str) -> dict[str, Json]:
    """The mirrors of a Drill, by worker."""
    found: dict[str, Json] = {}
    for worker in scene.workers:
        try:
            found[worker] = await scene.client_of(worker).get(path_of(scene, name))
        except StatusError as error:
            if error.status != 404:
                raise
    return found


async def test_both_kinds_run_under_one_name(manager: ManagerProcess, scene: Scene) -> None:
    """Each is placed, mirrored and followed to its end; deleting one leaves the other."""
    await scene.create(job("train", manager.managed_by))
    await scene.client.create(path_of(scene), mine(manager, "train"))

    source = await scene.client.wait_until(path_of(scene, "train"), has("Succeeded"))
    await scene.source_until("train", is_complete)
    told = true_conditions(source)
    ((worker, mirror),) = (await mirrors(scene, "train")).items()
    assert (told[names.PLACED], told[names.MIRRORED]) == (worker, mirror["metadata"]["uid"])
    assert source["status"]["rounds"] == 3
    assert "managedBy" not in mirror["spec"]["run"]

    def is_annotated(found: Json | None) -> bool:
        return annotation(found, "assigned-worker") == worker

    await scene.client.wait_until(path_of(scene, "train"), is_annotated)

    await scene.client.delete(path_of(scene, "train"))
    await until(lambda: mirrors(scene, "train"), lambda found: not found)
    assert await scene.mirrors("train")


async def test_one_that_is_paused_keeps_its_mirror(manager: ManagerProcess, scene: Scene) -> None:
    """D3: nothing is made before it may run; paused later, its mirror is paused and goes on where it was."""
    endless = mine(manager, "train", paused=True)
    endless["spec"]["rounds"] = 100_000
    await scene.client.create(path_of(scene), endless)
    await scene.client.wait_until(path_of(scene, "train"), has("Paused"))
    assert not await mirrors(scene, "train")

    await scene.client.merge(path_of(scene, "train"), {"spec": {"run": {"paused": False}}})
    await scene.client.wait_until(path_of(scene, "train"), rounds)
    await scene.client.merge(path_of(scene, "train"), {"spec": {"run": {"paused": True}}})
    (mirror,) = (await mirrors(scene, "train")).values()
    found = await until(lambda: mirrors(scene, "train"), lambda found: all(map(is_paused, found.values())))
    assert [one["metadata"]["uid"] for one in found.values()] == [mirror["metadata"]["uid"]]


async def test_a_manager_that_is_killed_mirrors_each_of_both_kinds_once(manager: ManagerProcess, scene: Scene) -> None:
    """D2: whatever it was doing, each has one mirror on one worker, and ends well."""
    every = [f"wave-{number}" for number in range(WAVE)]

    async def come_in() -> None:
        for name in every:
            await scene.create(job(name, manager.managed_by))
            await scene.client.create(path_of(scene), mine(manager, name))
            await asyncio.sleep(0.1)  # the wave's own pace, so that there is something new at each moment

    async with asyncio.TaskGroup() as scope:
        scope.create_task(come_in(), name="wave")
        for _ in range(KILLS):
            await asyncio.sleep(0.4)  # the moment
            await manager.kill()
            manager.launch()
            await manager.wait_until_ready()

    for name in every:
        source = await scene.client.wait_until(path_of(scene, name), has("Succeeded"))
        await scene.source_until(name, is_complete)
        ((worker, mirror),) = (await mirrors(scene, name)).items()
        told = true_conditions(source)
        assert (told[names.PLACED], told[names.MIRRORED]) == (worker, mirror["metadata"]["uid"])
        assert len(await scene.mirrors(name)) == 1
