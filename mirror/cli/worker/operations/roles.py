"""What ``mirror worker add`` makes on a worker: an account and its rights, as ``config/rbac/worker*.yaml`` say. Pure.

Those files are the only source: what is made, what ``checking`` asks for, and what operators apply by hand are the
same. They are read from the source tree, or from beside this module once it is installed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mirror.kinds.permissions import MIRROR_VERBS, Right, verbs_by_resource
from mirror.kube.permissions import Permission
from mirror.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from mirror.model import names

Json = dict[str, Any]

_INSTALLED = Path(__file__).parent / "rbac"
_IN_TREE = Path(__file__).parents[4] / "config" / "rbac"

NAMESPACE, ACCOUNT = "jobmirror-system", "jobmirror"
"""As the files have them."""
_SAMPLE_NAMESPACE = "team-a"
_WIDE, _NARROW, _TOKENS = "worker.yaml", "worker-namespaced.yaml", "worker-tokens.yaml"
_LOGS, _PODS, _WORKLOADS = "worker-logs.yaml", "worker-pods.yaml", "worker-workloads.yaml"
_PROGRESS = "worker-progress.yaml"
_DEPENDENCIES = "worker-dependencies.yaml"
DEPENDENCIES = ("configmaps", "secrets", "serviceaccounts")
"""What can go along, as ``Grant`` names it."""
SCORES: Mapping[str, str] = {
    "quota": "worker-quotas.yaml",
    "clusterQueue": "worker-cluster-queues.yaml",
    "allocatable": "worker-nodes.yaml",
}
"""The scores that take permissions on workers, as the setting ``placement.scores`` names them, and their files."""

_REQUESTS = "worker-pod-requests.yaml"
_CLUSTER_WIDE = frozenset(
    ("jobmirror-worker-cluster-queues", "jobmirror-worker-nodes", "jobmirror-worker-pod-requests")
)
"""Roles about what is in no namespace, or in all: they stay as they are where namespaces are chosen."""

KINDS: Mapping[str, Resource] = {
    kind.kind: kind
    for kind in (NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
}
"""In the order in which they are made."""


@dataclass(frozen=True, slots=True)
class GrantedKind:
    """A kind whose mirrors the manager may have there."""

    name: str
    """Of its roles: the kind's, in lower case; of one that is not built in its resource and group."""
    group: str
    plural: str
    more: tuple[Right, ...] = ()
    """To see whose a pod is, and whether what it names is there (``permissions.of_pod_owners``, ``of_needs``)."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a worker's owner gives.

    Args:
        namespace: of the account on the worker.
        namespaces: the worker's namespaces that mirrors may be in; empty: all, by a ClusterRole.
        create_namespaces: setting ``workers.createNamespaces``.
        logs: setting ``access.enabled``.
        watch_pods: setting ``workers.watchPods``.
        read_workloads: setting ``workers.readWorkloads``.
        seed_progress: setting ``workers.seedProgress``.
        dependencies: of ``DEPENDENCIES``; settings ``dependencies``.
        scores: of ``SCORES``; setting ``placement.scores``.
        pod_requests: the score ``allocatable`` deducts what pods request.
        renewal: setting ``workers.renewTokens``.
        kinds: what is mirrored beside Jobs; setting ``kinds``.
    """

    namespace: str = NAMESPACE
    namespaces: tuple[str, ...] = ()
    create_namespaces: bool = False
    logs: bool = False
    watch_pods: bool = False
    read_workloads: bool = False
    seed_progress: bool = False
    dependencies: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    pod_requests: bool = False
    renewal: bool = True
    kinds: tuple[GrantedKind, ...] = ()


def objects(grant: Grant) -> list[Json]:
    """Everything to make on the worker, in order."""
    found = [one for one in _documents(_WIDE) if not _is_role(one)]
    found += _namespaced(grant) if grant.namespaces else _cluster_wide(grant)
    for kind in grant.kinds:
        found += _in_namespaces(_of_kind(kind), grant.namespaces)
    if grant.renewal:
        found += _documents(_TOKENS)
    return [_settled(one, grant) for one in found]


def needed(namespaces: Sequence[str] = ()) -> list[Permission]:
    """What the manager cannot do without, in all namespaces or in these."""
    return list(_rights(one for one in objects(Grant(namespaces=tuple(namespaces), renewal=False)) if _is_role(one)))


def optional(namespace: str = NAMESPACE, namespaces: Sequence[str] = ()) -> dict[str, list[Permission]]:
    """What only some settings need, by what it is good for."""
    where = tuple(namespaces)
    create = [rule for one in _documents(_WIDE) for rule in one.get("rules", ()) if _creates_namespaces(rule)]
    return {
        "creating namespaces (workers.createNamespaces)": list(_rights([{"kind": "ClusterRole", "rules": create}])),
        "pods' trouble (workers.watchPods)": list(_rights(_in_namespaces(_documents(_PODS), where))),
        "logs, pods and events (access.enabled)": list(_rights(_in_namespaces(_documents(_LOGS), where))),
        **{
            f"{plural} that go along (dependencies)": list(_rights(_in_namespaces(_dependencies((plural,)), where)))
            for plural in DEPENDENCIES
        },
        **{
            f"score {score} (placement.scores)": list(_rights(_in_namespaces(_documents(file), where)))
            for score, file in SCORES.items()
        },
        "pods' requests (score allocatable)": list(_rights(_documents(_REQUESTS))),
        "why Kueue holds Jobs (workers.readWorkloads)": list(_rights(_in_namespaces(_documents(_WORKLOADS), where))),
        "progress of Jobs that move (workers.seedProgress)": list(
            _rights(_in_namespaces(_documents(_PROGRESS), where))
        ),
        "token renewal (workers.renewTokens)": list(
            _rights(_settled(one, Grant(namespace)) for one in _documents(_TOKENS))
        ),
    }


