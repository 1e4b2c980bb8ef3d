"""What is stored of the events that controllers record: the two policies that an ``event_recorder`` can have.

``EventCorrelator`` is client-go's correlation, whose effect users know (N3): identical repeats are counted in one
event; the tenth similar one in ten minutes begins a combined event; a bucket bounds how many there are.
``RepeatFilter`` leaves repeats out. Pure but for what they remember, which is bounded.
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

import msgspec

from mirror.runtime.clock import Clock
from mirror.runtime.events import Event, EventSeries, StoredEvent

MOST_REMEMBERED = 4096
SIMILAR = 10
SIMILAR_SECONDS = 600.0
BURST = 25
REFILL_SECONDS = 300.0
COMBINED = "(combined from similar events): "

MOST_REPEATS_REMEMBERED = 10_000

_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_SIMILAR_TIME = timedelta(seconds=SIMILAR_SECONDS)

V = TypeVar("V")


class EventPolicy(Protocol):
    """Decides what is stored of each event, and how events are named."""

    def correlate(self, event: Event) -> StoredEvent | None:
        """What to store of it; None: nothing."""
        ...

    def new_name(self, about: str, first: datetime) -> str:
        """A name that no other event has, made of the object's name and the time of the event."""
        ...


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
        self._kept.move_to_end(key)  # if it was there already
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


class RepeatFilter:
    """Stores each event as an object of its own, and leaves out those that repeat one of the last ``seconds``.

    A repeat is about the same object and has the same reason and message.
    """

    def __init__(self, clock: Clock, seconds: float, *, most_remembered: int = MOST_REPEATS_REMEMBERED) -> None:
        self._clock = clock
        self._seconds = seconds
        self._recorded_at = Recent[float](most_remembered)

    def correlate(self, event: Event) -> StoredEvent | None:
        """The event, unless it is a repeat."""
        key, now = (event.regarding.uid, event.reason, event.message), self._clock.monotonic()
        before = self._recorded_at.get(key)
        if before is not None and now - before < self._seconds:
            return None
        self._recorded_at.put(key, now)
        return StoredEvent(EventSeries(event.at), event, event.message)

    def new_name(self, about: str, first: datetime) -> str:
        """The object's name and a random number."""
        return f"{about[:200]}.{secrets.token_hex(8)}"


class _Similar(msgspec.Struct):
    """Messages of one group, as hashes."""

    at: datetime
    messages: set[int] = msgspec.field(default_factory=set)


class _Bucket(msgspec.Struct):
    counted_at: datetime
    tokens: float = float(BURST)


def object_of(event: Event) -> Hashable:
    """client-go's bucket: all events of one object share it."""
    regarding = event.regarding
    return regarding.resource.kind, regarding.namespace, regarding.name, regarding.uid


class EventCorrelator:
    """client-go's correlation, for controllers whose events are to look as those of Kubernetes' own.

    ``bucket_of``: which events share a bucket of 25, refilled by one every five minutes.
    """

    def __init__(self, bucket_of: Callable[[Event], Hashable] = object_of) -> None:
        self._bucket_of = bucket_of
        self._series = Recent[EventSeries]()
        self._similar = Recent[_Similar]()
        self._buckets = Recent[_Bucket]()
        self._last_nanoseconds = 0

    def correlate(self, event: Event) -> StoredEvent | None:
        """What to store of it; None when its bucket is empty. Those that are not stored are counted, too."""
        about, message = event.regarding, event.message
        # Equal texts are equal hashes; that two texts of one object share one is too unlikely to keep the texts.
        digest = hash(message)
        group = (about.resource.kind, about.namespace, about.name, about.uid, event.type, event.reason)
        is_combined = self._is_one_too_many(group, digest, event.at)
        key = group if is_combined else (*group, about.field_path, digest)
        series = self._series.get(key)
        if series is None:
            series = EventSeries(event.at)
            self._series.put(key, series)
        else:
            series.count += 1
        if not self._has_room(self._bucket_of(event), event.at):
            return None
        text = COMBINED + message if is_combined else message
        return StoredEvent(series, event, text, series.count, is_combined)

    def new_name(self, about: str, first: datetime) -> str:
        """The object's name and the time in hexadecimal nanoseconds, as client-go names events; never the same twice.

        Where that is no name that the API takes, one made of hashes.
        """
        nanoseconds = (first - _EPOCH) // timedelta(microseconds=1) * 1000
        self._last_nanoseconds = max(nanoseconds, self._last_nanoseconds + 1)
        name = f"{about}.{self._last_nanoseconds:x}"
        return name if _NAME.fullmatch(name) else str(uuid.uuid5(uuid.NAMESPACE_URL, name))

    def _is_one_too_many(self, group: Hashable, digest: int, at: datetime) -> bool:
        """Whether a message belongs into the combined event of its group, which is all that differs by messages alone.

        Equal messages are no reason to combine.
        """
        similar = self._similar.get(group)
        if similar is None or at - similar.at > _SIMILAR_TIME:
            similar = _Similar(at=at)
            self._similar.put(group, similar)
        similar.messages.add(digest)
        similar.at = at
        if len(similar.messages) < SIMILAR:
            return False
        similar.messages.pop()  # so it stays that small
        return True

    def _has_room(self, source: Hashable, at: datetime) -> bool:
        """Take one from this source's bucket."""
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
