"""The rights that ``config/rbac`` ships, given to accounts of a test's own, so that managers run with exactly them.

The files name one namespace and cluster-wide Roles of fixed names; several installations share a cluster here, so each
gets copies in its own namespace, under names of its own. Used by ``manager`` for every manager and worker of the tests,
and by the tests that look at single rights. Not here: rights that tests write themselves (``access``).
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import until

RBAC = Path(__file__).resolve().parents[1] / "config/rbac"
SHIPPED_NAMESPACE, ACCOUNT, CHOSEN = "jobmirror-system", "jobmirror", "team-a"
"""Namespace and account that the files name; the namespace that stands there for each chosen one."""

_RBAC_API = "/apis/rbac.authorization.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_PLURALS = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles"}
_RIGHTS_OF = {"webhook": "webhook", "access": "access", "jobController": "job-controller"}
"""Parts of the settings, and the files of their rights."""
_GIVE_WAY = {"jobmirror-manager", "jobmirror-webhook"}
"""ClusterRoles that Roles in chosen namespaces take the place of."""
_OF_A_MANAGER = re.compile(rf"system:serviceaccount:jobmirror-[0-9a-f]{{8}}:{ACCOUNT}")
_LOOKED_AT_BY_DIFF = re.compile(r"/(limitranges|persistentvolumeclaims|priorityclasses|runtimeclasses)\b")


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One verb on one resource; namespace and name are empty where it holds for all of them."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        about = " ".join(text for text in (self.name, f"in {self.namespace}" if self.namespace else "") if text)
        return f"{self.verb} {self.resource} {about}".strip()

    def allows(self, entry: AuditEntry) -> bool:
        """Whether this right is one that allowed the request."""
        resource = f"{entry.resource}/{entry.subresource}" if entry.subresource else entry.resource
        return (
            (self.verb, self.resource) == (entry.verb, resource)
            and self.namespace in ("", entry.namespace)
            and self.name in ("", entry.name)
        )


def on_management(settings: Json) -> list[str]:
    """The files whose rights these settings need on the management cluster."""
    enabled = {part for part in _RIGHTS_OF if settings.get(part, {}).get("enabled")}
    files = ["management", *(["management-tokens"] if _renews_tokens(settings) else [])]
    files += ["management-create-namespaces"] if settings.get("workers", {}).get("createNamespaces") else []
    files += ["management-priority-classes"] if settings.get("placement", {}).get("priorityClasses") else []
    files += ["management-namespace-policies"] if settings.get("workers", {}).get("onLossOfNamespaces") else []
    files += ["management-sharding"] if settings.get("sharding", {}).get("slots", 1) > 1 else []
    files += ["management-dependencies"] if settings.get("dependencies") else []
    files += [file for part, file in _RIGHTS_OF.items() if part in enabled]
    declared = elsewhere(settings)
    files += ["management-secret-sources"] if declared["clusters"] else []
    files += ["management-cluster-profiles"] if declared["fleet"] else []
    files += _of_kinds("management", settings)
    if enabled & {"webhook", "access"}:
        files.append("https")
    if settings.get("namespaces"):
        files += ["management-namespaced", *(["webhook-namespaced"] if "webhook" in enabled else [])]
    return files


def elsewhere(settings: Json) -> dict[str, list[str]]:
    """The namespaces that get what the files give in their examples, besides ``CHOSEN``."""
    workers = settings.get("workers", {})
    sources = [namespace for source in workers.get("secretSources", ()) for namespace in source["namespaces"]]
    profiles = workers.get("clusterProfiles", {})
    return {
        "clusters": sorted(set(sources)),
        "fleet": profiles.get("namespaces", []) if profiles.get("enabled") else [],
    }


def on_worker(settings: Json) -> list[str]:
    """The files whose rights these settings need on a worker."""
    return [
        "worker-namespaced" if settings.get("namespaces") else "worker",
        *(["worker-tokens"] if _renews_tokens(settings) else []),
        *(["worker-pods"] if settings.get("workers", {}).get("watchPods") == "labelled" else []),
        *(["worker-workloads"] if settings.get("workers", {}).get("readWorkloads") else []),
        *(["worker-progress"] if settings.get("workers", {}).get("seedProgress") else []),
        *(["worker-quotas"] if _compares(settings, "quota") else []),
        *(["worker-nodes", "worker-pod-requests"] if _compares(settings, "allocatable") else []),
        *(["worker-cluster-queues"] if _compares(settings, "clusterQueue") else []),
        *(["worker-dependencies"] if settings.get("dependencies") else []),
        *(["worker-logs"] if settings.get("access", {}).get("enabled") else []),
        *_of_kinds("worker", settings),
    ]


def _of_kinds(side: str, settings: Json) -> list[str]:
    """The files of kinds that are switched on by name, also with something changed."""
    entries = (entry if isinstance(entry, str) else entry["kind"] for entry in settings.get("kinds", ()))
    files = (f"kinds/{side}-{kind.lower()}" for kind in entries)
    return [file for file in files if (RBAC / f"{file}.yaml").exists()]


def read(
    *files: str, namespace: str, chosen: Iterable[str] = (), others: Mapping[str, list[str]] | None = None
) -> list[Json]:
    """The Roles and bindings of these files, for an installation in this namespace.

    Args:
        files: names in ``config/rbac`` without their ending.
        namespace: of the installation; it becomes part of the names of what is not in it.
        chosen: the namespaces that get what the files give in ``team-a``; with some, nothing is given on the Jobs of
            the whole management cluster.
        others: the same for other examples (``elsewhere``).
    """
    chosen, found = list(chosen), list[Json]()
    for file in files:
        for document in yaml.load_all((RBAC / f"{file}.yaml").read_text(), Loader=yaml.CSafeLoader):
            kind, name = document["kind"], document["metadata"]["name"]
            gives_way = chosen and kind.startswith("ClusterRole") and name in _GIVE_WAY
            if kind in ("Namespace", "ServiceAccount") or gives_way:
                continue
            examples = {CHOSEN: chosen, **(others or {})}
            places = examples.get(document["metadata"].get("namespace"), [""])
            found += [_moved(document, namespace, place) for place in places]
    return found


def rights(objects: Iterable[Json]) -> Iterator[Permission]:
    """Every single right that the Roles among these give."""
    for one in objects:
        yield from (right for right, _ in _one_by_one(one))


def without(objects: Iterable[Json], lacking: Permission) -> list[Json]:
    """Copies that give each right by a rule of its own, and this one not at all."""
    return [
        {**one, "rules": [rule for right, rule in _one_by_one(one) if right != lacking]} if "rules" in one else one
        for one in copy.deepcopy(list(objects))
    ]


def spare(given: set[Permission], entries: Iterable[AuditEntry], user: str) -> set[Permission]:
    """The rights without which all that the user did would have been allowed as well, by the others."""
    made = {
        (entry.verb, entry.resource, entry.subresource, entry.namespace, entry.name): entry
        for entry in entries
        if entry.user == user and not entry.is_forbidden
    }
    by = [[right for right in given if right.allows(entry)] for entry in made.values()]
    return given - {allowing[0] for allowing in by if len(allowing) == 1}


async def account(plane: ControlPlane, namespace: str, objects: Iterable[Json]) -> Path:
    """A kubeconfig of the account ``jobmirror`` of this namespace, with the rights of these objects."""
    path, given = await plane.service_account_kubeconfig(namespace, ACCOUNT), list(objects)
    async with Client(plane.kubeconfig) as client:
        for one in given:
            await put(client, one)
        for question in _questions(given, namespace):
            await until(partial(client.create, _REVIEWS, question), lambda found: found["status"]["allowed"])
    return path


async def withdraw(plane: ControlPlane, objects: Iterable[Json]) -> None:
    """Remove these objects, those that are there."""
    async with Client(plane.kubeconfig) as client:
        for one in objects:
            try:
                await client.delete(f"{_collection(one)}/{one['metadata']['name']}")
            except StatusError as error:
                if error.status != 404:
                    raise


def refused(entries: Iterable[AuditEntry]) -> list[str]:
    """What accounts of ``manager.ManagerProcess`` asked for and lacked the right to.

    But for what ``diff`` looks at where an operator lets it (docs/access.md), and says so where not.
    """
    return [
        f"{entry.user}: {entry.verb} {entry.uri}"
        for entry in entries
        if entry.is_forbidden and _OF_A_MANAGER.fullmatch(entry.user) and not _LOOKED_AT_BY_DIFF.search(entry.uri)
    ]


def user_of(namespace: str) -> str:
    """What the audit log calls the account of an installation."""
    return f"system:serviceaccount:{namespace}:{ACCOUNT}"


def _compares(settings: Json, name: str) -> bool:
    return any(score["name"] == name for score in settings.get("placement", {}).get("scores", ()))


def _renews_tokens(settings: Json) -> bool:
    return bool(settings.get("workers", {}).get("renewTokens", True))


def _one_by_one(role: Json) -> Iterator[tuple[Permission, Json]]:
    """The rights that an object gives, each with a rule that gives it alone."""
    namespace = role["metadata"].get("namespace", "")
    for rule in role.get("rules", ()):
        for resource, name in itertools.product(rule["resources"], rule.get("resourceNames", [""])):
            only = {"resourceNames": [name]} if name else {}
            for verb in rule["verbs"]:
                single = {"apiGroups": rule["apiGroups"], "resources": [resource], "verbs": [verb], **only}
                yield Permission(verb, resource, namespace, name), single


def _questions(objects: Iterable[Json], namespace: str) -> Iterator[Json]:
    """What to ask a server to see that it has heard of each binding to the account: it may be a little behind."""
    objects = list(objects)
    roles = {(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")): one for one in objects}
    for one in objects:
        place = one["metadata"].get("namespace", "")
        if not any(subject["kind"] == "ServiceAccount" for subject in one.get("subjects", ())):
            continue
        kind, name = one["roleRef"]["kind"], one["roleRef"]["name"]
        role = roles[kind, name, place if kind == "Role" else None]
        for rule in role["rules"][:1]:
            resource, _, subresource = rule["resources"][0].partition("/")
            asked = {"group": rule["apiGroups"][0], "resource": resource, "subresource": subresource}
            asked |= {"verb": rule["verbs"][0], "namespace": place, "name": rule.get("resourceNames", [""])[0]}
            yield {"spec": {"user": user_of(namespace), "resourceAttributes": asked}}


async def put(client: Client, body: Json) -> None:
    """Create one of them, or replace what has its name."""
    collection = _collection(body)
    try:
        await client.create(collection, body)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
        await client.call("PUT", f"{collection}/{body['metadata']['name']}", body)


def _collection(body: Json) -> str:
    namespace = body["metadata"].get("namespace", "")
    plural = _PLURALS.get(body["kind"], "rolebindings")
    return f"{_RBAC_API}/namespaces/{namespace}/{plural}" if namespace else f"{_RBAC_API}/{plural}"


def _moved(document: Json, namespace: str, chosen: str) -> Json:
    """A copy for an installation of another namespace; what is not in its namespace gets its name at the end."""
    one = copy.deepcopy(document)
    metadata = one["metadata"]
    is_own = metadata.get("namespace") == SHIPPED_NAMESPACE
    if is_own:
        metadata["namespace"] = namespace
    else:
        metadata["name"] += f"-{namespace}"
        if chosen:
            metadata["namespace"] = chosen
        if "roleRef" in one:
            one["roleRef"]["name"] += f"-{namespace}"
    for subject in one.get("subjects", ()):
        subject["namespace"] = namespace
    return one
