"""A new worker as objects, and what the manager would refuse of it."""

import base64
from typing import Any

import pytest
import yaml

from mirror.cli.worker.operations.enrolment import Enrolment, changes_for, check_enrolment, kubeconfig_for, secret_for
from mirror.cli.worker.operations.roles import Grant
from mirror.cli.worker.operations.sites import ClusterError
from mirror.kube.kubeconfig import Cluster, check_kubeconfig
from mirror.kube.objects import Meta, Object
from mirror.model import names
from mirror.workers.tokens import bearer_of, with_token

EAST = Cluster("https://east.example:6443")


def wanted(name: str = "east", **more: Any) -> Enrolment:
    return Enrolment(name, Grant(), "jobmirror-system", **more)


def test_the_kubeconfig_is_one_that_the_manager_takes() -> None:
    """Everything inline; nothing of what workers are refused for."""
    found = check_kubeconfig(kubeconfig_for(EAST, "t.o.k"), {})

    assert (found.server, found.user.token) == (EAST.server, "t.o.k")


def test_its_token_can_be_renewed_in_place() -> None:
    """However long it is: YAML does not fold it."""
    long = "a" * 3000
    kubeconfig = kubeconfig_for(EAST, long)

    assert bearer_of(with_token(kubeconfig, "new")) == "new"
    assert with_token(kubeconfig, "new") == kubeconfig_for(EAST, "new")


@pytest.mark.parametrize(
    ("enrolment", "cluster", "said"),
    [
        (wanted("East"), EAST, "lower-case letters"),
        (wanted("management"), EAST, "take another name"),
        (wanted(labels={names.WORKER: "false"}), EAST, "reserved for the manager"),
        (wanted(annotations={"namespaces": "Team_A"}), EAST, "namespace names or globs"),
        (wanted(annotations={"namespace-prefix": "UP"}), EAST, "lower-case letters, digits and '-'"),
        (wanted(), Cluster("https://127.0.0.1:6443"), "--allow loopback"),
        (wanted(), Cluster("https://169.254.169.254"), "is not an allowed address"),
        (wanted(), Cluster("http://east.example"), "--allow http"),
        (wanted(), Cluster("https://east.example", verify=False), "--allow insecureSkipTLSVerify"),
    ],
    ids=["upper case", "reserved", "our label", "namespaces", "prefix", "loopback", "metadata", "http", "no TLS check"],
)
def test_what_the_manager_would_refuse_is_refused_at_once(enrolment: Enrolment, cluster: Cluster, said: str) -> None:
    """Before anything is made anywhere, with what to do about it."""
    with pytest.raises(ClusterError, match=said):
        check_enrolment(enrolment, cluster)


def test_what_is_opted_in_to_is_accepted() -> None:
    """``--allow`` says what the manager's settings say."""
    check_enrolment(wanted(allow={"loopback": True}), Cluster("https://127.0.0.1:6443"))


def test_a_secret_that_is_there_keeps_what_was_not_said() -> None:
    """A patch names only what is to be; and only of the Secret that was looked at."""
    found = Object(Meta(name="east", uid="u-1", resource_version="7"))
    body = changes_for(wanted(labels={"region": "eu"}, annotations={"capacity": "5"}), b"new", found)

    assert body["metadata"] == {
        "uid": "u-1",
        "resourceVersion": "7",
        "labels": {"region": "eu", names.WORKER: "true"},
        "annotations": {names.CAPACITY: "5"},
    }
    assert base64.b64decode(body["data"]["kubeconfig"]) == b"new"


def test_a_new_secret_registers_the_worker() -> None:
    """With its labels and annotations, and the kubeconfig under its key."""
    body = secret_for(wanted(annotations={"weight": "2"}), b"raw")

    assert body["metadata"]["labels"] == {names.WORKER: "true"}
    assert body["metadata"]["annotations"] == {names.WEIGHT: "2"}
    assert yaml.safe_dump(body)
