"""What a load of ``bench.mirroring`` is made of: Jobs, JobSets or MPIJobs, and what plays their controllers.

A form says the same of each kind: a start, so many changes of one number, and a completion. Not here: timing.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

from bench import outside

Json = dict[str, Any]
CONTAINER: Json = {"name": "main", "image": "bench", "resources": {"requests": {"cpu": "1m"}}}


class Form(ABC):
    """One kind; ``pods`` are those of each object."""

    api_version: str
    kind: str
    plural: str

    def collection(self, namespace: str) -> str:
        """The path of all of them."""
        root = "/api" if "/" not in self.api_version else "/apis"
        return f"{root}/{self.api_version}/namespaces/{namespace}/{self.plural}"

    def body(self, metadata: Json, *, pods: int, managed_by: str, is_suspended: bool) -> Json:
        """One object."""
        spec = self.spec(pods, {"managedBy": managed_by, "suspend": is_suspended})
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": spec}

    @abstractmethod
    def spec(self, pods: int, policy: Json) -> Json:
        """Its spec; ``policy`` are the fields beside ``suspend``."""

    def policy(self, spec: Json) -> Json:
        """The part of a spec that has ``suspend`` and ``managedBy``."""
        return spec

    def is_suspended(self, spec: Json) -> bool:
        """Whether its pods may not run yet."""
        return bool(self.policy(spec).get("suspend"))

    def copy_of(self, found: Json) -> Json:
        """What is created on a worker: the same, which the controller there runs."""
        spec = copy.deepcopy(found["spec"])
        self.policy(spec).pop("managedBy", None)
        metadata = {"name": found["metadata"]["name"]}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": spec}

    @abstractmethod
    def status(self, *, pods: int, ready: int) -> Json:
        """What is merged while it runs; with ``ready`` 0 it has just started."""

    @abstractmethod
    def ends(self, *, pods: int) -> list[Json]:
        """What is merged at the end, one write after the other."""

    @abstractmethod
    def shown_steps(self, status: Json) -> list[str]:
        """``start``, ``ready-N``, ``complete``: what a status shows."""


class Jobs(Form):
    """``batch/v1`` Jobs."""

    api_version, kind, plural = "batch/v1", "Job", "jobs"

    def spec(self, pods: int, policy: Json) -> Json:
        pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
        return {"parallelism": pods, "completions": pods, **policy, "template": {"spec": pod}}

    def status(self, *, pods: int, ready: int) -> Json:
        if ready:
            return {"ready": ready}
        counters = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
        return {"startTime": outside.now(), "active": pods, **counters}

    def ends(self, *, pods: int) -> list[Json]:
        enough, complete = (
            condition(name, "CompletionsReached", lastProbeTime=outside.now())
            for name in ("SuccessCriteriaMet", "Complete")
        )
        return [
            {"active": 0, "ready": 0, "succeeded": pods, "conditions": [enough]},
            {"completionTime": outside.now(), "conditions": [enough, complete]},
        ]

    def copy_of(self, found: Json) -> Json:
        """Without what each API server writes itself."""
        body = super().copy_of(found)
        for name in ("selector", "manualSelector"):
            body["spec"].pop(name, None)
        body["spec"]["template"].pop("metadata", None)
        return body

    def shown_steps(self, status: Json) -> list[str]:
        is_started = bool(status.get("startTime") and status.get("active"))
        return _steps(status, is_started=is_started, ready=status.get("ready", 0), end="Complete")


class JobSets(Form):
    """JobSets of one replicated job; its webhooks are not asked."""

    api_version, kind, plural = "jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets"

    def spec(self, pods: int, policy: Json) -> Json:
        pod = {"restartPolicy": "Never", "containers": [CONTAINER]}
        job = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
        return {**policy, "replicatedJobs": [{"name": "main", "replicas": pods, "template": {"spec": job}}]}

    def status(self, *, pods: int, ready: int) -> Json:
        return {"restarts": 0, "replicatedJobsStatus": [self._counts(active=pods, ready=ready)]}

    def ends(self, *, pods: int) -> list[Json]:
        over = [self._counts(succeeded=pods)]
        done = [condition("Completed", "AllJobsCompleted")]
        return [
            {"replicatedJobsStatus": over},
            {"replicatedJobsStatus": over, "conditions": done, "terminalState": "Completed"},
        ]

    def shown_steps(self, status: Json) -> list[str]:
        (counts, *_) = status.get("replicatedJobsStatus") or [self._counts()]
        return _steps(status, is_started=counts["active"] > 0, ready=counts["ready"], end="Completed")

    def _counts(self, **counts: int) -> Json:
        return {"name": "main", "active": 0, "ready": 0, "suspended": 0, "succeeded": 0, "failed": 0, **counts}


class MPIJobs(Form):
    """MPIJobs of a launcher and workers; what is counted are the workers."""

    api_version, kind, plural = "kubeflow.org/v2beta1", "MPIJob", "mpijobs"

    def spec(self, pods: int, policy: Json) -> Json:
        one = {"template": {"spec": {"containers": [CONTAINER]}}}
        replicas = {"Launcher": {"replicas": 1, **one}, "Worker": {"replicas": pods, **one}}
        return {"runPolicy": {**policy, "cleanPodPolicy": "None"}, "mpiReplicaSpecs": replicas}

    def policy(self, spec: Json) -> Json:
        found: Json = spec["runPolicy"]
        return found

    def status(self, *, pods: int, ready: int) -> Json:
        replicas = {"replicaStatuses": {"Launcher": {"active": 1}, "Worker": {"active": ready}}}
        if ready:
            return replicas
        return {**replicas, "startTime": outside.now(), "conditions": [condition("Created", "MPIJobCreated")]}

    def ends(self, *, pods: int) -> list[Json]:
        replicas = {"Launcher": {"active": 0, "succeeded": 1}, "Worker": {"active": 0}}
        done = [condition("Created", "MPIJobCreated"), condition("Succeeded", "MPIJobSucceeded")]
        return [{"replicaStatuses": replicas}, {"conditions": done, "completionTime": outside.now()}]

    def shown_steps(self, status: Json) -> list[str]:
        replicas = status.get("replicaStatuses") or {}
        ready = (replicas.get("Worker") or {}).get("active", 0)
        is_started = bool((replicas.get("Launcher") or {}).get("active"))
        return _steps(status, is_started=is_started, ready=ready, end="Succeeded")


FORMS: dict[str, Form] = {form.kind: form for form in (Jobs(), JobSets(), MPIJobs())}


def condition(kind: str, reason: str, **more: str) -> Json:
    """A condition that is True."""
    at = outside.now()
    return {"type": kind, "status": "True", "reason": reason, "message": reason, "lastTransitionTime": at, **more}


def _steps(status: Json, *, is_started: bool, ready: int, end: str) -> list[str]:
    steps = ["start"] if is_started else []
    if ready:
        steps.append(f"ready-{ready}")
    done = any(one["type"] == end and one["status"] == "True" for one in status.get("conditions") or ())
    return [*steps, "complete"] if done else steps
