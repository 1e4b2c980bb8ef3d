"""TrainJobs, training-operator's kinds, Tekton's and AppWrappers as users write them, for the lives of ``lives``.

Their controllers are built and run only where a run asks for them (``kind_choice``); ``test_played_kinds`` plays them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from e2e.controlplane.client import Json
from e2e.jobs import condition
from e2e.lives import Kind
from e2e.operator_table import (
    APPWRAPPER,
    APPWRAPPERS,
    JOBSET,
    PADDLEJOBS,
    PIPELINERUNS,
    PYTORCHJOBS,
    RUNTIME,
    TASKRUNS,
    TEKTON,
    TFJOBS,
    TRAINER,
    TRAINING_OPERATOR,
    TRAINJOBS,
    XGBOOSTJOBS,
)
from mirror.kube.resources import Resource

MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def _train_job_spec(annotations: Json) -> Json:
    pod = {"metadata": {"annotations": annotations}}
    jobs = [{"name": "node", "template": {"spec": {"template": pod}}}]
    patch = {"manager": "e2e.example.com/user", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    return {"runtimeRef": {"name": RUNTIME}, "runtimePatches": [patch]}


def _train_job_pods(spec: Json, annotations: Json) -> Json:
    (patch,) = spec["runtimePatches"]
    (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["metadata"]["annotations"] |= annotations
    return {"runtimePatches": [patch]}


def _is_running_train_job(found: Json | None) -> bool:
    listed = ((found or {}).get("status") or {}).get("jobsStatus") or ()
    return [one["ready"] for one in listed] == [1]


TRAIN_JOB = Kind(
    resource=TRAINJOBS,
    operators=(JOBSET, TRAINER),
    spec=_train_job_spec,
    managed_by=MULTIKUEUE,
    fixed="immutable",
    edited=lambda spec: {**spec, **_train_job_pods(copy.deepcopy(spec), {"a/b": "c"})},
    edit_refused="RuntimePatches can only be modified when the TrainJob is suspended",
    succeeded="Complete",
    failed="Failed",
    fails_because="FailedJobs",
    pods_label="jobset.sigs.k8s.io/jobset-name",
    parts=("node",),
    is_running=_is_running_train_job,
    with_pod_annotations=_train_job_pods,
)


def _of_kubeflow(resource: Resource, field: str, container: str, roles: Sequence[str], fixed: str) -> Kind:
    """A kind of training-operator's, with one pod of each of these roles; ``fixed`` as in ``Kind``."""

    def spec(annotations: Json) -> Json:
        pod = {"restartPolicy": "Never", "containers": [{"name": container, "image": "any", "command": ["none"]}]}
        template = {"metadata": {"annotations": annotations}, "spec": pod}
        return {field: {role: {"replicas": 1, "restartPolicy": "Never", "template": template} for role in roles}}

    def with_pod_annotations(_: Json, annotations: Json) -> Json:
        return {field: {role: {"template": {"metadata": {"annotations": annotations}}} for role in roles}}

    def is_running(found: Json | None) -> bool:
        counted = ((found or {}).get("status") or {}).get("replicaStatuses") or {}
        return bool(condition(found, "Running")) and all(counted.get(role, {}).get("active") == 1 for role in roles)

    return Kind(
        resource=resource,
        operators=(TRAINING_OPERATOR,),
        spec=spec,
        policy=("runPolicy",),
        managed_by=MULTIKUEUE,
        has_ttl=True,
        fixed=fixed,
        succeeded="Succeeded",
        failed="Failed",
        fails_because=f"{resource.kind}Failed",
        pods_label="training.kubeflow.org/job-name",
        parts=tuple(map(str.lower, roles)),
        is_running=is_running,
        with_pod_annotations=with_pod_annotations,
    )


