"""What was seen of a mirror's pods, and whether it proves that none ever ran (D31, decision 0016)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mirror.kube.objects import Object, decode_object, partial_of
from mirror.kube.watch import WatchEvent
from mirror.workers.pod_ledger import MOST_PODS, PodLedger

AT = "2026-03-01T12:00:00Z"
LOST = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}}


def pod(name: str = "x", *, node: str = "", **status: Any) -> Object:
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}"}
    spec = {"containers": [{"name": "main"}]} | ({"nodeName": node} if node else {})
    return decode_object(json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode())


def container(state: Any = None, **more: Any) -> list[Any]:
    return [{"name": "main", "state": state or {"waiting": {"reason": "ContainerCreating"}}, **more}]


def ledger_of(*listed: Object) -> PodLedger:
    ledger = PodLedger()
    for one in listed:
        ledger.take_listed(one)
    return ledger


ENDED: dict[str, Any] = {"node": "n", "phase": "Failed", "containerStatuses": container(LOST)}
UNSTARTED: list[tuple[str, dict[str, Any]]] = [
    ("nothing is said", {}),
    ("pending", {"phase": "Pending"}),
    ("an image is pulled", {"phase": "Pending", "containerStatuses": container(restartCount=0, started=False)}),
    ("ended unstarted", {"phase": "Failed", "containerStatuses": container(LOST)}),
    (
        "Go's zero time",
        {"phase": "Failed", "containerStatuses": container({"terminated": {"startedAt": "0001-01-01T00:00:00Z"}})},
    ),
]
STARTED: list[tuple[str, dict[str, Any]]] = [
    ("running", {"phase": "Running"}),
    ("succeeded", {"phase": "Succeeded"}),
    ("a container runs", {"phase": "Pending", "containerStatuses": container({"running": {}})}),
    ("one has ended", {"phase": "Failed", "containerStatuses": container({"terminated": {"startedAt": AT}})}),
    ("it was restarted", {"phase": "Pending", "containerStatuses": container(restartCount=1)}),
    ("it said that it has started", {"phase": "Pending", "containerStatuses": container(started=True)}),
    (
        "it ran before",
        {"phase": "Pending", "containerStatuses": container(lastState={"terminated": {"startedAt": AT}})},
    ),
    ("an init container runs", {"phase": "Pending", "initContainerStatuses": container({"running": {}})}),
    (
        "an init container has ended",
        {"phase": "Pending", "initContainerStatuses": container({"terminated": {"exitCode": 0, "startedAt": AT}})},
    ),
    ("somebody debugs it", {"phase": "Pending", "ephemeralContainerStatuses": container({"running": {}})}),
]


@pytest.mark.parametrize(("what", "status"), UNSTARTED, ids=[what for what, _ in UNSTARTED])
def test_a_pod_that_has_not_started(what: str, status: dict[str, Any]) -> None:
    ledger = ledger_of(pod(**status))
    assert (ledger.started, ledger.missed, ledger.is_empty) == ("", "", False)


@pytest.mark.parametrize(("what", "status"), STARTED, ids=[what for what, _ in STARTED])
@pytest.mark.parametrize("by", ["list", "ADDED", "MODIFIED", "DELETED"])
def test_a_pod_that_has_started(what: str, status: dict[str, Any], by: Any) -> None:
    """By the list or any event, the last one too, and for good."""
    ledger = PodLedger()
    if by == "list":
        ledger.take_listed(pod(**status))
    else:
        ledger.take(WatchEvent(by, pod(**status)))
    assert ledger.started.startswith("pod x ")
    ledger.take(WatchEvent("MODIFIED", pod(phase="Pending")))
    assert ledger.started


@pytest.mark.parametrize(
    ("before", "last", "is_proved"),
    [
        pytest.param({}, {"phase": "Pending"}, True, id="never on a node"),
        pytest.param({"node": "n"}, ENDED, True, id="its last word was its end"),
        pytest.param(ENDED, {"node": "n", "phase": "Failed"}, True, id="it ended before"),
        pytest.param(
            {"node": "n"},
            {"node": "n", "phase": "Failed", "initContainerStatuses": container(), "containerStatuses": container()},
            True,
            id="it waited for its init containers",
        ),
        pytest.param({"node": "n"}, {"node": "n", "phase": "Failed"}, False, id="its kubelet has said nothing"),
        pytest.param(
            {"node": "n"},
            {"node": "n", "phase": "Failed", "containerStatuses": container()},
            False,
            id="somebody else said that it failed",
        ),
        pytest.param(
            {"node": "n"},
            ENDED | {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]},
            False,
            id="its node is lost",
        ),
        pytest.param({"node": "n"}, {"node": "n", "phase": "Pending"}, False, id="it vanished from its node"),
        pytest.param({}, {"node": "n", "phase": "Pending"}, False, id="it was bound, and vanished"),
    ],
)
def test_one_that_goes(before: dict[str, Any], last: dict[str, Any], is_proved: bool) -> None:
    """One that was bound must be seen in a final phase before."""
    ledger = ledger_of(pod(**before))
    ledger.take(WatchEvent("DELETED", pod(**last)))
    assert ledger.is_empty
    assert (not ledger.is_over) == is_proved


def test_those_that_were_on_no_node_can_be_asked_for() -> None:
    """A pod that only lost its labels looks deleted, too."""
    ledger = ledger_of(pod("a"), pod("b", **ENDED))
    for one in (pod("a"), pod("b", **ENDED)):
        ledger.take(WatchEvent("DELETED", one))
    assert ledger.unbound == {"uid-a": "a"}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(pod(phase="Unknown"), id="a phase that nobody knows"),
        pytest.param(pod(phase=7), id="a phase that is none"),
        pytest.param(pod(containerStatuses="x"), id="containers that are none"),
        pytest.param(partial_of(pod(), ()), id="too large"),
    ],
)
def test_what_cannot_be_read_proves_nothing(found: Object) -> None:
    ledger = ledger_of(found)
    assert ledger.missed
    assert ledger.is_over


def test_too_many_pods_prove_nothing() -> None:
    ledger = ledger_of(*(pod(str(number)) for number in range(MOST_PODS)))
    assert not ledger.is_over
    ledger.take(WatchEvent("ADDED", pod("one-more")))
    assert ledger.missed == f"it has more than {MOST_PODS} pods"


def test_one_that_comes_late_counts() -> None:
    ledger = ledger_of()
    assert ledger.is_empty
    ledger.take(WatchEvent("ADDED", pod(phase="Pending")))
    assert not ledger.is_empty
