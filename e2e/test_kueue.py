"""Beside a real Kueue (docs/kueue.md): on the management cluster as a gate, and on a worker; Jobs, and JobSets.

JobSet's own controller runs on both sides. Skipped unless ``TEST_ASSET_KUEUE`` names Kueue's program, or a cluster with
a Kueue is given (``e2e/kueue``); ``tests/flows/test_queues`` plays what it does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from e2e import kueue, operators
from e2e.controlplane.client import Client, Json
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, annotation, is_suspended, job, placed_on, runs
from e2e.lives import JOB_SET, Kind, Lives
from e2e.manager import ManagerProcess
from mirror.kube.resources import JOBS

GATED, QUEUED = (
    pytest.mark.skipif(
        not kueue.is_there(name),
        reason=f"{kueue.VARIABLE} names no Kueue, which takes long to compile, and {variable} no cluster with one",
    )
    for name, variable in kueue.GIVEN.items()
)
FLAVOR = {"cloud.example.com/tier": "spot"}
STRIPS: Json = {"mirrors": {"strip": {"nodeSelectors": ["cloud.example.com/*"]}}}
FOUGHT = ("MirrorChanged", "ChangeReverted", "StatusConflict")


def _job_spec(annotations: Json) -> Json:
    spec: Json = job("any")["spec"]
    spec["template"]["metadata"]["annotations"] = annotations
    return spec


JOB = Kind(
    resource=JOBS,
    spec=_job_spec,
    succeeded="Complete",
    failed="Failed",
    fails_because="BackoffLimitExceeded",
    pods_label="batch.kubernetes.io/job-name",
    is_running=runs(),
    with_pod_annotations=lambda _, annotations: {"template": {"metadata": {"annotations": annotations}}},
)
CPU = {JOB: "1", JOB_SET: "500m"}
"""What each of its pods asks for: together one CPU."""
KINDS = pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in CPU])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gated(binaries: None, required_program: Callable[..., Path]) -> AsyncIterator[ControlPlane]:
    """A management cluster with a Kueue."""
    required_program("unshare")
    async with kueue.cluster("gated", MANAGEMENT) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def queued(binaries: None, required_program: Callable[..., Path]) -> AsyncIterator[ControlPlane]:
    """A worker with a Kueue."""
    required_program("unshare")
    async with kueue.cluster("queued", WORKER) as cluster:
        yield cluster


def of_queue(lives: Lives, name: str, *, is_urgent: bool = False, **policy: Any) -> Json:
    """One of the queue, whose pods together ask for one CPU and do not end by themselves."""
    body = lives.body(name, run_for="never", **policy)
    urgent = {"kueue.x-k8s.io/priority-class": lives.scene.namespace} if is_urgent else {}
    body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "users", **urgent}
    for template in templates(body):
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": CPU[lives.kind]}}
    return body


def templates(body: Json) -> list[Json]:
    """Of its pods."""
    spec = body["spec"]
    jobs = [one["template"]["spec"] for one in spec["replicatedJobs"]] if "replicatedJobs" in spec else [spec]
    return [one["template"] for one in jobs]


def active(found: Json | None) -> int:
    """How much of it runs, as its status has it."""
    status = (found or {}).get("status") or {}
    counts = [status.get("active") or 0, *(one["active"] for one in status.get("replicatedJobsStatus") or ())]
    return sum(map(int, counts))


def waits(found: Json | None) -> bool:
    """Suspended by its spec, and shown so, with nothing that runs any more."""
    return is_suspended(found) and bool((found or {})["spec"].get("suspend")) and not active(found)


def is_restored(found: Json | None) -> bool:
    """Whether its pod templates have no flavor."""
    return not any("nodeSelector" in one["spec"] for one in templates(found or {"spec": {"template": {"spec": {}}}}))


def settings_of(kind: Kind, **more: Json) -> Json:
    """Under which it is mirrored."""
    return {**more, **({} if kind is JOB else {"kinds": [str(kind)]})}


async def check_nothing_was_fought(scene: Scene, *names: str) -> None:
    for name in names:
        assert not {event["reason"] for event in await scene.events(name)} & {*FOUGHT}


@GATED
@KINDS
async def test_a_kueue_here_admits_preempts_and_admits_again(
    kind: Kind, gated: ControlPlane, east: ControlPlane, fresh_namespace: str
) -> None:
    """Quota of one CPU: an urgent one takes the place of one that runs, which goes on when it has ended."""
    await _gate(kind, gated, east, fresh_namespace)


@GATED
async def test_a_cluster_with_a_kueue_may_be_given(
    gated: ControlPlane, east: ControlPlane, fresh_namespace: str
) -> None:
    """By its kubeconfig alone: nothing else of how it was started is used, and nothing is left there."""
    given = {kueue.GIVEN["gated"]: str(gated.kubeconfig)}
    async with kueue.cluster("gated", MANAGEMENT, given) as plane:
        assert type(plane) is ControlPlane
        await _gate(JOB, plane, east, fresh_namespace)
    async with gated.client() as client:
        left = await client.list(f"{kueue.API}/workloadpriorityclasses")
    assert not [one for one in left if one["metadata"]["name"] == fresh_namespace]


async def _gate(kind: Kind, management: ControlPlane, east: ControlPlane, namespace: str) -> None:
    scene = Scene(management, {"east": east}, namespace)
    async with (
        operators.running(east, operators=kind.operators),
        kueue.queue(scene.client, namespace, cpu="1", node_labels=FLAVOR),
        ManagerProcess.start(management, {"east": east}, settings=settings_of(kind, **STRIPS)) as manager,
    ):
        lives = Lives(scene, kind, manager.managed_by)
        await scene.client.create(lives.collection, of_queue(lives, "low", suspend=True))
        low = await lives.until(kind.is_running, "low")
        assert [one["spec"]["nodeSelector"] for one in templates(low)] == [FLAVOR]
        (template,) = templates((await lives.mirrors("low"))["east"])
        assert "nodeSelector" not in template["spec"]
        keys = (*(template["metadata"].get("labels") or {}), *(template["metadata"].get("annotations") or {}))
        assert not [key for key in keys if key.startswith("kueue.x-k8s.io/")]

        await scene.client.create(lives.collection, of_queue(lives, "urgent", is_urgent=True, suspend=True))
        await lives.until(kind.is_running, "urgent")
        low = await lives.until(lambda found: waits(found) and is_restored(found), "low")
        assert placed_on(low) == "east"
        await scene.client_of("east").wait_until(lives.path("low"), waits)

        await lives.end_pods("east", "urgent")
        await lives.until_over("urgent")
        await lives.until(kind.is_running, "low")
        await lives.end_pods("east", "low")
        await lives.until_over("low")
        await check_nothing_was_fought(scene, "low", "urgent")
        await _delete(scene.client, lives, "low", "urgent")
    await scene.close()


@QUEUED
@KINDS
async def test_a_kueue_on_a_worker_admits_and_preempts_mirrors(
    kind: Kind, management: ControlPlane, queued: ControlPlane, fresh_namespace: str
) -> None:
    """The mirror waits for quota, runs, gives way to an urgent one of the worker's, and runs again: all is shown."""
    scene = Scene(management, {"queued": queued}, fresh_namespace)
    there, settings = scene.client_of("queued"), settings_of(kind, workers={"readWorkloads": True})
    async with (
        operators.running(management, operators=kind.operators),
        kueue.queue(there, scene.namespace, cpu="0"),
        ManagerProcess.start(management, {"queued": queued}, settings=settings) as manager,
    ):
        lives = Lives(scene, kind, manager.managed_by)
        await scene.client.create(lives.collection, of_queue(lives, "low"))
        low = await lives.until(is_suspended, "low")
        assert not low["spec"].get("suspend")
        await lives.until(lambda found: "quota" in annotation(found, "waiting-because"), "low")
        assert await scene.event("low", "SuspendedOnWorker")

        await kueue.set_quota(there, scene.namespace, "1")
        low = await lives.until(kind.is_running, "low")
        (template,) = templates((await lives.mirrors("low"))["queued"])
        assert template["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
        assert not annotation(low, "waiting-because")

        own = Lives(scene, kind)
        await there.create(own.collection, of_queue(own, "urgent", is_urgent=True))
        await there.wait_until(own.path("urgent"), kind.is_running)
        low = await lives.until(lambda found: is_suspended(found) and not active(found), "low")
        assert not low["spec"].get("suspend")

        await lives.end_pods("queued", "urgent")
        await lives.until(kind.is_running, "low")
        await lives.end_pods("queued", "low")
        await lives.until_over("low")
        await check_nothing_was_fought(scene, "low")
        await there.delete(own.path("urgent"))
        await _delete(scene.client, lives, "low")
    await scene.close()


async def _delete(client: Client, lives: Lives, *names: str) -> None:
    """With their mirrors."""
    for name in names:
        await client.delete(lives.path(name))
        await lives.until_no_mirror(name)
