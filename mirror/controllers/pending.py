"""What is under way for sources: changes that are not dealt with yet, and status writes that are not answered yet.

``routes`` reports what the watches bring, ``applying`` and ``writing_mirrors`` what they write.
"""

from __future__ import annotations

from mirror.model.keys import SourceKey
from mirror.runtime.clock import Clock


class PendingChanges:
    """Invariant: each entry is of a source that exists, or is being worked on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # When a change of a source's mirror, or a new source, was first seen and not yet dealt with (monotonic).
        self._arrived_at: dict[SourceKey, float] = {}
        # Sources with a status write of ours in flight, by uid: the newest version that the watch has brought
        # meanwhile, maybe that very write before its answer.
        self._writing: dict[str, int] = {}
        # Sources with a status write whose answer was lost: the next foreign status may be that one.
        self._unanswered: set[str] = set()

    # -- changes that are not dealt with -------------------------------------------------------------------------------

    def note_arrival(self, key: SourceKey) -> None:
        """A change was seen; of several that pile up, the first counts."""
        self._arrived_at.setdefault(key, self._clock.monotonic())

    def drop_arrival(self, key: SourceKey) -> None:
        """There is nothing to be dealt with."""
        self._arrived_at.pop(key, None)

    def finish_arrival(self, key: SourceKey) -> float | None:
        """The change is dealt with; return for how many seconds it had waited, None if there was none."""
        arrived = self._arrived_at.pop(key, None)
        return None if arrived is None else self._clock.monotonic() - arrived

    def lag_seconds(self, key: SourceKey) -> float | None:
        """For how long a change has waited; None if there is none."""
        arrived = self._arrived_at.get(key)
        return None if arrived is None else max(0.0, self._clock.monotonic() - arrived)

    def restart_arrivals(self) -> None:
        """We lead from now on: what was seen before was for others to deal with."""
        self._arrived_at = dict.fromkeys(self._arrived_at, self._clock.monotonic())

    # -- status writes -------------------------------------------------------------------------------------------------

    def begin_write(self, uid: str) -> None:
        """A status write of this source is sent."""
        self._writing[uid] = 0

    def is_writing(self, uid: str) -> bool:
        return uid in self._writing

    def note_version(self, uid: str, version: int) -> bool:
        """The watch has brought a version of a source; return whether a write is in flight, whose end deals with it."""
        if uid not in self._writing:
            return False
        self._writing[uid] = version
        return True

    def end_write(self, uid: str, written_version: int | None) -> bool:
        """The write has ended, stored as this version or not at all; return whether somebody else has written, too."""
        seen_version = self._writing.pop(uid)
        return bool(seen_version) and seen_version != written_version

    def note_unanswered(self, uid: str) -> None:
        """The answer to a write was lost: whether it was stored is unknown."""
        self._unanswered.add(uid)

    def note_answered(self, uid: str) -> None:
        self._unanswered.discard(uid)

    def take_unanswered(self, uid: str) -> bool:
        """Whether the status that the watch has brought is most likely the write whose answer was lost; asked once."""
        if uid not in self._unanswered:
            return False
        self._unanswered.discard(uid)
        return True

    def forget(self, uid: str) -> None:
        """A source is gone."""
        self._unanswered.discard(uid)

    def counts(self) -> dict[str, int]:
        """How much is kept, by what it is; for tests."""
        return {"arrived": len(self._arrived_at), "writing": len(self._writing), "unanswered": len(self._unanswered)}
