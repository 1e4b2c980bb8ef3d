"""What a node and the garbage collector do with pods; as much of it as a Job controller notices (Q26).

Tests play the node by hand with ``Node``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doubles.transport import Wire

Body = dict[str, Any]

TRACKING = "batch.kubernetes.io/job-tracking"
NODE = "node-0"


class Node:
    """Plays the scheduler and the kubelet of all pods of a cluster, by hand."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def run(self, name: str, *, namespace: str = "default", ready: bool = True) -> None:
        """Bind a pod, start it, and make it ready."""

        def change(pod: Body) -> None:
            pod["spec"]["nodeName"] = NODE
            status = "True" if ready else "False"
            pod["status"] |= {"phase": "Running", "conditions": [self._condition("Ready", status)]}

        self._edit(name, change, namespace)

    def bind(self, name: str, *, namespace: str = "default") -> None:
        self._edit(name, lambda pod: pod["spec"].update(nodeName=NODE), namespace)

    def succeed(self, name: str, *, namespace: str = "default") -> None:
        self.end(name, exit_code=0, namespace=namespace)

    def fail(self, name: str, *, namespace: str = "default", exit_code: int = 1, condition: str = "") -> None:
        self.end(name, exit_code=exit_code, namespace=namespace, condition=condition)

    def end(self, name: str, *, exit_code: int, namespace: str = "default", condition: str = "") -> None:
        """All containers end now; a pod that is being deleted has no grace left then."""

        def change(pod: Body) -> None:
            now = self._wire.clock.text()
            ended = {"exitCode": exit_code, "finishedAt": now}
            found = [self._condition("Ready", "False")]
            if condition:
                found.append(self._condition(condition, "True"))
            pod["status"] |= {
                "phase": "Failed" if exit_code else "Succeeded",
                "conditions": found,
                "containerStatuses": [
                    {"name": one["name"], "restartCount": 0, "state": {"terminated": ended}}
                    for one in pod["spec"]["containers"]
                ],
            }
            if pod["metadata"].get("deletionTimestamp"):
                pod["metadata"]["deletionGracePeriodSeconds"] = 0

        self._edit(name, change, namespace)

    def restart(self, name: str, count: int, *, namespace: str = "default") -> None:
        """A container of a running pod was started again so many times."""

        def change(pod: Body) -> None:
            pod["status"]["containerStatuses"] = [{"name": "main", "restartCount": count, "state": {"running": {}}}]

        self._edit(name, change, namespace)

    def stop_all(self, namespace: str = "default") -> None:
        """End every pod that is being deleted, as after its grace."""
        for pod in self._wire.server.all("pods"):
            metadata, phase = pod["metadata"], pod["status"]["phase"]
            is_ending = metadata.get("deletionTimestamp") and phase not in ("Succeeded", "Failed")
            if is_ending and metadata["namespace"] == namespace:
                self.end(metadata["name"], exit_code=137, namespace=namespace)

    def _edit(self, name: str, change: Callable[[Body], None], namespace: str) -> None:
        self._wire.server.edit("pods", name, change, namespace)

    def _condition(self, kind: str, status: str) -> Body:
        return {"type": kind, "status": status, "lastTransitionTime": self._wire.clock.text()}


def collect_garbage(wire: Wire) -> None:
    """Delete the pods whose Job is gone (J2, Background)."""
    uids = {job["metadata"]["uid"] for job in wire.server.all("jobs")}
    for pod in wire.server.all("pods"):
        owners = pod["metadata"].get("ownerReferences") or ()
        if owners and all(owner["uid"] not in uids for owner in owners):
            wire.server.remove("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
