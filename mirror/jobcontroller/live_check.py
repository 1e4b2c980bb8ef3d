"""Looks at the server, where a sync that believed the cache could do harm: the watch may be behind or broken.

A pod whose creation was not answered would be created a second time (Q2): ``creating`` notes the doubt, and ``syncing``
has it resolved first of all. A pod that ends just when it is to be deleted would not be counted: ``removing`` looks
again. What a look finds the next sync waits for, as for what we wrote ourselves (Y1).
"""

from __future__ import annotations

from contextlib import aclosing

from mirror.jobcontroller.decide.values import Pod
from mirror.jobcontroller.jobview import CachedJob
from mirror.jobcontroller.memory import JobMemory
from mirror.jobcontroller.podview import pod_of
from mirror.kube.client import Client
from mirror.kube.errors import ApiError, KubeError, NotFound, ServerFailure, Unreachable
from mirror.kube.resources import PODS
from mirror.kube.watch import list_pages

_BY_WEBHOOK = ("failed calling webhook ", "admission webhook ")
"""What a server says of webhooks, which it asks before it stores anything; one may be down for hours."""


def leaves_doubt(error: KubeError) -> bool:
    """Whether a request that failed like this may have been carried out."""
    if isinstance(error, ServerFailure):
        return not any(words in error.message for words in _BY_WEBHOOK)
    return not isinstance(error, ApiError | Unreachable)


class LiveCheck:
    """Dispels them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def resolve(self, job: CachedJob, memory: JobMemory) -> None:
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

    async def look_at(self, pod: Pod, memory: JobMemory) -> Pod:
        """A pod as it is now. Who may list pods may do this.

        Raises:
            NotFound: it is gone; another one may have its name.
            KubeError: the server does not say.
        """
        pages = list_pages(self._client, PODS, namespace=pod.namespace, field_selector=f"metadata.name={pod.name}")
        async with aclosing(pages):
            async for page in pages:
                for found in page.objects:
                    if found.metadata.uid == pod.uid:
                        memory.written.wrote_pod(found.version)
                        return pod_of(found, found.metadata)
        raise NotFound(404, "NotFound", f'pods "{pod.name}" not found', about_kind=PODS.plural, about_name=pod.name)
