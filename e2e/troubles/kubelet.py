"""The test as the kubelet of a node: it writes into pods and events what kubelets write, and nothing else does.

Pods get there by ``nodeName``. Texts are those of Kubernetes' kubelet. Not here: nodes that kwok plays.
"""

from __future__ import annotations

from datetime import UTC, datetime

from e2e.controlplane.client import Client, Json
from e2e.jobs import until
from e2e.troubles.stage import Play

NODE = "node-1"
FULL_NODE, FULL_DISK = "node-2", "node.kubernetes.io/disk-pressure"
"""With a full disk: no pod that does not tolerate it gets there."""
_READY: list[Json] = [{"type": kind, "status": "True"} for kind in ("Initialized", "ContainersReady", "Ready")]
RUNNING: Json = {
    "phase": "Running",
    "conditions": _READY,
    "containerStatuses": [
        {
            "name": "main", "image": "any", "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
    ],
}  # fmt: skip

_NEVER_RAN: Json = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None}
_UNSTARTED: Json = {
    "phase": "Failed",
    "containerStatuses": [
        {
            "name": "main", "image": "any", "imageID": "", "ready": False, "restartCount": 0,
            "state": {"terminated": _NEVER_RAN | {"message": "The container could not be located"}},
        }
    ],
}  # fmt: skip


def waiting(reason: str, message: str, *, image: str = "any", last: Json | None = None, restarts: int = 0) -> Json:
    """The status of a pod whose container waits."""
    container = {"name": "main", "image": image, "imageID": "", "ready": False, "restartCount": restarts}
    state = {"state": {"waiting": {"reason": reason, "message": message}}}
    before = {"lastState": {"terminated": last}} if last else {}
    return {"phase": "Pending" if not restarts else "Running", "containerStatuses": [container | state | before]}


async def add_nodes(client: Client) -> None:
    """A node that the test plays, for pods that name it, and one that has no room left on its disk."""
    taints = {NODE: "example.com/by-hand", FULL_NODE: FULL_DISK}
    for name, taint in taints.items():
        labels = {"kubernetes.io/hostname": name, "disk": "full" if name == FULL_NODE else "none"}
        node: Json = {"metadata": {"name": name, "labels": labels}}
        await client.create("/api/v1/nodes", node | {"spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]}})
        room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready"}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        await client.merge(f"/api/v1/nodes/{name}/status", {"status": status})


async def pod_of(play: Play) -> Json:
    """The Job's pod that has not ended, once it is there; one of a Job before it may be there until it is collected."""

    async def look() -> list[Json]:
        jobs = {job["metadata"]["uid"] for job in await play.on().list(play.scene.jobs("east"))}
        pods = await play.on().list(f"{play.core}/pods")
        return [
            pod
            for pod in pods
            if pod["status"]["phase"] not in ("Failed", "Succeeded")
            and pod["metadata"]["ownerReferences"][0]["uid"] in jobs
        ]

    found = await until(look)
    return found[0]


async def pod_that_goes(play: Play) -> Json:
    """The Job's pod, once it is being deleted."""
    pod = await pod_of(play)
    path = f"{play.core}/pods/{pod['metadata']['name']}"
    await play.on().wait_until(path, lambda found: "deletionTimestamp" in (found or {}).get("metadata", {}))
    return pod


async def ends_unstarted(play: Play) -> None:
    """The kubelet writes of a pod that is being deleted that no container of it has run, and lets it go."""
    pod = await pod_that_goes(play)
    await writes(play, _UNSTARTED)
    await play.on().call("DELETE", f"{play.core}/pods/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


async def forced_out(play: Play, pod: Json) -> None:
    """A pod whose kubelet is away is said to have ended, and is gone, as by ``kubectl delete pod --force``."""
    path = f"{play.core}/pods/{pod['metadata']['name']}"
    await play.on().merge(f"{path}/status", {"status": {"phase": "Failed"}})
    await play.on().call("DELETE", path, {"gracePeriodSeconds": 0})


async def writes(play: Play, status: Json) -> None:
    """The kubelet has found out this about the Job's pod."""
    pod = await pod_of(play)
    cleared = {"containerStatuses": None, **status}
    await play.on().merge(f"{play.core}/pods/{pod['metadata']['name']}/status", {"status": cleared})


async def warns(play: Play, reason: str, message: str) -> None:
    """The kubelet reports something of the Job's pod by an event."""
    pod, now = await pod_of(play), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = pod["metadata"]["name"]
    about = {
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": play.namespace,
        "name": name,
        "uid": pod["metadata"]["uid"],
    }
    event = {"type": "Warning", "reason": reason, "message": message, "count": 1, "involvedObject": about}
    times = {"firstTimestamp": now, "lastTimestamp": now, "source": {"component": "kubelet", "host": NODE}}
    await play.on().create(f"{play.core}/events", {"metadata": {"generateName": f"{name}."}, **event, **times})
