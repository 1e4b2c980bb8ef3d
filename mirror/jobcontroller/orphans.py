"""Pods that nobody counts any more lose our finalizer (H7, Q7, Q24, J4): of Jobs that are gone, finished, or let go.

Keys come from ``handlers``; ``controller`` consumes them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from mirror.batch.label_selectors import LabelSelector
from mirror.jobcontroller.jobview import Jobs
from mirror.jobcontroller.parallel_requests import ParallelRequests
from mirror.jobcontroller.pods import PodIndex
from mirror.jobcontroller.podview import CachedPod
from mirror.jobcontroller.podwrites import PodWrites
from mirror.kube.errors import KubeError, NotFound
from mirror.kube.resources import JOBS
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log


@dataclass(frozen=True, slots=True)
class OrphanKey:
    """A pod by its name, or all pods that a Job's selector matches."""

    namespace: str
    name: str = ""
    selector: LabelSelector | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name or self.selector}"


class Orphans:
    """Cleans."""

    def __init__(
        self, writes: PodWrites, parallel: ParallelRequests, jobs: Jobs, pods: Store, index: PodIndex, *, log: Log
    ) -> None:
        self._writes = writes
        self._parallel = parallel
        self._jobs = jobs
        self._pods = pods
        self._index = index
        self._log = log

    async def clean(self, key: OrphanKey) -> None:
        """Work on one key. A scan goes on past pods that fail: their deletion brings them again.

        Raises:
            KubeError: a single pod could not be patched.
        """
        if key.selector is None:
            found = self._pods.get(key.namespace, key.name)
            if isinstance(found, CachedPod):
                await self._clean(found)
            return
        found_pods = self._index.tracked(key.namespace, key.selector)
        if found_pods:
            await self._parallel.each(found_pods, self._clean_quietly, name=f"clean {key}")

    async def _clean_quietly(self, pod: CachedPod) -> None:
        try:
            await self._clean(pod)
        except KubeError as error:
            self._log.warning("orphan pod keeps its finalizer", pod=_key(pod), error=error)

    async def _clean(self, pod: CachedPod) -> None:
        if not pod.pod.has_finalizer or self._is_somebodys(pod):
            return
        with suppress(NotFound):
            await self._writes.strip(pod.pod, flow=pod.metadata.namespace)

    def _is_somebodys(self, pod: CachedPod) -> bool:
        """Whether another controller, or a live Job, still answers for it."""
        owner = pod.owner
        if owner is None:
            return False
        if owner.kind != JOBS.kind or owner.api_version != JOBS.api_version:
            return True
        job = self._jobs.controlling(pod.metadata.namespace, owner)
        if job is None:
            return False
        if job.brief.is_broken:
            return True
        manager = self._jobs.manager_of(job)
        if manager is not None:
            self._log.debug(
                "Skip cleanup of the job finalizer for a pod owned by a job that is managed by an external controller",
                pod=_key(pod),
                uid=pod.metadata.uid,
                job_uid=job.metadata.uid,
                controllerName=manager,
            )
            return True
        return not job.brief.is_finished


def _key(pod: CachedPod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
