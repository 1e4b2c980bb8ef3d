"""Beside a real Kueue (docs/kueue.md): on the management cluster as a gate, and on a worker.

Skipped unless ``TEST_ASSET_KUEUE`` names its program (``e2e/kueue``); ``tests/flows/test_queues`` plays what it does.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from e2e import kueue
from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, annotation, is_complete, is_suspended, job, placed_on, runs, until
from e2e.manager import ManagerProcess

pytestmark = pytest.mark.skipif(
    not os.environ.get(kueue.VARIABLE),
    reason=f"{kueue.VARIABLE} names no Kueue, which takes long to compile; tests/flows/test_queues plays what it does",
)

QUEUE = {"kueue.x-k8s.io/queue-name": "users"}
URGENT = QUEUE | {"kueue.x-k8s.io/priority-class": "urgent"}
FLAVOR = {"cloud.example.com/tier": "spot"}
STRIPS: Json = {"mirrors": {"strip": {"nodeSelectors": ["cloud.example.com/*"]}}}
FOUGHT = ("MirrorChanged", "ChangeReverted", "StatusConflict")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gated(binaries: None, required_program: Callable[..., Path]) -> AsyncIterator[Cluster]:
    """A management cluster with a Kueue."""
    required_program("unshare")
    async with Cluster.start("gated", MANAGEMENT) as cluster, kueue.running(cluster):
        yield cluster


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def queued(binaries: None, required_program: Callable[..., Path]) -> AsyncIterator[Cluster]:
    """A worker with a Kueue."""
    required_program("unshare")
    async with Cluster.start("queued", WORKER) as cluster, kueue.running(cluster):
        yield cluster


def of_queue(name: str, manager: ManagerProcess | None, **more: Any) -> Json:
    """A Job of the queue whose one pod asks for one CPU."""
    more.setdefault("labels", QUEUE)
    body = job(name, manager.managed_by if manager else None, **more)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return body


def waits(found: Json | None) -> bool:
    """Suspended by its spec, and shown so."""
    return is_suspended(found) and bool((found or {})["spec"].get("suspend"))


async def test_a_kueue_here_admits_preempts_and_admits_again(
    gated: Cluster, east: ControlPlane, fresh_namespace: str
) -> None:
    """Quota of one CPU: an urgent Job takes the place of one that runs, which goes on when it has ended."""
    scene = Scene(gated, {"east": east}, fresh_namespace)
    await scene.make_namespace()
    await kueue.make_queue(scene.client, scene.namespace, cpu="1", node_labels=FLAVOR)
    async with ManagerProcess.start(gated, {"east": east}, settings=STRIPS) as manager:
        await scene.create(of_queue("low", manager, suspend=True, run_for="never"))
        low = await scene.source_until("low", runs())
        assert low["spec"]["template"]["spec"]["nodeSelector"] == FLAVOR
        mirror = await scene.mirror("east", "low")
        assert mirror is not None
        assert "nodeSelector" not in mirror["spec"]["template"]["spec"]
        template = mirror["spec"]["template"]["metadata"]
        keys = (*(template.get("labels") or {}), *(template.get("annotations") or {}))
        assert not [key for key in keys if key.startswith("kueue.x-k8s.io/")]

        await scene.create(of_queue("urgent", manager, suspend=True, labels=URGENT, run_for="never"))
        await scene.source_until("urgent", runs())
        low = await scene.source_until("low", waits)
        assert (low["status"].get("active") or 0, placed_on(low)) == (0, "east")
        await scene.mirror_until("east", "low", waits)

        await scene.end_pods("east", "urgent")
        await scene.source_until("urgent", is_complete)
        await scene.source_until("low", runs())
        await scene.end_pods("east", "low")
        await scene.source_until("low", is_complete)
        for name in ("low", "urgent"):
            assert not {event["reason"] for event in await scene.events(name)} & {*FOUGHT}
    await scene.close()


async def test_a_kueue_on_a_worker_admits_and_preempts_mirrors(
    management: ControlPlane, queued: Cluster, fresh_namespace: str
) -> None:
    """The mirror waits for quota, runs, gives way to an urgent Job of the worker's, and runs again: all is shown."""
    scene = Scene(management, {"queued": queued}, fresh_namespace)
    await scene.make_namespace("queued")
    there = scene.client_of("queued")
    await kueue.make_queue(there, scene.namespace, cpu="0")
    settings: Json = {"workers": {"readWorkloads": True}}
    async with ManagerProcess.start(management, {"queued": queued}, settings=settings) as manager:
        await scene.create(of_queue("low", manager, run_for="never"))
        low = await scene.source_until("low", is_suspended)
        assert not low["spec"].get("suspend")
        await scene.source_until("low", lambda found: "quota" in annotation(found, "waiting-because"))
        assert await scene.event("low", "SuspendedOnWorker")

        await kueue.set_quota(there, "1")
        low = await scene.source_until("low", runs())
        mirror = await scene.mirror("queued", "low")
        assert mirror is not None
        assert mirror["spec"]["template"]["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
        assert not annotation(low, "waiting-because")

        await there.create(scene.jobs("queued"), of_queue("urgent", None, labels=URGENT, run_for="never"))
        await until(lambda: scene.mirror("queued", "urgent"), runs())
        low = await scene.source_until("low", is_suspended)
        assert (low["status"].get("active") or 0, low["spec"].get("suspend")) == (0, False)

        await scene.end_pods("queued", "urgent")
        await scene.source_until("low", runs())
        await scene.end_pods("queued", "low")
        await scene.source_until("low", is_complete)
        assert not {event["reason"] for event in await scene.events("low")} & {*FOUGHT}
    await scene.close()
