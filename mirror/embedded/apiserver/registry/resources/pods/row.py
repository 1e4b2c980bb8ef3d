"""The row of a pod in kubectl's table: how its containers are doing, in one word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from mirror.batch import times
from mirror.embedded.apiserver.apimachinery.strategy import Column, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.printers import TEXTS

_Status: TypeAlias = Mapping[str, Any]

COLUMNS = (
    printers.NAME,
    Column("Ready", description="The aggregate readiness state of this pod for accepting traffic."),
    Column("Status", description="The aggregate status of the containers in this pod."),
    Column(
        "Restarts",
        description="The number of times the containers in this pod have been restarted and when the last container in"
        " this pod has restarted.",
    ),
    printers.AGE,
    Column("IP", priority=1, description=TEXTS["POD_IP"]),
    Column("Node", priority=1, description=TEXTS["POD_NODE"]),
    Column("Nominated Node", priority=1, description=TEXTS["POD_NOMINATED"]),
    Column("Readiness Gates", priority=1, description=TEXTS["POD_GATES"]),
)
_ENDED = ("Succeeded", "Failed")
_COMPLETED: Mapping[str, str] = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def conditions(pod: Json) -> list[Json]:
    """``conditions`` of the row, by which ``kubectl get`` may leave out pods that have ended."""
    phase = pod["status"].get("phase", "")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def row(pod: Json, now: datetime) -> list[object]:
    """All cells."""
    spec, status = pod["spec"], pod["status"]
    init = _Init.of(spec, status)
    is_past = init.reason is None or _is_true(status, "Initialized")
    reason, ready, restarts, last = init.reason or _pod_reason(status), init.ready, init.restarts, init.last
    if is_past:
        of_main = status.get("containerStatuses", ())
        reason, of_running = _main_reason(of_main, status, reason)
        ready += of_running
        restarts = init.sidecar_restarts + sum(one.get("restartCount", 0) for one in of_main)
        last = max([init.sidecar_last, *map(_last_end, of_main)])
    sidecars = sum(one.get("restartPolicy") == "Always" for one in spec.get("initContainers", ()))
    addresses = status.get("podIPs")
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers') or ()) + sidecars}",
        _with_deletion(pod, reason),
        f"{restarts} ({printers.duration(printers.nanoseconds(now) - last)} ago)"
        if restarts and last
        else str(restarts),
        printers.age(pod, now),
        (addresses[0]["ip"] if addresses else "") or printers.NONE,
        spec.get("nodeName") or printers.NONE,
        status.get("nominatedNodeName") or printers.NONE,
        _gates(spec.get("readinessGates", ()), status),
    ]


def _pod_reason(status: _Status) -> str:
    """What the pod says of itself."""
    for one in status.get("conditions", ()):
        if one["type"] == "PodScheduled" and one.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


class _Init:
    """How far init containers and sidecars have come."""

    def __init__(self) -> None:
        self.reason: str | None = None
        """Why the main containers do not run yet; None: they may."""
        self.ready = self.restarts = self.sidecar_restarts = 0
        self.last = self.sidecar_last = 0
        """When the last restart was; nanoseconds since 1970, 0: never."""

    @classmethod
    def of(cls, spec: Json, status: _Status) -> _Init:
        found = cls()
        listed = spec.get("initContainers", ())
        sidecars = {one["name"] for one in listed if one.get("restartPolicy") == "Always"}
        for position, one in enumerate(status.get("initContainerStatuses", ())):
            is_sidecar = one["name"] in sidecars
            found._count(one, is_sidecar=is_sidecar)
            terminated = one["state"].get("terminated")
            if terminated is not None and terminated["exitCode"] == 0:
                continue
            if is_sidecar and one.get("started"):
                found.ready += bool(one["ready"])
                continue
            waiting = one["state"].get("waiting", {}).get("reason")
            if terminated is not None:
                found.reason = f"Init:{_end(terminated)}"
            elif waiting and waiting != "PodInitializing":
                found.reason = f"Init:{waiting}"
            else:
                found.reason = f"Init:{position}/{len(listed)}"
            break
        return found

    def _count(self, one: _Status, *, is_sidecar: bool) -> None:
        self.restarts += one["restartCount"]
        self.last = max(self.last, _last_end(one))
        if is_sidecar:
            self.sidecar_restarts += one["restartCount"]
            self.sidecar_last = max(self.sidecar_last, _last_end(one))


def _main_reason(statuses: Sequence[_Status], status: _Status, reason: str) -> tuple[str, int]:
    """The word of the first main container that has one, and how many are ready."""
    ready, error = 0, ""
    for one in reversed(statuses):
        state = one["state"]
        terminated = state.get("terminated")
        if state.get("waiting", {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif terminated is not None:
            reason = _end(terminated)
            error = reason if terminated["exitCode"] else error
        elif one["ready"] and "running" in state:
            ready += 1
    if reason == "Completed":
        if ready and _is_true(status, "Ready"):
            reason = "Running"
        elif error or ready:
            reason = error or "NotReady"
    return reason, ready


def _end(terminated: Mapping[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated['exitCode']}"


def _with_deletion(pod: Json, reason: str) -> str:
    if "deletionTimestamp" not in pod["metadata"]:
        return reason
    if pod["status"].get("reason") == "NodeLost":
        return "Unknown"
    return reason if pod["status"].get("phase") in _ENDED else "Terminating"


def _last_end(one: _Status) -> int:
    ended = one["lastState"].get("terminated", {}).get("finishedAt")
    try:
        return times.instant(ended) if ended else 0
    except times.BadTime:
        return 0


def _is_true(status: _Status, kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions", ()))


def _gates(gates: Sequence[Json], status: _Status) -> str:
    if not gates:
        return printers.NONE
    states: dict[str, str] = {}
    for one in status.get("conditions", ()):
        states.setdefault(one["type"], one["status"])
    return f"{sum(states.get(gate['conditionType']) == 'True' for gate in gates)}/{len(gates)}"
