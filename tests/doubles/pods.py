"""What an API server, a node and the garbage collector do with pods; as much of it as a Job controller notices (Q26).

``apiserver`` asks for the rules of deletion and of patches; tests play the node by hand with ``Node``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from doubles.patching import BadPatch

if TYPE_CHECKING:
    from doubles.transport import Wire

Body = dict[str, Any]

TRACKING = "batch.kubernetes.io/job-tracking"
NODE = "node-0"
_PRIMITIVES = "$deleteFromPrimitiveList/finalizers"


def set_pod_defaults(pod: Body) -> None:
    """A new pod waits."""
    pod["spec"].setdefault("terminationGracePeriodSeconds", 30)
    pod["status"] = {"phase": "Pending"}


def begin_deletion(pod: Body, now: str) -> bool:
    """Mark a pod as being deleted; return whether it goes at once, as soon as it has no finalizer.

    One that runs on a node keeps its grace until the node has ended it; others have none.
    """
    metadata = pod["metadata"]
    runs = bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ("Succeeded", "Failed")
    grace = pod["spec"]["terminationGracePeriodSeconds"] if runs else 0
    metadata.setdefault("deletionTimestamp", now)
    metadata.setdefault("deletionGracePeriodSeconds", grace)
    return may_go(pod)


def may_go(pod: Body) -> bool:
    """Whether nothing keeps a pod that is being deleted."""
    metadata = pod["metadata"]
    return not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")


def apply_strategic_patch(body: Body, patch: Mapping[str, Any]) -> Body:
    """A patched copy: the metadata of the patches that a Job controller sends (O4, O6).

    Raises:
        BadPatch: the patch names another uid.
    """
    patched = copy.deepcopy(body)
    metadata, change = patched["metadata"], patch["metadata"]
    if change.get("uid", metadata["uid"]) != metadata["uid"]:
        raise BadPatch("metadata.uid: field is immutable")
    owners: dict[str, Body] = {owner["uid"]: owner for owner in metadata.get("ownerReferences") or ()}
    for owner in change.get("ownerReferences") or ():
        if owner.get("$patch") == "delete":
            owners.pop(owner["uid"], None)
        else:
            owners[owner["uid"]] = {**owners.get(owner["uid"], {}), **owner}
    if sum(bool(owner.get("controller")) for owner in owners.values()) > 1:
        raise BadPatch("metadata.ownerReferences: only one reference can have Controller set to true")
    finalizers = [*(metadata.get("finalizers") or ())]
    finalizers += [one for one in change.get("finalizers") or () if one not in finalizers]
    finalizers = [one for one in finalizers if one not in change.get(_PRIMITIVES, ())]
    for name, value in (("ownerReferences", list(owners.values())), ("finalizers", finalizers)):
        metadata.pop(name, None)
        if value:
            metadata[name] = value
    return patched


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
