"""What KubeRay 1.6 makes of a RayJob, a RayCluster or a RayService, one step at a time, as its source has it. Pure.

Its operator cannot run here: it asks a live Ray dashboard how a job is. Here the pod that submits the job says so, by
how it ends. Each step sees one object and its children and gives what to do next; ``ray_player`` does it. Children have
names of their own instead of random ones, so that none is made twice.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from e2e.controlplane.client import Json
from e2e.jobs import RUN_FOR_KEY

OPERATOR = "ray.io/kuberay-operator"
FINALIZER = "ray.io/rayjob-finalizer"
OF = "e2e.jobmirror.io/of"
"""A label of all pods: what the user created. Pods of a RayService are found by nothing that a test would know."""
_CLUSTER, _TYPE = "ray.io/cluster", "ray.io/node-type"
_API = "ray.io/v1"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is done next with one object and its children."""

    status: Json | None = None
    """The whole of it; None: it stays."""
    finalizers: Sequence[str] | None = None
    create: Sequence[Json] = ()
    change: Sequence[Json] = field(default_factory=tuple)
    """Children whose spec is another one."""
    delete: Sequence[Json] = ()


def is_mine(found: Json) -> bool:
    """Whether KubeRay looks at it at all."""
    return bool(found["spec"].get("managedBy", OPERATOR) == OPERATOR)


def step_of(found: Json, children: Sequence[Json]) -> Step:
    """What KubeRay would do with an object that it looks at; ``children`` are what it controls."""
    return {"RayJob": _ray_job, "RayCluster": _ray_cluster, "RayService": _ray_service}[found["kind"]](found, children)


def _ray_job(found: Json, children: Sequence[Json]) -> Step:
    status, spec, name = found.get("status") or {}, found["spec"], found["metadata"]["name"]
    phase, is_held = status.get("jobDeploymentStatus", ""), bool(spec.get("suspend"))
    if found["metadata"].get("deletionTimestamp"):
        return Step(finalizers=[one for one in found["metadata"].get("finalizers", ()) if one != FINALIZER])
    if phase == "":
        named = {"jobId": f"{name}-1", "rayClusterName": f"{name}-ray"}
        begun = {**status, **named, "jobDeploymentStatus": "Initializing", "startTime": _now()}
        return Step(finalizers=sorted({*found["metadata"].get("finalizers", ()), FINALIZER}), status=begun)
    if phase in ("Initializing", "Running") and is_held:
        return Step(status={**status, "jobDeploymentStatus": "Suspending"})
    cluster = next((one for one in children if one["kind"] == "RayCluster"), None)
    submitter = next((one for one in children if one["kind"] == "Job"), None)
    if phase == "Suspending":
        if children:
            return Step(delete=children)
        kept = {key: value for key, value in status.items() if key in ("succeeded", "failed", "observedGeneration")}
        return Step(status={**kept, "jobDeploymentStatus": "Suspended"})
    if phase == "Suspended":
        return Step() if is_held else Step(status={**_without(status, "jobDeploymentStatus")})
    if phase in ("Complete", "Failed"):
        return Step(delete=[one for one in children if one["kind"] == "RayCluster"])
    if cluster is None:
        return Step(create=[_cluster_of(found, status["rayClusterName"], spec["rayClusterSpec"])])
    of_cluster = {**status, "rayClusterStatus": cluster.get("status") or {}}
    if phase == "Initializing":
        if of_cluster["rayClusterStatus"].get("state") != "ready":
            return Step(status=of_cluster)
        address = f"{status['rayClusterName']}-head-svc.{found['metadata']['namespace']}.svc.cluster.local:8265"
        running = {**status, "dashboardURL": address, "jobDeploymentStatus": "Running"}
        return Step(create=[_submitter_of(found)], status=running)
    return Step(status=_with_end(of_cluster, submitter))


