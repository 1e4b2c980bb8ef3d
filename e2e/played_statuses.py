"""What controllers of further kinds say of an object, phase by phase, as their source has it: for tests without them.

Where they do run (``make kinds``), ``test_kind_lives`` compares their ends with these. A phase is a name of ``PHASES``.
Not here: JobSets (``jobsets``), who writes it (``test_played_kinds``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from e2e.controlplane.client import Json

PHASES = ("created", "running", "suspended", "resumed", "succeeded", "failed")


def status_of(kind: str, phase: str) -> Json:
    """The whole status."""
    return _KINDS[kind](phase)


def said(status: Json) -> set[tuple[str, str, str]]:
    """Type, status and reason of its conditions; of a RayJob, which has none, the fields that stand for them."""
    fields = {
        (key, status[key], status.get("reason", "")) for key in ("jobDeploymentStatus", "jobStatus") if key in status
    }
    return fields | {(one["type"], one["status"], one["reason"]) for one in status.get("conditions", ())}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(kind: str, status: str, reason: str, **more: str | int) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": reason, "lastTransitionTime": _now(), **more}


def _of_kubeflow(kind: str, *roles: str) -> Callable[[str], Json]:
    """training-operator 1.9, mpi-operator: each condition anew at the end of the list; numbers that are 0 left out."""
    conditions: dict[str, Sequence[tuple[str, str, str]]] = {
        "created": [("Created", "True", "Created")],
        "running": [("Created", "True", "Created"), ("Running", "True", "Running")],
        "suspended": [
            ("Created", "True", "Created"),
            ("Running", "False", "Suspended"),
            ("Suspended", "True", "Suspended"),
        ],
        "resumed": [
            ("Created", "True", "Created"),
            ("Suspended", "False", "Resumed"),
            ("Running", "True", "Running"),
        ],
        "succeeded": [
            ("Created", "True", "Created"),
            ("Running", "False", "Running"),
            ("Succeeded", "True", "Succeeded"),
        ],
        "failed": [("Created", "True", "Created"), ("Running", "False", "Running"), ("Failed", "True", "Failed")],
    }
    counts: dict[str, Json] = {
        "running": {"active": 1},
        "resumed": {"active": 1},
        "succeeded": {"succeeded": 1},
        "failed": {"failed": 1},
    }

    def status(phase: str) -> Json:
        listed = [
            _condition(name, state, kind + reason, lastUpdateTime=_now()) for name, state, reason in conditions[phase]
        ]
        found: Json = {"conditions": listed, "replicaStatuses": {role: dict(counts.get(phase, {})) for role in roles}}
        if phase != "created":
            found["startTime"] = _now()
        if phase in ("succeeded", "failed"):
            found["completionTime"] = _now()
        return found

    return status


def _of_train_job(phase: str) -> Json:
    """Trainer 2.3: the ends are those of its JobSet, with the JobSet's generation."""
    conditions: dict[str, list[Json]] = {
        "suspended": [_condition("Suspended", "True", "Suspended")],
        "resumed": [_condition("Suspended", "False", "Resumed")],
        "succeeded": [_condition("Complete", "True", "AllJobsCompleted", observedGeneration=1)],
        "failed": [_condition("Failed", "True", "FailedJobs", observedGeneration=1)],
    }
    numbers = {"created": "", "running": "active", "resumed": "active"}.get(phase, phase)
    counts = {name: int(name == numbers) for name in ("active", "ready", "succeeded", "failed", "suspended")}
    counts["ready"] = counts["active"]
    return {"conditions": conditions.get(phase, []), "jobsStatus": [{"name": "node", **counts}]}


def _of_pipeline_run(phase: str) -> Json:
    """Tekton 1.15; one that runs is not held again."""
    conditions = {
        "created": _condition("Succeeded", "Unknown", "Started"),
        "running": _condition("Succeeded", "Unknown", "Running"),
        "succeeded": _condition("Succeeded", "True", "Succeeded"),
        "failed": _condition("Succeeded", "False", "Failed"),
    }
    found: Json = {"conditions": [conditions[phase]], "startTime": _now()}
    if phase != "created":
        child = {"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": "train-main", "pipelineTaskName": "main"}
        task = {"name": "main", "taskSpec": {"steps": [{"name": "main", "image": "any", "command": ["none"]}]}}
        found |= {"childReferences": [child], "pipelineSpec": {"tasks": [task]}}
        found |= {"provenance": {"featureFlags": {"coschedule": "workspaces", "enableAPIFields": "beta"}}}
    if phase in ("succeeded", "failed"):
        found["completionTime"] = _now()
    return found


def _of_task_run(phase: str) -> Json:
    conditions = {
        "created": _condition("Succeeded", "Unknown", "Pending"),
        "running": _condition("Succeeded", "Unknown", "Running"),
        "succeeded": _condition("Succeeded", "True", "Succeeded"),
        "failed": _condition("Succeeded", "False", "StepFailed"),
    }
    step: Json = {"name": "main", "container": "step-main"}
    found: Json = {"conditions": [conditions[phase]], "podName": "train-pod", "startTime": _now(), "steps": [step]}
    if phase == "running":
        step["running"] = {"startedAt": _now()}
    if phase in ("succeeded", "failed"):
        code = {"succeeded": 0, "failed": 3}[phase]
        reason = {"succeeded": "Completed", "failed": "Error"}[phase]
        step["terminated"] = {"exitCode": code, "reason": reason, "startedAt": _now(), "finishedAt": _now()}
        found["completionTime"] = _now()
    return found


