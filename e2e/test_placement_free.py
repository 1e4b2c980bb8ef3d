"""Jobs go where there is room, as real API servers of workers tell it: queues of Kueue, nodes (docs/workers.md)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from e2e.controlplane.client import Json
from e2e.controlplane.components import NODE_NAME
from e2e.controlplane.plane import ControlPlane
from e2e.definitions import defined
from e2e.jobs import RUN_FOR_KEY, Scene, job, placed_on, runs, until
from e2e.kueue import KUEUE, loose_definition
from e2e.manager import ManagerProcess
from e2e.shipped import user_of
from mirror.placement.quotas import amount_of

QUEUE_NAME = f"{KUEUE}/queue-name"


async def test_jobs_of_a_queue_go_where_it_has_quota_left(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Score ``clusterQueue`` with the shipped rights, and with Kueue's API alone; other Jobs are shared out."""
    workers = {"east": east, "west": west}
    settings: Json = {"placement": {"scores": [{"name": "load"}, {"name": "clusterQueue"}]}}
    async with (
        queues(east, scene.namespace, reserved="95"),
        queues(west, scene.namespace, reserved="0"),
        ManagerProcess.start(management, workers, settings=settings) as manager,
    ):
        await until_known(scene, manager, labels={QUEUE_NAME: "gpu"})
        queued, others = [f"queued-{n}" for n in range(5)], [f"other-{n}" for n in range(3)]
        labels = {QUEUE_NAME: "gpu"}
        await scene.create(*(job(name, manager.managed_by, run_for="never", labels=labels) for name in queued))
        placed = Counter(placed_on(found) for found in await scene.sources_until(queued, runs()))
        assert placed == {"west": 5}
        await scene.create(*(job(name, manager.managed_by, run_for="never") for name in others))
        placed = Counter(placed_on(found) for found in await scene.sources_until(others, runs()))
        assert placed == {"east": 3}


async def test_without_kueue_a_queue_says_nothing(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Its API is not served: Jobs with a queue are shared out as all others, and nothing is complained about."""
    workers = {"east": east, "west": west}
    settings: Json = {"placement": {"scores": [{"name": "load"}, {"name": "clusterQueue"}]}}
    async with ManagerProcess.start(management, workers, settings=settings) as manager:
        await until_not_served(manager, workers, "localqueues")
        names, labels = [f"queued-{n}" for n in range(4)], {QUEUE_NAME: "gpu"}
        await scene.create(*(job(name, manager.managed_by, run_for="never", labels=labels) for name in names))
        placed = Counter(placed_on(found) for found in await scene.sources_until(names, runs()))
        assert placed == {"east": 2, "west": 2}
        assert not [line for line in manager.log_lines() if "not read" in line]


async def test_jobs_go_where_nodes_have_room(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Score ``allocatable`` with both shipped rights: a pod of somebody else requests nearly all of east's node."""
    workers = {"east": east, "west": west}
    settings: Json = {"placement": {"scores": [{"name": "load"}, {"name": "allocatable"}]}}
    async with east.client() as client:
        node = await client.get(f"/api/v1/nodes/{NODE_NAME}")
        most = amount_of(node["status"]["allocatable"]["cpu"])
        assert most
        resources = {"requests": {"cpu": f"{most * 950:.0f}m"}}
        containers = [{"name": "main", "image": "any", "resources": resources}]
        spec = {"nodeName": NODE_NAME, "containers": containers, "tolerations": [{"operator": "Exists"}]}
        body = {"metadata": {"name": "large", "annotations": {RUN_FOR_KEY: "never"}}, "spec": spec}
        await client.create(f"/api/v1/namespaces/{scene.namespace}/pods", body)
    async with ManagerProcess.start(management, workers, settings=settings) as manager:
        await until_known(scene, manager)
        names = [f"job-{n}" for n in range(5)]
        await scene.create(*(job(name, manager.managed_by, run_for="never") for name in names))
        placed = Counter(placed_on(found) for found in await scene.sources_until(names, runs()))
        assert placed == {"west": 5}


async def until_known(scene: Scene, manager: ManagerProcess, **of_job: Any) -> None:
    """Try with one Job after the other until the manager knows that east has no room: else it is the first by name."""
    tried = itertools.count()

    async def goes_west() -> bool:
        name = f"tried-{next(tried)}"
        await scene.create(job(name, manager.managed_by, run_for="never", **of_job))
        where = placed_on(await scene.source_until(name, runs()))
        await scene.delete(name)
        await until(partial(scene.mirrors, name), lambda found: not found)  # the manager has counted it out then
        return where == "west"

    await until(goes_west, bool)


async def until_not_served(manager: ManagerProcess, workers: dict[str, ControlPlane], resource: str) -> None:
    """Wait until the manager has tried to list these on each worker."""
    us = user_of(manager.namespace)

    async def look(worker: ControlPlane) -> bool:
        wanted = us, "list", resource, 404
        return any((one.user, one.verb, one.resource, one.code) == wanted for one in await worker.audit_entries())

    for worker in workers.values():
        await until(partial(look, worker), bool)


@asynccontextmanager
async def queues(plane: ControlPlane, namespace: str, *, reserved: str) -> AsyncIterator[None]:
    """Kueue's API on a worker, with a queue of this namespace whose quota of 100 is reserved so far."""
    definitions = [
        loose_definition("clusterqueues", "ClusterQueue", "Cluster"),
        loose_definition("localqueues", "LocalQueue"),
    ]
    flavors = [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "100"}]}]
    taken = [{"name": "any", "resources": [{"name": "cpu", "total": reserved}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    cluster_queue = body_of("ClusterQueue", "shared", {"resourceGroups": groups}, {"flavorsReservation": taken})
    local_queue = body_of("LocalQueue", "gpu", {"clusterQueue": "shared"}, {})
    base = f"/apis/{KUEUE}/v1beta1"
    async with plane.client() as client, defined([client], definitions):
        await client.create(f"{base}/clusterqueues", cluster_queue)
        await client.create(f"{base}/namespaces/{namespace}/localqueues", local_queue)
        yield


def body_of(kind: str, name: str, spec: Json, status: Json) -> Json:
    return {
        "apiVersion": f"{KUEUE}/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }
