"""What may break a container of a Job's pods, or change it (C31): most often the first one, sometimes another."""

from __future__ import annotations

from random import Random

from e2e.api_differential.pod_features import RESOURCES
from e2e.api_differential.steps import ABSENT, Change, Json, Path, find, put

_POD = ("spec", "template", "spec")

_BROKEN_RESOURCES: tuple[Json, ...] = (
    {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
    {"requests": {"cpu": "-1"}},
    {"limits": {"memory": "-1Mi", "cpu": "100u"}},
    {"limits": {"no slash": "1"}},
    {"limits": {"plain": "1"}},
    {"limits": {"example.com/gpu": "1.5"}},
    {"limits": {"kubernetes.io/x": "1"}},
    {"requests": {"example.com/gpu": "1"}},
    {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}},
    {"limits": {"hugepages-2Mi": "2Mi"}},
    {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}},
    {"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "4Mi", "cpu": 1}},
    {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
    {"requests": {"storage": "1"}},
    {"claims": [{"name": "nobody"}]},
    {"claims": [{"name": "claim"}, {"name": "claim"}, {"name": ""}]},
)
_PORTS: tuple[Json, ...] = (
    {"containerPort": 0},
    {"containerPort": 65_536},
    {"containerPort": 81, "name": "Bad_Name"},
    {"containerPort": 81, "name": "a-name-that-is-too-long"},
    {"containerPort": 81, "name": "80"},
    {"containerPort": 81, "name": "a--b"},
    {"containerPort": 81, "name": "-a-"},
    {"containerPort": 82, "protocol": "ICMP"},
    {"containerPort": 82, "protocol": "SCTP", "name": "http"},
    {"containerPort": 83, "hostPort": 70_000},
    {"containerPort": 80},
    {"containerPort": 84, "hostPort": 84, "hostIP": "nowhere"},
    {"containerPort": 85, "hostPort": 8080},
)
_ENV: tuple[Json, ...] = (
    {"name": ""},
    {"name": "a=b"},
    {"name": "1"},
    {"name": "é"},
    {"name": "OK", "value": "x"},
    {"name": "A", "value": "$(A) more"},
    {"name": "BOTH", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "NONE", "valueFrom": {}},
    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "spec.secret"}}},
    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": ""}}},
    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}},
    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['job-name']"}}},
    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a b']"}}},
    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid['x']"}}},
    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs", "apiVersion": "v2"}}},
    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}},
    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}},
    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1m"}}},
    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}},
    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": ""}}},
    {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a b"}}},
    {"name": "K", "valueFrom": {"secretKeyRef": {"name": "S_", "key": "."}}},
    {"name": "K", "valueFrom": {"configMapKeyRef": {"name": "", "key": ""}}},
    {
        "name": "K",
        "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}, "secretKeyRef": {"name": "s", "key": "k"}},
    },
)
_ENV_FROM: tuple[Json, ...] = (
    {},
    {"configMapRef": {"name": ""}},
    {"configMapRef": {"name": "Bad_"}},
    {"secretRef": {"name": "s"}, "prefix": "a=b"},
    {"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}},
)
_MOUNTS: tuple[Json, ...] = (
    {"name": "nobody", "mountPath": "/x"},
    {"name": "v-empty", "mountPath": ""},
    {"name": "v-empty", "mountPath": "/v-empty"},
    {"name": "v-empty", "mountPath": "relative:bad"},
    {"name": "v-empty", "mountPath": "/y", "subPath": "../z"},
    {"name": "v-empty", "mountPath": "/y", "subPath": "/z"},
    {"name": "v-empty", "mountPath": "/y", "subPath": "a", "subPathExpr": "b"},
    {"name": "v-empty", "mountPath": "/y", "mountPropagation": "Odd"},
    {"name": "v-empty", "mountPath": "/y", "mountPropagation": "Bidirectional"},
    {"name": "v-empty", "mountPath": "/y", "recursiveReadOnly": "Enabled"},
    {"name": "v-empty", "mountPath": "/y", "recursiveReadOnly": "Odd", "readOnly": True},
    {"name": "", "mountPath": "/z"},
)
_DEVICES: tuple[Json, ...] = (
    {"name": "v-claim", "devicePath": "/dev/a"},
    {"name": "v-empty", "devicePath": "/dev/a"},
    {"name": "nobody", "devicePath": ""},
    {"name": "v-claim", "devicePath": "/dev/../a"},
)
_HANDLERS: tuple[Json, ...] = (
    {},
    {"exec": {"command": []}},
    {"exec": {}},
    {"exec": {"command": ["x"]}},
    {"httpGet": {"path": "/", "port": 0}},
    {"httpGet": {"path": "/", "port": "No"}},
    {"httpGet": {"port": 80, "scheme": "FTP"}},
    {"httpGet": {"port": 80, "host": "h", "httpHeaders": [{"name": "a b", "value": ""}]}},
    {"tcpSocket": {"port": "a-name-that-is-too-long"}},
    {"tcpSocket": {"port": 70_000}},
    {"exec": {"command": ["x"]}, "httpGet": {"port": 80}},
)
_PROBES: tuple[Json, ...] = (
    *_HANDLERS,
    {"grpc": {"port": 0}},
    {"grpc": {"port": 5, "service": "s"}},
    *(
        {"exec": {"command": ["x"]}, name: value}
        for name, value in (
            ("periodSeconds", -1),
            ("timeoutSeconds", -1),
            ("initialDelaySeconds", -1),
            ("failureThreshold", -1),
            ("successThreshold", 2),
            ("successThreshold", -1),
            ("terminationGracePeriodSeconds", 0),
            ("terminationGracePeriodSeconds", 3),
        )
    ),
)
_LIFECYCLES: tuple[Json, ...] = (
    {},
    *({"preStop": handler} for handler in _HANDLERS),
    *({"postStart": handler} for handler in _HANDLERS),
    {"preStop": {"sleep": {"seconds": 5}}},
    {"preStop": {"sleep": {"seconds": -1}}},
    {"preStop": {"sleep": {"seconds": 500}}},
)
_SECURITY: tuple[Json, ...] = (
    {},
    {"runAsUser": -1},
    {"runAsGroup": 2**40},
    {"procMount": "Odd"},
    {"procMount": "Unmasked"},
    {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}},
    {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"]}},
    {"seccompProfile": {"type": "Odd"}},
    {"seccompProfile": {"type": ""}},
    {"seccompProfile": {"type": "Localhost"}},
    {"seccompProfile": {"type": "Localhost", "localhostProfile": "../x"}},
    {"seccompProfile": {"type": "Unconfined", "localhostProfile": "x"}},
    {"appArmorProfile": {"type": "Localhost"}},
    {"appArmorProfile": {"type": "Localhost", "localhostProfile": " x "}},
    {"appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"}},
    {"appArmorProfile": {"type": "Odd"}},
    {"windowsOptions": {"runAsUserName": "a/b", "hostProcess": True}},
    {"windowsOptions": {"gmsaCredentialSpecName": "Bad_", "runAsUserName": ""}},
)
_VALUES: dict[str, tuple[object, ...]] = {
    "name": (ABSENT, "", "Main", "a_b", "other", "a" * 64, "main"),
    "image": (ABSENT, "", " x", "x ", "x:latest", "y", "r.example:5000/a", "a@sha256:0"),
    "imagePullPolicy": (ABSENT, "", "Always", "Sometimes"),
    "terminationMessagePolicy": (ABSENT, "", "Loud"),
    "terminationMessagePath": (ABSENT, "", "/x"),
    "restartPolicy": ("Always", "Never", "OnFailure", "", "Odd", ABSENT),
    "resources": (*RESOURCES, *_BROKEN_RESOURCES, *_BROKEN_RESOURCES),
    "resizePolicy": (
        [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
        [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}] * 2,
        [{"resourceName": "gpu", "restartPolicy": "Odd"}],
        [{"resourceName": "", "restartPolicy": ""}],
    ),
    "livenessProbe": _PROBES,
    "readinessProbe": _PROBES,
    "startupProbe": _PROBES,
    "lifecycle": _LIFECYCLES,
    "securityContext": _SECURITY,
    "command": ([], [""], ABSENT),
    "workingDir": ("", "/x"),
    "stdinOnce": (True,),
}
_ADDED: dict[str, tuple[object, ...]] = {
    "ports": _PORTS,
    "env": _ENV,
    "envFrom": _ENV_FROM,
    "volumeMounts": _MOUNTS,
    "volumeDevices": _DEVICES,
}


