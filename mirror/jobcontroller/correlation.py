"""What is stored of the events that a Job gets: ``runtime/correlation``, and its memory; ``events`` sends it.

One thing is different on purpose: upstream has a single bucket per Job and type, so that the pods of a large Job use
up what its end needed (no Completed event). Here only events about pods share that bucket; whatever a Job says of
itself has a bucket of its own per reason.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from mirror.runtime import correlation
from mirror.runtime.correlation import COMBINED, Recent

POD_REASONS = frozenset(("SuccessfulCreate", "FailedCreate", "SuccessfulDelete", "FailedDelete"))


class About(msgspec.Struct, frozen=True, gc=False):
    """The Job that an event is about."""

    namespace: str
    name: str
    uid: str
    version: str = ""


class Told(msgspec.Struct, frozen=True, gc=False):
    """An event as the controller tells it."""

    about: About
    type: str
    reason: str
    message: str
    at: datetime


class Stored(msgspec.Struct, frozen=True, gc=False):
    """The event as it shall be stored: a new one when ``count`` is 1, else the one of this name with other figures."""

    name: str
    told: Told
    message: str
    count: int
    first: datetime
    is_combined: bool


class Correlation:
    """Remembers what was told lately; the least recently used is forgotten first."""

    def __init__(self) -> None:
        self._repeats = correlation.Correlation()
        self._stored = Recent[Stored]()

    def correlate(self, told: Told) -> Stored | None:
        """What to store of it; None when this Job has told too much."""
        about = told.about
        source = (about.namespace, about.name, about.uid, told.type)
        group = (*source, told.reason)
        is_combined = self._repeats.is_one_too_many(group, told.message, told.at)
        # Equal texts are equal hashes; that two texts of one Job share one is too unlikely to keep the texts.
        key = group if is_combined else (*group, hash(told.message))
        before = self._stored.get(key)
        stored = Stored(
            name=before.name if before else self._repeats.new_name(about.name, told.at),
            told=told,
            message=COMBINED + told.message if is_combined else told.message,
            count=before.count + 1 if before else 1,
            first=before.first if before else told.at,
            is_combined=is_combined,
        )
        self._stored.put(key, stored)
        bucket = source if told.reason in POD_REASONS else group
        return stored if self._repeats.has_room(bucket, told.at) else None
