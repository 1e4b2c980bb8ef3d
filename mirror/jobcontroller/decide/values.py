"""What the decisions look at and what they answer: the seam between the pure part and the shell.

One sync is three pure steps with the shell's requests between them (Y7–Y18):

1. ``assess.assess(snapshot)`` → ``Assessment``: whether the Job ends, which pods to delete or create.
   The shell performs it and counts what happened: ``Done``.
2. ``track.track(snapshot, assessment, done)`` → ``Tracking``: the status to store first, the pods that lose their
   finalizer. The shell stores it, then removes the finalizers.
3. ``track.settle(tracking, removed, now)`` → ``Settled``: the status to store afterwards, and what it means for people.

Every value is frozen; a status is a dict in the shape that the API serves (DF20), never changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates

Status: TypeAlias = dict[str, Any]

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"


class Container(msgspec.Struct, frozen=True, gc=False):
    """One container status (or init container status) of a pod."""

    name: str = ""
    restarts: int = 0
    is_init: bool = False
    is_sidecar: bool = False
    """An init container whose restartPolicy is Always."""
    exit_code: int | None = None
    """Of a terminated container; None while it is not terminated."""
    finished_at: datetime | None = None


class PodCondition(msgspec.Struct, frozen=True, gc=False):
    """One condition of a pod."""

    type: str = ""
    status: str = ""
    since: datetime | None = None


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod as far as the Job controller looks at it. ``phase`` is the API's text."""

    uid: str
    name: str
    namespace: str
    phase: str = "Pending"
    node: str = ""
    created: datetime | None = None
    deleted: datetime | None = None
    """``deletionTimestamp``."""
    grace_seconds: int = 0
    has_finalizer: bool = True
    """Has ours, and its removal is not under way (the shell's expectations, Q1)."""
    index: int | None = None
    """The completion index of its annotation; None when there is none that is a number."""
    index_failures: int = 0
    index_ignored_failures: int = 0
    conditions: tuple[PodCondition, ...] = ()
    containers: tuple[Container, ...] = ()
    finalizer_at: int = 0
    """The place of ours among its finalizers, for a patch that names it."""

    @property
    def is_finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_active(self) -> bool:
        return not self.is_finished and self.deleted is None

    @property
    def is_terminating(self) -> bool:
        return self.deleted is not None and not self.is_finished

    @property
    def is_ready(self) -> bool:
        return any(one.type == "Ready" and one.status == "True" for one in self.conditions)


class Constants(msgspec.Struct, frozen=True):
    """Upstream's constants as settings; seconds may be fractions (K2–K4)."""

    batch_period_seconds: float = 1.0
    api_backoff_seconds: float = 1.0
    api_backoff_max_seconds: float = 60.0
    pod_failure_backoff_seconds: float = 10.0
    max_pod_failure_backoff_seconds: float = 600.0
    max_uncounted_pods: int = 500
    max_pod_create_delete_per_sync: int = 500


class BackoffRecord(msgspec.Struct, frozen=True):
    """Failures since the last success, in this process's memory (B5)."""

    failures: int = 0
    last_failure: datetime | None = None


class Ending(msgspec.Struct, frozen=True):
    """That the Job ends, and why: its interim condition (Y13)."""

    condition: str
    """``FailureTarget`` or ``SuccessCriteriaMet``."""
    reason: str
    message: str
    is_stored: bool = False
    """The interim condition is in the stored status already."""


