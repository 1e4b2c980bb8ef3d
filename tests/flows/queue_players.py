"""The controllers of JobSets and PyTorchJobs on the workers of flows, as far as queues meet them.

JobSet 0.12 (``jobset_controller.go``) suspends and resumes the Jobs that it has made, and merges the pod templates into
them on the way; training-operator 1.9 (``common/job.go``) deletes its pods, and makes them anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime

from queue_forms import JOB_SET, PYTORCH_JOB, Form

from mirror.batch import conditions as lists
from mirror.batch import times
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.kube.resources import JOBS, PODS, Resource
from mirror.model.field_paths import at, put, without
from mirror.planes import other_kinds
from mirror.planes.api import Api, Json
from mirror.planes.plane import ControlPlane, NotRunning

LOOK_SECONDS = 0.25
_MERGED = (("metadata", "labels"), ("metadata", "annotations"), ("spec", "nodeSelector"), ("spec", "tolerations"))


async def play(plane: ControlPlane, form: Form) -> None:
    """Be the controller of a kind on one cluster, until cancelled."""
    seen: object = None
    while True:
        try:
            if plane.is_running and (now := _what_counts(plane, form)) != seen:
                seen = now if await _look(plane, form) else None
        except NotRunning:
            seen = None  # killed meanwhile
        await asyncio.sleep(LOOK_SECONDS)


def _what_counts(plane: ControlPlane, form: Form) -> object:
    """All that a look depends on."""
    changed = plane.server.storage.changed
    return id(plane.server), changed(form.stored_as), changed("jobs.batch"), changed("pods")


async def _look(plane: ControlPlane, form: Form) -> bool:
    """One look at each object; whether nothing failed."""
    api, is_whole = plane.api, True
    kind, reconcile = _CONTROLLERS[form]
    try:
        objects, children = await api.list(form.path()), await api.list(kind.path("default"))
        # Garbage collection of these clusters knows Jobs and pods alone.
        uids = {one["metadata"]["uid"] for one in objects}
        for child in children:
            if _owner(child)[0] == str(form) and _owner(child)[1] not in uids:
                await api.delete(kind.path("default", child["metadata"]["name"]))
    except StatusError:
        return False
    for found in objects:
        own = {one["metadata"]["name"]: one for one in children if _owner(one)[1] == found["metadata"]["uid"]}
        if at(found, form.managed_by) or form.has_ended(found) or "deletionTimestamp" in found["metadata"]:
            continue
        try:
            status = await reconcile(api, found, own, plane.clock.now())
            if status != (found.get("status") or {}):
                path = form.path(found["metadata"]["name"], "status")
                await api.replace(path, {**found, "status": status})
        except StatusError:  # it, or what it is made of, has changed meanwhile, or an immutable field waits for pods
            is_whole = False
    return is_whole


def _owner(child: Json) -> tuple[str, str]:
    """The kind and the uid of what controls it."""
    owners = (one for one in child["metadata"].get("ownerReferences") or () if one.get("controller"))
    return next(((one["kind"], one["uid"]) for one in owners), ("", ""))


# -- JobSet ------------------------------------------------------------------------------------------------------------


async def _job_set(api: Api, found: Json, jobs: dict[str, Json], now: datetime) -> Json:
    """What it does with its Jobs, and the status that it writes: of the Jobs as they were before."""
    wanted = {body["metadata"]["name"]: body for _, body in other_kinds.parts(found)}
    for name in [name for name in wanted if name not in jobs]:
        jobs[name] = await api.create(JOBS.path("default"), wanted[name])
    status = other_kinds.status_of(found, jobs, now)
    for name, one in jobs.items():
        if _is_over(one):
            continue
        if JOB_SET.is_held(found) and not one["spec"].get("suspend"):
            await api.merge(JOBS.path("default", name), {"spec": {"suspend": True}})
        elif one["spec"].get("suspend") and not JOB_SET.is_held(found):
            await _resume(api, one, wanted[name]["spec"]["template"])
    return status


async def _resume(api: Api, one: Json, template: Json) -> None:
    """Two writes: the start is taken away, so that the template may change; then it is merged into the Job's."""
    path = JOBS.path("default", one["metadata"]["name"])
    if (one.get("status") or {}).get("startTime") is not None:
        one = await api.merge(f"{path}/status", {"status": {"startTime": None}})
    merged = one["spec"]["template"]
    for place in _MERGED:
        have, want = at(merged, place), at(template, place)
        if isinstance(want, Mapping):
            merged = put(merged, place, {**(have or {}), **want})
        elif want:
            merged = put(merged, place, [*(have or ()), *(each for each in want if each not in (have or ()))])
    await api.replace(path, {**one, "spec": {**one["spec"], "template": merged, "suspend": False}})


def _is_over(one: Json) -> bool:
    return lists.is_finished(lists.of(one.get("status") or {}))


