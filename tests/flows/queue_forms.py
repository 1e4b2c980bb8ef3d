"""What the flows' Kueue knows of each kind (0.19.2: ``jobs/job``, ``jobs/jobset``, ``jobs/kubeflow``). Pure.

Not here: what Kueue does with it (``queue_hand``), what the kinds' own controllers do (``queue_players``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flow_world import job

from mirror.kube.resources import JOBS, Resource
from mirror.model import names
from mirror.model.field_paths import Place, at, put
from mirror.planes.api import Json
from mirror.planes.other_kinds import JOBSETS

PYTORCHJOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
KUEUE = "kueue.x-k8s.io/"
STOPPING = f"{KUEUE}stopping"
RESTORED: tuple[Place, ...] = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec", "nodeSelector"),
    ("spec", "tolerations"),
    ("spec", "schedulingGates"),
)
"""What a preemption puts back of a pod template as it was queued."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """One kind, as a queue sees it."""

    resource: Resource
    managed_by: Place
    value: str = names.DEFAULT_MANAGED_BY
    """What is there in a source of ours."""
    suspend: Place
    """What is true there holds it."""
    pod_sets: Callable[[Json], dict[str, Place]]
    """Their names, and where the pod template of each is."""
    active: Callable[[Json], int]
    """How much runs, by a status: it keeps its quota until that is nothing."""
    started_at: Callable[[Json], str | None]
    """When it was started or resumed last, by a status."""
    ends: frozenset[str]
    """Conditions that are true then."""
    stops_in_steps: bool = False
    """Whether a preemption is three writes, the second of the status, or one."""
    can_be_partial: bool = False
    """Whether an annotation of its user's lets it run with fewer pods."""
    spec: Callable[[Json], Json]
    """One whose pods have this template."""

    def __str__(self) -> str:
        return self.resource.kind

    @property
    def stored_as(self) -> str:
        """The name of its objects in storage."""
        return f"{self.resource.plural}.{self.resource.group}"

    def path(self, name: str = "", subresource: str = "", *, namespace: str = "default") -> str:
        """Of one object; without a name of the collection."""
        return self.resource.path(namespace, name, subresource)

    def body(self, name: str = "train", *, run_for: str = "1s") -> Json:
        """A source that may run."""
        spec = self.spec(job(name, run_for=run_for)["spec"]["template"])
        body = {"apiVersion": self.resource.api_version, "kind": str(self), "metadata": {"name": name}, "spec": spec}
        return dict(put(body, self.managed_by, self.value))

    def held(self, body: Json, is_held: bool = True) -> Json:
        """The same, suspended, or not."""
        return dict(put(body, self.suspend, is_held))

    def is_held(self, body: Json | None) -> bool:
        """Whether its spec suspends it."""
        return at(body, self.suspend) is True

    def is_suspended(self, body: Json) -> bool:
        """As Kueue has it: one whose stop has not ended is not."""
        is_stopping = (body["metadata"].get("annotations") or {}).get(STOPPING) == "true"
        return self.is_held(body) and not (self.stops_in_steps and is_stopping)

    def is_active(self, body: Json | None) -> bool:
        """Whether its status says that something of it runs."""
        return self.active((body or {}).get("status") or {}) > 0

    def has_ended(self, body: Json | None) -> bool:
        """Whether its status says so."""
        listed = ((body or {}).get("status") or {}).get("conditions") or ()
        return any(one["type"] in self.ends and one["status"] == "True" for one in listed)

    def templates(self, body: Json) -> dict[str, Json]:
        """Its pod templates, by pod set."""
        return {name: at(body, place) for name, place in self.pod_sets(body).items()}


def _start_time(status: Json) -> str | None:
    found: str | None = status.get("startTime")
    return found


def _parts_of_a_set(body: Json) -> dict[str, Place]:
    listed = body["spec"]["replicatedJobs"]
    inner = ("template", "spec", "template")
    return {one["name"]: ("spec", "replicatedJobs", index, *inner) for index, one in enumerate(listed)}


def _resumed_at(status: Json) -> str | None:
    """A JobSet has no time of its start: when it was suspended, that of its resumption."""
    listed = status.get("conditions") or ()
    resumed = (one for one in listed if (one["type"], one["status"]) == ("Suspended", "False"))
    return next((one["lastTransitionTime"] for one in resumed), None)


def _roles(body: Json) -> dict[str, Place]:
    """In the order in which Kueue counts them."""
    found = body["spec"]["pytorchReplicaSpecs"]
    roles = (role for role in ("Master", "Worker") if role in found)
    return {role.lower(): ("spec", "pytorchReplicaSpecs", role, "template") for role in roles}


JOB = Form(
    resource=JOBS,
    managed_by=("spec", "managedBy"),
    suspend=("spec", "suspend"),
    pod_sets=lambda _: {"main": ("spec", "template")},
    active=lambda status: status.get("active") or 0,
    started_at=_start_time,
    ends=frozenset(("Complete", "Failed")),
    stops_in_steps=True,
    can_be_partial=True,
    spec=lambda template: {"template": template},
)
JOB_SET = Form(
    resource=JOBSETS,
    managed_by=("spec", "managedBy"),
    suspend=("spec", "suspend"),
    pod_sets=_parts_of_a_set,
    active=lambda status: sum(one["active"] for one in status.get("replicatedJobsStatus") or ()),
    started_at=_resumed_at,
    ends=frozenset(("Completed", "Failed")),
    spec=lambda template: {
        "replicatedJobs": [
            {"name": name, "replicas": 1, "template": {"spec": {"template": template}}}
            for name in ("leader", "workers")
        ]
    },
)
PYTORCH_JOB = Form(
    resource=PYTORCHJOBS,
    managed_by=("spec", "runPolicy", "managedBy"),
    value=names.MULTIKUEUE_MANAGED_BY,
    suspend=("spec", "runPolicy", "suspend"),
    pod_sets=_roles,
    active=lambda status: sum(one.get("active", 0) for one in (status.get("replicaStatuses") or {}).values()),
    started_at=_start_time,
    ends=frozenset(("Succeeded", "Failed")),
    spec=lambda template: {
        "pytorchReplicaSpecs": {
            role: {"replicas": 1, "restartPolicy": "Never", "template": template} for role in ("Master", "Worker")
        }
    },
)
FORMS = (JOB, JOB_SET, PYTORCH_JOB)
