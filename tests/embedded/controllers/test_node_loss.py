"""Nodes that are lost or gone, and their pods."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from embedded_world import NODES, PODS, Json, World, in_virtual_time, pod, world

from mirror.embedded.controllers import placing
from mirror.embedded.controllers.nodes import taints
from mirror.embedded.faults.kinds import conflict
from mirror.embedded.faults.targets import Which

ALL = ("scheduler", "kubelet", "node")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def condition(found: Json, kind: str) -> Json:
    return next((one for one in found["status"].get("conditions", []) if one["type"] == kind), {})


async def lose_kubelet(here: World) -> None:
    """It is heard of no more; what it runs does not matter."""
    here.tasks["kubelet"].cancel()
    await asyncio.sleep(0)


@pytest.mark.slow
@in_virtual_time
async def test_a_node_that_is_heard_of_stays_ready() -> None:
    """For hours."""
    async with world(*ALL) as here:
        await asyncio.sleep(7200)
        node = await here.api.get(f"{NODES}/node-0")
        assert condition(node, "Ready")["status"] == "True"
        assert "taints" not in node["spec"]


@in_virtual_time
async def test_a_lost_node_is_not_ready_and_its_pods_leave_after_a_time() -> None:
    """After 50 seconds it is Unknown and tainted; 300 seconds later its pods are deleted, and wait for a kubelet."""
    async with world(*ALL) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "never"}))
        await asyncio.sleep(5)
        await lose_kubelet(here)
        await asyncio.sleep(40)
        assert condition(await here.api.get(f"{NODES}/node-0"), "Ready")["status"] == "True"
        await asyncio.sleep(20)
        node = await here.api.get(f"{NODES}/node-0")
        ready = condition(node, "Ready")
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
        assert ready["message"] == "Kubelet stopped posting node status."
        assert sorted((one["key"], one["effect"]) for one in node["spec"]["taints"]) == [
            ("node.kubernetes.io/unreachable", "NoExecute"),
            ("node.kubernetes.io/unreachable", "NoSchedule"),
        ]
        found = await here.api.get(f"{PODS}/p")
        assert condition(found, "Ready")["status"] == "False"
        assert ("NodeNotReady", "Node is not ready") in await here.told("p")
        await asyncio.sleep(280)
        assert "deletionTimestamp" not in (await here.api.get(f"{PODS}/p"))["metadata"]
        await asyncio.sleep(30)
        found = await here.api.get(f"{PODS}/p")
        assert "deletionTimestamp" in found["metadata"]
        assert condition(found, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
        assert ("TaintManagerEviction", "Marking for deletion Pod default/p") in await here.told("p")
        here.start("kubelet")
        await here.until(f"{PODS}/p", lambda one: one is None, seconds=60)


@in_virtual_time
async def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    """Taints go, and what ran is ready again."""
    async with world(*ALL) as here:
        await here.api.create(PODS, pod("p", annotations={"run-for": "never"}))
        await asyncio.sleep(5)
        await lose_kubelet(here)
        await asyncio.sleep(120)
        here.start("kubelet")
        await asyncio.sleep(15)
        node = await here.api.get(f"{NODES}/node-0")
        assert condition(node, "Ready")["status"] == "True"
        assert "taints" not in node["spec"]
        found = await here.api.get(f"{PODS}/p")
        assert condition(found, "Ready")["status"] == "True"
        assert found["status"]["containerStatuses"][0]["restartCount"] == 0


@in_virtual_time
async def test_no_pod_comes_to_a_lost_node() -> None:
    """Unless it tolerates that."""
    async with world(*ALL) as here:
        await lose_kubelet(here)
        await asyncio.sleep(60)
        await here.api.create(PODS, pod("p"))
        await asyncio.sleep(1)
        told = condition(await here.api.get(f"{PODS}/p"), "PodScheduled")["message"]
        text = "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }."
        assert told.startswith(text)


@in_virtual_time
async def test_pods_of_a_node_that_is_gone_end() -> None:
    """After a while, in which it may come back."""
    async with world(*ALL) as here:
        for name in ("p", "q"):
            await here.api.create(PODS, pod(name, annotations={"run-for": "never"}))
        await here.api.merge(f"{PODS}/q", {"metadata": {"finalizers": ["test.io/hold"]}})
        await asyncio.sleep(5)
        await lose_kubelet(here)
        await here.api.delete(f"{NODES}/node-0")
        await asyncio.sleep(30)
        assert await here.names(PODS) == ["p", "q"]
        await asyncio.sleep(20)
        assert await here.names(PODS) == ["q"]
        found = await here.api.get(f"{PODS}/q")
        assert found["status"]["phase"] == "Failed"
        assert condition(found, "DisruptionTarget")["message"] == "PodGC: node no longer exists"


@in_virtual_time
async def test_pods_that_name_a_node_that_never_was_end() -> None:
    """Nobody else would ever look at them."""
    async with world(*ALL) as here:
        await here.api.create(PODS, pod("p", nodeName="nowhere"))
        await asyncio.sleep(30)
        assert await here.names(PODS) == ["p"]
        await asyncio.sleep(20)
        assert await here.names(PODS) == []


@in_virtual_time
async def test_pods_that_go_and_never_had_a_node_end() -> None:
    """A Job that replaces pods only when they have failed waits for that; it comes through conflicts."""
    async with world("node") as here:
        here.faults.arrange(conflict(), Which("patch", "pods"), times=3)
        for name in ("p", "q", "waits"):
            await here.api.create(PODS, pod(name))
            await here.api.merge(f"{PODS}/{name}", {"metadata": {"finalizers": ["test.io/hold"]}})
        for name in ("p", "q"):
            await here.api.delete(f"{PODS}/{name}")
        await asyncio.sleep(10)
        assert (await here.api.get(f"{PODS}/p"))["status"]["phase"] == "Pending"
        await here.until(f"{PODS}/p", lambda one: one and one["status"]["phase"] == "Failed", seconds=60)
        await here.until(f"{PODS}/q", lambda one: one and one["status"]["phase"] == "Failed", seconds=60)
        await here.api.merge(f"{PODS}/p", {"metadata": {"finalizers": None}})
        await here.until(f"{PODS}/p", lambda one: one is None, seconds=60)
        assert (await here.api.get(f"{PODS}/waits"))["status"]["phase"] == "Pending"


@in_virtual_time
async def test_a_cordoned_node_gets_no_pods() -> None:
    """It is tainted, too."""
    async with world(*ALL) as here:
        await asyncio.sleep(1)
        await here.api.merge(f"{NODES}/node-0", {"spec": {"unschedulable": True}})
        await asyncio.sleep(1)
        node = await here.api.get(f"{NODES}/node-0")
        assert [one["key"] for one in node["spec"]["taints"]] == ["node.kubernetes.io/unschedulable"]
        await here.api.create(PODS, pod("p"))
        await asyncio.sleep(1)
        assert "1 node(s) were unschedulable" in condition(await here.api.get(f"{PODS}/p"), "PodScheduled")["message"]


@in_virtual_time
async def test_several_nodes_share_the_pods() -> None:
    """They take turns."""
    async with world(*ALL, nodes=("a", "b")) as here:
        await asyncio.sleep(1)
        for number in range(4):
            await here.api.create(PODS, pod(f"p{number}"))
        await asyncio.sleep(1)
        found = await here.api.list(PODS)
        assert sorted(one["spec"]["nodeName"] for one in found) == ["a", "a", "b", "b"]
        assert {one["status"]["phase"] for one in found} == {"Succeeded"}


TAINT = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-03-01T11:59:00Z"}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        pytest.param([], 0.0, id="none: at once"),
        pytest.param([{"operator": "Exists"}], None, id="of everything: never"),
        pytest.param([{"key": "k", "operator": "Exists", "tolerationSeconds": 100}], 40.0, id="for a time since then"),
        pytest.param([{"key": "k", "value": "other"}], 0.0, id="another value"),
        pytest.param([{"key": "k", "value": "v", "effect": "NoSchedule"}], 0.0, id="another effect"),
        pytest.param([{"key": "k", "value": "v", "tolerationSeconds": -5}], -60.0, id="less than no time"),
    ],
)
def test_tolerations_say_when_a_pod_leaves(tolerations: list[Json], seconds: float | None) -> None:
    """Counted from when the taint came."""
    due = taints.leaves_at({"spec": {"tolerations": tolerations}}, [TAINT], NOW)
    assert (None if due is None else (due - NOW).total_seconds()) == seconds


def node_with(ready: str | None, stored: list[Json], *others: Json) -> Json:
    conditions = [*others, *([{"type": "Ready", "status": ready}] if ready else [])]
    return {"metadata": {"name": "n"}, "spec": {"taints": stored}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("node", "keys"),
    [
        pytest.param(node_with("True", []), None, id="ready"),
        pytest.param(node_with("False", []), ["not-ready", "not-ready"], id="not ready"),
        pytest.param(node_with(None, []), ["unreachable", "unreachable"], id="nobody knows"),
        pytest.param(node_with("True", [{"key": taints.NOT_READY, "effect": "NoSchedule"}]), [], id="ready again"),
        pytest.param(
            node_with("True", [], {"type": "DiskPressure", "status": "True"}), ["disk-pressure"], id="under pressure"
        ),
    ],
)
def test_conditions_become_taints(node: Json, keys: list[str] | None) -> None:
    """Nothing is written that is so already."""
    found = taints.wanted_taints(node, NOW)
    assert (None if found is None else [one["key"].removeprefix("node.kubernetes.io/") for one in found]) == keys


def test_taints_of_others_stay() -> None:
    """Only our own are taken away."""
    own, other = {"key": taints.UNREACHABLE, "effect": "NoExecute"}, {"key": "mine", "effect": "NoSchedule"}
    assert taints.wanted_taints(node_with("True", [own, other]), NOW) == [other]


def wants(**terms: Any) -> Json:
    rules = {"nodeSelectorTerms": [terms]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rules}}
    return {"spec": {"affinity": affinity}}


def rule(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("pod_", "fits"),
    [
        pytest.param(wants(matchExpressions=[rule("disk", "In", "fast", "slow")]), True, id="in"),
        pytest.param(wants(matchExpressions=[rule("disk", "NotIn", "fast")]), False, id="not in"),
        pytest.param(wants(matchExpressions=[rule("disk", "Exists")]), True, id="exists"),
        pytest.param(wants(matchExpressions=[rule("gpu", "DoesNotExist")]), True, id="does not exist"),
        pytest.param(wants(matchExpressions=[rule("cores", "Gt", "3")]), True, id="greater"),
        pytest.param(wants(matchExpressions=[rule("cores", "Lt", "x")]), False, id="no number"),
        pytest.param(wants(matchFields=[rule("metadata.name", "In", "n")]), True, id="by name"),
        pytest.param(wants(), False, id="an empty term"),
    ],
)
def test_affinity_to_nodes(pod_: Json, fits: bool) -> None:
    """All rules of one term must hold."""
    node = {"metadata": {"name": "n", "labels": {"disk": "fast", "cores": "4"}}, "spec": {}}
    assert (placing.node_for(pod_, [node], 0) == "n") is fits
