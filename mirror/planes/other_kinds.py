"""JobSets and MPIJobs for ``mirror demo --kinds``: what serves them, samples, and what plays their controllers.

A player does with the embedded cluster's Jobs and pods what the real controller does: it creates what an object is made
of, and sums up in its status how that is. All else is pure. Called by ``cli.demo``; not here: what is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import yaml

from mirror.batch import times
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.controllers.kubelet.simulated import RUN_FOR
from mirror.kube.resources import JOBS, PODS, Resource
from mirror.planes.api import Api
from mirror.planes.fleet import Fleet
from mirror.planes.samples import EXPECTED_OF_KINDS, folder
from mirror.settings.kinds import KindEntry

Json = dict[str, Any]

JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
MPIJOBS = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
ENTRIES = (KindEntry(kind=JOBSETS.kind), KindEntry(kind=MPIJOBS.kind))
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ENDS = ("Completed", "Succeeded", "Failed")
_LOOK_SECONDS = 0.1


def samples(managed_by: str) -> Iterator[Json]:
    """One of each kind."""
    for name in EXPECTED_OF_KINDS:
        body = yaml.safe_load((folder() / "kinds" / f"{name}.yaml").read_text())
        policy = body["spec"] if body["kind"] == JOBSETS.kind else body["spec"]["runPolicy"]
        policy["managedBy"] = managed_by
        yield {**body, "metadata": {**body["metadata"], "name": f"{name}-1"}}


def definition(resource: Resource) -> Json:
    """A definition that takes every field: the real ones are hundreds of kilobytes."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {"name": resource.version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@asynccontextmanager
async def played(fleet: Fleet) -> AsyncIterator[None]:
    """Serve both kinds everywhere, and run them on the workers, while the block runs."""
    workers = [worker.plane.api for worker in fleet.workers.values()]
    for api in (fleet.management.plane.api, *workers):
        for resource in (JOBSETS, MPIJOBS):
            await api.create(_DEFINITIONS, definition(resource))
            while not await _is_served(api, resource):  # noqa: ASYNC110 - definitions tell nobody
                await asyncio.sleep(_LOOK_SECONDS)
    async with asyncio.TaskGroup() as scope:
        players = [scope.create_task(_play(api), name="JobSets and MPIJobs") for api in workers]
        try:
            yield
        finally:
            for player in players:
                player.cancel()


async def _is_served(api: Api, resource: Resource) -> bool:
    try:
        await api.list(resource.path())
    except StatusError:
        return False
    return True


async def _play(api: Api) -> None:
    """Be the controllers of both kinds on one cluster."""
    while True:
        for resource in (JOBSETS, MPIJOBS):
            for one in await api.list(resource.path()):
                with suppress(StatusError):  # it, or what it is made of, has changed meanwhile: the next look sees it
                    await _reconcile(api, resource, one)
        await asyncio.sleep(_LOOK_SECONDS)


async def _reconcile(api: Api, resource: Resource, found: Json) -> None:
    metadata = found["metadata"]
    if is_over(found) or metadata.get("deletionTimestamp"):
        return
    there: dict[str, Json] = {}
    for kind, body in parts(found):
        collection, name = kind.path(metadata["namespace"]), body["metadata"]["name"]
        with suppress(StatusError):  # it is there
            await api.create(collection, body)
        there[name] = await api.get(f"{collection}/{name}")
    status = status_of(found, there, datetime.now(UTC))
    if status != (found.get("status") or {}):
        path = resource.path(metadata["namespace"], metadata["name"], "status")
        await api.merge(path, {"status": status})
    if status_ends(status):
        for kind, body in parts(found):
            if kind == PODS:
                await api.delete(PODS.path(metadata["namespace"], body["metadata"]["name"]))


# What one is made of, and what its status says of that; pure.


def is_over(found: Json) -> bool:
    """Whether it has ended."""
    return status_ends(found.get("status") or {})


def status_ends(status: Json) -> bool:
    """Whether this is the status of one that has ended."""
    return any(one["type"] in _ENDS and one["status"] == "True" for one in status.get("conditions") or ())


def is_suspended(found: Json) -> bool:
    """Whether its pods must not run."""
    return bool((found["spec"].get("runPolicy") or found["spec"]).get("suspend"))


def parts(found: Json) -> list[tuple[Resource, Json]]:
    """The Jobs and pods that it is made of."""
    if found["kind"] == JOBSETS.kind:
        return [(JOBS, body) for body in _jobs_of_set(found)]
    replicas, name = found["spec"]["mpiReplicaSpecs"], found["metadata"]["name"]
    labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/operator-name": "mpi-operator"}
    launcher: Json = {"backoffLimit": 0, "suspend": is_suspended(found)}
    launcher["template"] = _pod(replicas["Launcher"]["template"], labels, restartPolicy="Never")
    made = [(JOBS, _owned(found, f"{name}-launcher", labels, launcher))]
    if not is_suspended(found):
        template = _pod(replicas["Worker"]["template"], labels)
        template["metadata"]["annotations"] = {RUN_FOR: "never", **template["metadata"].get("annotations", {})}
        for number in range(replicas["Worker"].get("replicas", 1)):
            pod = _owned(found, f"{name}-worker-{number}", labels, template["spec"])
            pod["metadata"]["annotations"] = template["metadata"]["annotations"]
            made.append((PODS, pod))
    return made


