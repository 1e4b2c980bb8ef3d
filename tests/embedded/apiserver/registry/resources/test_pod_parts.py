"""Ephemeral containers, resizing, and what a status says of users and devices."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.apiserver.registry.resources.playing import CONTAINERS, Json, stored, update

DEBUG = {"name": "debug", "image": "busybox:1.36"}


def pod(**spec: Any) -> Json:
    return stored("Pod", {"spec": {**CONTAINERS, **spec}})


def with_debugging(body: Json, *containers: Json) -> Json:
    change = {"spec": {"ephemeralContainers": list(containers)}}
    made = update("Pod", body, change, subresource="ephemeralcontainers")
    assert made.causes == []
    return made.body


def test_a_container_is_added_for_debugging() -> None:
    """And nothing else changes; it has the defaults of containers."""
    change = {"metadata": {"labels": {"x": "y"}}, "spec": {"ephemeralContainers": [DEBUG], "hostname": "other"}}
    made = update("Pod", pod(), change, subresource="ephemeralcontainers")

    assert made.causes == []
    assert made.body["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert "hostname" not in made.body["spec"]
    assert "labels" not in made.body["metadata"]
    assert made.body["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("containers", "cause"),
    [
        ([], 'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n'),
        (
            [DEBUG | {"image": "other:1"}],
            'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed\n@@ -1,6',
        ),
    ],
)
def test_what_was_added_stays(containers: list[Json], cause: str) -> None:
    """As it is."""
    old = with_debugging(pod(), DEBUG)
    change = {"spec": {"ephemeralContainers": containers}}
    (found,) = update("Pod", old, change, subresource="ephemeralcontainers").causes

    assert found.startswith(cause)


def test_such_a_container_follows_the_rules() -> None:
    """Of its own sort."""
    change = {"spec": {"ephemeralContainers": [DEBUG | {"ports": [{"containerPort": 80}], "name": "main"}]}}
    made = update("Pod", pod(), change, subresource="ephemeralcontainers")

    assert made.causes == [
        'spec.ephemeralContainers[0].name: Duplicate value: "main"',
        "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
    ]


def test_a_mirror_pod_takes_none() -> None:
    """It is its kubelet's."""
    body = pod(nodeName="n")
    body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    change = {"spec": {"ephemeralContainers": [DEBUG]}}

    assert update("Pod", body, change, subresource="ephemeralcontainers").causes == [
        "[]: Forbidden: static pods do not support ephemeral containers"
    ]


def container_status(**fields: Any) -> Json:
    state: Json = {"name": "main", "state": {}, "lastState": {}, "ready": False, "restartCount": 0}
    return {**state, "image": "", "imageID": "", **fields}


@pytest.mark.parametrize(
    ("fields", "causes"),
    [
        ({"user": {"linux": {"uid": 0, "gid": 0}}}, []),
        (
            {"user": {"linux": {"uid": -1, "gid": 0, "supplementalGroups": [2**31]}}},
            [
                "user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "user.linux.supplementalGroups[0]: Invalid value: 2147483648: must be between 0 and 2147483647,"
                " inclusive",
            ],
        ),
        (
            {
                "allocatedResourcesStatus": [
                    {"name": "cpu", "resources": [{"resourceID": "x", "health": "Healthy"}] * 2}
                ]
            },
            ['allocatedResourcesStatus[0].resources[1].resourceID: Duplicate value: "x"'],
        ),
        (
            {
                "allocatedResourcesStatus": [
                    {"name": "example.com/gpu", "resources": [{"resourceID": "x", "health": "?"}]}
                ]
            },
            [
                'allocatedResourcesStatus[0].name: Invalid value: "example.com/gpu": must match one of the container\'s'
                " resource requests",
                'allocatedResourcesStatus[0].resources[0].health: Unsupported value: "?": supported values: "Healthy",'
                ' "Unhealthy", "Unknown"',
            ],
        ),
        (
            {"allocatedResourcesStatus": [{"name": "claim:c"}]},
            [
                'allocatedResourcesStatus[0].name: Invalid value: "claim:c": must match one of the container\'s'
                " resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
            ],
        ),
    ],
)
def test_a_status_says_who_runs_and_with_what(fields: Json, causes: list[str]) -> None:
    """Of containers that there are."""
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    status = {"containerStatuses": [container_status(**fields)]}
    made = update("Pod", pod(containers=containers), {"status": status}, subresource="status")

    assert made.causes == [f"status.containerStatuses[0].{one}" for one in causes]


