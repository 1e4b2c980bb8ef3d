"""What Secrets of others and ClusterProfiles say: hostile, huge and malformed ones, too."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from doubles.jobs import as_object
from doubles.profiles import profile, secret
from hypothesis import given
from hypothesis import strategies as st

from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.kube.objects import Object
from mirror.kube.resources import SECRETS
from mirror.model import names
from mirror.settings.schema import SecretSource
from mirror.workers import cluster_profiles, declared_secrets
from mirror.workers.cluster_profiles import KUBECONFIG_READER, OCM, SECRET_READER, BadProfile, SecretRef, access_of
from mirror.workers.declarations import Declaration, Declarations, Key, Origin

OWN = "jobmirror-system"
SOURCE = SecretSource(label_selector="a", namespaces=("clusters",), key="value")
BY_LABEL = SecretSource(label_selector="a", namespaces=("clusters",), key="value", name_from_label="cluster")


def found(name: str = "prod", *, labels: dict[str, str] | None = None, **data: str) -> Object:
    return as_object(secret(name, "clusters", labels=labels, **data))


# -- Secrets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "is_one"),
    [
        pytest.param(found(value="x"), True, id="with the key"),
        pytest.param(found(other="x"), False, id="certificates of Cluster API"),
        pytest.param(found(labels={names.WORKER: "true"}, value="x"), False, id="one of ours"),
        pytest.param(as_object({"metadata": {"name": "x"}, "data": ["value"]}), False, id="a list for data"),
        pytest.param(as_object({"metadata": {"name": "x"}}), False, id="no data"),
    ],
)
def test_a_secret_declares_a_worker_if_it_has_the_key(given: Object, is_one: bool) -> None:
    """Whatever else the selector finds is nothing of ours."""
    assert declared_secrets.declares(given, SOURCE) is is_one


def test_labels_are_the_workers_without_internal_ones_and_bounded() -> None:
    """Ours say nothing of a cluster, nor do those of tools."""
    labels = {f"l{number:03}": "x" for number in range(100)} | {names.ORIGIN: "x", "kubectl.kubernetes.io/x": "y"}
    kept = declared_secrets.worker_labels(labels)
    assert len(kept) == declared_secrets.MOST_LABELS
    assert names.ORIGIN not in kept
    assert "kubectl.kubernetes.io/x" not in kept


@pytest.mark.parametrize(
    ("given", "source", "name", "problem"),
    [
        pytest.param(found(value="k"), SOURCE, "prod", "", id="by its own name"),
        pytest.param(found(labels={"cluster": "blue"}, value="k"), BY_LABEL, "blue", "", id="by a label"),
        pytest.param(found(value="k"), BY_LABEL, "", "metadata.labels[cluster]: is missing", id="without the label"),
        pytest.param(found(labels={"cluster": "A_b"}, value="k"), BY_LABEL, "", "is no name", id="no name"),
        pytest.param(found("management", value="k"), SOURCE, "management", "take another name", id="reserved"),
        pytest.param(found(value=""), SOURCE, "prod", "data.value: is missing", id="empty"),
        pytest.param(found(value="k" * 300_000), SOURCE, "prod", "is longer than 256 KiB", id="huge"),
    ],
)
def test_what_a_secret_declares(given: Object, source: SecretSource, name: str, problem: str) -> None:
    """A worker, or a problem that names the field."""
    declared = declared_secrets.declared_by(declared_secrets.reduced(given, source), source)
    assert declared.name == name
    refused = declared.spec.refused if declared.spec is not None else None
    assert problem in (declared.problem or str(refused or ""))
    assert bool(declared.problem or refused) == bool(problem)


# -- names -------------------------------------------------------------------------------------------------------------


def declaration(name: str, uid: str, at: str, *, is_own: bool = False) -> Declaration:
    body = {"metadata": {"name": f"of-{uid}", "namespace": "n", "uid": uid, "creationTimestamp": at}}
    return Declaration(name, Origin(SECRETS, as_object(body)), None, "none", is_own=is_own)


def test_of_one_name_ours_comes_first_and_then_the_oldest() -> None:
    """And who comes next when it goes."""
    known = Declarations()
    young, old, own = (Key(rank, "n", str(rank)) for rank in (1, 2, 0))
    known.put(young, declaration("prod", "b", "2026-02-01T00:00:00Z"))
    assert known.put(old, declaration("prod", "a", "2026-01-01T00:00:00Z")) == ("prod",)
    assert [one.origin.found.metadata.uid for one in known.refused("prod")] == ["b"]
    known.put(own, declaration("prod", "c", "2026-03-01T00:00:00Z", is_own=True))
    holder = known.holder("prod")
    assert holder is not None
    assert holder.is_own
    assert "Secret n/of-a, Secret n/of-b, which is ignored" in known.remark("prod")
    for key in (own, old, young):
        assert known.put(key, None) == ("prod",)
    assert (known.holder("prod"), list(known.names())) == (None, [])


def test_what_makes_way_comes_after_whatever_else_there_is() -> None:
    """It is only a person's word; any other Secret of ours comes first, without a kubeconfig, too."""
    known = Declarations()
    known.put(Key(0, "n", "word"), replace(declaration("prod", "w", "", is_own=True), makes_way=True))
    assert (known.holder("prod") or declaration("", "", "")).origin.found.metadata.uid == "w"
    known.put(Key(1, "n", "other"), declaration("prod", "a", "2026-03-01T00:00:00Z"))
    assert [one.origin.found.metadata.uid for one in known.refused("prod")] == ["w"]
    known.put(Key(0, "n", "own"), declaration("prod", "o", "2026-04-01T00:00:00Z", is_own=True))
    assert [one.origin.found.metadata.uid for one in known.refused("prod")] == ["a", "w"]


