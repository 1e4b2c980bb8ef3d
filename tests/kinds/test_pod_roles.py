"""Roles of pods: which part of an object they are."""

from __future__ import annotations

import pytest

from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.pod_roles import NO_ROLES, PodRoles
from mirror.settings.kinds import KindEntry

ROLES = PodRoles("role", "number", ("launcher",))
OF = {
    "with a number": ({"role": "workers", "number": "1"}, "workers/1"),
    "without one": ({"role": "workers"}, "workers"),
    "none": ({"number": "1"}, ""),
    "no text": ({"role": 7}, ""),
}


@pytest.mark.parametrize(("labels", "role"), OF.values(), ids=OF)
def test_a_role_is_read_of_labels(labels: dict[str, object], role: str) -> None:
    """And only of labels that a kind names."""
    assert ROLES.of(labels) == role
    assert NO_ROLES.of(labels) == ""


def test_a_role_without_a_number_means_all_of_it() -> None:
    """As ``workers`` and ``workers/1``."""
    meant = [wanted for wanted in ("", "workers", "workers/1", "workers/2", "w") if ROLES.is_meant(wanted, "workers/1")]
    assert meant == ["", "workers", "workers/1"]
    assert ROLES.selector("workers/1") == "role=workers,number=1"
    assert ROLES.selector("workers") == "role=workers"


def test_pods_without_the_label_may_have_a_role_of_their_own() -> None:
    """That of a RayJob which submits it is none of its RayCluster's."""
    roles = PodRoles("type", first=("submitter",), without="submitter")
    assert [roles.of(labels) for labels in ({}, {"type": "head"}, {"type": 7})] == ["submitter", "head", "submitter"]
    assert (roles.selector("submitter"), roles.selector("head")) == ("!type", "type=head")
    assert roles.rank("submitter") < roles.rank("head")


@pytest.mark.parametrize("wanted", ["", "a,b=c", "a/b", "/", "x" * 64, "a/1/2", "a b"])
def test_what_is_no_role_is_refused(wanted: str) -> None:
    """It goes into a selector."""
    assert ROLES.problem(wanted).startswith("not a role")


def test_what_a_kind_has_not_is_refused() -> None:
    """Roles at all, or their numbers."""
    assert ROLES.problem("workers/1") == ROLES.problem("a_b.C") == ""
    assert "none" in NO_ROLES.problem("workers")
    assert "no number" in PodRoles("role").problem("workers/1")


@pytest.mark.parametrize(
    ("name", "labels", "first"),
    [
        ("MPIJob", {"training.kubeflow.org/job-role": "launcher"}, "launcher"),
        ("PyTorchJob", {"training.kubeflow.org/replica-type": "master"}, "master"),
        ("TFJob", {"training.kubeflow.org/replica-type": "chief"}, "chief"),
        ("RayJob", {"batch.kubernetes.io/job-name": "train"}, "submitter"),
        ("RayJob", {"ray.io/node-type": "head"}, "head"),
        ("TrainJob", {"jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": "0"}, "node/0"),
    ],
)
def test_the_log_of_most_interest_comes_first(name: str, labels: dict[str, object], first: str) -> None:
    """As the controllers label their pods; workers come after."""
    roles = kinds_of([KindEntry(kind=name)])[name].pod_roles
    assert roles.of(labels) == first
    assert roles.rank(first) < roles.rank("worker")
