"""Kinds of the whole cluster, as sequences draw them. All sequences share their collections.

Nothing here may reach what other sequences do: priority classes are nobody's default, webhooks are for a group that
nobody serves, and definitions (``definitions``) are only tried.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

from e2e.api_sequences.kind import NAMES, TEXTS, Kind

Json: TypeAlias = dict[str, Any]

OUR_NAMES = tuple(f"OURS-{name}" for name in NAMES)
_AT = "2026-03-01T12:00:00Z"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute", "Odd", "")
_SIDE_EFFECTS = ("None", "None", "None", "NoneOnDryRun", "Some", "Odd")


def _some(random: Random, chance: float, **values: tuple[object, ...]) -> Json:
    """Some of these fields, mostly with the first of their values."""
    return {
        name: one[0] if random.random() < 0.5 else random.choice(one)
        for name, one in values.items()
        if random.random() < chance
    }


def _namespace(random: Random) -> Json:
    finalizers: tuple[list[str], ...] = (["kubernetes"], [], ["x.io/a"], ["kubernetes", "x.io/a"], ["bad"])
    return {"spec": {"finalizers": random.choice(finalizers)}} if random.random() < 0.3 else {}


def _namespace_status(random: Random) -> Json:
    status: Json = {"phase": random.choice(("Active", "Terminating", "Odd"))}
    if random.random() < 0.4:
        status["conditions"] = [{"type": random.choice(("A", "B")), "status": "True", "lastTransitionTime": _AT}]
    return status


def _node(random: Random) -> Json:
    spec = _some(
        random,
        0.25,
        unschedulable=(True, False),
        providerID=("x://y", ""),
        podCIDR=("10.1.0.0/24", "odd", ""),
        podCIDRs=(["10.1.0.0/24"], ["10.1.0.0/24", "fd00::/64"], ["10.2.0.0/24", "10.3.0.0/24"], []),
    )
    if random.random() < 0.4:
        spec["taints"] = [
            {
                "key": random.choice(("a", "b", "")),
                "effect": random.choice(_EFFECTS),
                **_some(random, 0.3, value=("v",)),
            }
            for _ in range(random.randint(0, 2))
        ]
    return {"spec": spec} if spec or random.random() < 0.5 else {}


def _node_status(random: Random) -> Json:
    status = _some(
        random,
        0.4,
        capacity=({"cpu": "4", "memory": "8Gi", "pods": "110"}, {"cpu": "-1"}, {"odd name": "1"}, {"x.io/gpu": "1.5"}),
        allocatable=({"cpu": "3500m"}, {"memory": "x"}),
        addresses=([{"type": "InternalIP", "address": "10.0.0.1"}], [{"type": "Hostname", "address": "n"}] * 2, []),
        phase=("Running", "Odd"),
        nodeInfo=({"kubeletVersion": "v1.36.0", "osImage": "x"},),
        images=([{"names": ["i"], "sizeBytes": 5}],),
    )
    if random.random() < 0.5:
        ready = {"type": "Ready", "status": random.choice(("True", "False", "Unknown"))}
        status["conditions"] = [ready | _some(random, 0.5, lastHeartbeatTime=(_AT,), reason=("R",), message=("m",))]
    return status


def rule(random: Random) -> Json:
    """A rule of a role; often one that is refused."""
    if random.random() < 0.1:
        return {"nonResourceURLs": random.choice((["/x"], ["/x/*"], ["*"], [])), "verbs": ["get"]}
    found: Json = {
        "apiGroups": random.choice(([""], ["batch", ""], ["*"], [])),
        "resources": random.choice((["configmaps"], ["pods", "pods/log"], ["*"], ["*/status"], [])),
        "verbs": random.choice((["get"], ["get", "list"], ["*"], [])),
    }
    return found | _some(random, 0.1, resourceNames=(["a"], [""], []))


def _cluster_role(random: Random) -> Json:
    return {"rules": [rule(random) for _ in range(random.randint(0, 2))]} if random.random() < 0.9 else {}


def subject(random: Random) -> Json:
    """Somebody; often nobody."""
    kind = random.choice(("User", "Group", "ServiceAccount", "Odd", ""))
    found: Json = {"kind": kind, "name": random.choice(("jane", "dev", "robot", ""))}
    groups = {"ServiceAccount": ("", "", "x"), "User": ("rbac.authorization.k8s.io", "rbac.authorization.k8s.io", "")}
    found["apiGroup"] = random.choice(groups.get(kind, ("rbac.authorization.k8s.io",)))
    if kind == "ServiceAccount" or random.random() < 0.1:
        found["namespace"] = random.choice(("OURS", "OURS", ""))
    return found


def binding(random: Random) -> Json:
    """What a binding of roles ties together."""
    role = {"kind": random.choice(("ClusterRole", "ClusterRole", "Role", "Odd")), "name": random.choice(("r", "s", ""))}
    if random.random() < 0.9:
        role["apiGroup"] = "rbac.authorization.k8s.io"
    return {"roleRef": role, "subjects": [subject(random) for _ in range(random.choice((0, 1, 1, 2)))]}


def _priority_class(random: Random) -> Json:
    fields: Json = {"value": random.choice((1, 0, -5, 10**9, 10**9 + 1, 2**31 - 1))} if random.random() < 0.9 else {}
    return fields | _some(random, 0.2, preemptionPolicy=("Never", "PreemptLowerPriority", "Odd"), description=TEXTS)


def _webhooks(random: Random) -> Json:
    return {"webhooks": [_webhook(random) for _ in range(random.choice((0, 1, 1, 2)))]}


def _webhook(random: Random) -> Json:
    operations: tuple[list[str], ...] = (["CREATE"], ["CREATE", "UPDATE"], ["*"], ["*", "CREATE"], [], ["ODD"])
    resources: tuple[list[str], ...] = (["x"], ["x", "y/status"], ["*"], ["*", "x"], ["*/*", "x"], [])
    # A group that nobody serves: it is never called.
    rule_ = {"apiGroups": ["none.example.com"], "apiVersions": random.choice((["v1"], ["*"], [])), "scope": "*"}
    rule_ |= {"operations": random.choice(operations), "resources": random.choice(resources)}
    found: Json = {
        "name": random.choice(("a.example.com", "b.example.com", "short", "")),
        "clientConfig": {"url": random.choice(("https://127.0.0.1:1/x", "https://127.0.0.1:1/x", "http://x", "odd"))},
        "sideEffects": random.choice(_SIDE_EFFECTS),
        "admissionReviewVersions": random.choice((["v1"], ["v1"], ["v1beta1", "v1"], ["v2"], [])),
        "rules": [rule_],
    }
    return found | _some(
        random,
        0.2,
        failurePolicy=("Fail", "Ignore", "Odd"),
        matchPolicy=("Exact", "Equivalent", "Odd"),
        timeoutSeconds=(5, 0, 31, 30),
        namespaceSelector=({}, {"matchLabels": {"a": "b"}}, {"matchExpressions": [{"key": "a", "operator": "In"}]}),
        objectSelector=({"matchLabels": {"a": "a b"}}, {}),
    )


_RBAC, _HOOKS = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
_PLAIN = ("metadata.name", "metadata.namespace", "spec.nothing")


def _shared(target: str, api_version: str, kind: str, fields: Any, status: Any = None, selected: Any = _PLAIN) -> Kind:
    return Kind(target, api_version, kind, fields, status, selected, OUR_NAMES, is_shared=True)


NAMESPACES = _shared("namespaces", "v1", "Namespace", _namespace, _namespace_status, ("metadata.name", "status.phase"))
CLUSTER_KINDS = (
    NAMESPACES,
    NAMESPACES,
    _shared("nodes", "v1", "Node", _node, _node_status, ("metadata.name", "spec.unschedulable")),
    _shared("clusterroles", _RBAC, "ClusterRole", _cluster_role),
    _shared("clusterrolebindings", _RBAC, "ClusterRoleBinding", binding),
    _shared("priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", _priority_class),
    _shared("validatingwebhookconfigurations", _HOOKS, "ValidatingWebhookConfiguration", _webhooks),
    _shared("mutatingwebhookconfigurations", _HOOKS, "MutatingWebhookConfiguration", _webhooks),
)
