"""client-go's correlation of events, whose effect users know (N3): what repeats, what is alike, how much.

Identical repeats are counted in one event; the tenth similar one in ten minutes begins a combined event; a bucket
bounds how many there are. Used by whoever tells events as Kubernetes' own controllers do; they keep the events and send
them. Not here: the mirror's own events (``controllers/events``), which need none of it.
"""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec

MOST_REMEMBERED = 4096
SIMILAR = 10
SIMILAR_SECONDS = 600.0
BURST = 25
REFILL_SECONDS = 300.0
COMBINED = "(combined from similar events): "

_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

V = TypeVar("V")


class Recent(Generic[V]):
    """A bounded memory; the least recently used is forgotten first."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """What was put there, if it is remembered."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Hashable, value: V) -> None:
        """Remember it."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


class _Similar(msgspec.Struct):
    """Messages of one group, as hashes."""

    at: datetime
    messages: set[int] = msgspec.field(default_factory=set)


class _Bucket(msgspec.Struct):
    counted_at: datetime
    tokens: float = float(BURST)


class Correlation:
    """What was told lately. Pure but for this memory."""

    def __init__(self) -> None:
        self._similar = Recent[_Similar]()
        self._buckets = Recent[_Bucket]()
        self._last_nanoseconds = 0

    def is_one_too_many(self, group: Hashable, message: str, at: datetime) -> bool:
        """Whether this message belongs into its group's combined event.

        Args:
            group: what is alike: the object, the type, the reason.
            message: the text; equal ones are no reason to combine.
            at: when it is told.
        """
        similar = self._similar.get(group)
        if similar is None or at - similar.at > timedelta(seconds=SIMILAR_SECONDS):
            similar = _Similar(at=at)
            self._similar.put(group, similar)
        similar.messages.add(hash(message))
        similar.at = at
        if len(similar.messages) < SIMILAR:
            return False
        similar.messages.pop()  # so it stays that small
        return True

    def has_room(self, source: Hashable, at: datetime) -> bool:
        """Take one from this source's bucket: 25 at once, one more every five minutes."""
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = _Bucket(counted_at=at)
            self._buckets.put(source, bucket)
        earned = max(0.0, (at - bucket.counted_at).total_seconds()) / REFILL_SECONDS
        bucket.tokens, bucket.counted_at = min(float(BURST), bucket.tokens + earned), at
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True

    def new_name(self, about: str, at: datetime) -> str:
        """The object's name and the time in hexadecimal nanoseconds, as client-go names events; never the same twice.

        Where that is no name that the API takes, one made of hashes.
        """
        nanoseconds = (at - _EPOCH) // timedelta(microseconds=1) * 1000
        self._last_nanoseconds = max(nanoseconds, self._last_nanoseconds + 1)
        name = f"{about}.{self._last_nanoseconds:x}"
        return name if _NAME.fullmatch(name) else str(uuid.uuid5(uuid.NAMESPACE_URL, name))