def _somewhere(random: Random, job: Json) -> Path:
    places = [(name, at) for name in ("containers", "initContainers") for at in range(len(_list(job, name)))]
    name, at = ("containers", 0) if not places or random.random() < 0.5 else random.choice(places)
    return (*_POD, name, at)


def _list(job: Json, name: str) -> list[Json]:
    return find(job, (*_POD, name)) or []


def _put(name: str) -> Change:
    def change(random: Random, job: Json) -> None:
        put(job, (*_somewhere(random, job), name), random.choice(_VALUES[name]))

    return change


def _add(name: str) -> Change:
    def change(random: Random, job: Json) -> None:
        path = (*_somewhere(random, job), name)
        put(job, path, [*(find(job, path) or []), random.choice(_ADDED[name])])

    return change


def _containers(random: Random, job: Json) -> None:
    name = random.choice(("containers", "containers", "initContainers"))
    found = _list(job, name)
    one: Json = {"name": "one", "image": "none"}
    lists: tuple[object, ...] = (ABSENT, [], [*found, *found[:1]], found[::-1], [one], [*found, one], found[1:], [{}])
    put(job, (*_POD, name), random.choice(lists))


CONTAINER_MUTATIONS: dict[str, Change] = {
    "containers": _containers,
    **{f"container's {name}": _put(name) for name in _VALUES},
    **{f"container's {name}": _add(name) for name in _ADDED},
}