# -- PyTorchJob --------------------------------------------------------------------------------------------------------


async def _pytorch_job(api: Api, found: Json, pods: dict[str, Json], now: datetime) -> Json:
    """What it does with its pods, and the status that it writes: of the pods as they were before."""
    wanted = _pods(found)
    if PYTORCH_JOB.is_held(found):
        for name, pod in pods.items():
            if "deletionTimestamp" not in pod["metadata"]:
                await api.delete(PODS.path("default", name))
    else:
        for name, body in wanted.items():
            if name not in pods:
                await api.create(PODS.path("default"), body)
    return _status(found, pods.values(), times.of(now))


def _pods(found: Json) -> dict[str, Json]:
    """The pods of one that runs, by name."""
    made: dict[str, Json] = {}
    metadata = found["metadata"]
    owner = {key: found[key] for key in ("apiVersion", "kind")} | {key: metadata[key] for key in ("name", "uid")}
    for role, replica in found["spec"]["pytorchReplicaSpecs"].items():
        for index in range(replica.get("replicas", 1)):
            name = f"{metadata['name']}-{role.lower()}-{index}"
            labels = {
                **(at(replica, ("template", "metadata", "labels")) or {}),
                "training.kubeflow.org/job-name": metadata["name"],
                "training.kubeflow.org/replica-type": role.lower(),
            }
            body = put(replica["template"], ("metadata", "labels"), labels)
            body = put(body, ("metadata", "name"), name)
            made[name] = put(body, ("metadata", "ownerReferences"), [{**owner, "controller": True}])
    return made


def _status(found: Json, pods: Iterable[Json], at_time: str) -> Json:
    status: Json = dict(found.get("status") or {})
    say = _Conditions(lists.of(status), at_time)
    say.that("Created", is_true=True, because="Created")
    roles: Json = {role: dict(at(status, ("replicaStatuses", role)) or {}) for role in _roles_of(found)}
    status["replicaStatuses"] = roles
    if PYTORCH_JOB.is_held(found):
        for counts in roles.values():
            counts.pop("active", None)
        say.that("Running", is_true=False, because="Suspended")
        say.that("Suspended", is_true=True, because="Suspended")
        return {**status, "conditions": say.listed}
    if lists.is_true(say.listed, "Suspended") or "startTime" not in status:
        say.that("Suspended", is_true=False, because="Resumed")
        status["startTime"] = at_time
    for role in roles:
        roles[role] = _counts([pod for pod in pods if _role_of(pod) == role.lower()])
    first = roles.get("Master") or roles["Worker"]
    if first.get("active"):
        say.that("Running", is_true=True, because="Running")
    if first.get("succeeded"):
        say.that("Running", is_true=False, because="Running")
        say.that("Succeeded", is_true=True, because="Succeeded")
        status["completionTime"] = at_time
        for role, counts in roles.items():
            ended = counts.get("succeeded", 0) + counts.get("active", 0)
            roles[role] = without({**counts, "succeeded": ended}, ("active",))
    elif any(counts.get("failed") for counts in roles.values()):
        say.that("Running", is_true=False, because="Running")
        say.that("Failed", is_true=True, because="Failed")
        status["completionTime"] = at_time
    return {**status, "conditions": say.listed}


def _roles_of(found: Json) -> list[str]:
    return [*found["spec"]["pytorchReplicaSpecs"]]


def _role_of(pod: Json) -> str:
    role: str = pod["metadata"]["labels"]["training.kubeflow.org/replica-type"]
    return role


def _counts(pods: list[Json]) -> Json:
    """Numbers that are 0 are left out; a pod that is being deleted does not run."""
    phases = [(pod.get("status") or {}).get("phase") for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    named = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
    return {name: phases.count(phase) for name, phase in named.items() if phase in phases}


class _Conditions:
    """A list of conditions, in which one that changes goes to the end."""

    def __init__(self, listed: list[lists.Condition], at_time: str) -> None:
        self.listed = listed
        self._at = at_time

    def that(self, kind: str, *, is_true: bool, because: str) -> None:
        """Say so; of what was never so, nothing is said."""
        status, before = "True" if is_true else "False", lists.find(self.listed, kind)
        if (before is None and not is_true) or (before is not None and before["status"] == status):
            return
        reason = f"PyTorchJob{because}"
        new = {"type": kind, "status": status, "reason": reason, "message": reason}
        new |= {"lastUpdateTime": self._at, "lastTransitionTime": self._at}
        self.listed = [*lists.without(self.listed, kind), new]


_Controller = Callable[[Api, Json, dict[str, Json], datetime], Awaitable[Json]]
_CONTROLLERS: dict[Form, tuple[Resource, _Controller]] = {JOB_SET: (JOBS, _job_set), PYTORCH_JOB: (PODS, _pytorch_job)}
"""Of each kind: what its objects are made of, and how."""
