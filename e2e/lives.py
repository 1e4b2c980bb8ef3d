"""JobSets and MPIJobs as users write them, and one test's view of those of one kind: sources, mirrors, pods.

``KINDS`` has what differs between the kinds, so that a life is told once for all. Their own controllers run them
(``operators``) with pods that run and end as their annotations say. Not here: Jobs (``jobs``), further kinds
(``further_lives``), which of them a run is about (``kind_choice``).
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from e2e.controlplane.client import Json
from e2e.jobs import PREFIX, RUN_FOR, Scene, condition, is_suspended, read_or_none, until
from e2e.operator_table import JOBSET, JOBSETS, MPI_OPERATOR, MPIJOBS, Operator
from mirror.kinds.declared.choosing import built_in
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.model.field_paths import FieldPath, at

_WAIT_SECONDS = 120.0


def with_other_images(spec: Json) -> Json:
    """A spec whose containers, or steps, have another image."""

    def changed(part: object) -> object:
        if isinstance(part, list):
            return [changed(one) for one in part]
        if not isinstance(part, dict):
            return part
        return {name: "another" if name == "image" else changed(value) for name, value in part.items()}

    return {name: changed(value) for name, value in spec.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What tests must know of a kind."""

    resource: Resource
    operators: tuple[Operator, ...] = ()
    """Who runs it, and what it makes; nobody: it is only played."""
    spec: Callable[[Json], Json]
    """Its spec, of the annotations of the pods whose end is its end."""
    policy: tuple[str, ...] = ()
    """Where ``suspend`` and ``managedBy`` are."""
    is_named_above: bool = False
    """Whether ``managedBy`` is in the spec itself, whatever ``policy`` is."""
    managed_by: str = ""
    """What makes it ours, where not every value is admitted."""
    held: Json | None = field(default_factory=lambda: {"suspend": True}, hash=False)
    """What of ``policy`` keeps it from running; None: nothing does."""
    released: Json = field(default_factory=lambda: {"suspend": False}, hash=False)
    is_held_again: bool = True
    """Whether one that runs can be suspended."""
    cancelled: Json = field(default_factory=dict, hash=False)
    """What of ``policy`` ends it before its time, as a failure for a reason of the same name."""
    has_ttl: bool = False
    """Whether ``ttlSecondsAfterFinished`` in ``policy`` deletes it."""
    annotations: Json = field(default_factory=dict, hash=False)
    """Its own, always."""
    is_changed_while_held: bool = True
    """Whether what is changed while it is held follows."""
    fixed: str = ""
    """What of the refusal when ``managedBy`` is changed; nothing: it may be."""
    edited: Callable[[Json], Json] = with_other_images
    """Its spec with something changed that does not follow while it runs."""
    edit_refused: str = ""
    """What of the refusal of that; nothing: it is stored, and stays without effect."""
    succeeded: str = ""
    """A condition's type, that is true then; or TYPE=STATUS, ``phase PHASE TYPE=STATUS``, ``field NAME=VALUE``.

    Empty: it lives until it is deleted.
    """
    failed: str = ""
    fails_because: str = ""
    """The reason of ``failed`` when its pods fail."""
    is_suspended: Callable[[Json | None], bool] = is_suspended
    """Whether its status says that it is held."""
    pods_label: str
    parts: tuple[str, ...] = ("",)
    """Of which part of it each of its pods is, while it runs; the one whose log is of most interest comes first."""
    is_running: Callable[[Json | None], bool]
    """Whether its status says that all its pods run."""
    with_pod_annotations: Callable[[Json, Json], Json]
    """A merge patch of its spec, of its spec and more annotations of its pods."""
    hands_on: bool = False
    """Whether its pods get its own annotations."""
    wants_account: bool = False
    """Whether its controller looks for the ServiceAccount ``default`` itself: no controller makes it here."""
    passing: tuple[str, ...] = ()
    """Conditions that one whose pods end at once may end with or without."""

    def __str__(self) -> str:
        return self.resource.kind

    @property
    def ends(self) -> bool:
        """Whether it is ever over."""
        return bool(self.succeeded)