def test_an_object_that_changes_its_name_concerns_both() -> None:
    """The one it had may be another one's now."""
    known, key = Declarations(), Key(1, "n", "x")
    known.put(key, declaration("a", "u", ""))
    assert known.put(key, declaration("b", "u", "")) == ("a", "b")
    assert known.put(key, declaration("b", "u", "")) == ()
    assert known.holder("a") is None


# -- ClusterProfiles ---------------------------------------------------------------------------------------------------


def reduced(body: dict[str, Any]) -> Object:
    return cluster_profiles.reduced_profile(as_object(body))


@pytest.mark.parametrize(
    ("provider", "extension", "ref"),
    [
        (SECRET_READER, {"clusterName": "a"}, SecretRef(SECRET_READER, OWN, "a", asked_by="east")),
        (KUBECONFIG_READER, {"name": "a", "key": "k"}, SecretRef(KUBECONFIG_READER, OWN, "a", "k", asked_by="east")),
        (
            KUBECONFIG_READER,
            {"name": "a", "key": "k", "namespace": "fleet", "context": "c"},
            SecretRef(KUBECONFIG_READER, "fleet", "a", "k", "c"),
        ),
        (OCM, {}, SecretRef(OCM, "fleet", "east")),
        (OCM, {"clusterName": "c1"}, SecretRef(OCM, "fleet", "c1")),
    ],
)
def test_where_credentials_are(provider: str, extension: dict[str, str], ref: SecretRef) -> None:
    """As the reference's plugins find them, without running one."""
    access = access_of(reduced(profile("east", provider, extension)), own_namespace=OWN)
    assert access.credentials == ref
    assert access.cluster == b'{"server":"https://east"}'


@pytest.mark.parametrize(
    ("status", "told"),
    [
        pytest.param({}, "is empty", id="nothing"),
        pytest.param({"accessProviders": "all"}, "is empty", id="text for a list"),
        pytest.param({"accessProviders": [1, None, []]}, "is empty", id="no mappings"),
        pytest.param({"accessProviders": [{"name": "\x1b[2J"}]}, "unknown provider \\x1b[2J", id="a terminal's"),
        pytest.param({"accessProviders": [{"name": OCM}]}, "[0].cluster: is missing", id="no cluster"),
        pytest.param(
            {"accessProviders": [{"name": SECRET_READER, "cluster": {"extensions": {}}}]}, "is missing", id="odd"
        ),
        pytest.param({"big": "x" * 200_000}, "is longer than 128 KiB", id="huge"),
    ],
)
def test_a_profile_without_a_way_says_so(status: dict[str, Any], told: str) -> None:
    """On one line, printable."""
    with pytest.raises(BadProfile) as refused:
        access_of(reduced({"metadata": {"name": "east"}, "status": status}), own_namespace=OWN)
    assert told in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "extension",
    [
        {"clusterName": "../x"},
        {"clusterName": 3},
        {"clusterName": "A"},
        {"clusterName": ".."},
        {"clusterName": "x" * 300},
    ],
)
def test_a_name_that_no_object_has_is_asked_of_nobody(extension: dict[str, Any]) -> None:
    """It would end in a path."""
    with pytest.raises(BadProfile):
        access_of(reduced(profile("east", SECRET_READER, extension)), own_namespace=OWN)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
