"""What a decision may look at: frozen, gathered from caches by ``controllers.observing``."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TypedDict

import msgspec

from mirror.decide.identity import Identity
from mirror.kinds.base import Changes, Kind
from mirror.kinds.stored_source import StoredSource
from mirror.kube.objects import Object
from mirror.model.keys import SourceKey
from mirror.model.losses import OnLoss, OnNamespace
from mirror.model.move_requests import MoveRequest
from mirror.model.reasons import Obstruction
from mirror.model.retries import PodProof
from mirror.sharding.share import Part


class Look(Enum):
    """What a live GET for a mirror that is not in the cache has found."""

    GONE = "gone"
    FOREIGN = "foreign"
    """Another object has its name."""
    ELSEWHERE = "elsewhere"
    """Nothing has its name, but a mirror of this source is in another namespace."""


class PodsLeft(msgspec.Struct, frozen=True):
    """What a live look for pods of a mirror that is gone has found that have not ended; times are monotonic."""

    looked_at: float
    count: int = 0
    none_since: float | None = None
    """The first of the looks in a row that found none; None: there are some, or that is not known."""
    refused: str = ""
    """Why the worker does not tell."""


class Refusal(msgspec.Struct, frozen=True):
    """A worker that definitely refused a source's first create; over: to be tried again (``controllers.refusals``)."""

    because: str
    is_over: bool = False


class Memory(msgspec.Struct, frozen=True, gc=False):
    """What this process knows of one source beyond the clusters' objects; losing it costs a look, never a wrong step.

    ``first_create``: this process recorded the placement, or holds its worker's slot in the term in which that was
    done, and no create can have happened yet, so a refusal is one of the very first create (D1, S6). ``look`` answers
    for ``looked_for`` only. ``create_unanswered``: no answer to a create came; a mirror that shows up was not reported.
    """

    uid: str = ""
    first_create: bool = False
    create_unanswered: bool = False
    unanswered_at: float = float("-inf")
    """When the newest create was given up whose answer never came: it may be carried out yet (S8)."""
    mirror_uid: str = ""
    """Of the mirror that this process created or found; newer than what is recorded on the source."""
    ended: Object | None = None
    """The mirror as it was seen at its end, until that is stored on the source."""
    ended_seen_at: float = 0.0
    ran: str = ""  # the uid of a mirror that was gone before its start was stored: its pods may run on (D11)
    relabeled_at: float = float("-inf")
    relabeled_times: int = 0
    """How often our labels were put back without staying."""
    read_at: float = float("-inf")
    """When a mirror that no watch shows was last read."""
    looked_for: str = ""
    look: Look | None = None
    look_refused: str = ""  # why the worker last did not let us look, where it did not
    pods_left: PodsLeft | None = None
    """Of a mirror that is gone, where that is asked."""
    recorded_on: str = ""
    """The worker that this process has recorded it on."""
    seen_in_term: str = ""
    """In which term of our slot it was last seen for the first time, whatever term its record had (S6)."""
    refused_on: str = ""
    """The worker that refused the very first create, until that is written down."""
    in_the_way: Obstruction | None = None
    """Why the worker it is recorded on does not take its mirror; not the first create of it (D1)."""
    refusals: tuple[tuple[str, Refusal], ...] = ()
    sent_digest: str = ""
    sent_times: int = 0
    sent_at: float = float("-inf")
    overridden: tuple[str, ...] = ()
    """Fields of the mirror's pod template that the worker has otherwise, as they were reported."""
    patch_refused: str = ""
    patch_refused_at: float = float("-inf")
    release_refused: str = ""
    """Why a held source could not be unsuspended."""
    release_refused_at: float = float("-inf")
    unready_since: float | None = None
    steady_since: float | None = None
    """Since when some of its pods are not ready, or it has none; all are ready, although others have failed before."""
    failures_before: tuple[int, int] | None = None  # of pods, as far as they are watched: succeeded, failed by then
    podless_since: float | None = None
    touched_at: float | None = None
    """Since when its mirror has no pod although it should; when it was written to, so that its controller looks."""
    waiting_written_at: float = float("-inf")
    reported_reason: str = ""
    """Why it waits, as an event has said, where that could not be written down yet (D25)."""
    pods_told: str = ""
    """The reason of its pods' trouble that was last reported by an event."""
    is_failure_untold: bool = False
    """This process has seen it fail, and has reported nothing of its pods with that."""
    foreign_status_writes: int = 0
    foreign_written_at: float = float("-inf")
    record_refused: str = ""
    """Why the API server does not let us record a worker on the source."""
    record_refused_times: int = 0
    record_refused_until: float = float("-inf")
    """Monotonic seconds; it is assigned to no worker before."""
    seed_refused: str = ""
    """Why the worker does not take what was counted, of the mirror that is held for that."""
    annotate_failures: int = 0
    annotated_again_at: float = float("-inf")
    """How often in a row annotations were not written, where they take a request of their own (D25), and when again."""
    delete_refused_at: float = float("-inf")
    """When the management cluster did not let us delete the source after its time to live."""
    moves_told: tuple[int, str] = (0, "")
    """The last move that was reported, by number and destination, and counted if an earlier copy may run beside."""
    move_at: float | None = None
    """When its turn is to be moved (``workers.moveRate``), monotonic."""
    requested_upon: str = ""
    """The version upon which another worker was requested, as long as the answer to that is not known (S2)."""
    request_confirmed: str = ""
    """The version whose request the holder of its worker's slot has made, as its Lease said since (S6)."""
    lease_ends_at: float | None = None
    """When the newest lease ends that this process sent, monotonic; None until it had an answer to one (D14)."""
    lease_refused_at: float = float("-inf")
    resumed_version: str = ""  # of the mirror, upon which a resume was sent, answered or not (F4)
    retry_ruled_out: str = ""
    """The uid of a mirror of which a pod has started: it is not tried elsewhere (D31)."""
    retry_at: float = float("-inf")
    place_wanted_at: float = float("-inf")
    """When its pods are looked at again for that, and when a place was requested for it (S2), monotonic."""
    retry_told: str = ""
    breach_told: str = ""
    anew_told: str = ""
    """As reported: why it is not tried elsewhere; a copy's uid that ran and must not have; what is up after its end."""
    other_manager: str = ""
    manager_told: str = ""
    """The namespace of another manager of this cluster that has recorded its worker, and which one was reported."""
    is_marked_by_us: bool = False
    """It had our mark when somebody took that away, or put another one there."""

    @property
    def refusal_texts(self) -> dict[str, str]:
        """By worker: why it refused the first create."""
        return {worker: refusal.because for worker, refusal in self.refusals}


