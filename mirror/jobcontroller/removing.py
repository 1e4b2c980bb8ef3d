"""Deleting the pods that a decision names (Y15, A1, A3), and taking the finalizer off those that were counted (T10)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mirror.jobcontroller.decide.values import Pod
from mirror.jobcontroller.jobview import CachedJob
from mirror.jobcontroller.live_check import LiveCheck
from mirror.jobcontroller.memory import JobMemory
from mirror.jobcontroller.parallel_requests import ParallelRequests
from mirror.jobcontroller.podwrites import PodWrites
from mirror.kube.errors import Invalid, KubeError, NotFound
from mirror.runtime.clock import Clock
from mirror.runtime.loop import CacheBehind

_LOOKS = 3
"""A pod starts only once; who goes on changing what we look at does not keep it by that."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """What became of the deletes."""

    count: int = 0
    """Those that are gone or going, by us or by others."""
    ready: int = 0
    """Ready ones among those whose delete was tried."""
    error: KubeError | None = None
    """The first refusal."""


@dataclass(frozen=True, slots=True)
class Stripped:
    """What became of the removals of finalizers."""

    uids: frozenset[str]
    """Whose finalizer is gone."""
    error: KubeError | None = None
    """The first refusal."""


class Remover:
    """Performs."""

    def __init__(self, writes: PodWrites, parallel: ParallelRequests, live_check: LiveCheck, *, clock: Clock) -> None:
        self._writes = writes
        self._parallel = parallel
        self._live_check = live_check
        self._clock = clock

    async def delete(self, job: CachedJob, pods: Sequence[Pod]) -> Deleted:
        """Delete pods because the Job ends; they keep the finalizer until they are counted (Y15)."""

        async def one(pod: Pod) -> KubeError | None:
            try:
                await self._writes.delete(job, pod)
            except NotFound:
                return None
            except KubeError as error:
                return error
            return None

        ended = await self._parallel.each(pods, one, name=f"delete pods of {job.key}")
        return _deleted(pods, ended)

    async def strip_and_delete(self, job: CachedJob, memory: JobMemory, pods: Sequence[Pod]) -> Deleted:
        """Delete pods that must never count, so that the finalizer goes first (A1, A3)."""
        memory.expected.expect_deletions(len(pods), self._clock.monotonic())
        untried: set[str] = set()

        async def one(pod: Pod) -> KubeError | None:
            try:
                if pod.has_finalizer:
                    untried.add(pod.uid)
                    await self._strip_first(job, memory, pod)
                    untried.discard(pod.uid)
                await self._writes.delete(job, pod)
            except NotFound:
                untried.discard(pod.uid)
                memory.expected.deletion_seen()
            except KubeError as error:
                memory.expected.deletion_seen()  # nobody will see one
                return error
            return None

        ended = await self._parallel.each(pods, one, name=f"delete pods of {job.key}")
        return _deleted(pods, ended, untried)

    async def _strip_first(self, job: CachedJob, memory: JobMemory, pod: Pod) -> None:
        """Only while it is active: one that has ended meanwhile is counted first, and no work of it is lost.

        Raises:
            CacheBehind: it has ended, or somebody deletes it.
            NotFound: it is gone.
            KubeError: the server refused.
        """
        try:
            for _ in range(_LOOKS):
                with suppress(Invalid):
                    return await self._writes.strip_active(job, memory, pod)
                pod = await self._live_check.look_at(pod, memory)
                if not pod.is_active:
                    raise CacheBehind(f"the watch has not shown yet that pod {pod.name} is not active any more")
                if not pod.has_finalizer:
                    return None
            await self._writes.strip(pod, flow=job.metadata.uid, memory=memory)
        except KubeError as error:
            error.add_note("removing completion finalizer")
            raise

    async def strip(self, job: CachedJob, memory: JobMemory, pods: Sequence[Pod]) -> Stripped:
        """Take the finalizer off pods that the stored status accounts for (T10)."""
        memory.removing.update(pod.uid for pod in pods)

        async def one(pod: Pod) -> KubeError | None:
            try:
                await self._writes.strip(pod, flow=job.metadata.uid, memory=memory)
            except NotFound:
                return None  # the watch will say so, and until then the pod must not be counted again
            except KubeError as error:
                memory.removing.discard(pod.uid)  # no update of it will come
                return error
            return None

        ended = await self._parallel.each(pods, one, name=f"strip pods of {job.key}")
        gone = frozenset(pod.uid for pod, error in zip(pods, ended, strict=True) if error is None)
        return Stripped(gone, _first(ended))


def _deleted(pods: Sequence[Pod], ended: Sequence[KubeError | None], untried: Collection[str] = ()) -> Deleted:
    # A ready pod is subtracted even when its delete failed, as upstream does: ready must never exceed active (V29).
    ready = sum(pod.is_ready for pod in pods if pod.uid not in untried)
    return Deleted(sum(error is None for error in ended), ready, _first(ended))


def _first(ended: Sequence[KubeError | None]) -> KubeError | None:
    return next((error for error in ended if error is not None), None)
