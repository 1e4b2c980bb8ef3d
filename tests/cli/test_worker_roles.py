"""What a worker's owner gives, and what the manager asks for: both are what ``config/rbac`` says."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mirror.cli.worker.arguments import granted_kinds
from mirror.cli.worker.operations.roles import DEPENDENCIES, NAMESPACE, SCORES, Grant, needed, objects, optional
from mirror.kinds.declared.choosing import built_in
from mirror.kube.permissions import Permission
from mirror.model import names

RBAC = Path(__file__).parents[2] / "config" / "rbac"
SPARSE = Grant(renewal=False)


def shipped(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((RBAC / file).read_text()))


def without_label(body: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in body["metadata"].items() if key != "labels"}
    return {**body, "metadata": meta}


def named(grant: Grant) -> set[str]:
    return {f"{one['kind']} {one['metadata'].get('namespace', '')}/{one['metadata']['name']}" for one in objects(grant)}


def test_everything_granted_is_what_the_files_say() -> None:
    """Word for word: an operator who applies the files gets the same."""
    grant = Grant(create_namespaces=True, logs=True, watch_pods=True, scores=tuple(SCORES), pod_requests=True)
    optional = ("worker-logs.yaml", "worker-pods.yaml", *SCORES.values(), "worker-pod-requests.yaml")
    files = ("worker.yaml", *optional, "worker-tokens.yaml")

    assert list(map(without_label, objects(grant))) == [one for file in files for one in shipped(file)]


def test_what_is_not_asked_for_is_not_given() -> None:
    """The account, Jobs, and which cluster it is: no more."""
    (role,) = [one for one in objects(SPARSE) if one["kind"] == "ClusterRole"]

    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        (["jobs"], ["get", "list", "watch", "create", "patch", "delete"]),
        (["namespaces"], ["get"]),
    ]


def test_chosen_namespaces_get_roles_only() -> None:
    """The same rights, in each of them, and nothing for the whole cluster."""
    found = named(Grant(namespaces=("a", "b"), logs=True, watch_pods=True))

    assert not [one for one in found if one.startswith("ClusterRole")]
    for namespace in ("a", "b"):
        assert {f"Role {namespace}/jobmirror-worker", f"RoleBinding {namespace}/jobmirror-worker-logs"} <= found
        assert {f"Role {namespace}/jobmirror-worker-pods", f"RoleBinding {namespace}/jobmirror-worker-pods"} <= found
    assert "Role kube-system/jobmirror-identity" in found


def test_every_binding_binds_a_role_that_is_made_to_the_account_that_is_made() -> None:
    """Also where the manager lives in another namespace than usual."""
    bodies = objects(Grant("elsewhere", ("a",), create_namespaces=True, logs=True))
    made = {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in bodies}

    for one in bodies:
        if not one["kind"].endswith("Binding"):
            continue
        where = one["metadata"].get("namespace") if one["roleRef"]["kind"] == "Role" else None
        assert (one["roleRef"]["kind"], where, one["roleRef"]["name"]) in made
        assert one["subjects"] == [{"kind": "ServiceAccount", "name": "jobmirror", "namespace": "elsewhere"}]
    assert ("ServiceAccount", "elsewhere", "jobmirror") in made
    assert ("Role", "elsewhere", "jobmirror-worker-tokens-elsewhere") in made


def test_two_managers_on_one_worker_do_not_share_roles() -> None:
    """Names are told apart by the manager's namespace, as the label is."""
    ours = {one for one in named(Grant()) if "Role" in one}
    theirs = {one for one in named(Grant("elsewhere")) if "Role" in one}

    assert not ours & theirs
    assert {one["metadata"]["labels"][names.WORKER_RIGHTS] for one in objects(Grant("elsewhere"))} == {"elsewhere"}


@pytest.mark.parametrize("namespaces", [(), ("a",)], ids=["all namespaces", "one namespace"])
def test_what_goes_along_is_granted_kind_by_kind(namespaces: tuple[str, ...]) -> None:
    """Secrets only where they were asked for."""
    made = objects(Grant(namespaces=namespaces, dependencies=("configmaps",), renewal=False))
    (role,) = [one for one in made if one["metadata"]["name"] == "jobmirror-worker-dependencies" and "rules" in one]

    assert role["kind"] == ("Role" if namespaces else "ClusterRole")
    assert [rule["resources"] for rule in role["rules"]] == [["configmaps"]]
    assert not [one for one in named(SPARSE) if "dependencies" in one]


def test_scores_are_granted_one_by_one() -> None:
    """Those of quotas lie in namespaces, and are given there where namespaces are chosen."""
    (role,) = [
        one for one in objects(Grant(namespaces=("a",), scores=("quota",))) if "quotas" in one["metadata"]["name"]
    ][:1]

    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "a")
    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [(["resourcequotas"], ["list"])]
    assert not [one for one in named(SPARSE) if "quotas" in one]


