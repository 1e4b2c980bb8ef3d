"""A Job of which no pod ever ran is tried on another worker, by real Job controllers, schedulers and watches (D31)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from e2e import shipped
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, is_complete, job, placed_on
from e2e.manager import Identity, ManagerProcess
from mirror.model import names

RETRYING: Json = {"workers": {"watchPods": "labelled"}, "placement": {"retryAfter": "3s"}}
ZONE = "e2e.jobmirror.io/zone"
LONG_SECONDS = 12.0
"""Several times as long as it is waited for pods."""
LOST = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": "could not be located", "startedAt": None}


def record_of(found: Json | None) -> Json:
    listed = ((found or {}).get("status") or {}).get("conditions") or ()
    return next((one for one in listed if one["type"] == names.RETRYING), {})


@asynccontextmanager
async def zone_of(plane: ControlPlane, value: str) -> AsyncIterator[None]:
    """The nodes of a cluster are in this zone, and those of no other are."""
    async with plane.client() as client:
        nodes = [one["metadata"]["name"] for one in await client.list("/api/v1/nodes")]
        for name in nodes:
            await client.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {ZONE: value}}})
        try:
            yield
        finally:
            for name in nodes:
                await client.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {ZONE: None}}})


def on_east_first(name: str, managed_by: str, *, zone: str = "", scheduler: str = "", **spec: object) -> Json:
    """It is placed on east, whose nodes are in no zone; or no scheduler looks at its pods."""
    body = job(name, managed_by, annotations={"worker-order": "east"})
    body["spec"] |= spec
    pod = body["spec"]["template"]["spec"]
    if zone:
        pod["nodeSelector"] = {ZONE: zone}
    if scheduler:
        pod["schedulerName"] = scheduler
    return body


async def test_pods_that_find_no_node_find_one_on_another_worker(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Suspended, proved, deleted on east; it runs on west, and its end is stored."""
    async with (
        zone_of(west, scene.namespace),
        ManagerProcess.start(management, {"east": east, "west": west}, settings=RETRYING) as manager,
    ):
        await scene.create(
            on_east_first("one", manager.managed_by, zone=scene.namespace),
            on_east_first("wide", manager.managed_by, zone=scene.namespace, completions=4, parallelism=4),
        )
        for name in ("one", "wide"):
            ended = await scene.source_until(name, is_complete)
            assert placed_on(ended) == "west"
            record = record_of(ended)
            assert (record["status"], "tried east at " in record["message"]) == ("False", True)
            assert await scene.pods("east", name) == []
            assert (await scene.event(name, "RetriedElsewhere"))["type"] == "Warning"
            assert await scene.mirror("east", name) is None
        metrics = await manager.metrics()
        assert metrics.value("jobmirror_retries_total", worker="east", outcome="Retried") == 2
        assert metrics.value("jobmirror_retries_total", outcome="GivenUp") == 0


async def test_a_pod_on_a_node_is_seen_to_end_unstarted(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """This test is its kubelet: the image does not come, and once it is deleted it says that it ended unstarted."""
    core = f"/api/v1/namespaces/{scene.namespace}/pods"
    async with (
        east.client() as client,
        ManagerProcess.start(management, {"east": east, "west": west}, settings=RETRYING) as manager,
    ):
        await scene.create(on_east_first("one", manager.managed_by, scheduler="nobody"))
        await scene.source_until("one", lambda found: bool((found or {}).get("status", {}).get("active")))
        (pod,) = await scene.pods("east", "one")
        name = pod["metadata"]["name"]
        waiting = {"name": "main", "image": "any", "imageID": "", "ready": False, "restartCount": 0}
        pulling = waiting | {"state": {"waiting": {"reason": "ErrImagePull"}}}
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "played-by-a-test"}}
        await client.create(f"{core}/{name}/binding", {"apiVersion": "v1", "kind": "Binding", **binding})
        await client.merge(f"{core}/{name}/status", {"status": {"phase": "Pending", "containerStatuses": [pulling]}})
        gone = await client.wait_until(
            f"{core}/{name}", lambda found: "deletionTimestamp" in (found or {}).get("metadata", {})
        )
        assert record_of(await scene.source("one"))["status"] == "Unknown"
        assert not gone["metadata"].get("finalizers"), "its controller has let it go uncounted"
        ended = waiting | {"state": {"terminated": LOST}}
        await client.merge(f"{core}/{name}/status", {"status": {"phase": "Failed", "containerStatuses": [ended]}})
        await client.call("DELETE", f"{core}/{name}", {"gracePeriodSeconds": 0})
        moved = await scene.source_until("one", lambda found: placed_on(found) == "west")
        assert record_of(moved)["status"] == "False"