class MemoryChange(TypedDict, total=False):
    """Fields of a ``Memory`` to set; they mean what they mean there."""

    seen_in_term: str
    first_create: bool
    create_unanswered: bool
    unanswered_at: float
    mirror_uid: str
    ended: Object | None
    ended_seen_at: float
    ran: str
    relabeled_at: float
    relabeled_times: int
    read_at: float
    looked_for: str
    look: Look | None
    look_refused: str
    pods_left: PodsLeft | None
    recorded_on: str
    refused_on: str
    in_the_way: Obstruction | None
    refusals: tuple[tuple[str, Refusal], ...]
    sent_digest: str
    sent_times: int
    sent_at: float
    overridden: tuple[str, ...]
    patch_refused: str
    patch_refused_at: float
    release_refused: str
    release_refused_at: float
    unready_since: float | None
    steady_since: float | None
    failures_before: tuple[int, int] | None
    podless_since: float | None
    touched_at: float | None
    waiting_written_at: float
    reported_reason: str
    pods_told: str
    is_failure_untold: bool
    foreign_status_writes: int
    foreign_written_at: float
    record_refused: str
    record_refused_times: int
    record_refused_until: float
    seed_refused: str
    annotate_failures: int
    annotated_again_at: float
    delete_refused_at: float
    moves_told: tuple[int, str]
    move_at: float | None
    requested_upon: str
    request_confirmed: str
    lease_ends_at: float | None
    lease_refused_at: float
    resumed_version: str
    retry_ruled_out: str
    retry_at: float
    retry_told: str
    place_wanted_at: float
    breach_told: str
    anew_told: str
    other_manager: str
    is_marked_by_us: bool
    manager_told: str


class Source(msgspec.Struct, frozen=True):
    """The user's Job as stored on the management cluster."""

    kind: Kind
    found: Object
    stored: StoredSource
    is_suspended: bool
    is_held: bool
    """It is suspended by our webhook, until it has a worker (D16)."""
    is_finished: bool
    has_started: bool
    placed: str | None

    @property
    def uid(self) -> str:
        return self.found.metadata.uid

    @property
    def is_deleting(self) -> bool:
        return self.found.metadata.deletion_timestamp is not None


class WorkerSight(msgspec.Struct, frozen=True):
    """The worker that a source is placed on, as it is now."""

    name: str
    is_reachable: bool
    """Connected, and its mirrors are all known."""
    lost_for_seconds: float = 0.0
    because: str = ""
    clock_offset_seconds: float | None = None
    drain: str = ""
    """How it is emptied (``model.drains``)."""
    fenced_until: datetime | None = None
    """No lease that was sent there ends later; by our clock."""
    fence_doubt: str = ""
    """Why none of its leases can be counted on."""
    fenced_pods: int = 0
    """About how many pods end when its leases do."""
    is_gone: bool = False
    """Somebody says that nothing runs there any more."""


class FenceState(msgspec.Struct, frozen=True):
    """Whether nothing of a source runs on its lost worker, and from when on (D14)."""

    why_not: str = ""
    """Why that cannot be known; empty: it can."""
    safe_in_seconds: float = 0.0
    """With the margin; less than 0: since then."""
    ends_in_seconds: float = 0.0


