"""One scenario on one side as text, fit to be compared line by line. Pure; ``report`` compares.

Rules besides those of ``normal``: writes stand under the stimulus after which they came, in the server's order, but pod
writes between two status writes happen at the same time and are sorted by pod, and what is about different Jobs stands
apart. Writes that were refused for a conflict, hit nothing (409, 404), or tested what was not so any more (422), and
patches of pods that changed nothing, are left out, being a matter of who came first; other refusals, which are tried
again and again, are shown once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from e2e.controlplane.client import Json
from e2e.job_scenarios import normal
from e2e.job_scenarios.normal import Names
from e2e.job_scenarios.sightings import Place
from e2e.job_scenarios.stage import Step
from e2e.job_scenarios.writes import Write
from mirror.kube.resources import POD_GROUPS, WORKLOADS

_OF_GANGS = (WORKLOADS.plural, POD_GROUPS.plural)
_LOST_RACES = (404, 409)
_TEST_FAILED = 422


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened."""

    lines: tuple[str, ...]
    problem: str = ""
    """Why the script could not be played to its end, if so."""

    @property
    def text(self) -> str:
        """All of it, to read."""
        return "\n".join((*self.lines, *filter(None, [self.problem])))


def make_trace(place: Place, steps: Sequence[Step], writes: Sequence[Write], *, tells_pods_apart: bool) -> Trace:
    """The trace of a script that was played in a namespace."""
    kept = _without_empty_patches([write for write in writes if not _came_too_late(write)])
    made = [write.stored for write in kept if write.resource in _OF_GANGS and write.code < 400]
    names = Names(place, tells_pods_apart=tells_pods_apart, made=made)
    lines: list[str] = []
    for number, step in enumerate(steps):
        until = steps[number + 1].began if number + 1 < len(steps) else None
        lines.append(f"== {names.text(step.label + ' ').rstrip()}")
        within = [one for one in kept if step.began <= one.received and (until is None or one.received < until)]
        lines += _step_lines(names, within)
    lines = _refusals_once(lines)
    lines += ["== jobs", *sorted(normal.job_line(names, job) for job in place.jobs.values())]
    lines += ["== pods", *sorted(normal.pod_line(names, pod) for pod in place.pods.values())]
    lines += ["== events", *normal.event_lines(names, list(place.events.values()))]
    return Trace(tuple(lines))


def state_of(place: Place) -> tuple[str, ...]:
    """The settled state of a namespace without what a restart may change.

    That is: times, who is who among equals, and what a Job counts while it is being deleted, since the garbage
    collector goes on while the controller is away.
    """
    names = Names(place, tells_pods_apart=False)
    jobs = sorted(normal.job_line(names, _for_state(job)) for job in place.jobs.values())
    return (*jobs, *sorted(normal.pod_line(names, pod) for pod in place.pods.values()))


def _for_state(job: Json) -> Json:
    """Whether it was started is a fact; when is not."""
    if "deletionTimestamp" in job["metadata"]:
        return {**job, "status": {}}
    status = dict(job.get("status", {}))
    if "startTime" in status:
        status["startTime"] = "set"
    return {**job, "status": status}


def _step_lines(names: Names, writes: Sequence[Write]) -> list[str]:
    owners = sorted({_job_of(write) for write in writes})
    parts: list[Sequence[Write]] = [[write for write in writes if _job_of(write) == owner] for owner in owners]
    if len(set(owners) - {""}) < 2:
        parts = [writes]
    return [line for part in parts for block in _blocks(names, part) for line in block]


def _blocks(names: Names, writes: Sequence[Write]) -> list[list[str]]:
    """The lines of each write, in an order that two runs share."""
    blocks: list[list[str]] = []
    for is_pods, group in groupby(writes, key=lambda write: write.resource == "pods"):
        found = [_write_lines(names, write) for write in group]
        blocks += sorted(found, key=lambda block: block[0].split()[1]) if is_pods else found
    return blocks


def _refusals_once(lines: Sequence[str]) -> list[str]:
    return [line for number, line in enumerate(lines) if " refused " not in line or line not in lines[:number]]


def _job_of(write: Write) -> str:
    """The name of the Job that a write is about; nothing for a pod that has no owner."""
    if write.resource in ("jobs", "jobs/status"):
        return write.name
    references = write.stored.get("metadata", {}).get("ownerReferences", [])
    return next((str(one["name"]) for one in references if one.get("controller")), "")


def _came_too_late(write: Write) -> bool:
    return write.code in _LOST_RACES or (write.code == _TEST_FAILED and write.is_json_patch)


def _without_empty_patches(writes: Sequence[Write]) -> list[Write]:
    """Leaves out patches of pods after which the version was one that was there before."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for write in writes:
        version = (write.name, write.stored.get("metadata", {}).get("resourceVersion", ""))
        if write.resource != "pods" or write.code >= 400 or version not in seen:
            kept.append(write)
        seen.add(version)
    return kept


def _write_lines(names: Names, write: Write) -> list[str]:
    """One write; the first word says what, the second whom: groups are sorted from there on."""
    pod = names.pod(write.name)
    if write.code >= 400:
        said = names.text(write.stored.get("message", "") + " ").rstrip()
        return [f"{write.verb} {write.resource} refused {write.code} {said}"]
    match (write.resource, write.verb):
        case ("jobs/status", _):
            return ["status " + normal.status_line(names, write.stored.get("status", {}))]
        case ("pods", "create"):
            return [f"create {pod}", *normal.new_lines(names, write.stored)]
        case (resource, "create") if resource in _OF_GANGS:
            return [
                f"create {resource} {names.text(write.name + ' ')}".rstrip(),
                *normal.new_lines(names, write.stored),
            ]
        case ("pods", "delete"):
            return [f"delete {pod} {_options(write)}".rstrip()]
        case ("pods", _):
            # Others change owners at the same time: they are shown if this write was about them.
            is_about_owners = "ownerReferences" in write.sent.get("metadata", {})
            owners = f" owners={names.shown(normal.owners_of(write.stored))}" if is_about_owners else ""
            return [f"change {pod} to finalizers={write.stored['metadata'].get('finalizers', [])}{owners}"]
        case _:
            return [f"{write.verb} {write.resource} {names.text(write.name + ' ')}{_options(write)}".rstrip()]


def _options(write: Write) -> str:
    """The options of a DELETE that have an effect; Background is what pods get anyway."""
    if write.verb != "delete":
        return ""
    wanted = {key: write.sent[key] for key in ("gracePeriodSeconds", "propagationPolicy") if key in write.sent}
    return str({key: value for key, value in wanted.items() if value != "Background" or write.resource == "jobs"} or "")
