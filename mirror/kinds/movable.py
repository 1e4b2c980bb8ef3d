"""What moving needs of a kind and of a source (D14). Parts of ``base.Kind`` and ``base.StoredSource``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from mirror.kinds.retryable import RetryableKind, RetryableSource, UnretryableSource
from mirror.kube.objects import Object
from mirror.model.moves import Moves


class MovableSource(RetryableSource, Protocol):
    """See ``base.StoredSource``: statuses are whole ones, such that the API server takes them."""

    @property
    def has_verdict(self) -> bool:
        """Whether it is decided how it ends."""
        ...

    @property
    def is_failing(self) -> bool:
        """Whether it is decided that it fails."""
        ...

    @property
    def moves(self) -> Moves:
        """How often it was moved, and what it left behind."""
        ...

    @property
    def limited_moves(self) -> int:
        """How many of its moves count against ``workers.moveLimit``: those from drained workers do not."""
        ...

    @property
    def waits_after_move(self) -> bool:
        """It was moved, and nothing of it is known to have started since."""
        ...

    @property
    def is_leaving(self) -> bool:
        """What is on a worker that is drained has stopped, and is stored: it may be deleted there."""
        ...

    def leaving_status(
        self, status: Mapping[str, Any] | None, worker: str, mirror_uid: str, now: datetime
    ) -> dict[str, Any] | None:
        """The last status that a stopped mirror brings, or the stored one, and that the mirror goes; None: stored."""
        ...

    def moved_status(
        self, moves: Moves, now: datetime, *, is_drained: bool = False, because: str = ""
    ) -> dict[str, Any] | None:
        """Suspended since its worker is lost or drained, and recorded on another one, ``moves.to``.

        None: such a kind is not moved, or no such write would be accepted.
        """
        ...

    @property
    def has_seed(self) -> bool:
        """Whether something was counted that a new mirror's status can be given before it runs."""
        ...

    def seeded_status(self, mirror: Object) -> dict[str, Any] | None:
        """The status of a mirror that is held, with what is stored joined; None: it has that, or takes none of it."""
        ...

    def returned_status(
        self, status: Mapping[str, Any] | None, worker: str, moves: Moves, now: datetime
    ) -> dict[str, Any]:
        """A status, or the stored one, recorded on a worker where a copy was left behind."""
        ...


class UnmovableSource(UnretryableSource, ABC):
    """``MovableSource`` of a kind that is not moved (``can_move``): it ends where it is, and a new one begins anew."""

    status: Mapping[str, Any]

    @property
    @abstractmethod
    def is_finished(self) -> bool: ...

    @abstractmethod
    def placed_status(self, worker: str | None, now: datetime) -> dict[str, Any] | None: ...

    @property
    def has_verdict(self) -> bool:
        return self.is_finished

    @property
    def is_failing(self) -> bool:
        return False  # unless it has failed

    @property
    def moves(self) -> Moves:
        return Moves()

    @property
    def limited_moves(self) -> int:
        return 0

    @property
    def waits_after_move(self) -> bool:
        return False

    @property
    def is_leaving(self) -> bool:
        return False

    def leaving_status(self, status: Mapping[str, Any] | None, worker: str, mirror_uid: str, now: datetime) -> None:
        """It does not leave."""
        return

    def moved_status(self, moves: Moves, now: datetime, *, is_drained: bool = False, because: str = "") -> None:
        """It is not moved."""
        return

    @property
    def has_seed(self) -> bool:
        return False

    def seeded_status(self, mirror: Object) -> None:
        """Nothing of it goes along."""
        return

    def returned_status(
        self, status: Mapping[str, Any] | None, worker: str, moves: Moves, now: datetime
    ) -> dict[str, Any]:
        return self.placed_status(worker, now) or dict(self.status if status is None else status)


class MovableKind(RetryableKind, Protocol):
    """See ``base.Kind``."""

    @property
    def can_move(self) -> bool:
        """Whether one may be moved from a lost worker (D14)."""
        ...

    def stopping(self, mirror: Object) -> tuple[Mapping[str, Any], ...]:
        """What suspends a mirror so that its source can leave its worker; noted, so that resuming it is a change."""
        ...

    def has_stopped(self, mirror: Object) -> bool:
        """Whether nothing of it runs or will, by its own controller's word.

        That is no word on this suspension where it was resumed before, and suspended again while ``is_resuming``.
        """
        ...

    def is_resuming(self, mirror: Object) -> bool:
        """Whether it is to run, and its controller still says that it is suspended."""
        ...

    def ends_when_suspended(self, mirror: Object) -> bool:
        """Whether its own controller may take a mirror for complete for no other reason than that it was suspended."""
        ...

    def has_succeeded(self, found: Object) -> bool:
        """Whether a pod of it has, counted or not."""
        ...

    def held_body(self, body: dict[str, Any]) -> dict[str, Any]:
        """A new mirror that is suspended until its status is seeded; asked for only where a source has a seed."""
        ...

    def is_held_for_seed(self, mirror: Object) -> bool:
        """Whether a mirror waits for that, and nothing of it has run."""
        ...
