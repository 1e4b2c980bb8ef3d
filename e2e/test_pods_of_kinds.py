"""The source of another kind reports why its pods on a worker do not run, whoever makes them (D22, D24).

Objects are run by their own controllers, on real API servers, and the manager has its shipped permissions alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from e2e import kind_choice, operators
from e2e.controlplane.client import Json
from e2e.controlplane.components import NODE_NAME
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, until
from e2e.lives import JOB_SET, Kind, Lives, directed
from e2e.manager import ManagerProcess
from e2e.shipped_life import WATCHING, is_obstructed_by, obstruction_of
from mirror.kinds.declared.choosing import built_in

ENFORCE = "pod-security.kubernetes.io/enforce"


@asynccontextmanager
async def lives(
    kind: Kind, management: ControlPlane, east: ControlPlane, scene: Scene, **settings: Json
) -> AsyncIterator[Lives]:
    """Of this kind, with a manager of their own."""
    async with (
        operators.running(management, east, operators=kind.operators),
        ManagerProcess.start(management, {"east": east}, settings={"kinds": [str(kind)], **settings}) as manager,
    ):
        one = Lives(scene, kind, manager.managed_by)
        await one.prepare()
        yield one


def counts_ready(kind: Kind) -> bool:
    """Whether its status says what is ready."""
    return bool(built_in()[str(kind)].counts.ready)


async def test_pods_that_a_child_job_may_not_create_are_told_on_the_job_set_until_it_may(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Pod security on the worker's namespace: the warning is about the child Job, which is no mirror."""
    there, namespace = scene.client_of("east"), f"/api/v1/namespaces/{scene.namespace}"
    async with lives(JOB_SET, management, east, scene, **WATCHING) as one:
        await there.merge(namespace, {"metadata": {"labels": {ENFORCE: "restricted"}}})
        await one.create(run_for="never")
        told = await one.until(is_obstructed_by("PodsForbidden"))
        assert obstruction_of(told)["message"].startswith("worker east: pods cannot be created: violates PodSecurity")
        assert (await scene.event("train", "PodsForbidden"))["type"] == "Warning"
        warned = await there.list(f"{namespace}/events", fieldSelector="reason=FailedCreate")
        assert {each["involvedObject"]["kind"] for each in warned} == {"Job"}
        assert {each["involvedObject"]["name"] for each in warned} <= {"train-main-0", "train-main-1"}

        await there.merge(namespace, {"metadata": {"labels": {ENFORCE: None}}})
        await one.until_running()
        await one.until(is_obstructed_by(None))


@kind_choice.each(counts_ready)
async def test_pods_that_do_not_start_are_told_by_what_the_status_counts(
    kind: Kind, management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """No permission on pods: they wait for a node of a label that none has, and the kind's controller counts them."""
    label = f"e2e.jobmirror.io/{scene.namespace}"
    async with lives(kind, management, east, scene) as one:
        body = one.body("train", run_for="never")
        body["spec"] = directed(kind, body["spec"], nodeSelector={label: "yes"})
        await scene.client.create(one.collection, body)
        told = obstruction_of(await one.until(obstruction_of))
        assert (told["reason"], told["message"]) == ("PodsNotReady", "pods on worker east are not ready")

        node = f"/api/v1/nodes/{NODE_NAME}"
        await scene.client_of("east").merge(node, {"metadata": {"labels": {label: "yes"}}})
        try:
            await one.until_running()
            await one.until(is_obstructed_by(None))
            await one.delete()
            await until(one.mirrors, lambda mirrors: not mirrors, describe=one.describe)
        finally:
            await scene.client_of("east").merge(node, {"metadata": {"labels": {label: None}}})
