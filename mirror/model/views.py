"""What the manager knows, as people see it: workers, Jobs, and what happened to a Job. Values, and how to ask for them.

``controllers/known`` fills them in; the page, ``access`` and tests ask. All texts may quote a worker: whoever shows
them cleans them (D18). Times are RFC 3339 in UTC, empty where there is none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping
from typing import Protocol

import msgspec

from mirror.model.keys import SourceKey

COMPLETE, FAILED = "Complete", "Failed"
"""How an object of any kind ends, whatever its own controller calls it (``Progress.end`` of ``kinds``)."""
STATES = ("Waiting", "Suspended", "Placed", "Running", COMPLETE, FAILED, "Deleting")
"""Of a source, in the order of a Job's life; ``Placed``: a worker is recorded, and it has not started there."""
UNKNOWN = "Unknown"
"""In its place on the page: the worker is lost, and the last status says nothing about now."""
_UNFINISHED = ("Waiting", "Suspended", "Placed", "Running", "Deleting", UNKNOWN)


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker."""

    name: str
    state: str
    """Connecting, Connected or Lost."""
    since: str = ""
    lost_since: str = ""
    because: str = ""
    """Why it is lost, or what is wrong with its Secret."""
    cordoned: bool = False
    draining: bool = False
    dead: bool = False
    """Declared dead: its Jobs start again elsewhere while it is unreachable."""
    capacity: int | None = None
    """None: no bound."""
    weight: float = 1.0
    jobs: int = 0
    """Sources that are recorded there and not finished."""
    uid: str = ""
    version: str = ""
    labels: dict[str, str] = {}
    token_expires: str = ""
    is_elsewhere: bool = False
    """Another manager that works beside this one follows it: version, token, and how late statuses are, it knows."""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """One source."""

    kind: str = "Job"
    namespace: str
    name: str
    uid: str
    state: str
    """One of ``STATES``, or the type of a final condition that only this kind has."""
    worker: str = ""
    because: str = ""
    """Why it waits or makes no progress; of a finished one the reason of its end."""
    message: str = ""
    """What the final condition of a failed one says; of one that is Unknown why its worker is; empty for all others."""
    reason: str = ""
    """The same as ``because`` for machines: a ``model.reasons.Reason``; empty where there is none."""
    obstructed_at: str = ""
    """Since when it makes no progress on its worker; empty where it does."""
    created: str = ""
    started: str = ""
    finished: str = ""
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    completions: int | None = None
    lag_seconds: float | None = None
    """How long the newest status on the worker has not been stored here; None: nothing is outstanding."""
    labels: Mapping[str, str] = {}
    """Its own."""

    @property
    def why(self) -> str:
        """Why it is as it is, for people: of a failed one the reason, and what its condition says."""
        return f"{self.because}: {self.message}" if self.message else self.because

    @property
    def is_finished(self) -> bool:
        # A kind may have other final conditions than a Job, and an object a final condition without its time.
        return bool(self.finished) or self.state not in _UNFINISHED


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a Job's timeline."""

    at: str
    kind: str
    """Created, Held, Placed, Mirrored, Started, Status, Waiting, Lost, Error, Finished, Deleting, …"""
    text: str
    worker: str = ""


class Known(Protocol):
    """What can be asked. Nothing here waits for a cluster."""

    def workers(self) -> tuple[WorkerView, ...]:
        """All workers, by name."""
        ...

    def jobs(
        self, namespace: str | None = None, *, kind: str | None = None, most: int | None = None
    ) -> tuple[JobView, ...]:
        """All sources, newest first.

        Args:
            namespace: only those in this one.
            kind: only those of this kind.
            most: only so many, which is much cheaper where there are thousands.
        """
        ...

    def keys(self) -> tuple[SourceKey, ...]:
        """All sources, in any order; for who takes them over bit by bit with ``job``."""
        ...

    def job(self, key: SourceKey) -> JobView | None:
        """One source."""
        ...

    def timeline(self, key: SourceKey) -> tuple[Moment, ...]:
        """What happened to it, oldest first; bounded."""
        ...

    def placement_obstacles(self, key: SourceKey) -> Mapping[str, str]:
        """For each worker that is not eligible: why."""
        ...

    def kept_elsewhere(self, key: SourceKey) -> str:
        """What of it only another manager knows that works beside this one, as a sentence; empty: nothing."""
        ...

    def ownership(self) -> Hashable:
        """Who does what of several managers that work beside each other: another value once that is other than it was.

        ``changes`` does not say so.
        """
        ...

    def changes(self) -> AsyncIterator[frozenset[SourceKey]]:
        """Which sources changed since the last time; gathered while the reader is busy. Empty: only workers did."""
        ...
