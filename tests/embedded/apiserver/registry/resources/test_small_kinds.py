"""ConfigMaps, Secrets, Namespaces, Leases, ServiceAccounts, PriorityClasses: rules, what is kept, and rows."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from mirror.embedded.apiserver.registry.resources.bytes64 import length
from tests.embedded.apiserver.registry.resources.playing import NOW, Json, cells, create, kind_of, stored, update

UNCHANGEABLE = "Forbidden: field is immutable when `immutable` is set"
KEY = (
    "Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g."
    " 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# -- ConfigMaps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "causes"),
    [
        pytest.param({"data": {"a b": "x"}}, [f"data[a b]: {KEY}"], id="a key"),
        pytest.param({"binaryData": {"a b": ""}}, [f"binaryData[a b]: {KEY}"], id="a key of bytes"),
        pytest.param(
            {"data": {"k": "x"}, "binaryData": {"k": ""}},
            ['data[k]: Invalid value: "k": duplicate of key present in binaryData'],
            id="a key twice",
        ),
        pytest.param({"data": {"k": "x" * 2**20}}, [], id="as large as may be"),
        pytest.param(
            {"data": {"k": "x" * 2**20}, "binaryData": {"b": "AA=="}},
            ["[]: Too long: may not be more than 1048576 bytes"],
            id="one byte more",
        ),
    ],
)
def test_a_config_map_is_refused(body: Json, causes: list[str]) -> None:
    """Keys have a form, no key comes twice, all values together are bounded."""
    assert create("ConfigMap", body).causes == causes


@pytest.mark.parametrize(
    ("name", "change", "causes"),
    [
        ("ConfigMap", {"data": {"k": "w"}}, [f"data: {UNCHANGEABLE}"]),
        ("ConfigMap", {"binaryData": {"b": "AA=="}}, [f"binaryData: {UNCHANGEABLE}"]),
        ("ConfigMap", {"immutable": False}, [f"immutable: {UNCHANGEABLE}"]),
        ("ConfigMap", {"metadata": {"labels": {"x": "y"}}}, []),
        ("Secret", {"data": {"k": "AA=="}}, [f"data: {UNCHANGEABLE}"]),
        ("Secret", {"stringData": {"k": "v"}}, []),
        ("Secret", {"immutable": None}, [f"immutable: {UNCHANGEABLE}"]),
    ],
)
def test_what_is_immutable_stays(name: str, change: Json, causes: list[str]) -> None:
    """Metadata may change; writing the same is no change."""
    value = "v" if name == "ConfigMap" else b64("v")
    old = stored(name, {"data": {"k": value}, "immutable": True})

    assert update(name, old, change).causes == causes


def test_the_row_of_a_config_map_counts_both_kinds_of_data() -> None:
    """Texts and bytes."""
    body = stored("ConfigMap", {"data": {"a": "", "b": ""}, "binaryData": {"c": ""}})

    assert cells(body, "ConfigMap", now=NOW + timedelta(seconds=75)) == {"Name": "a", "Data": 3, "Age": "75s"}


# -- Secrets ---------------------------------------------------------------------------------------------------------


def test_texts_of_a_secret_become_data() -> None:
    """``stringData`` wins over ``data`` and is never stored."""
    made = create("Secret", {"data": {"a": b64("x"), "b": b64("y")}, "stringData": {"a": "z"}})

    assert made.body["data"] == {"a": b64("z"), "b": b64("y")}
    assert "stringData" not in made.body
    assert made.body["type"] == "Opaque"


@pytest.mark.parametrize(
    ("body", "causes"),
    [
        ({"type": "kubernetes.io/basic-auth"}, ["data[username]: Required value", "data[password]: Required value"]),
        ({"type": "kubernetes.io/basic-auth", "stringData": {"password": ""}}, []),
        ({"type": "kubernetes.io/ssh-auth"}, ["data[ssh-privatekey]: Required value"]),
        ({"type": "kubernetes.io/tls"}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        ({"type": "kubernetes.io/dockerconfigjson"}, ["data[.dockerconfigjson]: Required value"]),
        (
            {"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "{"}},
            ['data[.dockercfg]: Invalid value: "<secret contents redacted>": unexpected end of JSON input'],
        ),
        (
            {"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "x"}},
            [
                "data[.dockercfg]: Invalid value: \"<secret contents redacted>\": invalid character 'x' looking for"
                " beginning of value"
            ],
        ),
        (
            {"type": "kubernetes.io/service-account-token"},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        ({"type": "anything.io/else"}, []),
        ({"stringData": {"k": "x" * (2**20 + 1)}}, ["data: Too long: may not be more than 1048576 bytes"]),
    ],
)
def test_a_secret_has_what_its_type_needs(body: Json, causes: list[str]) -> None:
    """Types that nobody knows need nothing."""
    assert create("Secret", body).causes == causes


def test_the_type_of_a_secret_stays() -> None:
    """It is not even forgotten: no type is the default, Opaque."""
    old = stored("Secret", {"type": "x.io/y"})

    assert update("Secret", old, {"type": "x.io/z"}).causes == ['type: Invalid value: "x.io/z": field is immutable']


def test_a_bad_certificate_is_warned_of() -> None:
    """It is stored all the same."""
    made = create("Secret", {"type": "kubernetes.io/tls", "stringData": {"tls.crt": "x", "tls.key": "y"}})

    assert (made.causes, made.warnings) == ([], ["tls: failed to find any PEM data in certificate input"])


@pytest.mark.parametrize("size", range(9))
def test_the_length_of_bytes_is_seen_in_their_text(size: int) -> None:
    """Without decoding them."""
    assert length(base64.b64encode(b"x" * size).decode()) == size


# -- Namespaces ------------------------------------------------------------------------------------------------------


def test_a_new_namespace_is_active_and_held_by_kubernetes() -> None:
    """Whatever its client says; the label with its name is always there."""
    made = create("Namespace", {"spec": {"finalizers": ["x.io/y"]}, "status": {"phase": "Terminating"}})

    assert made.body["spec"] == {"finalizers": ["x.io/y", "kubernetes"]}
    assert made.body["status"] == {"phase": "Active"}
    assert made.body["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}


def test_finalizers_of_a_namespace_change_by_finalize_alone() -> None:
    """And that changes no status."""
    old = stored("Namespace")
    change = {"spec": {"finalizers": []}, "status": {"phase": "Terminating"}}

    assert update("Namespace", old, change).body["spec"] == {"finalizers": ["kubernetes"]}
    finalized = update("Namespace", old, change, subresource="finalize").body
    assert finalized["spec"] == {}
    assert finalized["status"] == {"phase": "Active"}


def test_a_namespace_that_is_deleted_is_held_until_it_is_finalized() -> None:
    """The first delete only marks it."""
    strategy, body = kind_of("Namespace").strategy, stored("Namespace")
    assert strategy.is_held(body)

    body["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert strategy.is_held(body)
    body["spec"] = {}
    assert not strategy.is_held(body)


@pytest.mark.parametrize(
    ("phase", "is_deleted", "detail"),
    [
        ("Terminating", False, "may only be 'Active' if `deletionTimestamp` is empty"),
        ("Active", True, "may only be 'Terminating' if `deletionTimestamp` is not empty"),
        ("Terminating", True, ""),
    ],
)
def test_the_phase_of_a_namespace_agrees_with_its_deletion(phase: str, is_deleted: bool, detail: str) -> None:
    """By ``/status``."""
    old = stored("Namespace")
    if is_deleted:
        old["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    made = update("Namespace", old, {"status": {"phase": phase}}, subresource="status")

    assert made.causes == ([f'status.Phase: Invalid value: "{phase}": {detail}'] if detail else [])


def test_names_of_namespaces_are_labels() -> None:
    """They have no dots."""
    made = create("Namespace", {"metadata": {"name": "a.b"}})

    assert made.causes == ['metadata.name: Invalid value: "a.b": must not contain dots']


# -- others ----------------------------------------------------------------------------------------------------------


def test_a_lease_has_microseconds() -> None:
    """And no field of the gate that is off."""
    made = create(
        "Lease", {"spec": {"renewTime": "2026-11-21T13:00:00.5+01:00", "strategy": "x"}}, group="coordination.k8s.io"
    )

    assert made.body["spec"] == {"renewTime": "2026-11-21T12:00:00.500000Z"}


def test_a_lease_is_for_some_time() -> None:
    """At least a second."""
    spec = {"leaseDurationSeconds": 0, "leaseTransitions": -1}
    made = create("Lease", {"spec": spec}, group="coordination.k8s.io")

    assert made.causes == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ]


def test_of_a_service_accounts_secrets_only_the_names_are_kept() -> None:
    """Other fields of references mean nothing."""
    made = create("ServiceAccount", {"secrets": [{"name": "s", "uid": "x", "kind": "Secret"}]})

    assert made.body["secrets"] == [{"name": "s"}]


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ({"value": 1_000_000_001}, "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
        (
            {"value": 1, "metadata": {"name": "system-x"}},
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only."
            " error: system-x is not a known system priority class",
        ),
        (
            {"preemptionPolicy": "x"},
            'preemptionPolicy: Unsupported value: "x": supported values: "PreemptLowerPriority", "Never"',
        ),
    ],
)
def test_a_priority_class_is_refused(body: Json, cause: str) -> None:
    """Users have their own range, and their own names."""
    assert create("PriorityClass", body, group="scheduling.k8s.io").causes == [cause]


def test_the_value_of_a_priority_class_stays() -> None:
    """Pods have it already."""
    old = stored("PriorityClass", {"value": 1}, group="scheduling.k8s.io")
    made = update("PriorityClass", old, {"value": 2}, group="scheduling.k8s.io")

    assert made.causes == ["value: Forbidden: may not be changed in an update."]
