"""The kinds in namespaces that sequences are about: bodies that are mostly right, and changes that are often wrong.

Jobs, and the pods in them, come from ``e2e.api_differential``. Not here: kinds of the whole cluster
(``cluster_objects``), and what is done with them (``requests``).
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

from e2e.api_differential.cases import MUTATIONS, plain
from e2e.api_differential.features import FEATURES, jobs_of_all_kinds
from e2e.api_differential.steps import Catalogue, applied, drawn
from e2e.api_sequences.cluster_objects import binding, rule
from e2e.api_sequences.kind import NAMES, TEXTS, Kind
from tests.contract.shared import GROUP

Json: TypeAlias = dict[str, Any]

KEYS = ("k", "l", "m", "a.b")
_BOTH: Catalogue = {**FEATURES, **MUTATIONS}


def _texts(random: Random) -> Json:
    return {random.choice(KEYS): random.choice(TEXTS) for _ in range(random.randint(0, 3))}


def _config_map(random: Random) -> Json:
    fields: Json = {"data": _texts(random)}
    if random.random() < 0.2:
        fields["binaryData"] = {random.choice(("b", *KEYS)): random.choice(("AA==", "", "!", "eHl6"))}
    if random.random() < 0.1:
        fields["immutable"] = random.choice((True, False))
    return fields


def _secret(random: Random) -> Json:
    fields: Json = {"stringData": _texts(random)} if random.random() < 0.6 else {"data": {"k": "djE=", "l": ""}}
    if random.random() < 0.2:
        fields["type"] = random.choice(("Opaque", "x.io/y", "kubernetes.io/basic-auth", "kubernetes.io/tls", ""))
    if random.random() < 0.1:
        fields["immutable"] = random.choice((True, False))
    return fields


def _job(random: Random) -> Json:
    steps = jobs_of_all_kinds(random) if random.random() < 0.5 else ()
    if random.random() < 0.2:
        steps += drawn(random, [random.choice([name for name in MUTATIONS if name not in ("name", "generateName")])])
    return {"spec": applied(_BOTH, steps, plain("x")).get("spec")}


def _job_status(random: Random) -> Json:
    status: Json = {"startTime": "2026-03-01T12:00:00Z", "active": random.choice((0, 1, 2))}
    if random.random() < 0.4:
        status["succeeded"] = random.choice((0, 1, 5))
    if random.random() < 0.3:
        status["ready"] = random.choice((0, 1))
    if random.random() < 0.3:
        types = random.choice(
            (("Suspended",), ("FailureTarget", "Failed"), ("SuccessCriteriaMet", "Complete"), ("Odd",))
        )
        at = {"lastTransitionTime": "2026-03-01T12:00:00Z", "lastProbeTime": "2026-03-01T12:00:00Z"}
        status["conditions"] = [{"type": one, "status": "True", "reason": "R", **at} for one in types]
    return status


def _pod(random: Random) -> Json:
    containers: list[Json] = [{"name": "c", "image": "i"}]
    if random.random() < 0.3:
        containers.append({"name": "d", "image": "j", "env": [{"name": "A", "value": "1"}]})
    if random.random() < 0.3:
        containers[0]["resources"] = {"limits": {"cpu": random.choice(("1", "100m", "1e3", "x"))}}
    spec: Json = {"containers": containers}
    for name, values in {
        "restartPolicy": ("Never", "Always", "OnFailure", "Odd"),
        "nodeName": ("n",),
        "terminationGracePeriodSeconds": (0, 5, -1),
        "activeDeadlineSeconds": (10, 0),
        "schedulingGates": ([{"name": "x.io/y"}],),
        "tolerations": ([{"operator": "Exists"}], [{"key": "a", "effect": "NoSchedule"}]),
        "nodeSelector": ({"a": "b"},),
    }.items():
        if random.random() < 0.15:
            spec[name] = random.choice(values)
    return {"spec": spec}


def _pod_status(random: Random) -> Json:
    status: Json = {"phase": random.choice(("Pending", "Running", "Succeeded", "Failed"))}
    if random.random() < 0.3:
        status["conditions"] = [{"type": random.choice(("Ready", "DisruptionTarget")), "status": "True"}]
    if random.random() < 0.3:
        status["podIP"] = "10.0.0.1"
    return status


def _lease(random: Random) -> Json:
    spec: Json = {}
    for name, values in {
        "holderIdentity": ("me", "you", ""),
        "leaseDurationSeconds": (15, 0, 1),
        "renewTime": ("2026-03-01T12:00:00.000000Z", "2026-03-01T12:00:00.5Z", "odd"),
        "leaseTransitions": (0, 1, -1),
    }.items():
        if random.random() < 0.5:
            spec[name] = values[0] if random.random() < 0.7 else random.choice(values)
    return {"spec": spec}


def _cron_job(random: Random) -> Json:
    spec: Json = {
        "schedule": random.choice(("* * * * *", "@daily", "1 2 3 4 5", "odd", "TZ=UTC * * * * *", "0 0 31 2 *"))
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec["jobTemplate"] = {"spec": {"template": template}}
    for name, values in {
        "timeZone": ("Etc/UTC", "Europe/Berlin", "Odd/Zone"),
        "concurrencyPolicy": ("Forbid", "Replace", "Odd"),
        "suspend": (True, False),
        "startingDeadlineSeconds": (10, -1),
        "successfulJobsHistoryLimit": (0, -1),
    }.items():
        if random.random() < 0.2:
            spec[name] = random.choice(values)
    return {"spec": spec}


def _service_account(random: Random) -> Json:
    fields: Json = {}
    if random.random() < 0.3:
        fields["automountServiceAccountToken"] = random.choice((True, False))
    if random.random() < 0.3:
        fields["imagePullSecrets"] = [{"name": random.choice(("x", "y", ""))} for _ in range(random.randint(0, 2))]
    return fields


def _thing(random: Random) -> Json:
    spec: Json = {"size": random.choice((1, 2, 10, 11, 0))}
    for name, values in {
        "name": ("abc", "ABCD", ""),
        "mode": ("A", "B", "C"),
        "list": (["a"], ["a", "b"], ["a", "a"], []),
        "map": ({"a": 1}, {}, {"a": "x"}),
        "any": (1, "x", True),
        "free": ({"x": [1, {"y": None}]},),
        "maybe": (None, "x"),
        "rules": ([{"key": "a"}], [{"key": "a", "v": 1}, {"key": "b"}], [{"v": 1}]),
        "unknown": (1,),
    }.items():
        if random.random() < 0.25:
            spec[name] = values[0] if random.random() < 0.7 else random.choice(values)
    return {"spec": spec}


def _role(random: Random) -> Json:
    return {"rules": [rule(random) for _ in range(random.randint(0, 2))]}


def _event(random: Random) -> Json:
    involved = {"kind": "Pod", "namespace": "OURS", "name": random.choice(NAMES)}
    fields: Json = {"involvedObject": involved, "reason": "Because", "message": random.choice(TEXTS), "type": "Normal"}
    if random.random() < 0.3:
        fields["count"] = random.choice((1, 2))
    if random.random() < 0.1:
        fields["involvedObject"] = {"kind": "Pod", "namespace": "elsewhere", "name": "p"}
    return fields


_POD_SELECTED = ("metadata.name", "status.phase", "spec.nodeName", "spec.restartPolicy", "spec.nothing")
CONFIG_MAPS = Kind("configmaps", "v1", "ConfigMap", _config_map)
JOBS = Kind("jobs", "batch/v1", "Job", _job, _job_status, ("metadata.name", "status.successful", "spec.nothing"))
PODS = Kind("pods", "v1", "Pod", _pod, _pod_status, _POD_SELECTED)
THINGS = Kind(
    f"/apis/{GROUP}/v1/namespaces/OURS/things",
    f"{GROUP}/v1",
    "Thing",
    _thing,
    lambda random: {"ready": random.choice((1, 2, "x"))},
    ("metadata.name", "spec.mode", "spec.size"),
)
SERVICE_ACCOUNTS = Kind("serviceaccounts", "v1", "ServiceAccount", _service_account)
KINDS = (
    CONFIG_MAPS,
    CONFIG_MAPS,
    CONFIG_MAPS,
    JOBS,
    JOBS,
    JOBS,
    PODS,
    PODS,
    THINGS,
    THINGS,
    Kind("secrets", "v1", "Secret", _secret, None, ("metadata.name", "type")),
    Kind("leases", "coordination.k8s.io/v1", "Lease", _lease),
    Kind("cronjobs", "batch/v1", "CronJob", _cron_job, lambda random: {"lastScheduleTime": "2026-03-01T12:00:00Z"}),
    SERVICE_ACCOUNTS,
    Kind("rolebindings", "rbac.authorization.k8s.io/v1", "RoleBinding", binding),
    Kind("roles", "rbac.authorization.k8s.io/v1", "Role", _role),
    Kind("events", "v1", "Event", _event, None, ("metadata.name", "involvedObject.name", "reason", "nothing")),
)
