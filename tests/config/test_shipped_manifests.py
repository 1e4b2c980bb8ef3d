"""The samples and the roles in config/ are what they say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mirror.kinds.registry import JOB
from mirror.kube.objects import Meta, Object
from mirror.model import names
from mirror.model.durations import parse_duration
from mirror.workers.spec import read_spec

CONFIG = Path(__file__).parents[2] / "config"
JOBS = sorted((CONFIG / "samples").glob("*.yaml"))
ROLES = sorted((CONFIG / "rbac").glob("*.yaml"))

Right = tuple[str, str, str, str]
"""Of which Role, resource, only of this name, verb."""


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))


def rights(path: Path) -> Iterator[Right]:
    for document in documents(path):
        for rule in document.get("rules", []):
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", ["*"]):
                    for verb in rule["verbs"]:
                        yield document["kind"], resource, name, verb


def file_name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", JOBS, ids=file_name)
def test_a_sample_is_one_job_of_ours(path: Path) -> None:
    """Each sample can be applied as it is: one Job, named like its file, mirrored by us, not restarted in place.

    What its pods refer to comes before it.
    """
    *needed, job = documents(path)
    carried = {names.CARRY: "configmaps,secrets"}

    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job["metadata"] == {"name": path.stem, **({"annotations": carried} if needed else {})}
    found = {(one.kind, one.name) for one in JOB.references(JOB.draft(msgspec.json.encode(job)))}
    assert found == {(one["kind"], one["metadata"]["name"]) for one in needed}
    assert job["spec"]["managedBy"] == names.DEFAULT_MANAGED_BY
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("path", JOBS, ids=file_name)
def test_a_sample_tells_simulated_nodes_how_it_runs(path: Path) -> None:
    """Time and exit code are annotations of the pod template; real nodes get the same from the command."""
    *_, job = documents(path)
    annotations = job["spec"]["template"]["metadata"]["annotations"]

    assert 0 < parse_duration(annotations["e2e.jobmirror.io/run-for"]) <= 1
    assert annotations["e2e.jobmirror.io/exit-code"].isdecimal()


@pytest.mark.parametrize(
    "key",
    ["completionMode", "backoffLimit", "podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "suspend"],
)
def test_every_way_of_running_has_a_sample(key: str) -> None:
    """Each feature of Jobs that changes how they end is shown by a sample."""
    assert [path.name for path in JOBS if key in documents(path)[-1]["spec"]]


def test_the_sample_of_a_worker_reads_without_problems() -> None:
    """The Secret registers a worker with what its comments say."""
    (secret,) = documents(CONFIG / "worker-secret.yaml")
    assert set(secret["stringData"]) == {names.KUBECONFIG_KEY}
    metadata = secret["metadata"]
    stored = Object(
        Meta(name=metadata["name"], labels=metadata["labels"], annotations=metadata["annotations"]),
        data=msgspec.Raw(b'{"kubeconfig": "eA=="}'),
    )

    spec = read_spec(stored)

    assert metadata["labels"][names.WORKER] == "true"
    assert (spec.problems, spec.capacity, spec.weight) == ((), 500, 2.0)
    assert (spec.name, dict(spec.labels)) == ("east", {"name": "east", "region": "eu"})
    assert spec.namespaces == ("team-*", "research")


def test_the_manager_has_these_rights_on_its_cluster() -> None:
    """A right that is added or taken away is a decision; a Job's spec can never be written."""
    assert set(rights(CONFIG / "rbac" / "management.yaml")) == {
        ("ClusterRole", "jobs", "*", "get"),
        ("ClusterRole", "jobs", "*", "list"),
        ("ClusterRole", "jobs", "*", "watch"),
        ("ClusterRole", "jobs/status", "*", "patch"),
        ("ClusterRole", "events", "*", "create"),
        ("ClusterRole", "namespaces", "kube-system", "get"),
        ("Role", "secrets", "*", "list"),
        ("Role", "secrets", "*", "watch"),
        ("Role", "configmaps", names.WORKERS_CONFIGMAP, "get"),
        ("Role", "configmaps", names.WORKERS_CONFIGMAP, "patch"),
        ("Role", "configmaps", "*", "create"),
        ("Role", "leases", names.LEASE, "get"),
        ("Role", "leases", names.LEASE, "update"),
        ("Role", "leases", "*", "create"),
    }


def test_the_manager_has_these_rights_on_a_worker() -> None:
    """Jobs, one namespace's uid, and optionally new namespaces: nothing else is touched there (D18)."""
    assert set(rights(CONFIG / "rbac" / "worker.yaml")) == {
        *(("ClusterRole", "jobs", "*", verb) for verb in ("get", "list", "watch", "create", "patch", "delete")),
        ("ClusterRole", "namespaces", "kube-system", "get"),
        ("ClusterRole", "namespaces", "*", "create"),
    }


def test_the_job_controller_has_these_rights() -> None:
    """What it needs to run Jobs without managedBy; it never writes a Job's spec, and reads no Secret."""
    assert set(rights(CONFIG / "rbac" / "job-controller.yaml")) == {
        *(("ClusterRole", "jobs", "*", verb) for verb in ("get", "list", "watch", "delete")),
        ("ClusterRole", "jobs/status", "*", "update"),
        ("ClusterRole", "jobs/finalizers", "*", "update"),
        *(("ClusterRole", "pods", "*", verb) for verb in ("list", "watch", "create", "patch", "delete")),
        *(("ClusterRole", "events", "*", verb) for verb in ("create", "patch")),
        ("Role", "leases", "*", "create"),
        *(("Role", "leases", names.JOB_CONTROLLER_LEASE, verb) for verb in ("get", "update")),
    }


@pytest.mark.parametrize("cluster", ["management", "worker"])
def test_chosen_namespaces_need_no_cluster_role(cluster: str) -> None:
    """The namespaced variant grants the same rights by Roles alone; only creating namespaces is not among them."""
    everywhere = {right[1:] for right in rights(CONFIG / "rbac" / f"{cluster}.yaml") if right[0] == "ClusterRole"}
    chosen = set(rights(CONFIG / "rbac" / f"{cluster}-namespaced.yaml"))

    assert {kind for kind, *_ in chosen} == {"Role"}
    assert {right[1:] for right in chosen} == everywhere - {("namespaces", "*", "create")}


@pytest.mark.parametrize("path", ROLES, ids=file_name)
def test_every_rule_says_what_it_is_for(path: Path) -> None:
    """Each rule has a comment right above it that names the feature."""
    lines = path.read_text().splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("- apiGroups:")]

    assert rules
    assert [lines[number] for number in rules if not re.match(r"# .+\.$", lines[number - 1])] == []


@pytest.mark.parametrize("path", ROLES, ids=file_name)
def test_every_role_is_bound_to_the_manager(path: Path) -> None:
    """No Role is left without its binding, and no binding leads nowhere."""
    found = documents(path)
    named = {
        (d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"]) for d in found if d["kind"].endswith("Role")
    }
    bindings = [document for document in found if document["kind"].endswith("Binding")]

    assert named == {(b["roleRef"]["kind"], b["metadata"].get("namespace"), b["roleRef"]["name"]) for b in bindings}
    manager = [{"kind": "ServiceAccount", "name": "jobmirror", "namespace": "jobmirror-system"}]
    others = {b["metadata"]["name"]: b["subjects"] for b in bindings if b["subjects"] != manager}
    # Where access is may be read by everybody whom the cluster knows.
    everybody = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]
    assert others in ({}, {"jobmirror-access-reader": everybody})
