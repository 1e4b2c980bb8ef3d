"""The roles and bindings with which a cluster begins; without them nobody could do anything under RBAC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import msgspec

from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.authz import bootstrap_roles
from mirror.embedded.apiserver.authz.policy import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP
from mirror.embedded.apiserver.authz.rules import Rule
from mirror.embedded.apiserver.storage.mvcc import Storage

_AGGREGATE = f"{GROUP}/aggregate-to-"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_CONTROLLER = "system:controller:"
_WORDS = {
    "READ": "get,list,watch",
    "WRITE": "create,delete,deletecollection,patch,update",
    "ALL": "create,delete,deletecollection,get,list,patch,update,watch",
}


def store(storage: Storage, *, now: str, new_uid: Callable[[], str]) -> None:
    """Write what is not there yet; what is there is left alone, whatever it says."""
    for stored_as, objects in ((CLUSTER_ROLES, cluster_roles()), (CLUSTER_ROLE_BINDINGS, cluster_role_bindings())):
        for body in objects:
            if storage.get(stored_as, "", body["metadata"]["name"]) is not None:
                continue
            meta = body["metadata"] | {"uid": new_uid(), "creationTimestamp": now}

            def build(version: int, body: Json = body, meta: Json = meta) -> bytes:
                return msgspec.json.encode(body | {"metadata": meta | {"resourceVersion": str(version)}})

            storage.write(stored_as, "", meta["name"], build, replacing=None, labels=meta["labels"], uid=meta["uid"])


@cache
def cluster_roles() -> list[Json]:
    """The roles, those that aggregate others with the rules that come of it; the same list each time."""
    found = list(_read())
    rules = {name: own for name, _, _, own in found}
    parts: dict[str, list[str]] = {}
    for name, _, into, _ in found:
        for whole in into:
            parts.setdefault(whole, []).append(name)

    def all_rules(name: str) -> list[Rule]:
        return [*rules[name], *(rule for part in parts.get(name, ()) for rule in all_rules(part))]

    roles = []
    for name, aggregates, into, _ in found:
        body: Json = {"kind": "ClusterRole", "apiVersion": f"{GROUP}/v1", "metadata": _meta(name)}
        body["metadata"]["labels"] |= {f"{_AGGREGATE}{one}": "true" for one in into}
        body["rules"] = msgspec.to_builtins(all_rules(name))
        if aggregates:
            selectors = [{"matchLabels": {f"{_AGGREGATE}{one}": "true"}} for one in aggregates]
            body["aggregationRule"] = {"clusterRoleSelectors": selectors}
        roles.append(body)
    return roles


@cache
def cluster_role_bindings() -> list[Json]:
    """Who has them; the same list each time."""
    bindings = []
    for name, _, _, _ in _read():
        if name.startswith(_CONTROLLER):
            account = name.removeprefix(_CONTROLLER)
            subjects = [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]
        elif name in bootstrap_roles.GIVEN_TO:
            given = bootstrap_roles.GIVEN_TO[name]
            subjects = [{"kind": kind, "apiGroup": GROUP, "name": who} for kind, who in given]
        else:
            continue
        body: Json = {"kind": "ClusterRoleBinding", "apiVersion": f"{GROUP}/v1", "metadata": _meta(name)}
        body |= {"subjects": subjects} if subjects else {}
        body["roleRef"] = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        bindings.append(body)
    return bindings


def _meta(name: str) -> Json:
    return {"name": name, "labels": dict(_LABELS), "annotations": dict(_ANNOTATIONS)}


def _read() -> Iterator[tuple[str, list[str], list[str], list[Rule]]]:
    """Name, what it aggregates, what aggregates it, and its own rules."""
    name, aggregates, into, rules = "", list[str](), list[str](), list[Rule]()
    for line in bootstrap_roles.CLUSTER_ROLES.replace("\n      ", "").strip().splitlines():
        if line.startswith("  "):
            rules.append(_rule(line.split()))
            continue
        if name:
            yield name, aggregates, into, rules
        rest, _, outer = line.partition(" > ")
        name, _, inner = rest.partition(" = ")
        aggregates, into, rules = _words(inner), _words(outer), []
    yield name, aggregates, into, rules


def _rule(fields: list[str]) -> Rule:
    verbs = tuple(_WORDS.get(fields[0], fields[0]).split(","))
    if fields[1] == "urls":
        return Rule(verbs=verbs, non_resource_urls=tuple(fields[2].split(",")))
    groups = tuple("" if one == "-" else one for one in fields[1].split(","))
    names = tuple(fields[3].split(",")) if len(fields) > 3 else ()
    return Rule(verbs=verbs, api_groups=groups, resources=tuple(fields[2].split(",")), resource_names=names)


def _words(text: str) -> list[str]:
    return text.split(",") if text else []