def end(found: Json | None, clause: str) -> Json:
    """The condition of ``TYPE=STATUS``, or ``{}``; without a status, a true one; in no other phase than PHASE.

    Of a field with this value, the status itself: its reason is beside it.
    """
    seen = (found or {}).get("status") or {}
    *phase, text = clause.split()
    if phase == ["field"]:
        name, _, value = text.partition("=")
        return dict(seen) if seen.get(name) == value else {}
    if phase and phase != ["phase", seen.get("phase")]:
        return {}
    kind, _, status = text.partition("=")
    listed = [*(seen.get("conditions") or ()), *ours_beside(found)]
    wanted = (kind, status or "True")
    return next((dict(one) for one in listed if (one["type"], one["status"]) == wanted), {})


def ours_beside(found: Json | None) -> list[Json]:
    """Our conditions, where the status of a kind has none: in the annotation."""
    text = ((found or {}).get("metadata") or {}).get("annotations", {}).get(names.CONDITIONS, "[]")
    listed: list[Json] = json.loads(text)
    return listed


def templates_of(kind: Kind, spec: Json) -> list[Json]:
    """The pod templates that are in a spec, themselves, by the entry of its kind; of a TrainJob what it patches."""
    body, paths = {"spec": spec}, map(FieldPath.of_text, built_in()[str(kind)].templates)
    return [one for path in paths for place in path.places(body) if isinstance(one := at(body, place), dict)]


def directed(kind: Kind, spec: Json, **directives: Any) -> Json:
    """A spec whose pod templates say so of their pods, such as ``nodeSelector``."""
    changed = copy.deepcopy(spec)
    for template in templates_of(kind, changed):
        template.setdefault("spec", {}).update(directives)
    return changed


def _job_set_spec(annotations: Json) -> Json:
    job = {"backoffLimit": 0, "completions": 1, "parallelism": 1, "template": _pod(annotations)}
    return {"replicatedJobs": [{"name": "main", "replicas": 2, "template": {"spec": job}}]}


def _mpi_job_spec(annotations: Json) -> Json:
    """Its workers' pods run until mpi-operator deletes them; the launcher's end is its own."""
    return {
        "slotsPerWorker": 1,
        "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": _pod(annotations)},
            "Worker": {"replicas": 1, "template": _pod({_key("run-for"): "never"})},
        },
    }