async def test_one_of_which_a_pod_ran_stays(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Never ready, not even counted: only its pods tell. One starts before it is looked at, one while it is stopped."""
    core = f"/api/v1/namespaces/{scene.namespace}/pods"
    running = {"name": "main", "image": "any", "imageID": "", "ready": False, "restartCount": 0}
    running |= {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    async with (
        east.client() as client,
        ManagerProcess.start(management, {"east": east, "west": west}, settings=RETRYING) as manager,
    ):
        await scene.create(on_east_first("early", manager.managed_by, scheduler="nobody"))
        await scene.source_until("early", lambda found: bool((found or {}).get("status", {}).get("active")))
        (pod,) = await scene.pods("east", "early")
        status = {"status": {"phase": "Running", "containerStatuses": [running]}}
        await client.merge(f"{core}/{pod['metadata']['name']}/status", status)
        await scene.create(on_east_first("late", manager.managed_by, scheduler="nobody"))
        await scene.source_until("late", lambda found: bool((found or {}).get("status", {}).get("active")))
        (pod,) = await scene.pods("east", "late")
        name = pod["metadata"]["name"]
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "played-by-a-test"}}
        await client.create(f"{core}/{name}/binding", {"apiVersion": "v1", "kind": "Binding", **binding})
        await scene.source_until("late", lambda found: record_of(found).get("status") == "Unknown")
        await client.wait_until(f"{core}/{name}", lambda found: "deletionTimestamp" in (found or {})["metadata"])
        await client.merge(f"{core}/{name}/status", status)
        given_up = await scene.source_until("late", lambda found: record_of(found).get("reason") == "GivenUp")
        assert f"pod {name} is Running" in record_of(given_up)["message"]
        await scene.mirror_until("east", "late", lambda found: found and not found["spec"].get("suspend"))
        await asyncio.sleep(LONG_SECONDS)
        for one in ("early", "late"):
            mirror = await scene.mirror("east", one)
            assert mirror is not None
            assert not mirror["spec"].get("suspend")
            assert placed_on(await scene.source(one)) == "east"
        assert record_of(await scene.source("early")) == {}
        await client.call("DELETE", f"{core}/{name}", {"gracePeriodSeconds": 0})


async def test_without_the_right_to_see_pods_it_stays(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Nothing is suspended for what cannot be proved, and its Job says why it stays."""
    token = uuid.uuid4().hex[:6]
    identity = Identity(f"retry-{token}", f"e2e.jobmirror.io/{token}", f"retry-{token}")
    clusters = {"east": east, "west": west}
    async with ManagerProcess.start(management, clusters, identity=identity, settings=RETRYING) as manager:
        await shipped.withdraw(east, shipped.read("worker-pods", namespace=manager.namespace))
        await scene.create(on_east_first("one", manager.managed_by, scheduler="nobody"))
        await scene.source_until("one", lambda found: bool((found or {}).get("status", {}).get("active")))
        event = await scene.event("one", "NotRetried")
        assert "its pods cannot be listed" in event["message"]
        await asyncio.sleep(LONG_SECONDS)
        mirror = await scene.mirror("east", "one")
        assert mirror is not None
        assert not mirror["spec"].get("suspend")
        assert record_of(await scene.source("one")) == {}
        await scene.delete("one")
    async with management.client() as client:
        await client.delete(f"/api/v1/namespaces/{identity.namespace}")
