"""Sequences about what users may do: the administrator gives rights and takes them, users try.

A real server learns of rights a moment after they were given. So each grant is to one more user, who has no other: he
asks for what every role allows until he may, or may not any more.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

from e2e.api_sequences.cluster_objects import binding, rule
from tests.contract.api import MERGE

Json: TypeAlias = dict[str, Any]

_API = "rbac.authorization.k8s.io"
_USERS = ("OURS-jane", "OURS-joe", "system:serviceaccount:OURS:robot")
_FEWEST, _MOST = 4, 12


def steps(random: Random) -> list[Json]:
    """Grants one after the other, and tries after each."""
    found: list[Json] = [
        {"ask": "POST configmaps", "body": {"metadata": {"name": "a", "labels": {"x": "1"}}}, "pick": []},
        {
            "ask": "POST pods",
            "body": {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    ]
    for number in range(random.randint(1, 3)):
        user = random.choice(_USERS)
        found += _granted(random, number, user)
        found += [_tried(random) for _ in range(random.randint(_FEWEST, _MOST))]
        if random.random() < 0.4:
            found += [{"ask": f"DELETE rolebindings/role-{number}", "pick": []}, _seen(number, 403)]
            found += [_tried(random) for _ in range(3)]
    return found


def _granted(random: Random, number: int, user: str) -> list[Json]:
    """A role, a binding of it, and the wait until the user has it."""
    is_wide = random.random() < 0.3
    role = f"role-{number}"
    rules = [rule(random) for _ in range(random.randint(0, 3))]
    rules = [one for one in rules if one["verbs"] and one.get("resources") and one.get("apiGroups")]
    mark = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["mark"]}
    rules.append(mark)
    parts = user.split(":")
    who: Json = {"kind": "User", "apiGroup": _API, "name": user}
    if len(parts) == 4 and random.random() < 0.7:
        who = {"kind": "ServiceAccount", "namespace": parts[2], "name": parts[3]}
    elif len(parts) == 4 and random.random() < 0.5:
        who = {"kind": "Group", "apiGroup": _API, "name": "system:serviceaccounts:OURS"}
    only = {"kind": "User", "apiGroup": _API, "name": f"OURS-only-{number}"}
    kind, roles, name = ("ClusterRole", "clusterroles", f"OURS-{role}") if is_wide else ("Role", "roles", role)
    ref = {"apiGroup": _API, "kind": kind, "name": name}
    return [
        {"ask": f"POST {roles}", "body": {"metadata": {"name": name}, "rules": rules}, "pick": []},
        {"ask": "POST rolebindings", "body": {"metadata": {"name": role}, "roleRef": ref, "subjects": [who, only]}},
        _seen(number, 404),
    ]


def _seen(number: int, status: int) -> Json:
    return {"ask": "GET configmaps/mark", "user": f"OURS-only-{number}", "until": {"status": status}, "pick": []}


def _tried(random: Random) -> Json:
    kind = random.choice(("configmaps", "configmaps", "pods", "secrets", "jobs", "/api/v1/namespaces/other/configmaps"))
    target = f"{kind}/{random.choice(('a', 'b'))}"
    more: tuple[Json, ...] = (
        {"ask": f"GET {target}"},
        {"ask": f"GET {kind}?labelSelector=x%3D1"},
        {"ask": f"GET {kind}?fieldSelector=metadata.name%3Da"},
        {"ask": f"DELETE {target}?dryRun=All"},
        {"ask": f"PATCH {target}", "content": MERGE, "body": {"metadata": {"labels": {"y": random.choice("12")}}}},
        {"ask": f"PUT {target}?dryRun=All", "body": {"metadata": {"name": "a"}, "data": {"k": "v"}}},
        {"ask": f"POST {kind}?dryRun=All", "body": {"metadata": {"name": "b"}, "data": {"k": "v"}}},
        {"ask": "GET pods/a/status"},
        {"ask": "GET pods/a/log"},
        {"ask": "POST pods/a/eviction?dryRun=All", "body": {"metadata": {"name": "a"}}},
        {"ask": "PATCH pods/a/status", "content": MERGE, "body": {"status": {"podIP": "10.0.0.1"}}},
        {"ask": "GET /api/v1/nodes/n"},
        {"ask": "GET /apis/batch/v1"},
        {"ask": "GET /x"},
        {"ask": "POST selfsubjectaccessreviews", "body": {"spec": {"resourceAttributes": _attributes(random)}}},
        {"ask": "POST roles?dryRun=All", "body": {"metadata": {"name": "r"}, "rules": [rule(random)]}},
        {"ask": "POST rolebindings?dryRun=All", "body": {"metadata": {"name": "r"}, **binding(random)}},
    )
    return {**random.choice(more), "user": random.choice(_USERS)}


def _attributes(random: Random) -> Json:
    found: Json = {
        "verb": random.choice(("get", "list", "*", "create")),
        "namespace": random.choice(("OURS", "", "other")),
    }
    found |= {
        "resource": random.choice(("configmaps", "pods", "*", "jobs")),
        "group": random.choice(("", "batch", "*")),
    }
    return found | random.choice(({}, {"subresource": "status"}, {"name": "a"}))