def test_extended_resources_have_a_claim() -> None:
    """For requests that there are."""
    mapping = {"containerName": "none", "resourceName": "example.com/gpu", "requestName": "r"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "", "requestMappings": [mapping]}}
    made = update("Pod", pod(), {"status": status}, subresource="status")

    assert made.causes == [
        'status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "none": must match the'
        " name of an entry in spec.initContainers.name or spec.containers.name",
        "status.extendedResourceClaimStatus.resourceClaimName: Required value",
    ]


CPU_1, CPU_2 = {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}


def sized(requests: Json, limits: Json | None = None, **fields: Any) -> Json:
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    return {"containers": [{**CONTAINERS["containers"][0], "resources": resources, **fields}]}


def test_a_pod_is_resized() -> None:
    """Nothing else changes, whatever else is sent."""
    change = {"metadata": {"labels": {"x": "y"}}, "spec": {**sized(CPU_2, image="other:1"), "hostname": "other"}}
    made = update("Pod", pod(**sized(CPU_1)), change, subresource="resize")

    assert made.causes == []
    (container,) = made.body["spec"]["containers"]
    assert (container["resources"]["requests"], container["image"]) == (CPU_2, "busybox:1.36")
    assert "hostname" not in made.body["spec"]
    assert "labels" not in made.body["metadata"]
    assert made.body["metadata"]["generation"] == 2


ONLY = "spec: Forbidden: only cpu and memory resources are mutable"


@pytest.mark.parametrize(
    ("old", "new", "causes"),
    [
        pytest.param(
            sized(CPU_1),
            sized({"cpu": "1"}),
            ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
            id="less of a kind",
        ),
        pytest.param(sized(CPU_1), sized(CPU_1 | {"ephemeral-storage": "1Gi"}), [ONLY], id="something else"),
        pytest.param(
            sized(CPU_1, CPU_1),
            sized(CPU_1, CPU_2),
            ['spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing'],
            id="another class",
        ),
        pytest.param(
            sized(CPU_1),
            sized(CPU_2, name="other"),
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
            id="another container",
        ),
        pytest.param(
            sized(CPU_1),
            {"containers": [*sized(CPU_1)["containers"], DEBUG]},
            ["spec.containers: Forbidden: containers may not be added or removed on resize"],
            id="one more container",
        ),
        pytest.param(
            sized(CPU_1) | {"os": {"name": "windows"}},
            sized(CPU_2),
            ["[]: Forbidden: windows pods cannot be resized"],
            id="on windows",
        ),
        pytest.param(
            sized(CPU_1) | {"resources": {"limits": CPU_2}},
            {"resources": None},
            ["spec.resources: Forbidden: pod-level resources cannot be removed"],
            id="none for the pod",
        ),
        pytest.param(
            sized(CPU_1),
            sized(CPU_1, resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
            [ONLY],
            id="another policy",
        ),
    ],
)
def test_what_is_no_resizing(old: Json, new: Json, causes: list[str]) -> None:
    """Only more or less CPU and memory of containers that there are."""
    assert update("Pod", pod(**old), {"spec": new}, subresource="resize").causes == causes


def test_a_node_that_cannot_resize() -> None:
    """Its kubelet does not tell what a container has."""
    body = pod(**sized(CPU_1))
    body["status"]["containerStatuses"] = [container_status(state={"running": {}})]

    assert update("Pod", body, {"spec": sized(CPU_2)}, subresource="resize").causes == [
        "spec: Forbidden: Pod running on node without support for resize"
    ]