def _with_end(status: Json, submitter: Json | None) -> Json:
    """The status of one that runs, by what became of its submitter."""
    ended = {
        one["type"] for one in ((submitter or {}).get("status") or {}).get("conditions", ()) if one["status"] == "True"
    }
    if "Complete" in ended:
        end = {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete", "succeeded": 1}
        return {**status, **end, "message": "Job finished successfully.", "endTime": _now()}
    if "Failed" in ended:
        end = {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "failed": 1, "reason": "AppFailed"}
        return {**status, **end, "message": "Job entrypoint command failed with exit code 3", "endTime": _now()}
    return {**status, "jobStatus": "RUNNING", "message": "Job is currently running."}


def _ray_cluster(found: Json, children: Sequence[Json]) -> Step:
    spec, status = found["spec"], dict(found.get("status") or {})
    metadata, listed = found["metadata"], list(status.get("conditions") or ())
    if metadata.get("deletionTimestamp"):
        return Step()
    is_held, was = bool(spec.get("suspend")), {one["type"]: one["status"] == "True" for one in listed}
    wanted = (
        {} if is_held or was.get("RayClusterSuspending") else {one["metadata"]["name"]: one for one in _pods(found)}
    )
    existing = {one["metadata"]["name"]: one for one in children if one["kind"] == "Pod"}
    of_workers = [one for one in existing.values() if one["metadata"]["labels"][_TYPE] == "worker"]
    head = next((one for one in existing.values() if one["metadata"]["labels"][_TYPE] == "head"), None)
    groups = spec.get("workerGroupSpecs", ())
    status |= {
        "observedGeneration": metadata["generation"],
        "desiredWorkerReplicas": sum(one.get("replicas", 0) for one in groups),
        "minWorkerReplicas": sum(one.get("minReplicas", 0) for one in groups),
        "maxWorkerReplicas": sum(one.get("maxReplicas", 0) for one in groups),
        "availableWorkerReplicas": sum(one["status"].get("phase") == "Running" for one in of_workers),
        "readyWorkerReplicas": sum(map(_is_ready, of_workers)),
        "desiredCPU": "0",
        "desiredMemory": "0",
        "desiredGPU": "0",
        "desiredTPU": "0",
        "endpoints": {"dashboard": "8265"},
    }
    are_ready = bool(existing) and all(map(_is_ready, existing.values()))
    if are_ready and len(existing) == status["desiredWorkerReplicas"] + 1:
        status["state"] = "ready"
    if head is None:
        _set(listed, "HeadPodReady", "False", "HeadPodNotFound", "Head Pod not found")
    else:
        _set(listed, "HeadPodReady", str(_is_ready(head)), "HeadPodRunningAndReady" if _is_ready(head) else "Unknown")
    if not was.get("RayClusterProvisioned") and not was.get("RayClusterSuspended"):
        reason = "AllPodRunningAndReadyFirstTime" if are_ready else "RayClusterPodsProvisioning"
        _set(listed, "RayClusterProvisioned", str(are_ready), reason)
    if was.get("RayClusterSuspending"):
        if not existing:
            _set(
                listed, "RayClusterProvisioned", "False", "RayClusterPodsProvisioning", "RayCluster has been suspended"
            )
            _set(listed, "RayClusterSuspending", "False", "RayClusterSuspending")
            _set(listed, "RayClusterSuspended", "True", "RayClusterSuspended")
    elif was.get("RayClusterSuspended"):
        if not is_held:
            _set(listed, "RayClusterSuspended", "False", "RayClusterSuspended")
    else:
        _set(listed, "RayClusterSuspended", "False", "RayClusterSuspended")
        _set(listed, "RayClusterSuspending", str(is_held), "RayClusterSuspending")
    if is_held and not existing:
        status["state"] = "suspended"
    is_back = not was.get("RayClusterSuspended") or not is_held
    return Step(
        status={**status, "conditions": listed},
        create=[one for name, one in wanted.items() if is_back and name not in existing],
        delete=[one for name, one in existing.items() if name not in wanted],
    )


def _pods(cluster: Json) -> list[Json]:
    """The pods that a RayCluster wants."""
    spec, name = cluster["spec"], cluster["metadata"]["name"]
    found = [_pod(cluster, f"{name}-head", "head", spec["headGroupSpec"]["template"])]
    for group in spec.get("workerGroupSpecs", ()):
        called = (f"{name}-{group['groupName']}-worker-{number}" for number in range(group.get("replicas", 0)))
        found += [_pod(cluster, one, "worker", group["template"]) for one in called]
    return found


def _pod(cluster: Json, name: str, node_type: str, template: Json) -> Json:
    of = cluster["metadata"].get("labels", {}).get("ray.io/originated-from-cr-name", cluster["metadata"]["name"])
    own = template.get("metadata", {}).get("labels", {})
    labels = {**own, _CLUSTER: cluster["metadata"]["name"], _TYPE: node_type, OF: of}
    # Ray's own processes go on until they are deleted: the job's end is not theirs.
    annotations = {**template.get("metadata", {}).get("annotations", {}), RUN_FOR_KEY: "never"}
    return _child(cluster, "v1", "Pod", name, template["spec"], labels=labels, annotations=annotations)


def _ray_service(found: Json, children: Sequence[Json]) -> Step:
    status, spec, name = dict(found.get("status") or {}), found["spec"], found["metadata"]["name"]
    if found["metadata"].get("deletionTimestamp"):
        return Step()
    clusters = {one["metadata"]["name"]: one for one in children}
    active, pending = (dict(status.get(key) or {}) for key in ("activeServiceStatus", "pendingServiceStatus"))
    listed, generation = list(status.get("conditions") or ()), found["metadata"]["generation"]
    is_new = not active.get("rayClusterName") and not pending.get("rayClusterName")
    if is_new:
        pending = {"rayClusterName": f"{name}-ray"}
        _set(listed, "Ready", "False", "Initializing", "RayService is initializing", generation)
        _set(listed, "UpgradeInProgress", "False", "Initializing", "RayService is initializing", generation)
    current = pending.get("rayClusterName") or active.get("rayClusterName") or ""
    wanted, cluster = spec["rayClusterConfig"], clusters.get(current)
    create, change = [], []
    if cluster is None and not is_new:
        create = [_cluster_of(found, current, wanted)]
    elif cluster is not None and not _holds(cluster["spec"], wanted):
        change = [{**cluster, "spec": {**cluster["spec"], **copy.deepcopy(wanted)}}]
    of_cluster = (cluster or {}).get("status") or {}
    serves = of_cluster.get("state") == "ready" and not change
    if serves:
        active, pending = {"rayClusterName": current}, {}
    for one in (active, pending):
        if one.get("rayClusterName"):
            one["rayClusterStatus"] = of_cluster
    status |= {
        "observedGeneration": generation,
        "numServeEndpoints": of_cluster.get("readyWorkerReplicas", 0) + 1 if serves else 0,
    }
    if serves:
        _set(
            listed, "Ready", "True", "NonZeroServeEndpoints", "Number of serve endpoints is greater than 0", generation
        )
        _set(listed, "UpgradeInProgress", "False", "NoPendingCluster", "Active Ray cluster exists", generation)
    elif any(one["type"] == "Ready" and one["status"] == "True" for one in listed):
        _set(listed, "Ready", "False", "ZeroServeEndpoints", "Number of serve endpoints dropped to 0", generation)
    status |= {"serviceStatus": "Running" if serves else "", "conditions": listed}
    status |= {"activeServiceStatus": active, "pendingServiceStatus": pending}
    return Step(status=status, create=create, change=change)


def _cluster_of(owner: Json, name: str, spec: Json) -> Json:
    origin = {"originated-from-cr-name": owner["metadata"]["name"], "originated-from-crd": owner["kind"]}
    labels = {f"ray.io/{key}": value for key, value in origin.items()}
    return _child(owner, _API, "RayCluster", name, copy.deepcopy(spec), labels=labels)


def _submitter_of(job: Json) -> Json:
    """The Job of its name; its pods end as the annotations of the head's template say."""
    name, head = job["metadata"]["name"], job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    pod = {"restartPolicy": "Never", "containers": [{"name": "ray-job-submitter", "image": "any", "command": ["none"]}]}
    metadata = {"annotations": head.get("metadata", {}).get("annotations", {}), "labels": {OF: name}}
    return _child(job, "batch/v1", "Job", name, {"backoffLimit": 0, "template": {"metadata": metadata, "spec": pod}})


def _child(owner: Json, api_version: str, kind: str, name: str, spec: Json, **more: Mapping[str, str]) -> Json:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    metadata = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [reference | named],
        **more,
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _holds(stored: object, wanted: object) -> bool:
    """Whether what is stored has all that is wanted; defaults may be beside it."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        return all(key in stored and _holds(stored[key], value) for key, value in wanted.items())
    if isinstance(stored, list) and isinstance(wanted, list):
        return len(stored) == len(wanted) and all(map(_holds, stored, wanted))
    return stored == wanted


def _set(listed: list[Json], kind: str, status: str, reason: str, message: str = "", generation: int = 0) -> None:
    """As ``meta.SetStatusCondition``: in its place, with another time only where the status is another."""
    new: Json = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": _now()}
    if generation:
        new["observedGeneration"] = generation
    for index, one in enumerate(listed):
        if one["type"] == kind:
            if one["status"] == status:
                new["lastTransitionTime"] = one["lastTransitionTime"]
            listed[index] = new
            return
    listed.append(new)


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _without(status: Json, name: str) -> Json:
    return {key: value for key, value in status.items() if key != name}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