class Policy(msgspec.Struct, frozen=True):
    """Settings that decisions depend on; seconds. ``retention_seconds`` None = as long as the source."""

    lost_after_seconds: float = 900.0
    retention_seconds: float | None = None
    on_loss: OnLoss = OnLoss.WAIT
    on_loss_allowed: frozenset[OnLoss] = frozenset(OnLoss)
    move_limit: int = 3
    seed_progress: bool = False
    """What was counted goes along with a move, where the worker lets us write statuses."""
    fence_ttl_seconds: int = 1800
    retry_after_seconds: float | None = None
    """So long no pod of a mirror may become ready before it is tried elsewhere; None: for ever (D31)."""
    manager: str = ""
    """The namespace of this manager, by which others of the same cluster know its Jobs; empty: nobody asks."""


class RetrySight(msgspec.Struct, frozen=True):
    """Of a source that is tried elsewhere, or may be (D31)."""

    due_in: float | None = None
    """Seconds until that may begin; None: it may not."""
    proof: PodProof | None = None
    """What this process has seen of its mirror's pods; None: it has not looked."""
    has_room: bool = False
    """Whether it may look at those of another one."""


class ReturnedCopy(msgspec.Struct, frozen=True):
    """A copy that was left behind and is Complete, on a worker that is back (D14)."""

    worker: str
    mirror: Object
    clock_offset_seconds: float | None = None


class RecordTrust(msgspec.Struct, frozen=True):
    """What confirms the record of a source, where users can write it (D25)."""

    known: str
    """The worker that has its mirror, or that this process has recorded; empty: nobody knows of any."""
    is_allowed: bool
    """The worker that is recorded could have been chosen."""
    all_seen: bool
    """Every worker is reachable, so that one with its mirror would be known."""


class AssignmentState(msgspec.Struct, frozen=True):
    """What is known about a worker for a source that has none."""

    assigned: str | None = None
    """The worker that it is assigned to, not recorded yet."""
    available: str | None = None
    """The worker that it is assigned to if it requests that now; None: it has to wait."""
    obstruction: Obstruction | None = None
    """Why no worker takes it; None where one does, or that is not known yet."""
    found_on: str | None = None
    """A worker that has a mirror of this unplaced source: its record was erased."""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that one decision about one source looks at."""

    key: SourceKey
    source: Source
    now: datetime
    monotonic: float
    policy: Policy
    memory: Memory
    worker: WorkerSight | None = None
    term: str = ""
    """In which the slot of its worker is held, recorded or assigned; empty where there are no slots (S6)."""
    mirror: Object | None = None
    mirror_is_stale: bool = False
    """The object of that name is the mirror of an earlier namesake."""
    identity: Identity | None = None
    """What the mirror is to the source; None without a mirror."""
    is_watched: bool = True
    """Whether the worker's watch shows the mirror: one without our ``origin`` label is read from time to time."""
    changes: Changes | None = None
    held_because: str = ""
    """Why the queue of its worker holds the mirror, where that is read."""
    pods: Obstruction | None = None
    """What keeps the mirror's pods from running, where pods are watched."""
    failures_before: tuple[int, int] | None = None
    """What ``Memory`` is to have of it."""
    failure: Obstruction | None = None
    """What the pods of a mirror that is over failed of, or waited for, where pods are watched."""
    trust: RecordTrust | None = None
    """None: users cannot write its record."""
    assignment: AssignmentState = AssignmentState()
    refused_now: str = ""
    """The worker it is recorded on has definitely refused it."""
    moves_held: str = ""
    """Why no Job is moved from a lost worker now, if none is."""
    namespace_on_loss: OnNamespace = None
    """What its namespace says of lost workers."""
    concerns_lease: bool = True
    """Whether there may be anything to decide about a lease of its mirror."""
    fence: FenceState | None = None
    """Of a source that is to be fenced and whose worker is unreachable."""
    returned: ReturnedCopy | None = None
    retry: RetrySight | None = None
    """None: it is not tried elsewhere."""
    avoided: frozenset[str] = frozenset()
    """Workers that it is not to be placed on, since nothing of it became ready there not long ago (D31)."""
    part: Part = Part.ALL
    """What of it is ours to do (S2)."""
    request: MoveRequest | None = None
    """What the holder of its worker's slot requests; None as well where there are no slots."""
    is_request_current: bool = False
    """It was made in the term in which that slot is held (S6)."""
    settles_in_seconds: float = 0.0
    """Until nothing that was sent to its worker before we hold its slot, or lead, can be carried out any more (S8)."""

    @property
    def recorded_uid(self) -> str:
        """The uid of this source's mirror, as far as it is known; empty when it is not."""
        remembered = self.memory.mirror_uid
        if any(one.uid == remembered for one in self.source.stored.moves.left_behind):
            remembered = ""  # of the mirror on a worker that it was moved from
        return remembered or self.source.stored.mirror_uid or ""
