"""Reads the queues of Kueue on a worker, for the score ``clusterQueue`` (``placement.cluster_queues``).

Called by ``worker_rounds``. A worker without Kueue has no queues, which is no news.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mirror.kube.errors import BadAnswer, NotServed, PageNotFound
from mirror.kube.objects import Object
from mirror.kube.resources import CLUSTER_QUEUES, LOCAL_QUEUES, Resource
from mirror.kube.watch import list_pages
from mirror.placement.cluster_queues import cluster_queue_of, free_quota, is_stopped
from mirror.placement.facts import OTHERS, Subject
from mirror.runtime.store import Name, name_of
from mirror.workers.worker import Worker

V = TypeVar("V")

LONGEST_NAME = 253
MOST_QUEUES = 10_000
"""Of one worker, of each kind: more is no answer that is of use (D29)."""


async def read_cluster_queues(worker: Worker) -> Mapping[Subject, float]:
    """By namespace of sources and LocalQueue there, the share of its ClusterQueue that is free.

    Where there is Kueue, a Job in a queue that does not exist would wait for ever: nothing is free for it.

    Raises:
        KubeError: it was not read.
    """
    shares = await _read(worker, CLUSTER_QUEUES, (None,), _share)
    leads_to = await _read(worker, LOCAL_QUEUES, worker.watches.namespaces, _where)
    if shares is None or leads_to is None:
        return {}
    by_name = {name: share for (_, name), share in shares.items()}
    found: dict[Subject, float] = {OTHERS: 0.0}
    for (where, name), cluster_queue in leads_to.items():
        namespace = worker.source_namespace_of(where)
        if namespace is not None:
            found[namespace, name] = by_name.get(cluster_queue, 0.0)
    return found


async def _read(
    worker: Worker, versions: Sequence[Resource], namespaces: Sequence[str | None], fact: Callable[[Object], V]
) -> dict[Name, V] | None:
    """A fact of each, of the first version that the worker serves; None where it serves none. No more is kept (D29)."""
    for resource in versions:
        found: dict[Name, V] = {}
        count = 0
        try:
            for namespace in namespaces:
                async for page in list_pages(worker.client, resource, namespace=namespace):
                    if (count := count + len(page.objects)) > MOST_QUEUES:
                        raise BadAnswer(f"more than {MOST_QUEUES} {resource.kind}s")
                    found |= {name_of(one): fact(one) for one in page.objects}
        except (NotServed, PageNotFound):  # or a proxy lost it: nothing is known then, either
            continue
        return found
    return None


def _share(queue: Object) -> float:
    try:
        return free_quota(queue.spec_dict(), queue.status_dict())
    except BadAnswer:
        return 0.0


def _where(queue: Object) -> str:
    """The ClusterQueue that a LocalQueue leads to; empty where it leads to none that has anything."""
    try:
        spec = queue.spec_dict()
    except BadAnswer:
        return ""
    name = "" if is_stopped(spec) else cluster_queue_of(spec)
    return name if len(name) <= LONGEST_NAME else ""
