"""The source reports why its pods on a worker do not run, as long as they do not (D22)."""

from __future__ import annotations

import time

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, job, runs
from e2e.manager import ManagerProcess
from e2e.shipped_life import PULLING, WATCHING, failed_mount, is_obstructed_by, unscheduled

SOON_SECONDS = 1.0
"""From what a kubelet writes to what the source says."""


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
        told = await scene.source_until("train", is_obstructed_by("PodsForbidden"))
        (message,) = [one["message"] for one in told["status"]["conditions"] if one["type"].endswith("/Progressing")]
        assert message.startswith("worker east: pods cannot be created: violates PodSecurity")
        assert (await scene.event("train", "PodsForbidden"))["type"] == "Warning"

        await client.merge(namespace, {"metadata": {"labels": {enforce: None}}})
        await scene.source_until("train", runs())
        await scene.source_until("train", is_obstructed_by(None))


async def test_what_a_kubelet_says_is_told_within_a_second_and_for_as_long_as_it_is_so(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """The pods wait for a scheduler that does not exist, so that this test is their kubelet."""
    names = [f"train-{number}" for number in range(6)]
    core = f"/api/v1/namespaces/{scene.namespace}"
    async with (
        east.client() as client,
        ManagerProcess.start(management, {"east": east}, settings=WATCHING) as manager,
    ):
        await scene.create(*(unscheduled(name, manager.managed_by) for name in names))
        pods: dict[str, Json] = {}
        for name in names:
            await scene.source_until(name, lambda found: bool((found or {}).get("status", {}).get("active")))
            (pods[name],) = await scene.pods("east", name)
            assert pods[name]["metadata"]["labels"]["jobmirror.io/source-uid"]

        seconds = []
        for number, name in enumerate(names):
            began = time.perf_counter()
            if number % 2:
                await client.create(f"{core}/events", failed_mount(pods[name]))
            else:
                await client.merge(f"{core}/pods/{pods[name]['metadata']['name']}/status", {"status": PULLING})
            await scene.source_until(name, is_obstructed_by("FailedMount" if number % 2 else "ImagePullBackOff"))
            seconds.append(time.perf_counter() - began)
        print("seconds until it was told:", *(f"{one:.3f}" for one in seconds))
        assert sorted(seconds)[len(seconds) // 2] < SOON_SECONDS

        running = {"status": {"phase": "Running", "containerStatuses": None}}
        for name in names:
            await client.merge(f"{core}/pods/{pods[name]['metadata']['name']}/status", running)
        for name in names:
            await scene.source_until(name, is_obstructed_by(None))
