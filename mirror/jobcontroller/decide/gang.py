"""Gang scheduling (KEP-5547, gate ``WorkloadWithJob``): the Workload and the PodGroup that a Job's pods belong to.

Decides for ``gangs``, which performs it before pods are managed: which Jobs qualify, which of the objects that exist
are theirs, what the missing ones hold. Not here: requests, owners, and what a failed request means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mirror.batch import conditions, views
from mirror.jobcontroller.decide.jobs import Job, Stored
from mirror.jobcontroller.decide.values import Snapshot

LONGEST_NAME = 253
"""Of an object (a DNS subdomain)."""
LONGEST_TEMPLATE_NAME = 63
"""Of a PodGroup template in a Workload (a DNS label)."""
_TEMPLATE_SUFFIX = "-pgt-0"
_SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


class PodGroupTemplate(msgspec.Struct, frozen=True):
    """A kind of PodGroup that a Workload asks for."""

    name: str
    policy: Mapping[str, Any]
    """``schedulingPolicy``, as the API serves it."""


class Workload(msgspec.Struct, frozen=True):
    """A Workload that refers to the Job by name."""

    name: str
    uid: str
    controller: str
    """The uid of the owner that controls it; empty if there is none."""
    templates: tuple[PodGroupTemplate, ...] = ()


class PodGroup(msgspec.Struct, frozen=True):
    """A PodGroup that refers to the Job's Workload by name."""

    name: str
    uid: str
    controller: str


class Missing(msgspec.Struct, frozen=True):
    """It does not exist and has to be created."""

    name: str
    spec: Mapping[str, Any]


class Ungrouped(msgspec.Struct, frozen=True):
    """The pods belong to no group: each is scheduled by itself, as without the gate."""

    because: str
    is_expected: bool = False
    """True of a Job that started without a group; False where objects are in the way that somebody has made."""


def wants_group(snapshot: Snapshot) -> bool:
    """Whether a Job qualifies: Indexed, all of its several pods at once, not grouped by somebody else.

    A Job that is being deleted creates no pods any more, so it needs none.
    """
    if not snapshot.gates.workload_with_job or snapshot.is_deleting:
        return False
    job = Job.of(snapshot.spec, snapshot.gates)
    is_all_at_once = job.is_elastic and job.parallelism > 1
    return is_all_at_once and _pod_spec(snapshot.spec).get("schedulingGroup") is None


def is_new(snapshot: Snapshot) -> bool:
    """Whether a Job has never started: one that ran without a group goes on without.

    No single sign is enough: pods may be gone, a suspension takes the start away, and a Job that was suspended from
    its beginning has the condition alone.
    """
    stored = Stored.of(snapshot.status)
    has_run = bool(snapshot.pods or stored.start is not None or stored.succeeded or stored.failed)
    return not has_run and not conditions.find(stored.conditions, conditions.SUSPENDED)


def new_workload(snapshot: Snapshot) -> Missing | Ungrouped:
    """The Workload of a Job that qualifies and that none refers to."""
    if not is_new(snapshot):
        return Ungrouped("the Job started without a Workload", is_expected=True)
    return Missing(workload_name(_name(snapshot), snapshot.uid), _workload_spec(snapshot))


def choose_workload(snapshot: Snapshot, found: Sequence[Workload]) -> Workload | Ungrouped:
    """Of the Workloads that refer to a Job, one or more, the one that is used."""
    if len(found) > 1:
        return Ungrouped("more than one Workload refers to the Job")
    (workload,) = found
    if workload.controller != snapshot.uid:
        return Ungrouped(f"Workload {workload.name} refers to the Job and is not controlled by it")
    if len(workload.templates) != 1:
        return Ungrouped(f"Workload {workload.name} has {len(workload.templates)} PodGroup templates instead of 1")
    return workload


def new_pod_group(workload: Workload) -> Missing:
    """The PodGroup of a Workload that none refers to."""
    (template,) = workload.templates
    reference = {"workloadName": workload.name, "podGroupTemplateName": template.name}
    spec = {"podGroupTemplateRef": {"workload": reference}, "schedulingPolicy": template.policy}
    return Missing(pod_group_name(workload.name, template.name), spec)


def choose_pod_group(snapshot: Snapshot, workload: Workload, found: Sequence[PodGroup]) -> PodGroup | Ungrouped:
    """Of the PodGroups that refer to a Workload, one or more, the one that is used."""
    if len(found) > 1:
        return Ungrouped(f"more than one PodGroup refers to Workload {workload.name}")
    (group,) = found
    if group.controller != snapshot.uid:
        text = f"PodGroup {group.name} refers to Workload {workload.name} and is not controlled by the Job"
        return Ungrouped(text)
    return group


def in_group(spec: Mapping[str, Any], group: str) -> Mapping[str, Any]:
    """A Job's spec whose template makes pods of this PodGroup; the same spec if there is none."""
    if not group:
        return spec
    template = dict(views.mapping(spec.get("template")))
    template["spec"] = {**_pod_spec(spec), "schedulingGroup": {"podGroupName": group}}
    return {**spec, "template": template}


def workload_name(job_name: str, uid: str) -> str:
    """A name that stays the same over restarts and differs from that of a namesake's: JOB-HASH."""
    # Upstream hashes a dump of the uid, which begins with the uid's type in Go.
    code = _hash(f"(types.UID){uid}")
    return f"{job_name[: LONGEST_NAME - len(code) - 1]}-{code}"


def pod_group_name(workload: str, template: str) -> str:
    """WORKLOAD-TEMPLATE-HASH, where both give way if it is too long, first the one that has more than its half."""
    code = _hash(workload + template)
    room = LONGEST_NAME - len(code) - 2
    if len(workload) + len(template) > room:
        half = room // 2
        if len(workload) <= half:
            template = template[: room - len(workload)]
        elif len(template) <= half:
            workload = workload[: room - len(template)]
        else:
            workload, template = workload[: room - half], template[:half]
    return f"{workload}-{template}-{code}"


def template_name(job_name: str) -> str:
    """The name of a Workload's only template. Of a Job's name it takes no more than the API accepts in a template."""
    return job_name[: LONGEST_TEMPLATE_NAME - len(_TEMPLATE_SUFFIX)] + _TEMPLATE_SUFFIX


def _workload_spec(snapshot: Snapshot) -> dict[str, Any]:
    name = _name(snapshot)
    policy = {"gang": {"minCount": Job.of(snapshot.spec, snapshot.gates).parallelism}}
    return {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": name},
        "podGroupTemplates": [{"name": template_name(name), "schedulingPolicy": policy}],
    }


def _name(snapshot: Snapshot) -> str:
    return snapshot.key.partition("/")[2]


def _pod_spec(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return views.mapping(views.mapping(spec.get("template")).get("spec"))


def _hash(text: str) -> str:
    """FNV-1a, 32 bits, its decimal digits as letters that spell no words, as upstream's names have it."""
    code = _FNV_OFFSET
    for byte in text.encode():
        code = (code ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return "".join(_SAFE_LETTERS[ord(digit) % len(_SAFE_LETTERS)] for digit in str(code))
