"""Why a Job makes no progress, as a fixed set that machines can read (D22). For people: ``docs/reasons.md``."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """The reason of a condition and of its event."""

    # Without a worker: condition jobmirror.io/Placed is False.
    NO_WORKERS = "NoWorkers"
    NO_MATCHING_WORKER = "NoMatchingWorker"
    NAMESPACE_NOT_ACCEPTED = "NamespaceNotAccepted"
    KIND_NOT_SERVED = "KindNotServed"
    WORKERS_MISCONFIGURED = "WorkersMisconfigured"
    REFUSED_BY_WORKERS = "RefusedByWorkers"
    WORKERS_CORDONED = "WorkersCordoned"
    WORKERS_UNREACHABLE = "WorkersUnreachable"
    WORKERS_FULL = "WorkersFull"
    INVALID_ANNOTATION = "InvalidAnnotation"
    UNSUPPORTED_SPEC = "UnsupportedSpec"
    KIND_RUNS_HERE = "KindRunsHere"
    MULTIKUEUE_HERE = "MultiKueueHere"
    INVALID_KIND_ENTRY = "InvalidKindEntry"

    # On a worker: condition jobmirror.io/Progressing is False, or Unknown while the worker is unreachable.
    WORKER_UNREACHABLE = "WorkerUnreachable"
    WORKER_LOST = "WorkerLost"
    LEASE_EXPIRED = "LeaseExpired"
    RETRYING_ELSEWHERE = "RetryingElsewhere"
    RELEASE_REFUSED = "ReleaseRefused"
    MIRROR_REFUSED = "MirrorRefused"
    MIRROR_NOT_CREATED = "MirrorNotCreated"
    MIRROR_CONFLICT = "MirrorConflict"
    MIRROR_NOT_FOUND = "MirrorNotFound"
    MIRROR_TERMINATING = "MirrorTerminating"
    PREVIOUS_MIRROR_EXISTS = "PreviousMirrorExists"
    CHANGE_REFUSED = "ChangeRefused"
    CHANGE_REVERTED = "ChangeReverted"
    LABELS_REMOVED = "LabelsRemoved"
    SUSPENDED_ON_WORKER = "SuspendedOnWorker"
    DEPENDENCY_MISSING = "DependencyMissing"
    DEPENDENCY_CONFLICT = "DependencyConflict"
    DEPENDENCY_REFUSED = "DependencyRefused"

    # On a worker, of its pods: with ``workers.watchPods``, but for the first.
    PODS_NOT_READY = "PodsNotReady"
    UNSCHEDULABLE = "Unschedulable"
    SCHEDULING_GATED = "SchedulingGated"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    INVALID_IMAGE = "InvalidImage"
    CREATE_CONTAINER_CONFIG_ERROR = "CreateContainerConfigError"
    CREATE_CONTAINER_ERROR = "CreateContainerError"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    FAILED_MOUNT = "FailedMount"
    FAILED_CREATE_POD_SANDBOX = "FailedCreatePodSandBox"
    QUOTA_EXCEEDED = "QuotaExceeded"
    PODS_FORBIDDEN = "PodsForbidden"
    OOM_KILLED = "OOMKilled"
    EVICTED = "Evicted"
    POD_REJECTED = "PodRejected"
    PODS_FAILING = "PodsFailing"

    # Of events only.
    UNKNOWN_ANNOTATION = "UnknownAnnotation"
    UNKNOWN_MANAGED_BY = "UnknownManagedBy"
    DEPENDENCY_NOT_COPIED = "DependencyNotCopied"
    RECORD_CHANGED = "RecordChanged"
    MANAGED_BY_CHANGED = "ManagedByChanged"
    OTHER_MANAGER = "OtherManager"
    DELETE_REFUSED = "DeleteRefused"

    # Where no condition can be written: the annotation and the event say it alone.
    STATUS_CONFLICT = "StatusConflict"
    STATUS_REFUSED = "StatusRefused"
    RECORD_REFUSED = "RecordRefused"


UNWRITABLE = frozenset((Reason.STATUS_CONFLICT, Reason.STATUS_REFUSED, Reason.RECORD_REFUSED))
"""Shown by annotation and event only: the status is another's, or the API server takes no write of it."""
_OF_EVENTS = frozenset(
    (
        Reason.UNKNOWN_ANNOTATION,
        Reason.UNKNOWN_MANAGED_BY,
        Reason.DEPENDENCY_NOT_COPIED,
        Reason.RECORD_CHANGED,
        Reason.MANAGED_BY_CHANGED,
        Reason.OTHER_MANAGER,
        Reason.DELETE_REFUSED,
    )
)
SHOWN = tuple(one for one in Reason if one not in UNWRITABLE | _OF_EVENTS)
"""Shown by a condition, so that Jobs can be counted by it."""
DEPENDENCIES = frozenset((Reason.DEPENDENCY_MISSING, Reason.DEPENDENCY_CONFLICT, Reason.DEPENDENCY_REFUSED))
"""About what a Job refers to, not about the Job itself (D27)."""
STOPPED_KINDS = frozenset((Reason.KIND_RUNS_HERE, Reason.MULTIKUEUE_HERE, Reason.INVALID_KIND_ENTRY))
"""Something on the management cluster runs objects of this kind, or may; or the settings do not fit its definition."""
OF_NO_WORKER = STOPPED_KINDS | {Reason.INVALID_ANNOTATION, Reason.UNSUPPORTED_SPEC}
"""Nothing that a worker does changes it: only the Job itself, or the management cluster."""
WORKERS_PODS = frozenset(
    (
        Reason.PODS_NOT_READY,
        Reason.UNSCHEDULABLE,
        Reason.FAILED_CREATE_POD_SANDBOX,
        Reason.QUOTA_EXCEEDED,
        Reason.EVICTED,
        Reason.POD_REJECTED,
    )
)
"""Pods do not run, and another worker might run them: its nodes, its quota. Images and references are the Job's own."""
FAILED_PODS = frozenset(
    (Reason.OOM_KILLED, Reason.EVICTED, Reason.POD_REJECTED, Reason.PODS_FAILING, Reason.CREATE_CONTAINER_ERROR)
)
"""May be told of pods that are over; of those that wait the last may be, too (``Obstruction.is_of_ended_pods``)."""
SEEN_OF_PODS = (
    (WORKERS_PODS - {Reason.PODS_NOT_READY})
    | FAILED_PODS
    | {
        Reason.SCHEDULING_GATED,
        Reason.IMAGE_PULL_BACK_OFF,
        Reason.INVALID_IMAGE,
        Reason.CREATE_CONTAINER_CONFIG_ERROR,
        Reason.CRASH_LOOP_BACK_OFF,
        Reason.FAILED_MOUNT,
        Reason.PODS_FORBIDDEN,
    }
)
"""Only a look at pods, or at warnings about them, tells these."""
UNKNOWN = frozenset((Reason.WORKER_UNREACHABLE, Reason.WORKER_LOST))
"""Nobody can tell whether the Job makes progress."""


class Obstruction(msgspec.Struct, frozen=True):
    """Why a Job waits for a worker, or makes no progress on one."""

    reason: str
    """A ``Reason``; empty: none is shown by a condition."""
    text: str
    """One line, without counts or times (D21): what is in the way, worker by worker."""
    summary: str = ""
    """What was asked for and not found, before the text where there is room: conditions and events."""
    is_of_ended_pods: bool = False
    """It goes once the pods that took their place run well."""

    @property
    def message(self) -> str:
        """For a condition and its event."""
        return f"{self.summary}: {self.text}" if self.summary else self.text
