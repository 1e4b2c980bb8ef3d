"""The management cluster's etcd is restored from a snapshot: the table in docs/operating.md, row by row."""

from __future__ import annotations

import pytest

from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE, WORKER
from e2e.jobs import (
    Scene,
    annotation,
    condition,
    is_complete,
    is_failed,
    job,
    placed_on,
    runs,
    uid,
    until,
    waits_because,
)
from e2e.manager import ManagerProcess

CORDON = {"cordoned": "true"}


@pytest.mark.usefixtures("binaries")
async def test_what_a_restored_backup_does_to_each_job() -> None:
    """Finished stays finished, nothing runs twice that left a trace, and what cannot be known has failed."""
    async with (
        Cluster.start("restored", BARE) as hub,
        Cluster.start("east", WORKER) as east,
        ManagerProcess.start(hub, {"east": east}) as manager,
    ):
        scene = Scene(hub, {"east": east}, "team-a")
        await scene.make_namespace()
        await scene.make_namespace("east")
        await before_the_snapshot(manager, scene)
        await manager.stop()
        snapshot = await hub.take_snapshot()
        await relaunch(manager)
        mirrors = await after_the_snapshot(manager, scene)
        await manager.stop()
        await hub.restore_snapshot(snapshot)
        await relaunch(manager)
        await assert_the_table_holds(manager, scene, mirrors)
        await scene.close()


async def before_the_snapshot(manager: ManagerProcess, scene: Scene) -> None:
    """One has ended, three run, and two wait, since the worker is cordoned."""
    running = ("ends", "ends-and-goes", "deleted")
    await scene.create(
        job("finished", manager.managed_by), *(job(name, manager.managed_by, run_for="never") for name in running)
    )
    await scene.source_until("finished", is_complete)
    await scene.sources_until(running, runs())
    await manager.annotate_worker("east", CORDON)
    await scene.until_jobs_wait(manager.managed_by, "cordoned")
    await scene.create(
        job("placed-since", manager.managed_by, run_for="never"), job("gone-without-a-trace", manager.managed_by)
    )
    await scene.sources_until(("placed-since", "gone-without-a-trace"), waits_because("cordoned"))


async def after_the_snapshot(manager: ManagerProcess, scene: Scene) -> dict[str, str]:
    """What will be forgotten; the uids of the mirrors that are left."""
    await manager.annotate_worker("east", {"cordoned": None})
    await scene.source_until("placed-since", runs())
    await scene.source_until("gone-without-a-trace", is_complete)
    await scene.create(job("created-since", manager.managed_by, run_for="never"))
    await scene.source_until("created-since", runs())
    for name in ("ends", "ends-and-goes"):
        await let_succeed(scene, name)
        await scene.source_until(name, is_complete)
    await scene.delete("deleted")
    await scene.until_no_mirror("deleted")
    # As after their retention.
    for name in ("finished", "ends-and-goes", "gone-without-a-trace"):
        await scene.client_of("east").delete(f"{scene.jobs('east')}/{name}", propagation="Background")
        await scene.until_no_mirror(name)
    return {name: uid((await scene.mirrors(name))["east"]) for name in ("ends", "placed-since", "created-since")}


async def assert_the_table_holds(manager: ManagerProcess, scene: Scene, mirrors: dict[str, str]) -> None:
    await scene.until_no_mirror("created-since")

    ended = await scene.source_until("ends", is_complete)
    assert annotation(ended, "mirror-uid") == mirrors["ends"]
    for name in ("ends-and-goes", "deleted"):
        failed = await scene.source_until(name, is_failed)
        assert condition(failed, "Failed")["reason"] == "MirrorLost"
        assert await scene.event(name, "MirrorLost")

    found = await scene.source_until("placed-since", runs())
    assert placed_on(found) == "east"
    assert uid((await scene.mirrors("placed-since"))["east"]) == mirrors["placed-since"]

    # The Secret is as it was, too: cordoned.
    await scene.source_until("gone-without-a-trace", waits_because("cordoned"))
    await manager.annotate_worker("east", {"cordoned": None})
    again = await scene.source_until("gone-without-a-trace", is_complete)
    assert uid((await scene.mirrors("gone-without-a-trace"))["east"]) == annotation(again, "mirror-uid")

    assert is_complete(await scene.source("finished"))
    assert await scene.mirrors("finished") == {}


async def let_succeed(scene: Scene, name: str) -> None:
    """Its pods end well now, whatever their node had in mind."""
    for pod in await scene.pods("east", name):
        path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}/status"
        await scene.client_of("east").merge(path, {"status": {"phase": "Succeeded"}})


async def relaunch(manager: ManagerProcess) -> None:
    """Start it again; the API server knows rights a moment after it is ready."""
    await until(lambda: manager.client.list("/api/v1/namespaces"))
    manager.launch()
    await manager.wait_until_ready()
