"""A setting ``kinds`` whose paths are no fields of the kind, on real API servers: whom it concerns is told (D22)."""

from __future__ import annotations

from e2e import jobsets
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, read_or_none, until
from e2e.jobsets import JOBSETS, job_set
from e2e.manager import ManagerProcess
from mirror.model import names

ENTRY: Json = {"kind": "JobSet", "suspend": {"path": "spec.suspendd"}, "carry": {"always": ["spec.nowhere"]}}
PROBLEM = "kinds[0].suspend.path: spec.suspendd is no field of JobSet"
UNKNOWN = "jobmirror_kind_unknown_fields"
OTHER = "kinds[0].carry.always[0]: spec.nowhere is no field of JobSet"


async def test_an_entry_that_cannot_work_is_told_on_its_objects_and_on_workers(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Nothing of it is placed, and its user reads why; its operator reads of the worker's definition on its Secret."""
    clients = [plane.client(user_agent="e2e-entries") for plane in (management, east)]
    path = f"{JOBSETS.path(scene.namespace)}/train"
    try:
        async with (
            jobsets.defined(*clients),
            ManagerProcess.start(management, {"east": east}, settings={"kinds": [ENTRY]}) as manager,
        ):
            await until(manager.metrics, lambda found: found.value(UNKNOWN, cluster="management", kind="JobSet") == 2)
            await clients[0].create(JOBSETS.path(scene.namespace), job_set("train", manager.managed_by))

            async def placed() -> Json:
                listed = ((await read_or_none(clients[0], path) or {}).get("status") or {}).get("conditions", ())
                return next((dict(one) for one in listed if one["type"] == names.PLACED), {})

            found = await until(placed)
            assert (found["status"], found["reason"]) == ("False", "InvalidKindEntry")
            assert PROBLEM in found["message"]
            assert OTHER not in found["message"]
            await scene.event("train", "InvalidKindEntry")
            assert await read_or_none(scene.client_of("east"), path) is None

            async def about_worker() -> list[str]:
                listed = await clients[0].list(
                    f"/api/v1/namespaces/{manager.namespace}/events", fieldSelector="involvedObject.name=east"
                )
                return [one["message"] for one in listed if one["reason"] == "InvalidKindEntry"]

            (text,) = await until(about_worker)
            assert PROBLEM in text
            assert OTHER in text
            assert (await manager.metrics()).value(UNKNOWN, cluster="east", kind="JobSet") == 2
            assert [line for line in manager.log_lines() if "worker=east" in line and OTHER in line]
    finally:
        for client in clients:
            await client.close()
