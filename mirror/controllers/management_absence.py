"""Whether the management cluster was unreachable a moment ago: it may be us who were cut off from workers (D14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mirror.kube.errors import ApiError, KubeError, ServerFailure
from mirror.runtime.clock import Clock

AFTER_RETURN_SECONDS = 60.0
AWAY_SECONDS = 10.0
"""A watch that is cut off once is no absence."""
ONE_ABSENCE_SECONDS = 45.0
"""Two failures that are further apart are not of one absence: each attempt ends sooner."""


@dataclass(slots=True)
class _Absence:
    """While no attempt to watch one kind gets through."""

    since: float
    failed_at: float
    answered: dict[str, float] = field(default_factory=dict)
    """When other kinds were heard of meanwhile, at first."""


class ManagementAbsence:
    """Counted for each kind: one that cannot be listed, by a broken webhook of its definition, is none of the others.

    But where nothing was heard of the others since, they may not have noticed yet that their watches are cut off.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Of kinds that are watched, by name: few.
        self._absences: dict[str, _Absence] = {}
        self._silences: dict[str, list[Callable[[], float]]] = {}

    def follow(self, kind: str, silent_for_seconds: Callable[[], float]) -> None:
        """Of a kind that is moved: since when a watch of it has heard nothing; it may have several."""
        self._silences.setdefault(kind, []).append(silent_for_seconds)

    def note(self, kind: str, error: KubeError) -> None:
        """An attempt to watch a kind has failed; an answer, whatever it says, is none."""
        if isinstance(error, ApiError) and not isinstance(error, ServerFailure):
            return
        now = self._clock.monotonic()
        absence = self._absences.get(kind)
        if absence is None or now - absence.failed_at > ONE_ABSENCE_SECONDS:
            absence = self._absences[kind] = _Absence(now, now)
        absence.failed_at = now
        for other, silences in self._silences.items():
            if other == kind or other in absence.answered:
                continue
            heard_at = now - min(one() for one in silences)
            if heard_at > absence.since:
                absence.answered[other] = heard_at

    def was_just_now(self, kind: str) -> bool:
        """Whether it was away as far as one kind is concerned, and has not been back for a minute."""
        return any(self._concerns(kind, *one) for one in self._absences.items())

    @property
    def is_long(self) -> bool:
        """Whether that holds moves of a kind for longer than after a moment's absence."""
        return any(
            absence.failed_at - absence.since >= AFTER_RETURN_SECONDS and self._concerns(kind, of, absence)
            for kind in self._silences
            for of, absence in self._absences.items()
        )

    def _concerns(self, kind: str, of: str, absence: _Absence) -> bool:
        """Whether an absence that was noted for one kind may be one of another.

        Not where that one was heard of, and so much later the first still failed that this began before.
        """
        is_recent = self._clock.monotonic() < absence.failed_at + AFTER_RETURN_SECONDS
        if not is_recent or absence.failed_at - absence.since < AWAY_SECONDS:
            return False
        answered_at = absence.answered.get(kind) if kind != of else None
        return answered_at is None or absence.failed_at - answered_at <= ONE_ABSENCE_SECONDS
