"""What the API makes of a Job before it validates it: defaults, generated selector, what clients cannot change."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mirror.batch.feature_gates import FeatureGates
from tests.embedded.apiserver.validation.jobs import (
    JOBS,
    NOW,
    UID,
    Json,
    changed,
    created,
    decoded,
    job,
    status_updated,
    stored,
    updated,
)

POLICY = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "X"}]}]}
NAME_LABELS = {"job-name": "train", "batch.kubernetes.io/job-name": "train"}
UID_LABELS = {"controller-uid": UID, "batch.kubernetes.io/controller-uid": UID}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"completions": 1, "parallelism": 1}, id="DF2 neither count"),
        pytest.param({"completions": 3}, {"completions": 3, "parallelism": 1}, id="DF2 completions alone"),
        pytest.param({"parallelism": 3}, {"completions": None, "parallelism": 3}, id="DF2 a work queue"),
        pytest.param({}, {"backoffLimit": 6}, id="DF3"),
        pytest.param({"backoffLimitPerIndex": 0}, {"backoffLimit": 2**31 - 1}, id="DF3 per index"),
        pytest.param(
            {}, {"completionMode": "NonIndexed", "suspend": False, "manualSelector": False}, id="DF4 modes and switches"
        ),
        pytest.param({}, {"podReplacementPolicy": "TerminatingOrFailed"}, id="DF5"),
        pytest.param({"podFailurePolicy": {}}, {"podReplacementPolicy": "Failed"}, id="DF5 with a policy of no rules"),
    ],
)
def test_defaults_of_the_spec(spec: Json, expected: Json) -> None:
    found = decoded(job(spec))["spec"]

    assert expected == {name: found.get(name) for name in expected}


def test_a_pattern_without_status_means_true() -> None:
    """DF6."""
    found = decoded(job({"podFailurePolicy": POLICY}))

    assert found["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"] == "True"


def test_defaults_of_the_pod_template() -> None:
    """DF8."""
    found = decoded(job())["spec"]["template"]["spec"]

    assert found == {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "containers": [
            {
                "name": "main",
                "image": "none",
                "resources": {},
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
    }


def test_defaults_within_containers_and_volumes() -> None:
    """DF8: ports, probes, hooks, sources of variables, volumes of each kind."""
    main: Json = {
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 80}},
        "lifecycle": {"preStop": {"httpGet": {"port": "web"}}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": "0.0001"}},
    }
    volumes = [
        {"name": "a"},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "d", "hostPath": {"path": "/x"}},
    ]
    pod = decoded(job(pod={"volumes": volumes, "serviceAccount": "robot"}, main=main))["spec"]["template"]["spec"]
    container = pod["containers"][0]

    assert container["ports"][0]["protocol"] == "TCP"
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert container["lifecycle"] == {"preStop": {"httpGet": {"port": "web", "path": "/", "scheme": "HTTP"}}}
    assert container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert container["resources"]["limits"] == {"cpu": "1m"}
    assert pod["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
        {
            "name": "c",
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                "defaultMode": 420,
            },
        },
        {"name": "d", "hostPath": {"path": "/x", "type": ""}},
    ]
    assert (pod["serviceAccountName"], pod["serviceAccount"]) == ("robot", "robot")


def test_a_new_job_gets_its_selector_and_its_labels() -> None:
    """DF9, DF10: what the client says of uid, generation, times and status does not count."""
    request = job(meta={"uid": "mine", "generation": 9, "creationTimestamp": "2000-01-01T00:00:00Z"})
    made = created(request | {"status": {"succeeded": 3}})

    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    assert made["spec"]["template"]["metadata"]["labels"] == NAME_LABELS | UID_LABELS
    assert (*map(made["metadata"].get, ("uid", "creationTimestamp", "generation")), made["status"]) == (UID, NOW, 1, {})


def test_labels_of_the_user_are_not_overwritten() -> None:
    """DF10: a wrong value stays, and is refused later."""
    request = job()
    request["spec"]["template"]["metadata"] = {"labels": {"job-name": "other"}}

    assert created(request)["spec"]["template"]["metadata"]["labels"]["job-name"] == "other"


def test_a_manual_selector_is_left_alone() -> None:
    assert "selector" not in created(job({"manualSelector": True}))["spec"]


@pytest.mark.parametrize("labels", [None, {"app": "x"}], ids=["none", "its own"])
def test_a_job_without_labels_is_served_with_those_of_its_pods(labels: Json | None) -> None:
    """DF7: the generated ones included."""
    request = job()
    request["spec"]["template"]["metadata"] = {"labels": labels}

    found = JOBS.served(created(request))

    assert found["spec"]["template"]["metadata"]["labels"] == found["metadata"]["labels"]
    assert NAME_LABELS.items() <= found["metadata"]["labels"].items()


def test_a_generated_name_keeps_generated_labels_out_of_the_jobs_labels() -> None:
    """DF7: the server copies such an object before it adds them."""
    request = job(meta={"name": "train-x7x7x", "generateName": "train-"})
    request["spec"]["template"]["metadata"] = {"labels": {"app": "x"}}

    assert created(request)["metadata"]["labels"] == {"app": "x"}


def test_labels_that_a_job_has_stay() -> None:
    assert created(job(meta={"labels": {"a": "b"}}))["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        pytest.param({"suspend": True}, 2, id="another spec"),
        pytest.param({"suspend": False, "backoffLimit": 6}, 1, id="what was there by default"),
        pytest.param({"activeDeadlineSeconds": None}, 1, id="nothing"),
    ],
)
def test_generation_follows_the_spec(change: Json, generation: int) -> None:
    """DF11."""
    assert generation == changed(stored(job()), change)["metadata"]["generation"]


def test_an_update_cannot_change_what_is_the_servers() -> None:
    """DF11, U11: the status stays; generation and creation time are ignored; what is missing is filled in."""
    old = stored(job(), {"active": 1})
    request = job(meta={"generation": 12, "creationTimestamp": "2000-01-01T00:00:00Z"}) | {"status": {"failed": 3}}

    found = updated(request, old)

    assert found["status"] == {"active": 1}
    assert tuple(map(found["metadata"].get, ("uid", "creationTimestamp", "resourceVersion"))) == (UID, NOW, "7")
    assert found["metadata"]["generation"] == 2


def test_an_update_keeps_the_deletion() -> None:
    old = stored(job(meta={"finalizers": ["a/b"]}))
    old["metadata"] |= {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}

    found = updated(job(meta={"finalizers": ["a/b"]}), old)["metadata"]

    assert (found["deletionTimestamp"], found["deletionGracePeriodSeconds"]) == (NOW, 0)


def test_a_status_write_takes_metadata_and_status_only() -> None:
    """DF12."""
    old = stored(job())
    request = job({"suspend": True}, meta={"annotations": {"a": "b"}}) | {"status": {"active": 2}}

    found = status_updated(request, old)

    assert old["spec"] == found["spec"]
    assert (
        found["metadata"]["annotations"],
        found["status"],
        found["metadata"]["generation"],
    ) == ({"a": "b"}, {"active": 2}, 1)


OFF: dict[str, tuple[FeatureGates, Json, Json]] = {
    "managedBy": (FeatureGates(job_managed_by=False), {"managedBy": "a/b"}, {"managedBy": None}),
    "successPolicy": (
        FeatureGates(job_success_policy=False),
        {"successPolicy": {"rules": []}},
        {"successPolicy": None},
    ),
    "podReplacementPolicy": (
        FeatureGates(job_pod_replacement_policy=False),
        {"podReplacementPolicy": "Failed"},
        {"podReplacementPolicy": None},
    ),
    "backoffLimitPerIndex": (
        FeatureGates(job_backoff_limit_per_index=False),
        {"backoffLimitPerIndex": 1, "maxFailedIndexes": 2},
        {"backoffLimitPerIndex": None, "maxFailedIndexes": None},
    ),
    "FailIndex": (
        FeatureGates(job_backoff_limit_per_index=False),
        {"podFailurePolicy": {"rules": [{"action": "FailIndex"}, {"action": "Count"}]}},
        {"podFailurePolicy": {"rules": [{"action": "Count"}]}},
    ),
    "names of rules": (
        FeatureGates(pod_failure_policy_name=False),
        {"podFailurePolicy": {"rules": [{"action": "Count", "name": "x"}]}},
        {"podFailurePolicy": {"rules": [{"action": "Count"}]}},
    ),
}


@pytest.mark.parametrize(("gates", "given", "kept"), OFF.values(), ids=OFF)
def test_fields_of_a_gate_that_is_off_are_dropped(gates: FeatureGates, given: Json, kept: Json) -> None:
    """DF21, RN4."""
    found = created(job(given), gates=gates)["spec"]

    assert kept == {name: found.get(name) for name in kept}


@pytest.mark.parametrize("name", ["successPolicy", "podReplacementPolicy", "backoffLimitPerIndex", "names of rules"])
def test_an_update_keeps_such_a_field_only_if_the_job_has_it(name: str) -> None:
    """DF21, RN4."""
    gates, given, kept = OFF[name]
    with_it, without = stored(job(given)), stored(job(), gates=gates)

    found = changed(with_it, {"suspend": True}, gates=gates)["spec"]
    added = changed(without, given, gates=gates)["spec"]

    assert given.keys() <= found.keys()
    assert all(found[field] == with_it["spec"][field] for field in given)
    assert kept == {field: added.get(field) for field in kept}


def test_managed_by_is_never_dropped_from_an_update() -> None:
    """DF21."""
    found = changed(stored(job()), {"managedBy": "a/b"}, gates=FeatureGates(job_managed_by=False))

    assert found["spec"]["managedBy"] == "a/b"


def test_inputs_are_never_changed() -> None:
    request: dict[str, Any] = job({"podFailurePolicy": POLICY}, pod={"volumes": [{"name": "a"}]})
    before = deepcopy(request)
    old = created(request)
    old_before = deepcopy(old)

    updated(request, old)
    status_updated(request, old)

    assert before == request
    assert old_before == old