def _of_app_wrapper(phase: str) -> Json:
    """AppWrapper 1.2: the conditions of each phase stay, with another reason, in the next one."""
    reasons = {"created": "", "running": "Resuming", "resumed": "Resuming"}
    because = reasons.get(phase, phase.capitalize())
    runs, goes_well = phase in ("running", "resumed"), phase in ("running", "resumed", "succeeded")
    listed = []
    if because:
        listed = [
            _condition("QuotaReserved", str(runs), because),
            _condition("ResourcesDeployed", str(goes_well), because),
            _condition("Unhealthy", str(phase == "failed"), "FailedComponent" if phase == "failed" else "Resuming"),
        ]
        ready = {"running": "SufficientPodsReady", "resumed": "SufficientPodsReady", "suspended": "Suspended"}
        listed.append(_condition("PodsReady", str(runs), ready.get(phase, "Resuming")))
    if phase in ("suspended", "resumed", "failed"):
        listed.append(_condition("DeletingResources", "False", "DeletionComplete"))
    podset = {"path": "template.spec.template", "replicas": 1}
    component = {"apiVersion": "batch/v1", "kind": "Job", "name": "wrapped-abcde", "podSets": [podset]}
    name = {"created": "Suspended", "resumed": "Running"}.get(phase, phase.capitalize())
    return {"phase": name, "conditions": listed, "componentStatus": [component]}


def _of_ray_cluster(phase: str) -> Json:
    """KubeRay 1.6: provisioned once; suspended with no pod left."""
    is_ready, is_held = phase in ("running", "resumed"), phase == "suspended"
    listed = [
        _condition("HeadPodReady", str(is_ready), "HeadPodRunningAndReady" if is_ready else "HeadPodNotFound"),
        _condition(
            "RayClusterProvisioned",
            str(is_ready),
            "AllPodRunningAndReadyFirstTime" if is_ready else "RayClusterPodsProvisioning",
        ),
        _condition("RayClusterSuspended", str(is_held), "RayClusterSuspended"),
        _condition("RayClusterSuspending", "False", "RayClusterSuspending"),
    ]
    counts = {"availableWorkerReplicas": int(is_ready), "readyWorkerReplicas": int(is_ready)}
    amounts = dict.fromkeys(("desiredCPU", "desiredMemory", "desiredGPU", "desiredTPU"), "0")
    found: Json = {**counts, **amounts, "desiredWorkerReplicas": 1, "maxWorkerReplicas": 5, "conditions": listed}
    found["endpoints"] = {"dashboard": "8265"}
    if is_ready or is_held:
        found["state"] = "ready" if is_ready else "suspended"
    return found


def _of_ray_job(phase: str) -> Json:
    """KubeRay 1.6: no conditions; suspended, it has forgotten its cluster and its job."""
    says = {
        "created": {"jobDeploymentStatus": "Initializing"},
        "running": {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"},
        "suspended": {"jobDeploymentStatus": "Suspended"},
        "resumed": {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"},
        "succeeded": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"},
        "failed": {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"},
    }
    found: Json = {"succeeded": int(phase == "succeeded"), "failed": int(phase == "failed"), **says[phase]}
    if phase == "suspended":
        return found
    found |= {"jobId": "train-1", "rayClusterName": "train-ray", "startTime": _now()}
    found["rayClusterStatus"] = _of_ray_cluster("created" if phase == "created" else "running")
    if phase in ("succeeded", "failed"):
        found["endTime"] = _now()
    return found


def _of_ray_service(phase: str) -> Json:
    """KubeRay 1.6: its first cluster is pending until it serves."""
    serves = phase in ("running", "resumed")
    reasons = {"created": "Initializing", "suspended": "ZeroServeEndpoints"}
    upgrades = {"created": "Initializing"}
    cluster = {"rayClusterName": "train-ray", "rayClusterStatus": _of_ray_cluster(phase)}
    return {
        "conditions": [
            _condition("Ready", str(serves), reasons.get(phase, "NonZeroServeEndpoints"), observedGeneration=1),
            _condition("UpgradeInProgress", "False", upgrades.get(phase, "NoPendingCluster"), observedGeneration=1),
        ],
        "numServeEndpoints": 2 * serves,
        "serviceStatus": "Running" if serves else "",
        "activeServiceStatus": {} if phase == "created" else cluster,
        "pendingServiceStatus": cluster if phase == "created" else {},
    }


_KINDS: dict[str, Callable[[str], Json]] = {
    "MPIJob": _of_kubeflow("MPIJob", "Launcher", "Worker"),
    "TrainJob": _of_train_job,
    "PyTorchJob": _of_kubeflow("PyTorchJob", "Master", "Worker"),
    "TFJob": _of_kubeflow("TFJob", "Chief", "Worker"),
    "XGBoostJob": _of_kubeflow("XGBoostJob", "Master", "Worker"),
    "PaddleJob": _of_kubeflow("PaddleJob", "Master", "Worker"),
    "PipelineRun": _of_pipeline_run,
    "TaskRun": _of_task_run,
    "AppWrapper": _of_app_wrapper,
    "RayJob": _of_ray_job,
    "RayCluster": _of_ray_cluster,
    "RayService": _of_ray_service,
}
