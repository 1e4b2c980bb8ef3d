"""Whose pods are whose (O1–O6): the pods of a Job, orphans adopted and strangers released on the way."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from mirror.jobcontroller.decide.values import Pod
from mirror.jobcontroller.jobview import CachedJob
from mirror.jobcontroller.memory import JobMemory
from mirror.jobcontroller.pods import PodIndex
from mirror.jobcontroller.podview import CachedPod, labels_of
from mirror.jobcontroller.podwrites import PodWrites
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Invalid, KubeError, NotFound
from mirror.kube.resources import JOBS


class AdoptionRefused(KubeError):
    """A look at the server, not at the cache, says that the Job may not adopt any pod (O3, Q8)."""


class Claimer:
    """Looks at candidates."""

    def __init__(self, client: Client, writes: PodWrites, index: PodIndex) -> None:
        self._client = client
        self._writes = writes
        self._index = index

    async def claim(self, job: CachedJob, memory: JobMemory) -> list[Pod]:
        """The pods that a Job answers for, but for the settled ones.

        Raises:
            KubeError: some pod could neither be adopted nor released; all were tried.
        """
        selector = job.brief.selector
        owned = self._index.open_of(job)
        mine = [pod for pod in owned if selector.matches(labels_of(pod))]
        over = [pod for pod in mine if pod.is_settled]
        self._index.settle(job, over)
        claimed = [pod.pod for pod in mine if not pod.is_settled] if over else [pod.pod for pod in mine]
        if memory.removing:
            claimed = [_seen(pod, memory) for pod in claimed]
        if job.metadata.deletion_timestamp is not None:
            return claimed
        errors: list[KubeError] = []
        if len(mine) != len(owned):
            await self._release(job, [pod for pod in owned if not selector.matches(labels_of(pod))], errors)
        orphans = [pod for pod in self._index.orphans(job.metadata.namespace, selector) if pod.pod.deleted is None]
        if orphans:
            claimed += await self._adopt(job, memory, orphans, errors)
        if errors:
            raise errors[0]
        return claimed

    async def _release(self, job: CachedJob, strangers: Sequence[CachedPod], errors: list[KubeError]) -> None:
        for pod in strangers:
            try:
                with suppress(NotFound, Invalid):
                    await self._writes.release(job, pod.pod)
            except KubeError as error:
                errors.append(error)

    async def _adopt(
        self, job: CachedJob, memory: JobMemory, orphans: Sequence[CachedPod], errors: list[KubeError]
    ) -> list[Pod]:
        """Those that were adopted; they are tracked from now on."""
        try:
            await self._check_alive(job)
        except KubeError as error:
            first = orphans[0].metadata
            text = f"can't adopt Pod {first.namespace}/{first.name} ({first.uid}): {error}"
            errors.append(AdoptionRefused(text))
            return []
        adopted = []
        for pod in orphans:
            try:
                await self._writes.adopt(job, memory, pod.pod)
            except NotFound:
                continue
            except KubeError as error:
                errors.append(error)
            else:
                adopted.append(msgspec.structs.replace(pod.pod, has_finalizer=True))
        return adopted

    async def _check_alive(self, job: CachedJob) -> None:
        """The cache may be behind: a Job that is going must adopt nothing."""
        metadata = job.metadata
        request = requests.get(JOBS, metadata.name, namespace=metadata.namespace)
        not_seen = "can't recheck DeletionTimestamp: "
        try:
            live = (await self._client.send_object(request)).metadata
        except KubeError as error:
            raise AdoptionRefused(f"{not_seen}{error}") from error
        if live.uid != metadata.uid:
            gone = f"original Job {job.key} is gone: got uid {live.uid}, wanted {metadata.uid}"
            raise AdoptionRefused(not_seen + gone)
        if live.deletion_timestamp is not None:
            raise AdoptionRefused(f"{job.key} has just been deleted at {live.deletion_timestamp}")


def _seen(pod: Pod, memory: JobMemory) -> Pod:
    """A pod whose finalizer we have removed has none, whatever the cache says (Q1)."""
    if pod.has_finalizer and pod.uid in memory.removing:
        return msgspec.structs.replace(pod, has_finalizer=False)
    return pod
