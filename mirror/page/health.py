"""The state of a Job as it is shown: what cannot be known is *Unknown*. Pure.

``board`` puts each Job through ``judged`` before ``table`` counts it; ``listing`` and ``detail`` show it.
"""

from __future__ import annotations

from msgspec.structs import replace

from mirror.kinds.registry import BUILT_IN
from mirror.model.loss_texts import follows_of
from mirror.model.views import UNKNOWN, JobView, WorkerView

STATES = ("Waiting", "Suspended", "Placed", "Running", UNKNOWN, "Complete", "Failed", "Deleting")
"""What a Job can be shown as, in the order of a Job's life; a kind may have other final conditions."""
LATE_SECONDS = 5.0
"""A status on its way for longer is shown as late."""
WORKER_UNREACHABLE = "WorkerUnreachable"

_ON_WORKER = ("Suspended", "Placed", "Running")


def judged(job: JobView, worker: WorkerView | None) -> JobView:
    """A Job as it is shown: Unknown on a lost worker, and never without a reason.

    Where somebody would ask for the reason, the read model has given it, which commands show, too.

    Args:
        job: as the management cluster has it.
        worker: the one it is placed on, if that is registered.
    """
    is_lost = job.worker and not job.is_finished and (worker is None or worker.state == "Lost")
    if is_lost and job.state == "Deleting":
        return replace(job, because=f"{job.because}; {job.worker} unreachable", reason=job.reason or WORKER_UNREACHABLE)
    if is_lost:
        why = worker.because if worker is not None else "no Secret registers it"
        since = (worker.lost_since or worker.since) if worker is not None else ""
        follows = follows_of(job.because, job.worker)
        return replace(
            job,
            state=UNKNOWN if job.state in _ON_WORKER else job.state,
            # The cause last: causes are long, and cut where there is no room.
            because=f"{unreachable(job)}{'; ' if follows else ''}{follows}",
            message=why,
            reason=job.reason or WORKER_UNREACHABLE,
            obstructed_at=since,
        )
    if job.because:
        return job
    # All that the read model leaves empty: what runs or is over as it should.
    return replace(job, because=_running(job) if job.state == "Running" else job.state.lower())


def outlined(job: JobView) -> JobView:
    """A Job for who is no operator: why its worker is unreachable may hold an address (as in ``access``)."""
    return job if job.is_finished else replace(job, message="")


def unreachable(job: JobView) -> str:
    """How what is said of a Job on a lost worker begins."""
    return f"{job.worker} unreachable"


def reason_of(job: JobView) -> str:
    """For filters and counts: the reason for machines, of a failed one that of its end."""
    return job.reason or (job.because if job.state == "Failed" and " " not in job.because else "")


def is_late(job: JobView) -> bool:
    """Whether its newest status is not stored though it has had time."""
    return job.lag_seconds is not None and job.lag_seconds >= LATE_SECONDS


def is_stuck(job: JobView) -> bool:
    """Whether something keeps it from its progress where it is placed."""
    return bool(job.reason) and bool(job.worker) and job.state not in (UNKNOWN, "Waiting") and not job.is_finished


def _running(job: JobView) -> str:
    kind = BUILT_IN.by_name.get(job.kind)
    if kind is None or not kind.counts_pods:  # of none that is declared it is known what it counts
        return f"{job.active:,} active" if job.active else "running"
    return "1 pod is active" if job.active == 1 else f"{job.active:,} pods are active"
