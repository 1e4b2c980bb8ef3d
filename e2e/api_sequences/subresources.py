"""What is done with objects of some kinds only: scales, evictions, bindings, tokens, the end of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeAlias

from e2e.api_sequences.cluster_objects import NAMESPACES
from e2e.api_sequences.kind import Kind, spoil
from e2e.api_sequences.objects import PODS, SERVICE_ACCOUNTS, THINGS
from tests.contract.api import JSON_PATCH, MERGE

Json: TypeAlias = dict[str, Any]
Action: TypeAlias = Callable[[Random, Kind, str, tuple[int, ...]], Json]


def _spoilt(random: Random, body: Json) -> Json:
    if random.random() < 0.1:
        spoil(random, body)
    return body


def _scale(random: Random, kind: Kind, name: str, written: tuple[int, ...]) -> Json:
    target = f"{kind.target}/{name}/scale"
    size = random.choice((1, 5, 10, 11, 0, -1))
    if random.random() < 0.3:
        return {"ask": f"GET {target}"}
    if random.random() < 0.4:
        return {"ask": f"PATCH {target}", "content": MERGE, "body": _spoilt(random, {"spec": {"replicas": size}})}
    if random.random() < 0.3:
        operation = {"op": "replace", "path": "/spec/replicas", "value": size}
        return {"ask": f"PATCH {target}", "content": JSON_PATCH, "body": [operation]}
    body: Json = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": "OURS"}}
    body["spec"] = {"replicas": size}
    if random.random() < 0.3:
        body["metadata"]["resourceVersion"] = f"$({random.choice(written)}.metadata.resourceVersion)"
    return {"ask": f"PUT {target}", "body": _spoilt(random, body)}


def _evict(random: Random, kind: Kind, name: str, written: tuple[int, ...]) -> Json:
    body: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    if random.random() < 0.4:
        body["deleteOptions"] = random.choice(
            (
                {"gracePeriodSeconds": 0},
                {"dryRun": ["All"]},
                {"preconditions": {"uid": f"$({random.choice(written)}.metadata.uid)"}},
            )
        )
    query = random.choice(("", "", "", "?dryRun=All"))
    return {"ask": f"POST {kind.target}/{name}/eviction{query}", "body": _spoilt(random, body)}


def _bind(random: Random, kind: Kind, name: str, written: tuple[int, ...]) -> Json:
    body: Json = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": "n"}}
    body["target"]["kind"] = random.choice(("Node", "Node", "", "Pod"))
    if random.random() < 0.2:
        body["metadata"]["annotations"] = {"x": "1"}
    query = random.choice(("", "", "", "?dryRun=All"))
    return {"ask": f"POST {kind.target}/{name}/binding{query}", "body": _spoilt(random, body)}


def _token(random: Random, kind: Kind, name: str, written: tuple[int, ...]) -> Json:
    spec: Json = {}
    if random.random() < 0.7:
        spec["expirationSeconds"] = random.choice((600, 3600, 599, 2**33))
    if random.random() < 0.3:
        spec["audiences"] = random.choice((["x"], [], ["x", "y"]))
    if random.random() < 0.2:
        kinds = ("Pod", "Secret", "Node", "Odd")
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": random.choice(kinds), "name": "nobody"}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    pick = ["status", "reason", "message", "causes", "details", "warnings", "body.spec", "body.metadata.name"]
    return {"ask": f"POST {kind.target}/{name}/token", "body": _spoilt(random, body), "pick": pick}


def _finalize(random: Random, kind: Kind, name: str, written: tuple[int, ...]) -> Json:
    finalizers = random.choice(([], [], ["kubernetes"], ["x.io/a"], ["bad"]))
    body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    body["spec"] = {"finalizers": finalizers}
    if random.random() < 0.2:
        body["metadata"]["resourceVersion"] = f"$({random.choice(written)}.metadata.resourceVersion)"
    return {"ask": f"PUT {kind.target}/{name}/finalize", "body": _spoilt(random, body)}


def _make_inside(random: Random, kind: Kind, name: str, written: tuple[int, ...]) -> Json:
    """Something in a namespace that may be there, going, or gone."""
    target = f"/api/v1/namespaces/{name}/configmaps"
    method = random.choice(("POST", "POST", "GET", "DELETE"))
    if method == "POST":
        return {"ask": f"POST {target}", "body": {"metadata": {"name": random.choice(("i", "j"))}}}
    return {"ask": f"{method} {target}/i"}


MORE: Mapping[str, tuple[Action, ...]] = {
    THINGS.target: (_scale, _scale),
    PODS.target: (_evict, _bind),
    SERVICE_ACCOUNTS.target: (_token, _token),
    NAMESPACES.target: (_finalize, _finalize, _make_inside, _make_inside),
}
"""Actions of a kind beside those of every kind, by its target."""