def test_what_is_in_no_namespace_is_granted_for_the_cluster() -> None:
    """ClusterQueues, nodes and what pods request of them, whatever namespaces are chosen; LocalQueues in those only."""
    found = named(Grant(namespaces=("a", "b"), scores=("clusterQueue", "allocatable"), pod_requests=True))

    assert {one for one in found if "ClusterRole /" in one or ("-queues" in one and "Binding" not in one)} == {
        "ClusterRole /jobmirror-worker-nodes",
        "ClusterRole /jobmirror-worker-pod-requests",
        "ClusterRole /jobmirror-worker-cluster-queues",
        "Role a/jobmirror-worker-local-queues",
        "Role b/jobmirror-worker-local-queues",
    }
    assert "ClusterRoleBinding /jobmirror-worker-cluster-queues" in found
    assert "RoleBinding b/jobmirror-worker-local-queues" in found


@pytest.mark.parametrize("name", [*built_in()])
def test_kinds_are_granted_as_their_files_say(name: str) -> None:
    """By any of a kind's names."""
    made = list(map(without_label, objects(Grant(kinds=granted_kinds(name.lower())))))

    assert all(one in made for one in shipped(f"kinds/worker-{name.lower()}.yaml"))


def test_kinds_of_ones_own_are_granted_by_their_resource() -> None:
    """With or without a version; in chosen namespaces by Roles there."""
    (kind,) = granted_kinds("simulations.v1beta1.example.com")
    assert (kind,) == granted_kinds("simulations.example.com")
    roles = [
        one for one in objects(Grant(namespaces=("a",), kinds=(kind,))) if "simulations" in one["metadata"]["name"]
    ]

    assert [(one["kind"], one["metadata"]["namespace"]) for one in roles] == [("Role", "a"), ("RoleBinding", "a")]
    assert (roles[0]["rules"][0]["apiGroups"], roles[0]["rules"][0]["resources"]) == (["example.com"], ["simulations"])
    assert granted_kinds("Job") == granted_kinds("") == ()


def test_every_file_of_a_worker_is_granted_by_an_option() -> None:
    """A file of a new feature is not forgotten here."""
    made = set()
    for namespaces in ((), ("team-a",)):
        grant = Grant(
            namespaces=namespaces,
            create_namespaces=True,
            logs=True,
            watch_pods=True,
            read_workloads=True,
            seed_progress=True,
            dependencies=DEPENDENCIES,
            scores=tuple(SCORES),
            pod_requests=True,
        )
        made |= {one["metadata"]["name"] for one in objects(grant)}

    assert made >= {one["metadata"]["name"] for file in RBAC.glob("worker*.yaml") for one in shipped(file.name)}


@pytest.mark.parametrize("namespaces", [(), ("a",)], ids=["all namespaces", "one namespace"])
def test_what_is_asked_for_is_what_is_given(namespaces: tuple[str, ...]) -> None:
    """The check needs nothing that ``add`` does not give."""
    where = namespaces[0] if namespaces else ""
    verbs = ("get", "list", "watch", "create", "patch", "delete")

    assert needed(namespaces) == [
        *(Permission(verb, "batch", "jobs", namespace=where) for verb in verbs),
        Permission("get", "", "namespaces", name="kube-system", namespace="kube-system"),
    ]


def test_optional_rights_are_told_apart_by_what_they_are_for() -> None:
    """One group for each setting."""
    creating, pods, logs, *others, renewal = optional("elsewhere", ("a",)).values()
    dependencies, (*scores, requests, workloads, progress) = others[: len(DEPENDENCIES)], others[len(DEPENDENCIES) :]

    assert creating == [Permission("create", "", "namespaces")]
    assert {right.namespace for right in (*logs, *pods)} == {"a"}
    assert [{(right.resource, right.namespace) for right in rights} for rights in dependencies] == [
        {("configmaps", "a")},
        {("secrets", "a")},
        {("serviceaccounts", "a")},
    ]
    kueue = "kueue.x-k8s.io"
    assert scores == [
        [Permission("list", "", "resourcequotas", namespace="a")],
        [Permission("list", kueue, "clusterqueues"), Permission("list", kueue, "localqueues", namespace="a")],
        [Permission("list", "", "nodes")],
    ]
    assert requests == [Permission("list", "", "pods")]
    assert workloads == [Permission("list", kueue, "workloads", namespace="a")]
    assert progress == [Permission("patch", "batch", "jobs", "status", namespace="a")]
    token = Permission("create", "", "serviceaccounts", "token", "jobmirror", "elsewhere")
    assert renewal == [token]
    assert str(token) == "create serviceaccounts/token jobmirror in elsewhere"
    assert NAMESPACE not in str(creating)