def _jobs_of_set(found: Json) -> Iterator[Json]:
    name = found["metadata"]["name"]
    for part in found["spec"]["replicatedJobs"]:
        for number in range(part.get("replicas", 1)):
            labels = {
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/replicatedjob-name": part["name"],
                "jobset.sigs.k8s.io/job-index": str(number),
            }
            spec = {**part["template"]["spec"], "suspend": is_suspended(found)}
            spec["template"] = _pod(spec["template"], labels)
            yield _owned(found, f"{name}-{part['name']}-{number}", labels, spec)


def _pod(template: Json, labels: Json, **spec: Any) -> Json:
    metadata = template.get("metadata") or {}
    labels = {**metadata.get("labels", {}), **labels}
    return {"metadata": {**metadata, "labels": labels}, "spec": {**template["spec"], **spec}}


def _owned(owner: Json, name: str, labels: Json, spec: Json) -> Json:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    metadata = {"name": name, "labels": labels, "ownerReferences": [{**reference, "controller": True}]}
    return {"metadata": metadata, "spec": spec}


def status_of(found: Json, there: Mapping[str, Json], now: datetime) -> Json:
    """What its controller would say, of the parts as they are, by name."""
    is_set = found["kind"] == JOBSETS.kind
    status = dict(found.get("status") or {})
    jobs = [one for one in there.values() if "template" in one["spec"]]
    say = _Conditions(status.get("conditions") or (), now)
    if is_suspended(found) or say.has("Suspended"):
        reasons = ("SuspendedJobs", "ResumeJobs") if is_set else ("MPIJobSuspended", "MPIJobResumed")
        say.set("Suspended", is_suspended(found), reasons[not is_suspended(found)])
    if is_set:
        counts = [_counts(part["name"], jobs) for part in found["spec"]["replicatedJobs"]]
        status |= {"restarts": 0, "replicatedJobsStatus": counts}
    else:
        active = sum((one.get("status") or {}).get("phase") == "Running" for one in there.values())
        launcher = {"active": sum(_number(job, "active") for job in jobs)}
        status["replicaStatuses"] = {"Launcher": launcher, "Worker": {"active": active}}
        say.set("Running", launcher["active"] > 0, "MPIJobRunning")
        if launcher["active"] and "startTime" not in status:
            status["startTime"] = times.of(now)
    if jobs and all(map(_has_succeeded, jobs)):
        say.set(*(("Completed", True, "AllJobsCompleted") if is_set else ("Succeeded", True, "MPIJobSucceeded")))
    elif any(_has(job, "Failed") for job in jobs):
        say.set("Failed", True, "FailedJobs" if is_set else "MPIJobFailed")
    status["conditions"] = say.listed
    if is_set and status_ends(status):
        status["terminalState"] = "Completed" if say.has("Completed") else "Failed"
    return status


def _counts(name: str, jobs: Sequence[Json]) -> Json:
    """As ``replicatedJobsStatus`` has them."""
    mine = [job for job in jobs if job["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] == name]
    return {
        "name": name,
        "active": sum(_number(job, "active") > 0 for job in mine),
        "ready": sum(_number(job, "ready") > 0 for job in mine),
        "suspended": sum(bool(job["spec"].get("suspend")) for job in mine),
        "succeeded": sum(map(_has_succeeded, mine)),
        "failed": sum(_has(job, "Failed") for job in mine),
    }


def _number(job: Json, field: str) -> int:
    return int((job.get("status") or {}).get(field) or 0)


def _has_succeeded(job: Json) -> bool:
    return _has(job, "Complete")


def _has(job: Json, condition: str) -> bool:
    listed = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in listed)


class _Conditions:
    """A list of conditions, in which one that changes gets a new time."""

    def __init__(self, listed: Sequence[Json], now: datetime) -> None:
        self.listed = [dict(one) for one in listed]
        self._at = times.of(now)

    def has(self, kind: str) -> bool:
        return any(one["type"] == kind for one in self.listed)

    def set(self, kind: str, is_true: bool, reason: str) -> None:
        status = "True" if is_true else "False"
        if any((one["type"], one["status"]) == (kind, status) for one in self.listed):
            return
        new = {"type": kind, "status": status, "reason": reason, "message": reason, "lastTransitionTime": self._at}
        self.listed = [*(one for one in self.listed if one["type"] != kind), new]