_FIXED = "field is immutable"
# Of PyTorchJobs its webhook compares the new value with itself.
PYTORCH_JOB = _of_kubeflow(PYTORCHJOBS, "pytorchReplicaSpecs", "pytorch", ("Master", "Worker"), "")
TF_JOB = _of_kubeflow(TFJOBS, "tfReplicaSpecs", "tensorflow", ("Chief", "Worker"), _FIXED)
XGBOOST_JOB = _of_kubeflow(XGBOOSTJOBS, "xgbReplicaSpecs", "xgboost", ("Master", "Worker"), _FIXED)
PADDLE_JOB = _of_kubeflow(PADDLEJOBS, "paddleReplicaSpecs", "paddle", ("Master", "Worker"), _FIXED)


def _task() -> Json:
    return {"steps": [{"name": "main", "image": "any", "command": ["none"]}]}


def _because(reason: str) -> Callable[[Json | None], bool]:
    """Whether its one condition is open for this reason."""

    def is_so(found: Json | None) -> bool:
        listed = ((found or {}).get("status") or {}).get("conditions") or ()
        return any((one["type"], one["status"], one["reason"]) == ("Succeeded", "Unknown", reason) for one in listed)

    return is_so


def _has_child(found: Json | None) -> bool:
    return bool(((found or {}).get("status") or {}).get("childReferences"))


PIPELINE_RUN = Kind(
    resource=PIPELINERUNS,
    operators=(TEKTON,),
    wants_account=True,
    fixed="managedBy is immutable",
    edit_refused="only status updates are allowed",
    spec=lambda _: {"pipelineSpec": {"tasks": [{"name": "main", "taskSpec": _task()}]}},
    held={"status": "PipelineRunPending"},
    released={"status": None},
    is_held_again=False,
    cancelled={"status": "Cancelled"},
    succeeded="Succeeded",
    failed="Succeeded=False",
    fails_because="Failed",
    is_suspended=_because("PipelineRunPending"),
    pods_label="tekton.dev/pipelineRun",
    parts=("main",),
    is_running=lambda found: _because("Running")(found) and _has_child(found),
    with_pod_annotations=lambda spec, _: spec,
    hands_on=True,
)
TASK_RUN = Kind(
    resource=TASKRUNS,
    operators=(TEKTON,),
    wants_account=True,
    fixed="managedBy is immutable",
    edit_refused="only status and statusMessage updates are allowed",
    spec=lambda _: {"taskSpec": _task()},
    held=None,
    released={},
    is_held_again=False,
    cancelled={"status": "TaskRunCancelled"},
    succeeded="Succeeded",
    failed="Succeeded=False",
    fails_because="StepFailed",
    is_suspended=lambda _: False,
    pods_label="tekton.dev/taskRun",
    is_running=_because("Running"),
    with_pod_annotations=lambda spec, _: spec,
    hands_on=True,
)


def _app_wrapper_spec(annotations: Json) -> Json:
    containers = [{"name": "main", "image": "any", "command": ["none"]}]
    pod = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": containers}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "wrapped-"},
        "spec": {"backoffLimit": 0, "template": pod},
    }
    return {"components": [{"template": job}]}


def _phase(found: Json | None) -> object:
    return ((found or {}).get("status") or {}).get("phase")


APP_WRAPPER = Kind(
    resource=APPWRAPPERS,
    operators=(APPWRAPPER,),
    spec=_app_wrapper_spec,
    # Failed only after three retries otherwise, of two minutes each.
    annotations={"workload.codeflare.dev.appwrapper/retryLimit": "0"},
    is_changed_while_held=False,
    fixed="attempt to change immutable field",
    edit_refused="attempt to change immutable field",
    succeeded="phase Succeeded ResourcesDeployed=True",
    failed="phase Failed ResourcesDeployed=False",
    fails_because="Failed",
    is_suspended=lambda found: _phase(found) == "Suspended",
    pods_label="workload.codeflare.dev/appwrapper",
    is_running=lambda found: _phase(found) == "Running" and bool(condition(found, "PodsReady")),
    with_pod_annotations=lambda spec, _: {},
    passing=("PodsReady",),
)
FURTHER = (TRAIN_JOB, PYTORCH_JOB, TF_JOB, XGBOOST_JOB, PADDLE_JOB, PIPELINE_RUN, TASK_RUN, APP_WRAPPER)