def _pod(annotations: Json) -> Json:
    containers = [{"name": "main", "image": "any", "command": ["none"]}]
    return {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": containers}}


def _key(name: str) -> str:
    return f"e2e.{PREFIX}{name}"


def _is_running_job_set(found: Json | None) -> bool:
    listed = ((found or {}).get("status") or {}).get("replicatedJobsStatus") or ()
    return [one["ready"] for one in listed] == [2]


def _job_set_pods(spec: Json, annotations: Json) -> Json:
    (job,) = spec["replicatedJobs"]
    job["template"]["spec"]["template"]["metadata"]["annotations"] |= annotations
    return {"replicatedJobs": [job]}


def _mpi_job_pods(spec: Json, annotations: Json) -> Json:
    return {"mpiReplicaSpecs": {"Launcher": {"template": {"metadata": {"annotations": annotations}}}}}


JOB_SET = Kind(
    resource=JOBSETS,
    operators=(JOBSET,),
    spec=_job_set_spec,
    has_ttl=True,
    fixed="field is immutable",
    edit_refused="field is immutable",
    succeeded="Completed",
    failed="Failed",
    fails_because="FailedJobs",
    pods_label="jobset.sigs.k8s.io/jobset-name",
    parts=("main", "main"),
    is_running=_is_running_job_set,
    with_pod_annotations=_job_set_pods,
)
MPI_JOB = Kind(
    resource=MPIJOBS,
    operators=(MPI_OPERATOR,),
    spec=_mpi_job_spec,
    policy=("runPolicy",),
    succeeded="Succeeded",
    failed="Failed",
    fails_because="BackoffLimitExceeded",
    pods_label="training.kubeflow.org/job-name",
    parts=("launcher", "worker"),
    is_running=lambda found: bool(condition(found, "Running")),
    with_pod_annotations=_mpi_job_pods,
)
KINDS = (JOB_SET, MPI_JOB)


class Lives:
    """The objects of one kind in a scene's namespace."""

    def __init__(self, scene: Scene, kind: Kind, managed_by: str = "") -> None:
        """``managed_by``: of its sources; without it they are their own controller's."""
        self.scene = scene
        self.kind = kind
        self.managed_by = (kind.managed_by or managed_by) if managed_by else ""
        self._is_prepared = not kind.wants_account

    @property
    def collection(self) -> str:
        """The path of all of them, the same on each cluster."""
        return self.kind.resource.path(self.scene.namespace)

    def path(self, name: str = "train") -> str:
        """The path of one of them."""
        return f"{self.collection}/{name}"

    def body(self, name: str, *, run_for: str = RUN_FOR, exit_code: int = 0, **policy: Any) -> Json:
        """One whose pods run so long and end so; ``policy`` are fields beside ``suspend``."""
        fares = {_key("run-for"): run_for, _key("exit-code"): str(exit_code)}
        spec = self.kind.spec(fares)
        if self.managed_by:
            (spec if self.kind.is_named_above else self._policy(spec))["managedBy"] = self.managed_by
        self._policy(spec).update(policy)
        annotations = self.kind.annotations | (fares if self.kind.hands_on else {})
        resource, metadata = self.kind.resource, {"name": name, "annotations": annotations}
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}

    async def prepare(self) -> None:
        """Have what its controller looks for in the namespace, on each worker."""
        if not self._is_prepared:
            path, body = f"/api/v1/namespaces/{self.scene.namespace}/serviceaccounts", {"metadata": {"name": "default"}}
            for client in map(self.scene.client_of, self.scene.workers):
                if await read_or_none(client, f"{path}/default") is None:
                    await client.create(path, body)
            self._is_prepared = True

    async def create(self, name: str = "train", *, annotations: Json | None = None, **life: Any) -> Json:
        """Create a source; ``life`` is as for ``body``. Annotations without a prefix get ours."""
        await self.prepare()
        body = self.body(name, **life)
        given = {key if "/" in key else PREFIX + key: value for key, value in (annotations or {}).items()}
        body["metadata"]["annotations"] |= given
        return await self.scene.client.create(self.collection, body)

    async def source(self, name: str = "train") -> Json | None:
        """The source, or None."""
        return await read_or_none(self.scene.client, self.path(name))

    async def until(
        self, condition: Callable[[Json | None], object], name: str = "train", *, seconds: float = _WAIT_SECONDS
    ) -> Json:
        """Wait until the source is so.

        Raises:
            TimeoutError: it is not; the text shows source, mirrors and events.
        """

        async def look() -> Json | None:
            return await self.source(name)

        found = await until(look, condition, seconds=seconds, describe=lambda: self.describe(name))
        return found or {}

    async def until_running(self, name: str = "train") -> tuple[str, Json]:
        """Wait until its status says that its pods run; its worker and its mirror."""
        await self.until(self.kind.is_running, name)
        ((worker, mirror),) = (await self.mirrors(name)).items()
        return worker, mirror

    async def until_over(self, name: str = "train", *, succeeded: bool = True, seconds: float = _WAIT_SECONDS) -> Json:
        """Wait until it has ended, in this way."""
        found = await self.until(self.is_over, name, seconds=seconds)
        expected = self.kind.succeeded if succeeded else self.kind.failed
        assert end(found, expected), await self.describe(name)
        return found

    async def until_well(self, name: str = "train", *, seconds: float = _WAIT_SECONDS) -> Json:
        """Wait until it has succeeded; one that never ends, until it runs."""
        if self.kind.ends:
            return await self.until_over(name, seconds=seconds)
        return await self.until(self.kind.is_running, name, seconds=seconds)

    def is_over(self, found: Json | None) -> bool:
        """Whether it has ended, either way."""
        return self.kind.ends and any(end(found, clause) for clause in (self.kind.succeeded, self.kind.failed))

    async def mirrors(self, name: str = "train") -> dict[str, Json]:
        """The mirrors of this name, by worker."""
        workers, path = self.scene.workers, self.path(name)
        found = await asyncio.gather(*(read_or_none(self.scene.client_of(worker), path) for worker in workers))
        listed = zip(workers, found, strict=True)
        return {worker: one for worker, one in listed if one and names.ORIGIN in one["metadata"].get("labels", {})}

    async def until_no_mirror(self, name: str = "train") -> None:
        """Wait until no worker has one."""
        await until(lambda: self.mirrors(name), lambda found: not found, describe=lambda: self.describe(name))

    async def delete(self, name: str = "train") -> None:
        """Delete the source."""
        await self.scene.client.delete(self.path(name))

    async def set_policy(self, fields: Json, name: str = "train", *, worker: str = "") -> Json:
        """Change fields beside ``suspend``, of the source, or of the mirror on a worker."""
        spec: Json = {}
        self._policy(spec).update(fields)
        client = self.scene.client_of(worker) if worker else self.scene.client
        return await client.merge(self.path(name), {"spec": spec})

    async def set_manager(self, managed_by: str | None, name: str = "train") -> Json:
        """Change who runs the source."""
        spec: Json = {}
        (spec if self.kind.is_named_above else self._policy(spec))["managedBy"] = managed_by
        return await self.scene.client.merge(self.path(name), {"spec": spec})

    def policy_of(self, found: Json) -> Json:
        """The fields beside ``suspend`` of one of them."""
        return self._policy(found["spec"])

    async def end_pods(self, worker: str, name: str = "train") -> None:
        """Let its pods end now, however long they would have run; those of an MPIJob's workers are its operator's."""
        path = f"/api/v1/namespaces/{self.scene.namespace}/pods"
        for pod in await self.pods(worker, name):
            if pod["metadata"]["labels"].get("training.kubeflow.org/job-role") != "worker":
                body = {"metadata": {"annotations": {_key("run-for"): "0s"}}}
                await self.scene.client_of(worker).merge(f"{path}/{pod['metadata']['name']}", body)

    async def pods(self, worker: str = "", name: str = "train") -> list[Json]:
        """The pods of this name on a worker; without one, on the management cluster."""
        client = self.scene.client_of(worker) if worker else self.scene.client
        path = f"/api/v1/namespaces/{self.scene.namespace}/pods"
        return await client.list(path, labelSelector=f"{self.kind.pods_label}={name}")

    async def until_no_pods(self, worker: str, name: str = "train") -> None:
        """Wait until none of its pods run on a worker."""

        async def running() -> list[Json]:
            return [pod for pod in await self.pods(worker, name) if pod["status"]["phase"] in ("Pending", "Running")]

        await until(running, lambda found: not found, describe=lambda: self.describe(name))

    async def describe(self, name: str = "train") -> str:
        """The source, its mirrors and its events, for a failure's message."""
        parts: Json = {"source": await self.source(name)}
        for worker in self.scene.workers:
            parts[f"on {worker}"] = await read_or_none(self.scene.client_of(worker), self.path(name))
        parts["events"] = [f"{event['reason']}: {event['message']}" for event in await self.scene.events(name)]
        for one in parts.values():
            if isinstance(one, dict):
                one["metadata"].pop("managedFields", None)
        return yaml.safe_dump(parts, sort_keys=False, width=160)

    def _policy(self, spec: Json) -> Json:
        for name in self.kind.policy:
            spec = spec.setdefault(name, {})
        return spec
