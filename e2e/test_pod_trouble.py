"""The source reports why its pods on a worker do not run, as long as they do not (D22)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, job, runs
from e2e.manager import ManagerProcess

WATCHING = {"workers": {"watchPods": "labelled"}}
IMAGE = {"phase": "Pending", "containerStatuses": [{
    "name": "main", "image": "nope:1", "imageID": "", "ready": False, "restartCount": 0,
    "state": {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope:1"'}},
}]}  # fmt: skip


def says(reason: str) -> Callable[[Json | None], bool]:
    return lambda found: reason_of(found) == reason


def reason_of(found: Json | None) -> str | None:
    listed: list[Any] = ((found or {}).get("status") or {}).get("conditions") or []
    return next((one["reason"] for one in listed if one["type"] == "jobmirror.io/Progressing"), None)


async def test_pods_that_admission_forbids_are_told_until_it_does_not(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Pod security on the worker's namespace, a real Job controller: only its events say why there are no pods."""
    enforce = "pod-security.kubernetes.io/enforce"
    namespace = f"/api/v1/namespaces/{scene.namespace}"
    async with (
        east.client() as client,
        ManagerProcess.start(management, {"east": east}, settings=WATCHING) as manager,
    ):
        await client.merge(namespace, {"metadata": {"labels": {enforce: "restricted"}}})
        await scene.create(job("train", manager.managed_by, run_for="never"))
        told = await scene.source_until("train", says("PodsForbidden"))
        (message,) = [one["message"] for one in told["status"]["conditions"] if one["type"].endswith("/Progressing")]
        assert message.startswith("worker east: pods cannot be created: violates PodSecurity")
        assert (await scene.event("train", "PodsForbidden"))["type"] == "Warning"

        await client.merge(namespace, {"metadata": {"labels": {enforce: None}}})
        await scene.source_until("train", runs())
        await scene.source_until("train", says_nothing)


async def test_what_a_kubelet_says_of_an_image_is_told(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """The pod waits for a scheduler that does not exist, so that this test is its kubelet."""
    body = job("train", "", run_for="never")
    body["spec"]["template"]["spec"]["schedulerName"] = "nobody"
    async with (
        east.client() as client,
        ManagerProcess.start(management, {"east": east}, settings=WATCHING) as manager,
    ):
        body["spec"]["managedBy"] = manager.managed_by
        await scene.create(body)
        await scene.source_until("train", lambda found: bool((found or {}).get("status", {}).get("active")))
        (pod,) = await scene.pods("east", "train")
        assert pod["metadata"]["labels"]["jobmirror.io/source-uid"]
        path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}/status"
        await client.merge(path, {"status": IMAGE})
        await scene.source_until("train", says("ImagePullBackOff"))
        running = {"phase": "Running", "containerStatuses": None}
        await client.merge(path, {"status": running})
        await scene.source_until("train", says_nothing)


def says_nothing(found: Json | None) -> bool:
    return found is not None and reason_of(found) is None
