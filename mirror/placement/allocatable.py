"""How much of a worker's nodes is free: what they can allocate, without what pods there request. Pure.

Counted are CPU, memory and the number of pods, as kube-scheduler does; of them the scarcest is what counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mirror.kube.objects import JUNK
from mirror.placement.quotas import amount_of

Amounts = tuple[float, float, float]
"""CPU in cores, memory in bytes, pods."""

NOTHING: Amounts = (0.0, 0.0, 0.0)
_KEEPS_OUT = ("NoSchedule", "NoExecute")
_STATES = "node.kubernetes.io/"
"""Taints of this prefix say what state a node is in: cordoned, not ready, under pressure."""


class _Taint(msgspec.Struct, gc=False):
    key: str = ""
    effect: str = ""


class _NodeSpec(msgspec.Struct, gc=False):
    unschedulable: bool = False
    taints: list[_Taint] | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


Quantities = dict[str, str | int | float]


class _NodeStatus(msgspec.Struct, gc=False):
    allocatable: Quantities | None = None
    conditions: list[_Condition] | None = None


class _Resources(msgspec.Struct, gc=False):
    requests: Quantities | None = None


class _Container(msgspec.Struct, gc=False, rename="camel"):
    resources: _Resources | None = None
    restart_policy: str | None = None


class _PodSpec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    overhead: Quantities | None = None
    resources: _Resources | None = None


_node_spec = msgspec.json.Decoder(_NodeSpec | None)
_node_status = msgspec.json.Decoder(_NodeStatus | None)
_pod_spec = msgspec.json.Decoder(_PodSpec | None)


class NodeRoom(msgspec.Struct, frozen=True, gc=False):
    """What one node can allocate, and whether it takes pods now."""

    allocatable: Amounts
    takes_pods: bool


def room_of(spec: bytes, status: bytes) -> NodeRoom | None:
    """A node by its spec and status; None for one that is kept for others by its taints, or cannot be read.

    Which pods tolerate such taints is not known; control planes have one.
    """
    try:
        wanted, found = _node_spec.decode(spec), _node_status.decode(status)
    except JUNK:
        return None
    if found is None or not found.allocatable:
        return None
    taints = [one for one in (wanted.taints or () if wanted else ()) if one.effect in _KEEPS_OUT]
    if any(not one.key.startswith(_STATES) for one in taints):
        return None
    is_ready = any((one.type, one.status) == ("Ready", "True") for one in found.conditions or ())
    takes_pods = is_ready and not taints and not (wanted is not None and wanted.unschedulable)
    return NodeRoom(_amounts(found.allocatable), takes_pods)


def request_of(spec: bytes) -> tuple[str, Amounts]:
    """The node that a pod is bound to, and what it requests there, as kube-scheduler counts it.

    The sum of its containers, or what its init containers take at a time if that is more; sidecars are init containers
    that go on. What the pod as a whole requests goes before that. What cannot be read requests nothing.
    """
    try:
        found = _pod_spec.decode(spec)
    except JUNK:
        return "", NOTHING
    if found is None or not found.node_name:
        return "", NOTHING
    total, sidecars, most = _sum(_requests(one) for one in found.containers or ()), NOTHING, NOTHING
    for one in found.init_containers or ():
        if one.restart_policy == "Always":
            sidecars = _sum((sidecars, _requests(one)))
            most = _most(most, sidecars)
        else:
            most = _most(most, _sum((sidecars, _requests(one))))
    cpu, memory, _ = _most(_sum((total, sidecars)), most)
    whole = (found.resources.requests if found.resources is not None else None) or {}
    cpu = _amount(whole, "cpu") if "cpu" in whole else cpu
    memory = _amount(whole, "memory") if "memory" in whole else memory
    return found.node_name, _sum(((cpu, memory, 1.0), _amounts({**(found.overhead or {}), "pods": 0})))


def free_share(nodes: Mapping[str, NodeRoom], requested: Mapping[str, Sequence[float]]) -> float | None:
    """Of all that the nodes can allocate the share that is free on those that take pods, from 0 to 1; the scarcest.

    Args:
        nodes: by name.
        requested: by name of a node, what its pods request.

    Returns:
        None without nodes: an autoscaler may bring some.
    """
    total, free = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    for name, node in nodes.items():
        taken = requested.get(name, NOTHING)
        for at, most in enumerate(node.allocatable):
            total[at] += most
            free[at] += max(0.0, most - taken[at]) if node.takes_pods else 0.0
    return min((left / most for left, most in zip(free, total, strict=True) if most), default=None)


def _amounts(quantities: Quantities) -> Amounts:
    return _amount(quantities, "cpu"), _amount(quantities, "memory"), _amount(quantities, "pods")


def _amount(quantities: Quantities, name: str) -> float:
    return amount_of(quantities.get(name)) or 0.0


def _requests(container: _Container) -> Amounts:
    requests = container.resources.requests if container.resources is not None else None
    return (_amount(requests, "cpu"), _amount(requests, "memory"), 0.0) if requests else NOTHING


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    cpu = memory = pods = 0.0
    for one in amounts:
        cpu, memory, pods = cpu + one[0], memory + one[1], pods + one[2]
    return cpu, memory, pods


def _most(one: Amounts, other: Amounts) -> Amounts:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])
