"""What the rest of the manager needs of one source, decoded, and the statuses that follow from it (D7). Pure.

``base.Kind.stored`` makes one of what an API server has served; what a kind needs beside it is in ``base``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol, TypeAlias

import msgspec

from mirror.kinds.movable import MovableSource
from mirror.kube.objects import Object
from mirror.model.reasons import Obstruction

Status: TypeAlias = dict[str, Any]


class NextStatus(msgspec.Struct, frozen=True):
    """What to write now, and why."""

    status: Status | None
    """The whole status; None when nothing is to be written."""
    because: str
    more: bool = False
    """Once this is stored, the same mirror status leads to another one: ask again."""
    cut: int = 0
    """How much of the worker's content was dropped or shortened."""
    clock_skewed: bool = False
    """The worker's clock is not ours; the final condition got our time."""
    waits_for_pods: bool = False
    """The mirror has ended but pods of it have not: the final condition is held back."""


class StoredSource(MovableSource, Protocol):
    """A source's spec and status, decoded, and the statuses that follow from them.

    A status that a method returns is the whole one, and such that the API server takes it.
    """

    @property
    def status(self) -> Mapping[str, Any]: ...

    @property
    def is_suspended(self) -> bool: ...

    @property
    def is_finished(self) -> bool: ...

    @property
    def has_started(self) -> bool:
        """Whether anything of it has run, or been decided (D11)."""
        ...

    @property
    def placed_worker(self) -> str | None: ...

    @property
    def mirror_uid(self) -> str | None: ...

    @property
    def obstruction_reason(self) -> str:
        """Why it waits or makes no progress, as its conditions say (``model.reasons``); empty: they say nothing."""
        ...

    def next_status(
        self,
        mirror: Object,
        *,
        now: datetime,
        mirror_suspended: bool = False,
        clock_offset_seconds: float | None = None,
        settled: bool = False,
    ) -> NextStatus:
        """What the source shows next; never raises but BadAnswer, whatever the worker answered (D7).

        Args:
            mirror: its mirror.
            now: our time, aware.
            mirror_suspended: the mirror is suspended by its spec, which its status follows only later.
            clock_offset_seconds: the worker's clock minus ours, when it was measured.
            settled: nothing of an ended mirror will change any more.
        """
        ...

    def suspended_status(self, now: datetime) -> Status | None:
        """For a suspended source that no worker can speak for; None: nothing is to be written (D3)."""
        ...

    def lost_status(self, now: datetime, *, message: str, reason: str) -> Status | None:
        """End a source whose mirror is gone (D11)."""
        ...

    def placed_status(self, worker: str | None, now: datetime) -> Status | None:
        """Record the worker on the source, or with None that it has none (D5)."""
        ...

    def mirrored_status(self, status: Mapping[str, Any] | None, mirror_uid: str, now: datetime) -> Status:
        """A status, or the stored one, with the uid of the mirror recorded (D1)."""
        ...

    def explained_status(
        self, status: Mapping[str, Any] | None, why: Obstruction | None, *, is_placed: bool, now: datetime
    ) -> Status | None:
        """A status, or the stored one, that says why it waits for a worker or makes no progress on one (D22).

        Args:
            status: what is to be written besides; None: nothing.
            why: None: nothing is in its way any more.
            is_placed: with this status a worker is recorded.
            now: our time, aware.

        Returns:
            None where it says so already, or no such write would be accepted.
        """
        ...