def _cluster_wide(grant: Grant) -> list[Json]:
    found = [one for one in _documents(_WIDE) if _is_role(one)]
    if not grant.create_namespaces:
        for one in found:
            if "rules" in one:
                one["rules"] = [rule for rule in one["rules"] if not _creates_namespaces(rule)]
    return found + _optional_documents(grant)


def _namespaced(grant: Grant) -> list[Json]:
    found: list[Json] = []
    for one in _documents(_NARROW):
        if one["metadata"]["namespace"] == _SAMPLE_NAMESPACE:
            found += _in_namespaces([one], grant.namespaces)
        else:
            found.append(one)
    if grant.create_namespaces:
        found += [
            one | ({"rules": list(filter(_creates_namespaces, one["rules"]))} if "rules" in one else {})
            for one in _documents(_WIDE)
            if one["kind"].startswith("ClusterRole")
        ]
    return found + _in_namespaces(_optional_documents(grant), grant.namespaces)


def _optional_documents(grant: Grant) -> list[Json]:
    files = (*((_LOGS,) if grant.logs else ()), *((_PODS,) if grant.watch_pods else ()))
    files = (*files, *((_WORKLOADS,) if grant.read_workloads else ()))
    files = (*files, *((_PROGRESS,) if grant.seed_progress else ()))
    files = (*files, *(SCORES[score] for score in grant.scores), *((_REQUESTS,) if grant.pod_requests else ()))
    return [one for file in files for one in _documents(file)] + _dependencies(grant.dependencies)


def _dependencies(plurals: Sequence[str]) -> list[Json]:
    """The rights for these kinds; nothing for none."""
    found = _documents(_DEPENDENCIES) if plurals else []
    for one in found:
        if "rules" in one:
            one["rules"] = [rule for rule in one["rules"] if set(rule["resources"]) & set(plurals)]
    return found


def _of_kind(kind: GrantedKind) -> list[Json]:
    """What ``config/rbac/kinds/worker-*.yaml`` say, for this kind."""
    name, group = f"jobmirror-worker-{kind.name}", "rbac.authorization.k8s.io"
    allowed = {(kind.group, kind.plural): list(MIRROR_VERBS)} | verbs_by_resource(kind.more)
    rules = [{"apiGroups": [key[0]], "resources": [key[1]], "verbs": verbs} for key, verbs in allowed.items()]
    head, meta = {"apiVersion": f"{group}/v1"}, {"name": name}
    return [
        {**head, "kind": "ClusterRole", "metadata": dict(meta), "rules": rules},
        {
            **head,
            "kind": "ClusterRoleBinding",
            "metadata": dict(meta),
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        },
    ]


def _in_namespaces(documents: Sequence[Json], namespaces: Sequence[str]) -> list[Json]:
    """Roles in each of the namespaces, in place of what can be given there; no namespaces: as they are."""
    if not namespaces:
        return list(documents)
    made = [one for one in documents if one["metadata"]["name"] in _CLUSTER_WIDE]
    documents = [one for one in documents if one not in made]
    for namespace in namespaces:
        for one in copy.deepcopy(list(documents)):
            one["kind"] = one["kind"].removeprefix("Cluster")
            one["metadata"]["namespace"] = namespace
            if "roleRef" in one:
                one["roleRef"]["kind"] = "Role"
            made.append(one)
    return made


def _settled(body: Json, grant: Grant) -> Json:
    """For the account's own namespace, which also tells the rights of two managers on one worker apart."""
    body = copy.deepcopy(body)
    meta = body["metadata"]
    meta["labels"] = {**meta.get("labels", {}), names.WORKER_RIGHTS: grant.namespace}
    suffix = "" if grant.namespace == NAMESPACE else f"-{grant.namespace}"
    if body["kind"] == "Namespace":
        meta["name"] = grant.namespace
    if _is_role(body):
        meta["name"] += suffix
    if meta.get("namespace") == NAMESPACE:
        meta["namespace"] = grant.namespace
    if "roleRef" in body:
        body["roleRef"]["name"] += suffix
        for subject in body["subjects"]:
            subject["namespace"] = grant.namespace
    return body


def _rights(documents: Iterator[Json] | Sequence[Json]) -> Iterator[Permission]:
    for one in documents:
        where = one.get("metadata", {}).get("namespace", "")
        for rule in one.get("rules", ()):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    plural, _, sub = resource.partition("/")
                    for name in rule.get("resourceNames", ("",)):
                        # A namespace counts as lying in itself.
                        inside = name if plural == "namespaces" else where
                        for verb in rule["verbs"]:
                            yield Permission(verb, group, plural, sub, name, inside)


def _creates_namespaces(rule: Json) -> bool:
    return bool(rule["resources"] == ["namespaces"] and rule["verbs"] == ["create"])


def _is_role(body: Json) -> bool:
    return "Role" in body["kind"]


def _documents(file: str) -> list[Json]:
    folder = _IN_TREE if _IN_TREE.is_dir() else _INSTALLED
    return list(yaml.safe_load_all((folder / file).read_text()))
