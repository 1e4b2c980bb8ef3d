"""Reads a worker's nodes, and what pods request of them, for the score ``allocatable`` (``placement.allocatable``).

Called by ``worker_rounds``. Only sums are kept; what pods are, and what is in them, goes with the page it came in.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror.kube.errors import BadAnswer, Forbidden
from mirror.kube.resources import NODES, PODS
from mirror.kube.watch import list_pages
from mirror.placement.allocatable import NodeRoom, free_share, request_of, room_of
from mirror.workers.worker import Worker

MOST_NODES = 10_000
MOST_PODS = 50_000
"""Of one worker: of more nothing is concluded (D29)."""
BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Pods that take room."""


async def read_nodes(worker: Worker) -> float | None:
    """The share of its nodes that is free; None where it has none. Raises KubeError.

    Without the right to list pods, of all namespaces, their requests are not deducted: what is left then is the share
    of nodes that take pods at all.
    """
    nodes: dict[str, NodeRoom] = {}
    async for page in list_pages(worker.client, NODES):
        for found in page.objects:
            if (room := room_of(bytes(found.spec), bytes(found.status))) is not None:
                nodes[found.metadata.name] = room
        if len(nodes) > MOST_NODES:
            raise BadAnswer(f"more than {MOST_NODES} nodes")
    try:
        requested = await _requested(worker, nodes)
    except Forbidden:
        requested = {}
    return free_share(nodes, requested)


async def _requested(worker: Worker, nodes: Mapping[str, NodeRoom]) -> dict[str, list[float]]:
    """By node, what the pods there request; of these nodes only."""
    sums = {name: [0.0, 0.0, 0.0] for name in nodes}
    count = 0
    async for page in list_pages(worker.client, PODS, field_selector=BOUND):
        for pod in page.objects:
            if (count := count + 1) > MOST_PODS:
                raise BadAnswer(f"more than {MOST_PODS} pods")
            node, amounts = request_of(bytes(pod.spec))
            if (taken := sums.get(node)) is not None:
                for at, amount in enumerate(amounts):
                    taken[at] += amount
    return sums
