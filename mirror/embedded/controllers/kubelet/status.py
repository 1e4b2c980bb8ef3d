"""The status of a pod, made of what its containers do; pure, in the words of a kubelet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mirror.batch import times
from mirror.embedded.controllers.client import Json
from mirror.embedded.controllers.kubelet.podspec import FINAL, restarts
from mirror.embedded.controllers.kubelet.runtime import Instant
from mirror.embedded.controllers.kubelet.slots import Slot


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod is, and since when."""

    host_ip: str
    pod_ip: str
    start_time: str
    """As it is stored, in whole seconds."""
    since: float
    """The same by the steady clock, as exactly as it is known."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a pod was ended, if not by its containers."""

    reason: str
    message: str


def status_of(
    pod: Json, slots: Sequence[Slot], place: Place, now: Instant, *, is_over: bool, verdict: Verdict | None
) -> Json:
    """What to write; ``is_over``: no container runs or will run again."""
    spec, generation = pod["spec"], pod["metadata"].get("generation") or 0
    bodies = {one["name"]: one for name in ("initContainers", "containers") for one in spec.get(name) or ()}
    phase = phase_of(pod, slots, is_over=is_over, has_verdict=verdict is not None)
    found: Json = {
        "phase": phase,
        "conditions": _conditions(pod, slots, phase, now),
        "hostIP": place.host_ip,
        "hostIPs": [{"ip": place.host_ip}],
        "startTime": place.start_time,
        "containerStatuses": [one.status(bodies[one.name], now) for one in slots if not one.is_init],
    }
    if generation:
        found["observedGeneration"] = generation
    if place.pod_ip:
        found |= {"podIP": place.pod_ip, "podIPs": [{"ip": place.pod_ip}]}
    init = [one.status(bodies[one.name], now) for one in slots if one.is_init]
    if init:
        found["initContainerStatuses"] = init
    if verdict is not None and is_over:  # a final phase is reported only when nothing runs any more
        found |= {"reason": verdict.reason, "message": verdict.message}
    return found


def phase_of(pod: Json, slots: Sequence[Slot], *, is_over: bool, has_verdict: bool) -> str:
    """The phase; one that is final stays."""
    stored = str(pod["status"].get("phase") or "Pending")
    if stored in FINAL:
        return stored
    main = [one for one in slots if not one.is_init]
    if is_over and has_verdict:
        return "Failed"
    if is_over:
        ends = [one.ended or one.last for one in main]
        return "Succeeded" if ends and all(end is not None and end.exit_code == 0 for end in ends) else "Failed"
    if any(not _is_initialized(one) for one in slots if one.is_init) and not any(one.has_begun() for one in main):
        return "Pending"
    if any(not one.has_begun() for one in main):
        return "Pending"
    if any(one.run is not None for one in slots if not one.is_init or one.is_sidecar):
        return "Running"
    bodies = {one["name"]: one for one in pod["spec"].get("containers") or ()}
    if any(
        one.ended is None or restarts(pod["spec"], bodies[one.name], one.ended.exit_code, is_init=False) for one in main
    ):
        return "Running"
    return "Succeeded" if all(one.ended is not None and one.ended.exit_code == 0 for one in main) else "Failed"


def _is_initialized(slot: Slot) -> bool:
    if slot.is_sidecar:
        return slot.run is not None
    return slot.ended is not None and slot.ended.exit_code == 0


def _conditions(pod: Json, slots: Sequence[Slot], phase: str, now: Instant) -> list[Json]:
    """The kubelet's own; the time of each changes with its status alone."""
    old: dict[str, Mapping[str, Any]] = {one.get("type", ""): one for one in pod["status"].get("conditions") or ()}
    initialized = _initialized(slots, phase)
    containers_ready = _containers_ready(slots, phase, now)
    ready = containers_ready if containers_ready[0] != "True" else _gates(pod, old)
    states = {
        "PodReadyToStartContainers": ("False" if phase in FINAL else "True", "", ""),
        "Initialized": initialized,
        "Ready": ready,
        "ContainersReady": containers_ready,
        "PodScheduled": ("True", "", ""),
    }
    generation = pod["metadata"].get("generation") or 0
    return [_condition(kind, state, old.get(kind, {}), now.wall, generation) for kind, state in states.items()]


def _condition(kind: str, state: tuple[str, str, str], old: Mapping[str, Any], now: datetime, generation: int) -> Json:
    status, reason, message = state
    is_same = old.get("status") == status and old.get("lastTransitionTime")
    found: Json = {
        "type": kind,
        "status": status,
        "lastTransitionTime": old["lastTransitionTime"] if is_same else times.of(now),
    }
    if generation:
        found["observedGeneration"] = generation
    for name, value in (("reason", reason), ("message", message)):
        if value:
            found[name] = value
        elif old.get(name):
            found[name] = None  # in a patch: take it away
    return found


def _initialized(slots: Sequence[Slot], phase: str) -> tuple[str, str, str]:
    if phase == "Succeeded":
        return "True", "PodCompleted", ""
    if any(one.has_begun() for one in slots if not one.is_init):
        return "True", "", ""
    incomplete = [one.name for one in slots if one.is_init and not _is_initialized(one)]
    if incomplete:
        return "False", "ContainersNotInitialized", f"containers with incomplete status: {_listed(incomplete)}"
    return "True", "", ""


def _containers_ready(slots: Sequence[Slot], phase: str, now: Instant) -> tuple[str, str, str]:
    if phase in FINAL:
        return "False", "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    watched = [one for one in slots if not one.is_init or one.is_sidecar]
    unready = [one.name for one in watched if one.run is None or not one.run.is_ready(now)]
    if unready:
        return "False", "ContainersNotReady", f"containers with unready status: {_listed(unready)}"
    return "True", "", ""


def _gates(pod: Json, conditions: Mapping[str, Mapping[str, Any]]) -> tuple[str, str, str]:
    """Readiness gates of the spec, which others fulfil."""
    told = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate.get("conditionType", "")
        found = conditions.get(kind)
        if found is None:
            told.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found.get("status") != "True":
            told.append(f'the status of pod readiness gate "{kind}" is not "True", but {found.get("status")}')
    return ("False", "ReadinessGatesNotReady", ", ".join(told)) if told else ("True", "", "")


def _listed(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"
