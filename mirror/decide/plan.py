"""What is to be done, as values; performed by ``controllers.applying`` and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from mirror.decide.snapshot import MemoryChange
from mirror.kinds.base import Changes

REQUESTED = "requested"
NO_TURN: MemoryChange = {"move_at": None}
"""A turn is for a place that is free then: who has to wait for one waits for a turn once more (decision 0020)."""
AT_ONCE = 0.05
"""Seconds. Our own write names no key, and a worker that was assigned wakes nobody: what they allow is done at once."""


class WriteSource(msgspec.Struct, frozen=True):
    """One write to the source's ``/status``: the whole status, annotations, or both. None removes an annotation."""

    status: Mapping[str, Any] | None = None
    annotations: tuple[tuple[str, str | None], ...] = ()
    records: str | None = None
    """The worker that this write records (D5)."""
    moves_from: str | None = None
    """The lost worker that it takes the record from (D14)."""
    about_request: str = ""
    """It makes (``REQUESTED``) or withdraws a request for another worker, as it is logged (S2)."""
    clears: bool = False
    shows_waiting: bool = False
    """It changes what the source says that it waits for."""
    reports: str = ""
    """The reason that it gives for that, where an event goes with it."""
    is_mirrored_status: bool = False
    retry: str = ""
    """What it begins or ends of trying the source elsewhere (``retrying``), as it is counted (D31)."""
    more: bool = False
    """Another status follows at once."""
    cut: int = 0


class ReleaseSource(msgspec.Struct, frozen=True):
    """Unsuspend a source that our webhook holds, and say so no more, in one write (D16)."""


class RequestAssignment(msgspec.Struct, frozen=True):
    """Assign it to the worker that is available, or let it wait for one."""

    worker: str | None = None
    is_reason_reported: bool = False
    """Why it waits is written on it: it need not be looked at before there is a worker, or another reason."""


class AwaitMove(msgspec.Struct, frozen=True):
    """Keep the assignment until it is its turn to be moved (D14)."""

    takes_turn: bool = True
    """False: it is being moved already."""


class ConfirmRequest(msgspec.Struct, frozen=True):
    """Read whether the term in which another worker was requested is the current one of that worker's slot (S6)."""

    worker: str
    term: str


class CreateMirror(msgspec.Struct, frozen=True):
    """Create the mirror on the worker that is recorded."""

    worker: str


class FindMirror(msgspec.Struct, frozen=True):
    """Ask the worker live for a mirror that should be there (D11)."""

    worker: str
    uid: str
    counts_pods: bool = False
    """Where it is gone: whether pods of it still run."""


class JudgeMirror(msgspec.Struct, frozen=True):
    """Find out whether the object of this name on the worker has a right to be there; if not, it is deleted (D10)."""

    worker: str


class RestoreLabels(msgspec.Struct, frozen=True):
    """Put our labels back on a mirror that lost them (D11)."""

    worker: str
    uid: str


class TouchMirror(msgspec.Struct, frozen=True):
    """Write to the mirror, so that its controller looks at it (D30)."""

    worker: str
    uid: str


class CoverLeases(msgspec.Struct, frozen=True):
    """Have it written down that a lease on this worker may end so late (D14)."""

    worker: str
    ends_in_seconds: float


class RenewLease(msgspec.Struct, frozen=True):
    """Give the mirror this deadline (D14); None: none."""

    worker: str
    seconds: int | None
    lasts_seconds: float = 0.0
    """From now on, at most."""
    is_ours: bool = True
    """It is a lease; else what its user wants."""


class PatchMirror(msgspec.Struct, frozen=True):
    """Carry what the user changed (D9)."""

    worker: str
    changes: Changes
    lease: RenewLease | None = None
    """A lease that begins with it: it resumes the mirror."""


class SeedMirror(msgspec.Struct, frozen=True):
    """Give a mirror that is held what its source has counted (D14)."""

    worker: str
    status: Mapping[str, Any]


class DeleteMirror(msgspec.Struct, frozen=True):
    """Delete the mirror, if it is still this one."""

    worker: str
    uid: str
    version: str = ""
    """Only as it was in this version, if one is given."""
    because: str = "its retention is over"


class ProveStep(Enum):
    """What to do about the pods of a mirror that is to be tried elsewhere."""

    BEGIN = "begin"
    CONFIRM = "confirm"
    """The mirror, as it was seen, has none any more."""
    DROP = "drop"
    """What was seen of them is not wanted any more."""


class ProvePods(msgspec.Struct, frozen=True):
    """Look at the pods of the mirror, so that it is known whether any ever ran (D31)."""

    worker: str
    uid: str
    """Of the mirror."""
    step: ProveStep


class DeleteSource(msgspec.Struct, frozen=True):
    """Delete the source, whose time to live is over (D25)."""


class StopKind(msgspec.Struct, frozen=True):
    """Place nothing more of the source's kind for a while: another controller runs it here (D20)."""

    is_new: bool
    """It writes a status now; else it did at some time before."""


class ReportOtherManager(msgspec.Struct, frozen=True):
    """Another manager of this cluster acts on the source, and on which others nobody knows."""

    manager: str
    """Its namespace."""
    message: str


class EmitEvent(msgspec.Struct, frozen=True):
    """An event on the source."""

    reason: str
    message: str
    is_warning: bool = True


Action = (
    WriteSource
    | ReleaseSource
    | RequestAssignment
    | AwaitMove
    | ConfirmRequest
    | CreateMirror
    | FindMirror
    | JudgeMirror
    | RestoreLabels
    | TouchMirror
    | PatchMirror
    | SeedMirror
    | CoverLeases
    | RenewLease
    | DeleteMirror
    | ProvePods
    | DeleteSource
    | StopKind
    | ReportOtherManager
    | EmitEvent
)


class Plan(msgspec.Struct, frozen=True):
    """What to do about one source, why, and when to look again without being woken."""

    because: str
    actions: tuple[Action, ...] = ()
    again_after_seconds: float | None = None
    remember: MemoryChange = {}
    """What to remember of the source once the actions went well."""

    @property
    def requests(self) -> int:
        """How many requests the actions make."""
        return sum(not isinstance(action, _WITHOUT_REQUEST) for action in self.actions)

    @property
    def needs_assignment(self) -> bool:
        """Whether the source waits for a worker, or records the one that it is assigned to."""
        for action in self.actions:
            if isinstance(action, _OF_ASSIGNMENT) or (isinstance(action, WriteSource) and action.records is not None):
                return True
        return False


_OF_ASSIGNMENT = (RequestAssignment, AwaitMove)
_WITHOUT_REQUEST = (*_OF_ASSIGNMENT, ProvePods, ReportOtherManager, EmitEvent)
