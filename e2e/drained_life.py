"""The life of a Job whose worker is drained by moving: the right to write statuses of mirrors is used (D14)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import WORKER
from e2e.jobs import RUN_FOR_KEY, Scene, indexed, placed_on
from e2e.manager import ManagerProcess
from e2e.shipped_life import OLD, old_clusters
from mirror.model import names

SEEDING: Json = {"workers": {"seedProgress": True}}
"""The settings that it needs."""


@asynccontextmanager
async def two_workers() -> AsyncIterator[tuple[Cluster, Cluster, Cluster]]:
    """A management cluster, the worker that is left, and the one that is moved to."""
    shape = replace(WORKER, apiserver_args=OLD)
    async with old_clusters() as (management, east), Cluster.start("west", shape) as west:
        yield management, west, east


async def drained_life(manager: ManagerProcess, scene: Scene) -> None:
    """One of three indexes is completed on west; then it goes on on east, whose status is told of that."""
    west, east = scene.workers
    core = f"/api/v1/namespaces/{scene.namespace}"
    await scene.create(
        indexed("half", manager.managed_by, completions=3, run_for="never", annotations={"worker-order": west})
    )
    await scene.source_until("half", lambda found: found and found["status"].get("ready") == 3)
    pod = (await scene.pods(west, "half"))[0]["metadata"]["name"]
    ends = {"metadata": {"annotations": {RUN_FOR_KEY: "0s"}}}
    await scene.client_of(west).merge(f"{core}/pods/{pod}", ends)
    await scene.source_until("half", lambda found: found and found["status"].get("succeeded") == 1)
    secret = f"/api/v1/namespaces/{manager.namespace}/secrets/{west}"
    await manager.client.merge(secret, {"metadata": {"annotations": {names.DRAIN: "move-started"}}})
    await scene.source_until("half", lambda found: placed_on(found) == east)
    await scene.source_until("half", lambda found: found and found["status"].get("ready") == 2)
