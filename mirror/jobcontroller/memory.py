"""What this process remembers about each Job between syncs. Lost with the process, which costs nothing but time (Q4).

By uid, so that a Job that is created again inherits nothing (Q9).
"""

from __future__ import annotations

import msgspec

from mirror.jobcontroller.consistency import Written
from mirror.jobcontroller.decide.values import BackoffRecord, Enacted

EXPECTED_SECONDS = 300.0


class Expectations(msgspec.Struct, gc=False):
    """Pods that one Job's syncs expect to be seen created or deleted (K4, Q1–Q3, Q20, Q21).

    Seeing more than was asked for makes a number negative: a deletion is seen with each update that carries a
    deletionTimestamp (Q21). Asking anew starts from there no more.
    """

    creations: int = 0
    deletions: int = 0
    asked_at: float | None = None

    def expect_creations(self, count: int, now: float) -> None:
        self.creations, self.deletions, self.asked_at = count, 0, now

    def expect_deletions(self, count: int, now: float) -> None:
        self.creations, self.deletions, self.asked_at = 0, count, now

    def creation_seen(self) -> None:
        """Seen, or known never to come."""
        if self.asked_at is not None:
            self.creations -= 1

    def deletion_seen(self) -> None:
        """As ``creation_seen``."""
        if self.asked_at is not None:
            self.deletions -= 1

    def are_met(self, now: float) -> bool:
        """Nothing was asked for, all of it was seen, or it is so long ago that waiting would be wrong (Q3)."""
        return self.seconds_left(now) is None

    def seconds_left(self, now: float) -> float | None:
        """How long what was not seen yet will be waited for; None when nothing is."""
        if self.asked_at is None or (self.creations <= 0 and self.deletions <= 0):
            return None
        left = self.asked_at + EXPECTED_SECONDS - now
        return None if left < 0 else left


class JobMemory(msgspec.Struct):
    """One Job's."""

    expected: Expectations = msgspec.field(default_factory=Expectations)
    removing: set[str] = msgspec.field(default_factory=set)
    """Uids of pods whose finalizer we have removed, until the watch shows it (Q1)."""
    written: Written = msgspec.field(default_factory=Written)
    is_in_doubt: bool = False
    """A pod may have been created, or not: the answer was lost (``live_check``)."""
    backoff: BackoffRecord | None = None
    """As of the last stored status (B5)."""
    enacted: Enacted | None = None
    """As of the last look; None before the first."""
    generation: int = 0
    """Of the spec that it was looked at with."""
    ungrouped_because: str = ""
    """What was logged last of why its pods belong to no PodGroup (``gangs``)."""
    is_finished: bool = False
    """We have stored its end, and the watch has not shown it yet (Y5, Q5)."""

    def enacted_for(self, generation: int) -> Enacted | None:
        """What was enacted, as a sync of this generation should see it: another spec may want another verdict."""
        if self.enacted is None or self.generation == generation:
            return self.enacted
        return Enacted(None, self.enacted.uids)


class Memories:
    """All of them."""

    def __init__(self) -> None:
        self._by_uid: dict[str, JobMemory] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def of(self, uid: str) -> JobMemory:
        """A Job's memory, from now on."""
        found = self._by_uid.get(uid)
        if found is None:
            found = self._by_uid[uid] = JobMemory()
        return found

    def find(self, uid: str) -> JobMemory | None:
        """A Job's memory, if there is one."""
        return self._by_uid.get(uid)

    def forget(self, uid: str) -> None:
        """The Job is gone or over. A sync under way goes on with what it has."""
        self._by_uid.pop(uid, None)

    def forget_writes(self) -> None:
        """What was written is undone: nobody will see it."""
        for memory in self._by_uid.values():
            memory.written, memory.is_finished = Written(), False
