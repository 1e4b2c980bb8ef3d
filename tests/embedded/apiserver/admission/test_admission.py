"""What the server itself adds to pods before their rules, and what it does not let in."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mirror.embedded.apiserver.admission import plugins
from mirror.embedded.apiserver.admission.plugins import Attributes
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.build import build
from mirror.embedded.apiserver.messages import ADMIN
from mirror.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.registry.resources.playing import CONTAINERS, Json, kind_of
from tests.embedded.apiserver.registry.test_subresources import Asking, Still

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.fixture
def server() -> ApiServer:
    return build(clock=Still(), random=Random(1))


def pod(server: ApiServer, *, operation: str = "CREATE", old: Json | None = None, **spec: Any) -> Json:
    """The spec of a pod after admission."""
    body = {"metadata": {"name": "p"}, "spec": {**CONTAINERS, **spec}}
    asked = Attributes(operation, kind_of("Pod"), "", "default", "p", body, old, ADMIN)
    plugins.mutate_built_in(server.storage, asked)
    plugins.validate_built_in(server.storage, asked)
    assert asked.body is not None
    return dict(asked.body["spec"])


def test_a_pod_gets_a_priority(server: ApiServer) -> None:
    """None is zero; a class has one."""
    assert pod(server)["priority"] == 0
    spec = pod(server, priorityClassName="system-node-critical")

    assert (spec["priority"], spec["preemptionPolicy"]) == (2_000_001_000, "PreemptLowerPriority")


async def test_the_default_class_is_that_of_pods_without_one(server: ApiServer) -> None:
    """There is at most one."""
    ask = Asking(server)
    normal = {"metadata": {"name": "normal"}, "value": 7, "preemptionPolicy": "Never", "globalDefault": True}
    assert (await ask("POST", CLASSES, normal))[0] == 201
    spec = pod(server)
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("normal", 7, "Never")

    status, answer = await ask("POST", CLASSES, normal | {"metadata": {"name": "other"}})
    assert (status, answer["message"]) == (
        403,
        'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass normal is already marked as default.'
        " Only one default can exist",
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller computed"
            " 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission"
            " controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ],
)
def test_a_pod_is_not_let_in(server: ApiServer, spec: Json, why: str) -> None:
    """403, with the reason."""
    with pytest.raises(StatusError) as refused:
        pod(server, **spec)

    assert refused.value.status["message"] == f'pods "p" is forbidden: {why}'


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"key": NOT_READY, "operator": "Exists"}], [UNREACHABLE]),
    ],
)
def test_a_pod_bears_a_lost_node_for_a_while(server: ApiServer, tolerations: list[Json], added: list[str]) -> None:
    """Five minutes, unless it says otherwise."""
    found = pod(server, tolerations=tolerations)["tolerations"][len(tolerations) :]

    assert [one["key"] for one in found] == added
    assert all((one["effect"], one["tolerationSeconds"]) == ("NoExecute", 300) for one in found)


def test_an_update_keeps_what_was_added(server: ApiServer) -> None:
    """A client that does not send it back has not changed it."""
    old = {"spec": pod(server)}

    assert pod(server, operation="UPDATE", old=old)["priority"] == 0
