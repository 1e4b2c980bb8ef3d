"""What moving from a lost worker needs of a source, whatever its kind (D14). Part of ``base.StoredSource``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from mirror.model.moves import Moves


class MovableSource(Protocol):
    """See ``base.StoredSource``: statuses are whole ones, such that the API server takes them."""

    @property
    def has_verdict(self) -> bool:
        """Whether it is decided how it ends."""
        ...

    @property
    def moves(self) -> Moves:
        """How often it was moved, and what it left behind."""
        ...

    @property
    def waits_after_move(self) -> bool:
        """It was moved, and nothing of it is known to have started since."""
        ...

    def moved_status(self, moves: Moves, now: datetime) -> dict[str, Any] | None:
        """Suspended since its worker is lost, and recorded on another one, ``moves.to``.

        None: such a kind is not moved, or no such write would be accepted.
        """
        ...

    def returned_status(
        self, status: Mapping[str, Any] | None, worker: str, moves: Moves, now: datetime
    ) -> dict[str, Any]:
        """A status, or the stored one, recorded on a worker where a copy was left behind."""
        ...