_cluster = st.fixed_dictionaries(
    {}, optional={"server": _json, "extensions": _json, "certificate-authority-data": _json}
)
_provider = st.fixed_dictionaries(
    {"name": st.sampled_from([*cluster_profiles.SUPPORTED, "x"])}, optional={"cluster": _cluster}
)
_status = st.fixed_dictionaries(
    {},
    optional={
        "accessProviders": st.lists(_provider, max_size=3) | _json,
        "conditions": _json,
        "properties": st.lists(st.fixed_dictionaries({"name": _json, "value": _json}), max_size=3) | _json,
        "version": st.fixed_dictionaries({"kubernetes": _json}) | _json,
    },
)


@given(_status)
def test_whatever_a_profile_says_is_a_worker_or_a_problem(status: dict[str, Any]) -> None:
    """And what is put together of it is judged like any kubeconfig."""
    kept = reduced({"metadata": {"name": "east", "namespace": "fleet", "uid": "u"}, "status": status})
    try:
        access = access_of(kept, own_namespace=OWN)
    except BadProfile:
        return
    raw = cluster_profiles.kubeconfig_of(access, {"token": "t"})
    declared = cluster_profiles.declared_by(kept, raw)
    assert declared.spec is not None
    assert all(isinstance(value, str) for _, value in declared.spec.labels)
    try:
        check_kubeconfig(raw, {})
    except KubeconfigRefused:
        return


@pytest.mark.parametrize(
    ("data", "told"),
    [
        pytest.param({}, "data.token is missing", id="no key"),
        pytest.param({"token": 3}, "data.token is missing", id="a number"),
        pytest.param({"token": "%%%"}, "is not base64", id="not base64"),
        pytest.param({"token": base64.b64encode(b"a b").decode()}, "is no token", id="a blank"),
        pytest.param({"token": base64.b64encode(b"\xff").decode()}, "is no token", id="bytes"),
        pytest.param({"token": "eA==" * 100_000}, "is longer than", id="huge"),
    ],
)
def test_a_secret_without_a_token_is_told_and_not_quoted(data: dict[str, Any], told: str) -> None:
    """The text names Secret and key."""
    ref = SecretRef(SECRET_READER, OWN, "s")
    with pytest.raises(BadProfile, match=told):
        cluster_profiles.credentials_of(as_object({"metadata": {"name": "s"}, "data": data}), ref)


@pytest.mark.parametrize(
    ("allowed", "is_given"),
    [("east", True), ("west, east", True), ("", False), ("eastern", False), ("*", False)],
)
def test_a_secret_of_ours_says_which_profiles_may_have_it(allowed: str, is_given: bool) -> None:
    """D18: who writes a profile chooses the server that the credentials are sent to."""
    metadata = {"name": "s", "annotations": {names.FOR_CLUSTER_PROFILES: allowed}}
    found = as_object({"metadata": metadata, "data": {"token": base64.b64encode(b"t").decode()}})
    ref = SecretRef(SECRET_READER, OWN, "s", asked_by="east")
    if is_given:
        assert cluster_profiles.credentials_of(found, ref) == {"token": "t"}
        return
    with pytest.raises(BadProfile, match=r'jobmirror.io/for-cluster-profiles: "east"'):
        cluster_profiles.credentials_of(found, ref)


@pytest.mark.parametrize(
    ("there", "account", "chosen"),
    [
        (["c1-robot"], "", "c1-robot"),
        (["c1-robot", "c2-robot"], "", "c1-robot"),
        (["c1-robot", "c1-admin"], "robot", "c1-robot"),
        (["c1-robot", "c1-admin"], "", "several"),
        (["c2-robot"], "", "no Secret c1-ACCOUNT"),
        (["c1-robot"], "admin", "no Secret c1-admin"),
    ],
)
def test_which_secret_of_open_cluster_management_counts(there: list[str], account: str, chosen: str) -> None:
    """The only one of the cluster, or the account's that the settings name."""
    secrets = [as_object({"metadata": {"name": name}}) for name in there]
    try:
        told = cluster_profiles.choose_ocm_secret(secrets, "c1", account).metadata.name
    except BadProfile as error:
        told = str(error)
    assert told.startswith(chosen)
