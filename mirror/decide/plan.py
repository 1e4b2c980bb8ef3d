"""What is to be done, as values; performed by ``controllers.applying`` and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mirror.adapters.job import Changes


@dataclass(frozen=True, slots=True)
class WriteSource:
    """One write to the source's ``/status``: the whole status, annotations, or both. None removes an annotation."""

    status: Mapping[str, Any] | None = None
    annotations: tuple[tuple[str, str | None], ...] = ()
    records: str | None = None
    """The worker that this write records (D5)."""
    clears: bool = False
    is_mirrored_status: bool = False
    more: bool = False
    """Another status follows at once."""
    cut: int = 0


@dataclass(frozen=True, slots=True)
class AskForPlace:
    """Let it wait for a worker."""


@dataclass(frozen=True, slots=True)
class CreateMirror:
    """Create the mirror on the worker that is recorded."""

    worker: str


@dataclass(frozen=True, slots=True)
class FindMirror:
    """Ask the worker live for a mirror that should be there (D11)."""

    worker: str
    uid: str


@dataclass(frozen=True, slots=True)
class RestoreLabels:
    """Put our labels back on a mirror that lost them (D11)."""

    worker: str
    uid: str


@dataclass(frozen=True, slots=True)
class PatchMirror:
    """Carry what the user changed (D9)."""

    worker: str
    changes: Changes


@dataclass(frozen=True, slots=True)
class DeleteMirror:
    """Delete the mirror, if it is still this one."""

    worker: str
    uid: str


@dataclass(frozen=True, slots=True)
class Tell:
    """An event on the source."""

    reason: str
    message: str
    is_warning: bool = True


Action = WriteSource | AskForPlace | CreateMirror | FindMirror | RestoreLabels | PatchMirror | DeleteMirror | Tell


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about one source, why, and when to look again without being woken."""

    because: str
    actions: tuple[Action, ...] = ()
    again_after_seconds: float | None = None
    remember: tuple[tuple[str, Any], ...] = ()
    """Fields of the source's ``Memory`` to set once the actions went well."""

    @property
    def wants_place(self) -> bool:
        """Whether the source waits for a place, or uses the one that it was given."""
        return any(
            isinstance(action, AskForPlace) or (isinstance(action, WriteSource) and action.records is not None)
            for action in self.actions
        )
