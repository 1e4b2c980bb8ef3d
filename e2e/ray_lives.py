"""Ray's kinds as users write them, for the lives of ``lives``: their operator is played (``ray_player``)."""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.further_lives import MULTIKUEUE
from e2e.lives import Kind
from e2e.operator_table import KUBERAY, RAYCLUSTERS, RAYJOBS, RAYSERVICES
from e2e.played_ray import OF


def _group(annotations: Json) -> Json:
    containers = [{"name": "ray", "image": "any", "command": ["none"]}]
    return {
        "rayStartParams": {},
        "template": {"metadata": {"annotations": annotations}, "spec": {"containers": containers}},
    }


def _cluster(annotations: Json) -> Json:
    workers = {"groupName": "small", "replicas": 1, "minReplicas": 0, "maxReplicas": 5, **_group({})}
    return {"headGroupSpec": _group(annotations), "workerGroupSpecs": [workers]}


def _head_annotations(annotations: Json) -> Json:
    return {"headGroupSpec": {"template": {"metadata": {"annotations": annotations}}}}


def _status(found: Json | None) -> Json:
    return (found or {}).get("status") or {}


def _is_ready(found: Json | None) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in _status(found).get("conditions") or ())


def _is_not_ready(found: Json | None) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "False" for one in _status(found).get("conditions") or ())


RAY_JOB = Kind(
    resource=RAYJOBS,
    operators=(KUBERAY,),
    spec=lambda annotations: {
        "entrypoint": "python -c pass",
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": _cluster(annotations),
    },
    managed_by=MULTIKUEUE,
    succeeded="field jobDeploymentStatus=Complete",
    failed="field jobDeploymentStatus=Failed",
    fails_because="AppFailed",
    is_suspended=lambda found: _status(found).get("jobDeploymentStatus") == "Suspended",
    pods_label=OF,
    parts=("submitter", "head", "worker"),
    is_running=lambda found: _status(found).get("jobDeploymentStatus") == "Running",
    with_pod_annotations=lambda _, annotations: {"rayClusterSpec": _head_annotations(annotations)},
)
RAY_CLUSTER = Kind(
    resource=RAYCLUSTERS,
    operators=(KUBERAY,),
    spec=_cluster,
    managed_by=MULTIKUEUE,
    is_suspended=lambda found: _status(found).get("state") == "suspended",
    pods_label=OF,
    parts=("head", "worker"),
    is_running=lambda found: _status(found).get("state") == "ready",
    with_pod_annotations=lambda _, annotations: _head_annotations(annotations),
)
RAY_SERVICE = Kind(
    resource=RAYSERVICES,
    operators=(KUBERAY,),
    spec=lambda annotations: {"serveConfigV2": "applications: []", "rayClusterConfig": _cluster(annotations)},
    policy=("rayClusterConfig",),
    is_named_above=True,
    managed_by=MULTIKUEUE,
    is_changed_while_held=False,
    is_suspended=_is_not_ready,
    pods_label=OF,
    parts=("head", "worker"),
    is_running=_is_ready,
    with_pod_annotations=lambda spec, _: {},
)
RAY = (RAY_JOB, RAY_CLUSTER, RAY_SERVICE)
