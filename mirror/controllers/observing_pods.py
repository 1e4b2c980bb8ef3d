"""What of a mirror's pods is part of a ``Snapshot``, where they are watched (D22). Used by ``observing``."""

from __future__ import annotations

from mirror.decide.snapshot import Memory, Source
from mirror.kinds.base import Progress
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.reasons import FAILED_PODS, SEEN_OF_PODS, Obstruction, Reason
from mirror.workers.pods import PodWatches
from mirror.workers.worker import Worker


def pods_of(
    source: Source, worker: Worker | None, mirror: Object | None, memory: Memory
) -> tuple[Obstruction | None, tuple[int, int] | None]:
    """What keeps the pods of a mirror that goes on from running, and how many had failed (``failures_before``)."""
    if worker is None or worker.pods is None or mirror is None:
        return None, None
    kind = source.kind
    if kind.is_suspended(mirror) or kind.summary(mirror).is_finished:
        return None, None
    progress = kind.progress(mirror)
    before = failures_before(progress, memory.failures_before, source.stored.obstruction_reason)
    stalled: bool | None = is_stalled(progress, before, has_unready=kind.has_unready_pods(mirror))
    if not stalled and kind.counts_ready and not kind.counts_pods:
        stalled = None  # what has failed by its status are no pods perhaps: those that are kept count
    found = worker.pods.obstruction_of(source.uid, mirror.metadata.namespace, is_stalled=stalled)
    if found is None or found.reason == Reason.PODS_NOT_READY:
        found = _still_shown(source, worker.pods) or found
    return found, before


def _still_shown(source: Source, pods: PodWatches) -> Obstruction | None:
    """What another process has seen, and written to the source, while not all that this one watches is known."""
    text, reason = source.found.annotations.get(names.WAITING_BECAUSE), source.stored.obstruction_reason
    if text is None or reason not in SEEN_OF_PODS or not pods.first_look.keeps(source.uid):
        return None
    return Obstruction(reason, text)


def is_stalled(progress: Progress, before: tuple[int, int] | None, *, has_unready: bool) -> bool:
    """Whether failures are what there is to see of it: two of them since a pod has last succeeded, if any has.

    In a large Job that goes on now and then a pod fails; an index that fails again and again is no such Job.

    Args:
        progress: of the mirror.
        before: ``failures_before``.
        has_unready: of a Job of which nothing has succeeded one failure is enough, while its next pod is not ready.
    """
    if not progress.succeeded:
        return progress.failed > 1 or has_unready
    return before is not None and progress.failed - before[1] > 1


def failures_before(progress: Progress, known: tuple[int, int] | None, shown: str) -> tuple[int, int] | None:
    """How many have succeeded, and how many had failed when that was first seen; None while there are not both.

    Args:
        progress: of the mirror.
        known: what this said the last time; None: this process has not looked yet, so one failure is taken for newer
            than the last success, or two where they are told of already.
        shown: the reason that the source has for making no progress; empty: none.
    """
    succeeded, failed = progress.succeeded, progress.failed
    if not (succeeded and failed):
        return None
    if known is None:
        return succeeded, max(0, failed - (2 if shown in FAILED_PODS else 1))
    return succeeded, min(known[1], failed) if known[0] == succeeded else failed


def failure_of(source: Source, worker: Worker | None, mirror: Object | None, memory: Memory) -> Obstruction | None:
    """What the pods failed of, where they are watched: while the end is stored, and until it is reported with that."""
    if worker is None or worker.pods is None:
        return None
    over = mirror or memory.ended
    is_over = (
        memory.is_failure_untold if source.is_finished else over is not None and source.kind.summary(over).is_finished
    )
    if not is_over:
        return None
    return worker.pods.failure_of(source.uid, worker.namespace_of(source.found.metadata.namespace))
