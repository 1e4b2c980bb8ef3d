"""Pods of which it is not known whether they were created, since the answer was lost: a look at the server tells.

The cache cannot: the watch may be as broken as the connection was, and a sync that believed it would create a pod a
second time (Q1). Used by ``creating``, which notes a doubt, and ``syncing``, which has it dispelled first of all. What
the look finds is not used but waited for, as what we wrote ourselves (Y1).
"""

from __future__ import annotations

from contextlib import aclosing

from mirror.jobcontroller.jobview import CachedJob
from mirror.jobcontroller.memory import JobMemory
from mirror.kube.client import Client
from mirror.kube.errors import ApiError, KubeError, ServerFailure, Unreachable
from mirror.kube.resources import PODS
from mirror.kube.watch import list_pages


def leaves_doubt(error: KubeError) -> bool:
    """Whether a request that failed like this may have been carried out."""
    return isinstance(error, ServerFailure) or not isinstance(error, ApiError | Unreachable)


class Doubts:
    """Dispels them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def dispel(self, job: CachedJob, memory: JobMemory) -> None:
        """Learn how far the watch of pods has to be, to show every pod that there is.

        Raises:
            KubeError: the server does not say; the doubt stays.
        """
        pivot = job.brief.selector.pivot
        pages = list_pages(
            self._client,
            PODS,
            namespace=job.metadata.namespace,
            label_selector="=".join(pivot) if pivot else "",
        )
        newest = 0
        async with aclosing(pages):
            async for page in pages:
                newest = max([newest, *(pod.version for pod in page.objects)])
        memory.written.wrote_pod(newest)
        memory.is_in_doubt = False