class Enacted(msgspec.Struct, frozen=True):
    """A verdict that pods were deleted for; in this process's memory from the deletes on (Y15)."""

    ending: Ending | None = None
    """None: the verdict is stored, or nobody knows it any more."""
    uids: frozenset[str] = frozenset()
    """Those pods. However they end, that is the verdict's doing and no failure of theirs."""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that one sync looks at."""

    key: str
    """``namespace/name``, for messages."""
    uid: str
    spec: Mapping[str, Any]
    """As the API serves it, defaults included."""
    status: Mapping[str, Any]
    annotations: Mapping[str, str]
    is_deleting: bool
    pods: Sequence[Pod]
    """Claimed pods of this Job that may still matter: all but those that are finished and carry no finalizer."""
    settled_failed: Sequence[Pod]
    """Failed pods without finalizer: only failure policies still look at them (Y13-3)."""
    expectations_met: bool
    """Creations and deletions that this process has asked for have been seen (Y7)."""
    backoff: BackoffRecord | None
    now: datetime
    enacted: Enacted | None = Enacted()
    """None: the first look of this process, which cannot know what another did before it."""
    constants: Constants = Constants()
    gates: FeatureGates = DEFAULT_GATES
    server_knows_rule_names: bool = False
    """The server stores ``podFailurePolicy.rules[].name``; then Jobs without any name get a suffix, too (D17)."""
    server_wants_interim: bool = True
    """It refuses an end without one (V18, V19); looked at where the gates, both off, would leave it out."""


class Action(StrEnum):
    """What a sync did, for its metric."""

    RECONCILING = "reconciling"
    TRACKING = "tracking"
    PODS_CREATED = "pods_created"
    PODS_DELETED = "pods_deleted"


class PodCreate(msgspec.Struct, frozen=True):
    """A pod to create; None for the index of a NonIndexed Job."""

    index: int | None = None
    index_failures: int | None = None
    """The annotation's value; None: no annotation (L7)."""
    index_ignored_failures: int | None = None


class Assessment(msgspec.Struct, frozen=True):
    """What to do with pods, and what the status will be computed from."""

    ending: Ending | None
    deletes: tuple[Pod, ...] = ()
    """In this order. ``strips_first``: the finalizer goes before the pod does, so that it never counts (A1, A3)."""
    strips_first: bool = False
    births: tuple[PodCreate, ...] = ()
    creation_reason: str = "new"
    """PM2."""
    again_after_seconds: float | None = None
    action: Action = Action.RECONCILING
    manages: bool = False
    """Whether pods were managed (Y16), so that the condition Suspended may change."""
    enacted: Enacted = Enacted()
    """To be remembered before anything is performed, in the place of what was."""
    facts: Any = None
    """``assess``'s own working set for ``track``; the shell passes it on and does not look at it."""


class Done(msgspec.Struct, frozen=True):
    """What became of an assessment's deletes and births."""

    deleted: int = 0
    deleted_ready: int = 0
    """Ready ones among those that were tried (Y15)."""
    created: int = 0
    """Births that count as active: those refused as NamespaceTerminating too (A9)."""
    complete: bool = True
    """Everything that was asked for was done."""


class Tracking(msgspec.Struct, frozen=True):
    """The first status to store, and whose finalizers go after it."""

    status: Status
    flush: bool
    """Store ``status`` before any finalizer goes (T9)."""
    removals: tuple[Pod, ...] = ()
    backoff: BackoffRecord | None = None
    """To be remembered once the status is stored (T9), or at once when there is nothing to store."""
    events: tuple[Event, ...] = ()
    """To be told before the status is stored (W2)."""
    policy_actions: tuple[str, ...] = ()
    """Matches of failure policy rules by action, counted after the flush (T5)."""
    again_after_seconds: float | None = None
    facts: Any = None


class Settled(msgspec.Struct, frozen=True):
    """The status to store once finalizers are gone, and what is told then."""

    status: Status
    flush: bool
    is_finished: bool
    events: tuple[Event, ...] = ()
    """To be told after a final status is stored (T13)."""
    verdict: str = ""
    """``Complete`` or ``Failed``, and its reason, once finished; for ``jobs_finished_total``."""
    reason: str = ""


class Event(msgspec.Struct, frozen=True):
    """An event on the Job (N-table of 4.15)."""

    type: str
    reason: str
    message: str
