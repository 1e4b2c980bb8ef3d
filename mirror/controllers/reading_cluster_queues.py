"""Reads the queues of Kueue on a worker, for the score ``clusterQueue`` (``placement.cluster_queues``).

Called by ``worker_rounds``. A worker without Kueue has no queues, which is no news.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mirror.kube.errors import BadAnswer, NotServed, PageNotFound
from mirror.kube.objects import Object
from mirror.kube.resources import CLUSTER_QUEUES, LOCAL_QUEUES, Resource
from mirror.kube.watch import list_pages
from mirror.placement.cluster_queues import cluster_queue_of, free_quota, is_stopped
from mirror.placement.facts import OTHERS, Subject
from mirror.workers.worker import Worker

MOST_QUEUES = 10_000
"""Of one worker, of each kind: more is no answer that is of use (D29)."""


async def read_cluster_queues(worker: Worker) -> Mapping[Subject, float]:
    """By namespace of sources and LocalQueue there, the share of its ClusterQueue that is free.

    Where there is Kueue, a Job in a queue that does not exist would wait for ever: nothing is free for it.

    Raises:
        KubeError: it was not read.
    """
    cluster_queues = await _list(worker, CLUSTER_QUEUES, (None,))
    local_queues = await _list(worker, LOCAL_QUEUES, worker.watches.namespaces)
    if cluster_queues is None or local_queues is None:
        return {}
    shares = {queue.metadata.name: _share(queue) for queue in cluster_queues}
    found: dict[Subject, float] = {OTHERS: 0.0}
    for queue in local_queues:
        namespace = worker.source_namespace_of(queue.metadata.namespace)
        if namespace is not None:
            spec = _spec(queue)
            share = 0.0 if is_stopped(spec) else shares.get(cluster_queue_of(spec), 0.0)
            found[namespace, queue.metadata.name] = share
    return found


async def _list(worker: Worker, versions: Sequence[Resource], namespaces: Sequence[str | None]) -> list[Object] | None:
    """Of the first version that the worker serves; None where it serves none."""
    for resource in versions:
        objects: list[Object] = []
        try:
            for namespace in namespaces:
                async for page in list_pages(worker.client, resource, namespace=namespace):
                    objects += page.objects
                    if len(objects) > MOST_QUEUES:
                        raise BadAnswer(f"more than {MOST_QUEUES} {resource.kind}s")
        except (NotServed, PageNotFound):  # or a proxy lost it: nothing is known then, either
            continue
        return objects
    return None


def _share(queue: Object) -> float:
    try:
        return free_quota(queue.spec_dict(), queue.status_dict())
    except BadAnswer:
        return 0.0


def _spec(queue: Object) -> Mapping[str, object]:
    try:
        return queue.spec_dict()
    except BadAnswer:
        return {}
