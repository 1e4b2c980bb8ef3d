"""The life of a Job that a worker's queue holds, in which the right to see why is used; Kueue's API alone is there."""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.definitions import defined
from e2e.jobs import Scene, condition, job, runs, waits_because
from e2e.kueue import KUEUE, loose_definition
from e2e.manager import ManagerProcess

READING: Json = {"workers": {"readWorkloads": True}}
"""The settings that it needs."""
_QUEUE = {f"{KUEUE}/queue-name": "users"}


async def queued_life(manager: ManagerProcess, scene: Scene) -> None:
    """Held for a minute, it says so; then in the words of its Workload; resumed there, it says nothing."""
    (worker,) = scene.workers
    there = scene.client_of(worker)
    workloads = f"/apis/{KUEUE}/v1beta1/namespaces/{scene.namespace}/workloads"
    async with defined([there], [loose_definition("workloads", "Workload")]):
        await scene.create(job("held", manager.managed_by, run_for="never", labels=_QUEUE))
        mirror = await scene.mirror_until(worker, "held", runs())
        own = f"{scene.jobs(worker)}/held"
        await there.merge(own, {"spec": {"suspend": True}})
        await scene.source_until("held", lambda found: condition(found, "Suspended").get("status") == "True")
        await scene.source_until("held", waits_because(f"queue users of worker {worker} has not admitted it"))
        pending = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "no quota for cpu"}
        body = {
            "apiVersion": f"{KUEUE}/v1beta1",
            "kind": "Workload",
            "metadata": {"name": "job-held", "labels": {f"{KUEUE}/job-uid": mirror["metadata"]["uid"]}},
            "spec": {},
            "status": {"conditions": [pending]},
        }
        await there.create(workloads, body)
        await scene.source_until("held", waits_because("no quota for cpu"))
        await there.merge(own, {"spec": {"suspend": False}})
        await scene.source_until("held", lambda found: not waits_because("queue")(found))
