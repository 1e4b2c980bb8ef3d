"""Makes what two runs did comparable: names, uids and times give way to their roles. Pure.

Rules, all of them: a pod is called by its index and the order of creation (``i0.1``, ``p2``), a Job by its name and, if
recreated, the number of its life; a startTime by the order in which distinct ones appeared (``T1``); any other time by
whether it is set. Where a name was made up by the server and the pod never came to be, its random end is ``?``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from e2e.controlplane.client import Json
from e2e.job_scenarios.sightings import Place
from e2e.job_scenarios.stage import index_of

_RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b(?=\W)")
_SCHEDULED = re.compile(r"\bcron-\d{8}\b")
_UID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_COMBINED = re.compile(r"(?<=Created pod: |Deleted pod: )\S+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "namespace")


class Names:
    """Who is who in one namespace."""

    def __init__(self, place: Place, *, tells_pods_apart: bool = True, made: Iterable[Json] = ()) -> None:
        """Args say who there is, and how they are told apart.

        Args:
            place: Jobs and pods.
            tells_pods_apart: False where the controller may choose among equals: all are then called alike.
            made: what else the controller has created, in this order, under names of its own.
        """
        self._roles: dict[str, str] = {}
        self._start_times: dict[str, str] = {}
        lives: Counter[str] = Counter()
        for born in place.job_births:
            name = born["metadata"]["name"]
            lives[name] += 1
            self._roles[born["metadata"]["uid"]] = f"uid({name}{_nth(lives[name])})"
        counts: Counter[str] = Counter()
        for one in made:
            kind = one["kind"].lower()
            counts[kind] += 1
            self._roles[one["metadata"]["name"]] = f"{kind}{_nth(counts[kind])}"
            self._roles[one["metadata"]["uid"]] = f"uid({kind}{_nth(counts[kind])})"
        for born in place.pod_births:
            role = _kind_of(born)
            counts[role] += 1
            if "generateName" not in born["metadata"]:
                role = born["metadata"]["name"]
            elif tells_pods_apart:
                role = f"{role}.{counts[role]}" if role.startswith("i") else f"{role}{counts[role]}"
            self._roles[born["metadata"]["uid"]] = role
            self._roles[born["metadata"]["name"]] = role
        words = sorted(self._roles, key=len, reverse=True)
        self._pattern = re.compile("|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in words) or r"(?!)")

    def text(self, text: str) -> str:
        """A text with roles instead of names."""
        known = _UID.sub("uid(?)", self._pattern.sub(lambda found: self._roles[found.group()], text))
        return _SCHEDULED.sub("cron-?", _TIME.sub("TIME", _RANDOM.sub("-?", known)))

    def pod(self, name: str) -> str:
        """The role of a pod."""
        return self._roles.get(name, name)

    def start_time(self, text: str) -> str:
        """Which of the start times it is."""
        return self._start_times.setdefault(text, f"T{len(self._start_times) + 1}")

    def shown(self, value: Any) -> str:
        """A value as one line of text, with roles."""
        return self.text(json.dumps(value, sort_keys=True, ensure_ascii=False))


def status_line(names: Names, status: Json) -> str:
    """A Job's status on one line, conditions in their order."""
    parts: list[str] = []
    for key in sorted(status):
        value = status[key]
        match key:
            case "startTime":
                parts.append(f"startTime={names.start_time(value)}")
            case "completionTime":
                # Both are whole seconds, and a Job may well be over within one.
                parts.append("completionTime=" + ("set" if value >= status.get("startTime", "") else "before start"))
            case "conditions":
                continue
            case "uncountedTerminatedPods":
                # The order within a list is that in which pods were walked: a cache's.
                lists = {kind: sorted(map(names.pod, uids)) for kind, uids in sorted(value.items())}
                parts.append(f"uncounted={json.dumps(lists)}")
            case _:
                parts.append(f"{key}={json.dumps(value)}")
    return " ".join(parts + [_condition(names, one) for one in status.get("conditions", [])])


def new_lines(names: Names, made: Json) -> list[str]:
    """What a new object is, a line for each part, nothing left out but what the server alone decides."""
    metadata = {key: value for key, value in made["metadata"].items() if key not in (*_SERVERS_OWN, "name")}
    lines = [f"  {key}: {names.shown(value)}" for key, value in sorted(metadata.items())]
    lines += [f"  spec.{key}: {names.shown(value)}" for key, value in sorted(made["spec"].items())]
    return lines


def pod_line(names: Names, pod: Json) -> str:
    """How a pod is now: what matters to the controller."""
    metadata, status = pod["metadata"], pod.get("status", {})
    parts = [names.pod(metadata["name"]), status.get("phase", "?")]
    parts += ["deleting"] if "deletionTimestamp" in metadata else []
    parts.append(f"finalizers={metadata.get('finalizers', [])}")
    parts.append(f"owners={names.shown(owners_of(pod))}")
    return " ".join(parts)


def owners_of(pod: Json) -> list[str]:
    """Its owner references in short."""
    return [
        " ".join([f"{one['kind']}/{one['name']}", one["uid"], *(flag for flag in _FLAGS if one.get(flag))])
        for one in pod["metadata"].get("ownerReferences", [])
    ]


def job_line(names: Names, job: Json) -> str:
    """How a Job is now: metadata that a controller could change, and its status."""
    metadata = job["metadata"]
    parts = [metadata["name"], f"generation={metadata['generation']}"]
    parts += ["deleting"] if "deletionTimestamp" in metadata else []
    parts += [f"{key}={names.shown(metadata[key])}" for key in ("finalizers", "annotations") if metadata.get(key)]
    return " ".join([*parts, status_line(names, job.get("status", {}))])


def event_lines(names: Names, events: Sequence[Json]) -> list[str]:
    """The Job controller's events, sorted.

    Refused creates are retried until a script goes on, and a status write that is retried tells again that the Job was
    suspended (W2): those events are listed once, without their number. Where
    similar events were combined (N3), which pods were still told one by one is a matter of who came first.
    """
    combined = {event["reason"] for event in events if event["message"].startswith("(combined")}
    lines = []
    for event in events:
        if event.get("source", {}).get("component") != "job-controller":
            continue
        about, retried = event["involvedObject"], event["reason"] in _RETRIED
        times = "" if retried else f" ×{event.get('count', 1)}"
        message = names.text(event["message"] + " ").rstrip()
        if event["reason"] in combined:
            message = _COMBINED.sub("?", message)
        by = event.get("reportingComponent", "")
        lines.append(f"{event['type']} {event['reason']}{times} on {about['kind']}/{about['name']} by {by}: {message}")
    once = {line for line in lines if line.split()[1] in _RETRIED}
    return sorted([line for line in lines if line not in once] + list(once))


_RETRIED = ("FailedCreate", "FailedDelete", "FailedWorkloadCreate", "Suspended", "Resumed")
_FLAGS = ("controller", "blockOwnerDeletion")


def _condition(names: Names, condition: Json) -> str:
    times = [key for key in ("lastProbeTime", "lastTransitionTime") if condition.get(key)]
    marks = "" if len(times) == 2 else f" times={times}"
    said = f"{condition.get('reason', '')}: {names.text(condition.get('message', '') + ' ').rstrip()}"
    return f"[{condition['type']}={condition['status']} {said}{marks}]"


def _kind_of(pod: Json) -> str:
    index = index_of(pod)
    return "p" if index is None else f"i{index}"


def _nth(number: int) -> str:
    return "" if number == 1 else f"#{number}"
