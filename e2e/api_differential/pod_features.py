"""Valid features of a Job's pods, with most of what the API fills in (DF8)."""

from __future__ import annotations

from random import Random

from e2e.api_differential.steps import Change, Json, find, one_of, put
from e2e.api_differential.volumes import PLAIN_VOLUMES

_POD = ("spec", "template", "spec")
_MAIN = (*_POD, "containers", 0)

_EXPRESSION = {"key": "zone", "operator": "In", "values": ["a", "b"]}
NODE_AFFINITIES: tuple[Json, ...] = (
    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [_EXPRESSION]}]}},
    {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]},
                {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]},
            ]
        }
    },
    {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 5, "preference": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}}
        ]
    },
)
_TERM: Json = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
POD_AFFINITIES: tuple[Json, ...] = (
    {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
    {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": _TERM}]},
    {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},  # warned of
)
TOLERATIONS: tuple[Json, ...] = (
    {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "gpu", "value": "yes"},
    {"operator": "Exists"},
    {"key": "gpu", "operator": "Equal", "value": "", "effect": "NoExecute", "tolerationSeconds": 30},
)
RESOURCES: tuple[Json, ...] = (
    {},
    {"requests": {"cpu": "100m", "memory": "64Mi"}},
    {"limits": {"cpu": 1, "memory": "1Gi", "example.com/gpu": "2"}},
    {"requests": {"cpu": "0.5"}, "limits": {"cpu": "2"}},
    {"requests": {"memory": "1.5"}, "limits": {"ephemeral-storage": "1G"}},  # warned of
)
_ENV: tuple[Json, ...] = (
    {"name": "A", "value": "1"},
    {"name": "B"},
    {"name": "A", "value": "twice"},  # warned of
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    {"name": "odd.name", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": False}}},
)
_PORTS: tuple[Json, ...] = (
    {"containerPort": 80},
    {"containerPort": 80, "name": "http", "protocol": "TCP"},
    {"containerPort": 53, "protocol": "UDP", "name": "dns"},
    {"containerPort": 8080, "hostPort": 8080},
    {"containerPort": 9, "hostIP": "127.0.0.1"},  # warned of
)
_PROBES: tuple[Json, ...] = (
    {"httpGet": {"path": "/", "port": 80}},
    {"httpGet": {"port": "http", "scheme": "HTTPS", "httpHeaders": [{"name": "X-A", "value": "b"}]}},
    {"exec": {"command": ["true"]}, "periodSeconds": 3, "timeoutSeconds": 2, "failureThreshold": 9},
    {"tcpSocket": {"port": 80}, "initialDelaySeconds": 5},
    {"grpc": {"port": 5000}},
)


def _labels(random: Random, job: Json) -> None:
    values: Json = {
        "labels": {"app": "x", "example.com/y": "Z_1"},
        "annotations": {"note": "", "example.com/z": "any"},
        "finalizers": ["example.com/pod"],
        "name": "odd",
        "namespace": "elsewhere",
        "generateName": "odd-",
        "creationTimestamp": None,
    }
    for name, value in values.items():
        if random.random() < 0.4:
            there = find(job, ("spec", "template", "metadata", name))
            kept = there if name == "labels" and isinstance(there, dict) else None
            put(job, ("spec", "template", "metadata", name), {**value, **kept} if kept else value)


def _init(*policies: object) -> Change:
    def change(random: Random, job: Json) -> None:
        inits = find(job, (*_POD, "initContainers")) or []
        added: Json = {"name": f"init-{len(inits)}", "image": "none:1", "command": ["true"]}
        policy = random.choice(policies)
        put(job, (*_POD, "initContainers"), [*inits, {**added, "restartPolicy": policy} if policy else added])

    return change


def _scheduling(random: Random, job: Json) -> None:
    affinity = {}
    for name, pool in (
        ("nodeAffinity", NODE_AFFINITIES),
        ("podAffinity", POD_AFFINITIES),
        ("podAntiAffinity", POD_AFFINITIES),
    ):
        if random.random() < 0.4:
            affinity[name] = random.choice(pool)
    for name, value in {
        "affinity": affinity,
        "nodeSelector": {"zone": "a", "kubernetes.io/os": "linux"},
        "tolerations": random.choices(TOLERATIONS, k=2),
        "schedulingGates": [{"name": "example.com/wait"}],
        "priorityClassName": "important",
        "nodeName": "node-0",
        "schedulerName": "other",
    }.items():
        # A pod with gates may have no node.
        if random.random() < 0.4 and not (name == "nodeName" and find(job, (*_POD, "schedulingGates"))):
            put(job, (*_POD, name), value)


def _spread(random: Random, job: Json) -> None:
    one: Json = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    more: Json = {"labelSelector": {"matchLabels": {"a": "b"}}, "nodeTaintsPolicy": "Honor", "minDomains": 2}
    put(job, (*_POD, "topologySpreadConstraints"), [random.choice((one, one | more))])


def _volumes(random: Random, job: Json) -> None:
    volumes = random.sample(PLAIN_VOLUMES, random.randint(1, 3))
    put(job, (*_POD, "volumes"), volumes)
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    if random.random() < 0.3:
        mounts[0] |= {"readOnly": True, "subPath": "a/b"}
    put(job, (*_MAIN, "volumeMounts"), mounts)


def _security(random: Random, job: Json) -> None:
    pods: tuple[Json, ...] = (
        {"runAsUser": 1000, "runAsNonRoot": True, "fsGroup": 5, "supplementalGroups": [1, 2]},
        {"seccompProfile": {"type": "RuntimeDefault"}, "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
    )
    containers: tuple[Json, ...] = (
        {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True},
        {"privileged": False, "runAsUser": 0, "runAsNonRoot": False},
        {"procMount": "Default", "seLinuxOptions": {"level": "s0"}},
    )
    put(job, (*_POD, "securityContext"), random.choice(pods))
    put(job, (*_MAIN, "securityContext"), random.choice(containers))


def _container(random: Random, job: Json) -> None:
    for name, value in {
        "image": random.choice(("busybox", "busybox:latest", "r.example/a/b:1", "a@sha256:" + "0" * 64)),
        "imagePullPolicy": "Never",
        "command": ["sh", "-c"],
        "args": ["true", ""],
        "workingDir": "/w",
        "env": random.sample(_ENV, 3),
        "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "P_"}, {"secretRef": {"name": "s"}}],
        "ports": random.sample(_PORTS, 2),
        "resources": random.choice(RESOURCES),
        "readinessProbe": random.choice(_PROBES),
        "livenessProbe": {**random.choice(_PROBES), "terminationGracePeriodSeconds": 7},
        "startupProbe": random.choice(_PROBES),
        "lifecycle": {"preStop": {"exec": {"command": ["true"]}}, "postStart": {"httpGet": {"port": 80}}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "stdin": True,
        "tty": True,
    }.items():
        if random.random() < 0.25:
            put(job, (*_MAIN, name), value)


def _pod(random: Random, job: Json) -> None:
    for name, value in {
        "activeDeadlineSeconds": 30,
        "automountServiceAccountToken": False,
        "dnsPolicy": "Default",
        "dnsConfig": {"nameservers": ["1.2.3.4"], "searches": ["x.y"], "options": [{"name": "ndots", "value": "2"}]},
        "enableServiceLinks": False,
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["h"]}],
        "hostname": "host",
        "subdomain": "sub",
        "imagePullSecrets": [{"name": "pull"}, {"name": "pull"}],
        "serviceAccountName": "robot",
        "terminationGracePeriodSeconds": random.choice((0, 5)),
        "shareProcessNamespace": True,
        "setHostnameAsFQDN": False,
        "os": {"name": "linux"},
        "preemptionPolicy": "Never",
        "runtimeClassName": "kata",
        "readinessGates": [{"conditionType": "example.com/x"}],
        "hostNetwork": True,
    }.items():
        if random.random() < 0.2:
            put(job, (*_POD, name), value)


def _second(random: Random, job: Json) -> None:
    second = {"name": "second", "image": "other", "resources": random.choice(RESOURCES)}
    put(job, (*_POD, "containers"), [*(find(job, (*_POD, "containers")) or []), second])


POD_FEATURES: dict[str, Change] = {
    "template labels": _labels,
    "init container": _init(None),
    "sidecar": _init("Always"),
    "second container": _second,
    "container": _container,
    "pod": _pod,
    "volumes": _volumes,
    "scheduling": _scheduling,
    "spread": _spread,
    "security": _security,
    "resources": one_of("spec.template.spec.containers.0.resources", *RESOURCES),
}
