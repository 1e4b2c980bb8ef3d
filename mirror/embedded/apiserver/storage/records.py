"""What storage keeps of an object, what happened to it, and how storage refuses.

``storage.mvcc`` makes them; what a watcher has encoded of an event is all that others add.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Gone(Exception):
    """The history does not reach back to the version that was asked for."""


class StorageConflict(Exception):
    """The stored record is not the one that a write relied on."""


class Unusable(Exception):
    """What is to be restored cannot be: it is none of ours, damaged, or in use by another process."""


class Unwritable(Unusable):
    """A write could not be made to last, and was not made: the disk is full, say."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """An object in one version; ``raw`` is its JSON as it is served."""

    namespace: str
    name: str
    uid: str
    version: int
    raw: bytes
    labels: Mapping[str, str]

    @property
    def key(self) -> str:
        """``namespace/name``, or the name where there is no namespace; lists are sorted by it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Event(msgspec.Struct, gc=False):
    """One write: what is stored since, and what was before it."""

    version: int
    record: Record
    """For a deletion, the last state with the version of the deletion."""
    previous: Record | None
    is_deletion: bool
    encoded: dict[object, bytes] | None = None
    """What watchers of the same form share; dropped when the event is old."""
