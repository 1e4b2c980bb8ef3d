"""What a node's conditions mean for its taints, and its taints for the pods on it; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from mirror.batch import times
from mirror.embedded.controllers.client import Json
from mirror.embedded.controllers.kubelet.podspec import moment
from mirror.embedded.controllers.placing import is_about

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_LOST = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OWN = frozenset((NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()))


def ready_status(node: Mapping[str, Any]) -> str:
    """``True``, ``False`` or ``Unknown``; ``Unknown`` too if nobody has ever said it."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return str(next((one.get("status") for one in conditions if one.get("type") == "Ready"), "Unknown"))


def lost_conditions(node: Mapping[str, Any], now: datetime) -> list[Json]:
    """The conditions to write of a node of which nothing is heard; empty if they say so already."""
    stored = {one.get("type"): one for one in (node.get("status") or {}).get("conditions") or ()}
    found: list[Json] = []
    for kind in _LOST:
        old = stored.get(kind)
        if old is None:
            told, reason = "Kubelet never posted node status.", "NodeStatusNeverUpdated"
            heard = node["metadata"].get("creationTimestamp")
        elif old.get("status") != "Unknown":
            told, reason = "Kubelet stopped posting node status.", "NodeStatusUnknown"
            heard = old.get("lastHeartbeatTime")
        else:
            continue
        found.append(
            {
                "type": kind,
                "status": "Unknown",
                "reason": reason,
                "message": told,
                "lastHeartbeatTime": heard,
                "lastTransitionTime": times.of(now),
            }
        )
    return found


def wanted_taints(node: Mapping[str, Any], now: datetime) -> list[Json] | None:
    """The taints that follow from conditions, beside those of others; None if they are so already."""
    stored: list[Json] = list((node.get("spec") or {}).get("taints") or ())
    keys: list[tuple[str, str]] = []
    ready = ready_status(node)
    if ready != "True":
        key = NOT_READY if ready == "False" else UNREACHABLE
        keys += [(key, "NoSchedule"), (key, "NoExecute")]
    conditions = (node.get("status") or {}).get("conditions") or ()
    keys += [
        (_PRESSURES[one["type"]], "NoSchedule")
        for one in conditions
        if one.get("type") in _PRESSURES and one.get("status") == "True"
    ]
    if (node.get("spec") or {}).get("unschedulable"):
        keys.append((UNSCHEDULABLE, "NoSchedule"))
    kept = [one for one in stored if one.get("key") not in _OWN or (one.get("key"), one.get("effect")) in keys]
    there = {(one.get("key"), one.get("effect")) for one in kept}
    new = [
        {"key": key, "effect": effect, "timeAdded": times.of(now)} for key, effect in keys if (key, effect) not in there
    ]
    return [*kept, *new] if new or kept != stored else None


def leaves_at(pod: Mapping[str, Any], taints: Sequence[Mapping[str, Any]], now: datetime) -> datetime | None:
    """When a pod has to leave a node with these taints; None: it may stay for ever."""
    tolerations = pod["spec"].get("tolerations") or ()
    seconds: list[float] = []
    begin = now
    for taint in taints:
        if taint.get("effect") != "NoExecute":
            continue
        about = [one for one in tolerations if is_about(one, taint)]
        if not about:
            return now
        begin = min(begin, moment(taint.get("timeAdded")) or now)
        seconds += [float(one["tolerationSeconds"]) for one in about if one.get("tolerationSeconds") is not None]
    if not seconds:
        return None
    return begin + timedelta(seconds=min(max(min(seconds), 0.0), 10**9))
