"""What may break the pods of a Job, or change them (C31, U5–U8). Values have the API's types."""

from __future__ import annotations

from random import Random

from e2e.api_differential.container_mutations import CONTAINER_MUTATIONS
from e2e.api_differential.pod_features import NODE_AFFINITIES, POD_AFFINITIES, POD_FEATURES, TOLERATIONS
from e2e.api_differential.steps import ABSENT, Change, Json, find, one_of, put
from e2e.api_differential.volumes import BROKEN_VOLUMES

_POD = ("spec", "template", "spec")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_EXPRESSIONS: tuple[Json, ...] = (
    {"key": "a b", "operator": "In", "values": []},
    {"key": "n", "operator": "Gt", "values": ["x", "y"]},
    {"key": "n", "operator": "Lt", "values": ["5"]},
    {"key": "n", "operator": "Exists", "values": ["x"]},
    {"key": "n", "operator": "Near"},
    {"key": "n", "operator": "In", "values": ["a b"]},
    {"key": "beta.kubernetes.io/os", "operator": "DoesNotExist"},
)
_FIELDS: tuple[Json, ...] = (
    {"key": "metadata.uid", "operator": "Exists"},
    {"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
    {"key": "metadata.name", "operator": "NotIn", "values": ["Bad_"]},
    {"key": "metadata.name", "operator": "Gt", "values": ["1"]},
)
_TERMS: tuple[Json, ...] = (
    {"topologyKey": ""},
    {"topologyKey": "a b", "namespaces": ["Bad"]},
    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a b": "c"}}},
    {"topologyKey": "zone", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}},
    {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]},
    {"topologyKey": "zone", "matchLabelKeys": ["a"]},
    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["a", "b c"]},
)
_WRONG_TOLERATIONS: tuple[Json, ...] = (
    {"operator": "Equal", "value": "x"},
    {"key": "a b", "operator": "Exists"},
    {"key": "k", "operator": "Exists", "value": "x"},
    {"key": "k", "operator": "Near"},
    {"key": "k", "operator": "Lt", "value": "5"},
    {"key": "k", "operator": "Equal", "value": "a b"},
    {"key": "k", "operator": "Exists", "effect": "Never"},
    {"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3},
)
_SPREADS: tuple[Json, ...] = (
    {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": ""},
    {"maxSkew": 1, "topologyKey": "a b", "whenUnsatisfiable": "Odd"},
    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1},
    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0},
    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "nodeAffinityPolicy": "Odd"},
    {
        "maxSkew": 1,
        "topologyKey": "z",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"": ""}},
    },
    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["app"]},
    {
        "maxSkew": 1,
        "topologyKey": "z",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["app", "a b"],
    },
)
_VALUES: dict[str, tuple[object, ...]] = {
    "restartPolicy": (ABSENT, "", "Always", "Never", "OnFailure", "Sometimes"),
    "nodeSelector": (ABSENT, {}, {"zone": "c"}, {"a b": "x"}, {"zone": "a b"}, {"beta.kubernetes.io/arch": "x"}),
    "tolerations": (ABSENT, []),
    "dnsPolicy": (ABSENT, "", "None", "Default", "Mine", "ClusterFirstWithHostNet"),
    "dnsConfig": (
        {},
        {"nameservers": ["1.2.3.4"] * 4},
        {"nameservers": ["x", "01.2.3.4", "::1"]},
        {"searches": ["a_b", ".", "x" * 300]},
        {"searches": [f"s{number}" for number in range(33)]},
        {"options": [{"name": ""}, {"value": "1"}]},
    ),
    "activeDeadlineSeconds": (0, -1, 5, 2**31, ABSENT),
    "terminationGracePeriodSeconds": (-1, 0, 31, ABSENT),
    "hostname": ("Bad_Host", "ok", "a" * 64),
    "subdomain": ("Bad_Sub", "ok"),
    "setHostnameAsFQDN": (True,),
    "serviceAccountName": ("Bad_Account", "ok", ABSENT),
    "serviceAccount": ("other", "Bad_"),
    "nodeName": ("Bad_Node", "node", ABSENT),
    "imagePullSecrets": ([{"name": ""}], [{}], [], [{"name": "a"}, {"name": "a"}]),
    "securityContext": (
        {},
        {"runAsUser": -1, "runAsGroup": -1},
        {"fsGroup": 2**40, "supplementalGroups": [1, -1]},
        {"fsGroupChangePolicy": "Odd"},
        {"supplementalGroupsPolicy": "Odd"},
        {"sysctls": [{"name": "a b", "value": ""}, {"name": ""}, {"name": "kernel.x"}, {"name": "kernel.x"}]},
        {"seccompProfile": {"type": "Localhost", "localhostProfile": "/x"}},
        {"appArmorProfile": {"type": "Odd"}},
        {"windowsOptions": {"hostProcess": True}},
        {"windowsOptions": {"runAsUserName": "a" * 300}},
        {"seLinuxChangePolicy": "Odd"},
        ABSENT,
    ),
    "hostNetwork": (True, False),
    "hostPID": (True,),
    "hostIPC": (True,),
    "hostUsers": (False, True),
    "shareProcessNamespace": (True, False),
    "hostAliases": (
        [{"ip": "x", "hostnames": ["Bad_", "ok"]}],
        [{"ip": "010.0.0.1", "hostnames": []}],
        [{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.1", "hostnames": ["b"]}],
    ),
    "schedulerName": ("Bad_", "", "a/b"),
    "priorityClassName": ("Bad_", "system-node-critical", ""),
    "priority": (5,),
    "preemptionPolicy": ("Odd", "", "Never"),
    "runtimeClassName": ("Bad_", ""),
    "overhead": ({"cpu": "1"}, {"memory": "-1"}, {"memory": "0.5"}, {"a b": "1"}),
    "os": ({"name": "windows"}, {"name": "Odd"}, {"name": ""}, {"name": "linux"}),
    "readinessGates": ([{"conditionType": "a b"}], [{"conditionType": ""}]),
    "ephemeralContainers": (
        [{"name": "debug", "image": "x"}],
        [{"name": "main", "image": " x", "targetContainerName": "nobody", "resources": {"limits": {"cpu": 1}}}],
        [
            {"name": "debug", "targetContainerName": "main", "ports": [{"containerPort": 0}], "lifecycle": {}},
            {"name": "debug", "image": "x", "restartPolicy": "Always", "livenessProbe": {"exec": {}}},
        ],
        [
            {
                "name": "",
                "image": "x",
                "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a", "subPathExpr": "b"}],
            }
        ],
    ),
    "resourceClaims": (
        [{"name": "claim", "resourceClaimName": "c"}],
        [{"name": "claim"}, {"name": "claim", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}],
        [{"name": "Bad_", "resourceClaimTemplateName": "Bad_"}],
    ),
    "resources": (
        {"requests": {"cpu": "1"}},
        {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
        {"limits": {"gpu": 1}},
    ),
    "enableServiceLinks": (True, False),
    "topologySpreadConstraints": (*([one] for one in _SPREADS), [_SPREADS[2], _SPREADS[2]]),
}
_ADDED: dict[str, tuple[object, ...]] = {
    "volumes": BROKEN_VOLUMES,
    "tolerations": (*TOLERATIONS, *_WRONG_TOLERATIONS),
    "schedulingGates": ({"name": "example.com/wait"}, {"name": "a b"}, {"name": ""}, {"name": "new"}),
    "topologySpreadConstraints": _SPREADS,
}


def _put(name: str) -> Change:
    return one_of((*_POD, name), *_VALUES[name])


def _add(name: str) -> Change:
    def change(random: Random, job: Json) -> None:
        put(job, (*_POD, name), [*(find(job, (*_POD, name)) or []), random.choice(_ADDED[name])])

    return change


def _affinity(random: Random, job: Json) -> None:
    term = {"matchExpressions": random.sample(_EXPRESSIONS, 2), "matchFields": random.sample(_FIELDS, 1)}
    pods = random.choice(_TERMS)
    affinities: tuple[object, ...] = (
        ABSENT,
        {},
        {"nodeAffinity": {}},
        {"podAffinity": {}},
        {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": []}}},
        {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}},
        {
            "nodeAffinity": {
                _PREFERRED: [{"weight": random.choice((0, 1, 101)), "preference": random.choice(({}, term))}]
            }
        },
        {"podAffinity": {_REQUIRED: [pods]}},
        {"podAntiAffinity": {_PREFERRED: [{"weight": random.choice((0, 100, 101)), "podAffinityTerm": pods}]}},
        *({"nodeAffinity": one} for one in NODE_AFFINITIES),
        *({"podAffinity": one} for one in POD_AFFINITIES),
        {"nodeAffinity": NODE_AFFINITIES[0], "podAntiAffinity": POD_AFFINITIES[0]},
    )
    put(job, (*_POD, "affinity"), random.choice(affinities))


def _node_affinity(random: Random, job: Json) -> None:
    """U7: beside what else there is."""
    put(job, (*_POD, "affinity", "nodeAffinity"), random.choice((ABSENT, *NODE_AFFINITIES)))


def _template_metadata(random: Random, job: Json) -> None:
    """U8: not compared while the pods may change."""
    put(job, ("spec", "template", "metadata", random.choice(("name", "generateName"))), random.choice(("new", ABSENT)))


POD_MUTATIONS: dict[str, Change] = {
    **{f"pod's {name}": _put(name) for name in _VALUES},
    **{f"one more of {name}": _add(name) for name in _ADDED},
    "affinity": _affinity,
    "node affinity": _node_affinity,
    "template metadata": _template_metadata,
    **CONTAINER_MUTATIONS,
    **{f"+ {name}": change for name, change in POD_FEATURES.items()},
}
