"""Pods: defaults, what may change, statuses, how long they may take to go."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.embedded.apiserver.registry.resources.pods import resizing
from tests.embedded.apiserver.registry.resources.playing import (
    CONTAINERS,
    NOW_TEXT,
    Json,
    create,
    kind_of,
    stored,
    update,
)

GATES = [{"name": "x.io/a"}, {"name": "x.io/b"}]
REQUESTS = {"cpu": "1", "memory": "1Gi"}


def pod(**spec: Any) -> Json:
    return stored("Pod", {"spec": {**CONTAINERS, **spec}})


def container(**fields: Any) -> list[Json]:
    return [{"name": "main", "image": "busybox:1.36", **fields}]


# -- defaults --------------------------------------------------------------------------------------------------------


def test_requests_are_limits_unless_they_are_given() -> None:
    """Of main and init containers."""
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec = pod(containers=container(resources=resources))["spec"]

    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_requests_of_the_whole_pod() -> None:
    """What containers request together, or else the limits of the pod."""
    spec = pod(
        containers=container(resources={"requests": {"cpu": "1"}}), resources={"limits": {"cpu": "4", "memory": "2Gi"}}
    )["spec"]

    assert spec["resources"]["requests"] == {"cpu": "1", "memory": "2Gi"}


def test_ports_of_the_host() -> None:
    """On the network of the host, ports are those of the host."""
    spec = pod(hostNetwork=True, containers=container(ports=[{"containerPort": 80}]))["spec"]

    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_a_new_pod_is_pending() -> None:
    """Whatever status its client gives."""
    body = create("Pod", {"spec": CONTAINERS, "status": {"phase": "Running"}}).body

    assert body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert body["metadata"]["generation"] == 1
    assert body["spec"]["enableServiceLinks"] is True


def test_a_gated_pod_says_so() -> None:
    """By a condition."""
    assert pod(schedulingGates=GATES)["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": NOW_TEXT,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_label_keys_become_expressions() -> None:
    """Of affinity and of spreading, with the pod's own values."""
    term = {"labelSelector": {}, "topologyKey": "zone", "matchLabelKeys": ["x", "none"], "mismatchLabelKeys": ["y"]}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    body = create(
        "Pod",
        {
            "metadata": {"labels": {"x": "1", "y": "2"}},
            "spec": {
                **CONTAINERS,
                "affinity": affinity,
                "topologySpreadConstraints": [{**spread, "matchLabelKeys": ["x"]}],
            },
        },
    ).body["spec"]
    in_x = {"key": "x", "operator": "In", "values": ["1"]}

    made = body["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert made["labelSelector"]["matchExpressions"] == [in_x, {"key": "y", "operator": "NotIn", "values": ["2"]}]
    assert body["topologySpreadConstraints"][0]["labelSelector"] == {"matchExpressions": [in_x]}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"limits": REQUESTS, "requests": REQUESTS}], "Guaranteed"),
        ([{"limits": REQUESTS, "requests": REQUESTS}, {}], "Burstable"),
        ([{"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}], "Burstable"),
        ([{"requests": REQUESTS}], "Burstable"),
        ([{"limits": REQUESTS, "requests": {"cpu": "500m", "memory": "1Gi"}}], "Burstable"),
        ([{"limits": {"example.com/gpu": "1"}}], "BestEffort"),
    ],
)
def test_quality_of_service(resources: list[Json], expected: str) -> None:
    """Guaranteed only if each container has as much as it may take of both."""
    assert resizing.of({"containers": [{"resources": one} for one in resources]}) == expected


# -- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ({"spec": {}}, "spec.containers: Required value"),
        ({"spec": {"containers": [{"name": "main"}]}}, "spec.containers[0].image: Required value"),
        (
            {"spec": {**CONTAINERS, "ephemeralContainers": [{"name": "x", "image": "y"}]}},
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
        (
            {"spec": {**CONTAINERS, "nodeName": "n", "schedulingGates": GATES}},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"spec": {"containers": container(image=" x")}},
            'spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace',
        ),
        (
            {"spec": CONTAINERS, "metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "+1"}}},
            'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit'
            " integer",
        ),
        (
            {"spec": CONTAINERS, "metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
            'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror'
            " pod annotation is set",
        ),
    ],
)
def test_a_pod_is_refused(body: Json, cause: str) -> None:
    """The rules of templates under a pod's paths, and those of pods alone."""
    assert create("Pod", body).causes == [cause]


def test_a_name_with_dots_is_warned_of() -> None:
    """It makes an odd host name."""
    (warning,) = create("Pod", {"metadata": {"name": "a.b"}, "spec": CONTAINERS}).warnings

    assert warning.startswith(
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior"
    )


def test_warnings_have_the_paths_of_pods() -> None:
    """They are those of templates."""
    variables = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    made = create("Pod", {"spec": {"containers": container(env=variables)}})

    assert made.warnings == [
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'
    ]


# -- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "change"),
    [
        pytest.param({}, {"spec": {"containers": container(image="other:1")}}, id="an image"),
        pytest.param({}, {"spec": {"activeDeadlineSeconds": 5}}, id="a deadline"),
        pytest.param({"activeDeadlineSeconds": 5}, {"spec": {"activeDeadlineSeconds": 4}}, id="an earlier deadline"),
        pytest.param({}, {"spec": {"tolerations": [{"operator": "Exists"}]}}, id="a toleration"),
        pytest.param({"schedulingGates": GATES}, {"spec": {"schedulingGates": GATES[1:]}}, id="a gate opens"),
        pytest.param(
            {"schedulingGates": GATES},
            {"spec": {"schedulingGates": None, "nodeSelector": {"x": "y"}}},
            id="gated: where",
        ),
        pytest.param({}, {"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}}, id="metadata"),
    ],
)
def test_what_may_change(old: Json, change: Json) -> None:
    """And the generation counts changes of the spec."""
    before = pod(**old)
    made = update("Pod", before, change)

    assert made.causes == []
    assert made.body["metadata"]["generation"] == (2 if "spec" in change else 1)


@pytest.mark.parametrize(
    ("old", "change", "cause"),
    [
        (
            {},
            {"containers": [*container(), *container()[:1]]},
            "spec.containers: Forbidden: pod updates may not add or",
        ),
        ({}, {"activeDeadlineSeconds": -1}, "spec.activeDeadlineSeconds: Invalid value: -1: must be between"),
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value",
        ),
        (
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": None},
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            {"tolerations": []},
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (
            {},
            {"schedulingGates": GATES[:1]},
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x.io/a'",
        ),
        (
            {"schedulingGates": GATES, "nodeSelector": {"x": "y"}},
            {"nodeSelector": {"x": "z"}},
            'spec.nodeSelector: Invalid value: {"x":"z"}: only additions to spec.nodeSelector are allowed (no mutations'
            " or deletions)",
        ),
        (
            {},
            {"hostname": "x"},
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
        ),
    ],
)
def test_what_may_not_change(old: Json, change: Json, cause: str) -> None:
    """Everything else; what differs is shown."""
    found = update("Pod", pod(**old), {"spec": change}).causes

    assert any(one.startswith(cause) for one in found), found


def test_what_differs_is_shown() -> None:
    """As lines that go and lines that come."""
    (cause,) = update("Pod", pod(), {"spec": {"hostname": "x"}}).causes

    assert '\n- "Hostname": "",\n+ "Hostname": "x",\n' in cause


def test_a_mirror_pod_stays_one() -> None:
    """Its annotation neither comes nor goes."""
    (cause,) = update(
        "Pod", pod(nodeName="n"), {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}
    ).causes

    assert cause == "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation"


# -- status ----------------------------------------------------------------------------------------------------------


def with_status(body: Json, **fields: Any) -> Json:
    return body | {"status": body["status"] | fields}


def container_status(name: str = "main", **state: Any) -> Json:
    return {
        "name": name,
        "state": state,
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
    }


def test_a_status_keeps_what_is_not_its_own() -> None:
    """Spec, owners, deletion, quality of service; labels may be written."""
    change = {
        "metadata": {"labels": {"x": "y"}, "ownerReferences": [{"uid": "z"}], "deletionTimestamp": NOW_TEXT},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running", "qosClass": None, "podIP": "10.0.0.1"},
    }
    made = update("Pod", pod(), change, subresource="status")

    assert made.causes == []
    assert made.body["metadata"].keys() & {"ownerReferences", "deletionTimestamp"} == set()
    assert made.body["metadata"]["labels"] == {"x": "y"}
    assert "nodeName" not in made.body["spec"]
    assert made.body["status"] == {
        "phase": "Running",
        "qosClass": "BestEffort",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
    }


def test_observed_generations_are_not_forgotten() -> None:
    """By clients that do not know them."""
    seen = {
        "type": "Ready",
        "status": "False",
        "observedGeneration": 3,
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }
    old = with_status(pod(), observedGeneration=3, conditions=[seen])
    change = {"status": {"observedGeneration": None, "conditions": [{"type": "Ready", "status": "True"}]}}
    made = update("Pod", old, change, subresource="status").body["status"]

    assert made["observedGeneration"] == 3
    assert made["conditions"] == [seen | {"status": "True"}]


@pytest.mark.parametrize(
    ("policy", "own_policy", "exit_code", "is_allowed"),
    [
        ("Never", None, 1, False),
        ("OnFailure", None, 1, True),
        ("OnFailure", None, 0, False),
        ("Always", None, 0, True),
        ("Never", "Always", 0, True),
        ("Always", "Never", 1, False),
    ],
)
def test_what_has_ended_runs_again_only_if_it_may(
    policy: str, own_policy: str | None, exit_code: int, is_allowed: bool
) -> None:
    """By the policy of the container, or else of the pod."""
    own = {"restartPolicy": own_policy} if own_policy else {}
    old = with_status(
        pod(restartPolicy=policy, containers=container(**own)),
        containerStatuses=[container_status(terminated={"exitCode": exit_code})],
    )
    made = update("Pod", old, {"status": {"containerStatuses": [container_status(running={})]}}, subresource="status")
    refused = ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"]

    assert made.causes == ([] if is_allowed else refused)


def test_restart_rules_are_looked_at() -> None:
    """A rule for the exit code comes before the policy."""
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    spec = {"restartPolicy": "Never", "containers": container(restartPolicy="Never", restartPolicyRules=rules)}
    runs = {"status": {"containerStatuses": [container_status(running={})]}}

    for exit_code, count in ((42, 0), (41, 1)):
        old = with_status(pod(**spec), containerStatuses=[container_status(terminated={"exitCode": exit_code})])
        assert len(update("Pod", old, runs, subresource="status").causes) == count


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({"qosClass": "Guaranteed"}, 'status.qosClass: Invalid value: "Guaranteed": field is immutable'),
        ({"observedGeneration": -1}, "status.observedGeneration: Invalid value: -1: must be a non-negative integer"),
        (
            {"podIPs": [{"ip": "x"}]},
            'status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
        (
            {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
            'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for'
            " each IP family",
        ),
        (
            {"hostIPs": [{"ip": "10.0.0.1"}]},
            'status.hostIPs[0].ip: Invalid value: "10.0.0.1": must be equal to `hostIP`',
        ),
        (
            {"resourceClaimStatuses": [{"name": "x"}]},
            'status.resourceClaimStatuses[0].name: Invalid value: "x": must match the name of an entry in'
            " `spec.resourceClaims`",
        ),
    ],
)
def test_a_status_is_refused(status: Json, cause: str) -> None:
    """Only for what it says anew."""
    assert update("Pod", pod(), {"status": status}, subresource="status").causes == [cause]


def test_a_pod_on_a_node_is_not_nominated() -> None:
    """It is there already."""
    made = update("Pod", pod(nodeName="n"), {"status": {"nominatedNodeName": "m"}}, subresource="status")

    assert made.causes == [
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    ]


# -- deletion --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "phase", "wanted", "seconds"),
    [
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, "Running", None, 5),
        ({"nodeName": "n"}, "Running", 3, 3),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -1, 1),
        ({}, "Pending", None, 0),
        ({"nodeName": "n"}, "Succeeded", 30, 0),
        ({"nodeName": "n"}, "Failed", None, 0),
    ],
)
def test_how_long_a_pod_may_take_to_go(spec: Json, phase: str, wanted: int | None, seconds: int) -> None:
    """No time where nothing runs."""
    body = with_status(pod(**spec), phase=phase)

    assert kind_of("Pod").strategy.grace_seconds(body, wanted) == seconds
