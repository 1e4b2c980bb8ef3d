"""A life of a manager in which every right in ``config/rbac`` is made use of, on real servers.

Used by ``test_shipped_rights``, which compares what is given with what is used, and by ``without_rights``, which takes
rights away. Not here: which rights there are (``shipped``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.jobs import Scene, is_complete, job, runs, until
from e2e.manager import ManagerProcess

OLD = ("--feature-gates=WatchList=false",)
"""Servers that know no watch that begins with what is there: their clients have to list."""


@asynccontextmanager
async def old_clusters() -> AsyncIterator[tuple[Cluster, Cluster]]:
    async with (
        Cluster.start("management", replace(MANAGEMENT, apiserver_args=OLD)) as management,
        Cluster.start("east", replace(WORKER, apiserver_args=OLD)) as east,
    ):
        yield management, east


async def life(manager: ManagerProcess, scene: Scene) -> None:
    """What makes use of every right: an end, a suspension, a mirror that vanishes, a source that goes unseen."""
    (worker,) = scene.workers
    await scene.create(job("done", manager.managed_by), job("kept", manager.managed_by, run_for="never"))
    await scene.source_until("done", is_complete)
    await scene.source_until("kept", runs())
    await scene.patch("kept", {"spec": {"suspend": True}})
    await scene.mirror_until(worker, "kept", lambda found: found and found["spec"]["suspend"])
    # Somebody takes away a mirror that has not started: it is looked for, and made again.
    await scene.create(job("waiting", manager.managed_by, run_for="never"))
    first = await scene.mirror_until(worker, "waiting", bool)
    await scene.client_of(worker).delete(f"{scene.jobs(worker)}/waiting")
    await until(lambda: told(manager, scene, first["metadata"]["uid"]), describe=lambda: scene.describe("waiting"))
    # The same cluster a second time is refused, and its Secret says so.
    await manager.register("twin", scene.planes[worker])
    await until(lambda: manager.worker_events("twin", "IdentityRefused"))
    # A source goes while nobody looks.
    await manager.kill()
    await scene.delete("kept")
    manager.launch()
    await manager.wait_until_ready()
    await scene.until_no_mirror("kept")


async def told(manager: ManagerProcess, scene: Scene, uid: str) -> bool:
    """Whether the loss of this mirror was dealt with: there is another, or the source has failed."""
    (worker,) = scene.workers
    found, source = await scene.mirror(worker, "waiting"), await scene.source("waiting")
    conditions = (source or {}).get("status", {}).get("conditions") or ()
    is_failed = any(one["type"] == "Failed" and one["status"] == "True" for one in conditions)
    return is_failed or bool(found and found["metadata"]["uid"] != uid)
