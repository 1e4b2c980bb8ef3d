"""From a change of a Job or a pod to the keys that it concerns, and when (H1–H6). Sends nothing and decides nothing.

Told by the informers. While another process leads, only the index of pods is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mirror.jobcontroller.consistency import CacheWaiters
from mirror.jobcontroller.jobview import CachedJob, Jobs
from mirror.jobcontroller.memory import Memories
from mirror.jobcontroller.orphans import OrphanKey
from mirror.jobcontroller.pods import PodIndex
from mirror.jobcontroller.podview import CachedPod, labels_of
from mirror.jobcontroller.ports import Metrics
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS, PODS
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue


@dataclass(frozen=True, slots=True)
class Intake:
    """Where keys go."""

    queue: WorkQueue[str]
    orphans: Callable[[OrphanKey], None]
    cache_waiters: CacheWaiters
    batch_seconds: float
    """How long a Job whose pods changed waits for more of that."""


class Handlers:
    """Names keys."""

    def __init__(
        self, jobs: Jobs, pods: PodIndex, memories: Memories, intake: Intake, *, metrics: Metrics, clock: Clock
    ) -> None:
        self._jobs = jobs
        self._pods = pods
        self._memories = memories
        self._cache_waiters = intake.cache_waiters
        self._queue = intake.queue
        self._orphans = intake.orphans
        self._metrics = metrics
        self._clock = clock
        self._batch_seconds = intake.batch_seconds
        self.is_leading = False

    # -- Jobs -----------------------------------------------------------------------------------------------------

    def on_job(self, old: Object | None, new: Object | None, change: Change) -> None:
        """A Job came, changed or went (``Informer.on_change``)."""
        if not self.is_leading:
            return
        was = old if isinstance(old, CachedJob) else None
        now = new if isinstance(new, CachedJob) else None
        if was is not None and (now is None or was.metadata.uid != now.metadata.uid):
            self._job_gone(was)
            was = None
        if now is None:
            return
        self._cache_waiters.on_seen(JOBS, now.version)
        if was is None:
            self.job_came(now)
        else:
            self._job_changed(was, now)

    def job_came(self, job: CachedJob) -> None:
        """H1."""
        self._queue.add_after(job.key, 0)
        manager = self._jobs.manager_of(job)
        if manager is not None:
            self._metrics.on_external_job(manager)

    def _job_changed(self, old: CachedJob, new: CachedJob) -> None:
        """H2: what the spec says is urgent, what the status says is most likely our own doing."""
        if new.brief.is_finished:
            self._memories.forget(new.metadata.uid)
            self._scan_pods_of(new)
            return
        if old.metadata.generation != new.metadata.generation:
            self._queue.add_after(new.key, 0)
        else:
            self._queue.add_after(new.key, self._batch_seconds)
        deadline, started = new.brief.deadline_seconds, new.brief.started_at
        if deadline is not None and started is not None and deadline != old.brief.deadline_seconds:
            # In this order: a deadline may be longer than times can be late.
            left = deadline - (self._clock.now() - started).total_seconds()
            self._queue.add_after(new.key, left)

    def _job_gone(self, job: CachedJob) -> None:
        """H3."""
        self._memories.forget(job.metadata.uid)
        self._queue.add_after(job.key, 0)
        self._scan_pods_of(job)

    def _scan_pods_of(self, job: CachedJob) -> None:
        self._orphans(OrphanKey(job.metadata.namespace, selector=job.brief.selector))

    # -- pods -----------------------------------------------------------------------------------------------------

    def on_pod(self, old: Object | None, new: Object | None, change: Change) -> None:
        """A pod came, changed or went (``Informer.on_change``)."""
        was = old if isinstance(old, CachedPod) else None
        now = new if isinstance(new, CachedPod) else None
        self._pods.change(was, now)
        if not self.is_leading:
            return
        self._count_tracked(was, now)
        if was is not None and (now is None or was.metadata.uid != now.metadata.uid):
            self._pod_gone(was, is_final=True)
            was = None
        if now is None:
            return
        self._cache_waiters.on_seen(PODS, now.version)
        if now.pod.deleted is not None:
            self._pod_gone(now, is_final=False)
        elif was is None:
            self._pod_came(now)
        elif was.metadata.resource_version != now.metadata.resource_version:
            self._pod_changed(was, now)

    def pod_found(self, pod: CachedPod) -> None:
        """It was there when we began."""
        self._count_tracked(None, pod)
        self._pod_came(pod)

    def _pod_came(self, pod: CachedPod) -> None:
        """H4. A finished Job counts no pod: whether one comes too late or was left by a crash, it is let go (Q24)."""
        if pod.pod.deleted is not None:
            self._pod_gone(pod, is_final=False)
        elif pod.owner is not None:
            job = self._owner_of(pod)
            if job is not None and job.brief.is_finished:
                self._clean_orphan(pod)
            elif job is not None:
                memory = self._memories.find(job.metadata.uid)
                if memory is not None:
                    memory.expected.creation_seen()
                self._batch(job)
        else:
            self._clean_orphan(pod)
            self._offer(pod)

    def _pod_changed(self, old: CachedPod, new: CachedPod) -> None:
        """H5."""
        changed_hands = old.owner != new.owner
        if changed_hands:
            self._finalizer_seen(old, new)
        if new.owner is not None:
            self._finalizer_seen(new, new)
            return
        self._clean_orphan(new)
        if changed_hands or labels_of(old) != labels_of(new):
            self._offer(new)

    def _finalizer_seen(self, owned: CachedPod, now: CachedPod) -> None:
        """Tell the Job that owns ``owned`` how the pod looks now."""
        job = self._owner_of(owned)
        if job is None:
            return
        if not now.pod.has_finalizer:
            self._removal_seen(job, now)
        self._batch(job)

    def _pod_gone(self, pod: CachedPod, *, is_final: bool) -> None:
        """H6: gone, or going."""
        job = self._owner_of(pod)
        if job is None or job.brief.is_finished:
            self._clean_orphan(pod)
            return
        memory = self._memories.find(job.metadata.uid)
        if memory is not None:
            memory.expected.deletion_seen()
        if is_final or not pod.pod.has_finalizer:
            self._removal_seen(job, pod)
        self._batch(job)

    def _removal_seen(self, job: CachedJob, pod: CachedPod) -> None:
        memory = self._memories.find(job.metadata.uid)
        if memory is not None:
            memory.removing.discard(pod.metadata.uid)

    def _clean_orphan(self, pod: CachedPod) -> None:
        if pod.pod.has_finalizer:
            self._orphans(OrphanKey(pod.metadata.namespace, name=pod.metadata.name))

    def _offer(self, pod: CachedPod) -> None:
        """An orphan: maybe some Job wants to adopt it."""
        for job in self._jobs.selecting(pod.metadata.namespace, labels_of(pod)):
            self._batch(job)

    def _owner_of(self, pod: CachedPod) -> CachedJob | None:
        return self._jobs.controlling(pod.metadata.namespace, pod.owner)

    def _batch(self, job: CachedJob) -> None:
        self._queue.add_after(job.key, self._batch_seconds)

    def _count_tracked(self, old: CachedPod | None, new: CachedPod | None) -> None:
        """Finished pods that still have our finalizer, as they begin and cease to be such."""
        was, now = _is_over_and_tracked(old), _is_over_and_tracked(new)
        if now and not was:
            self._metrics.on_tracking_finalizer("add")
        elif was and not now:
            self._metrics.on_tracking_finalizer("delete")


def _is_over_and_tracked(pod: CachedPod | None) -> bool:
    return pod is not None and pod.pod.is_finished and pod.pod.has_finalizer
