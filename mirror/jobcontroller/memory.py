"""What this process remembers about each Job between syncs. Lost with the process, which costs nothing but time (Q4).

By uid, so that a Job that is created again inherits nothing (Q9).
"""

from __future__ import annotations

import msgspec

from mirror.jobcontroller.consistency import Written
from mirror.jobcontroller.decide.values import BackoffRecord
from mirror.jobcontroller.expectations import Expectations


class JobMemory(msgspec.Struct):
    """One Job's."""

    expected: Expectations = msgspec.field(default_factory=Expectations)
    removing: set[str] = msgspec.field(default_factory=set)
    """Uids of pods whose finalizer we have removed, until the watch shows it (Q1)."""
    written: Written = msgspec.field(default_factory=Written)
    backoff: BackoffRecord | None = None
    """As of the last stored status (B5)."""
    is_finished: bool = False
    """We have stored its end, and the watch has not shown it yet (Y5, Q5)."""


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

    def forget_all(self) -> None:
        self._by_uid.clear()
