"""What is stored of the events that a Job gets: client-go's correlation, whose effect users know (reference N3).

Identical repeats are counted in one event; the tenth similar one in ten minutes begins a combined event; a bucket per
Job bounds how many there are. Pure but for its memory; ``events`` sends what it answers.

One thing is different on purpose: upstream has a single bucket per Job and type, so that the pods of a large Job use
up what its end needed (no Completed event). Here only events about pods share that bucket; whatever a Job says of
itself has a bucket of its own per reason.
"""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec

MOST_REMEMBERED = 4096
SIMILAR = 10
SIMILAR_SECONDS = 600.0
BURST = 25
REFILL_SECONDS = 300.0
COMBINED = "(combined from similar events): "
POD_REASONS = frozenset(("SuccessfulCreate", "FailedCreate", "SuccessfulDelete", "FailedDelete"))

_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

V = TypeVar("V")


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
        self._similar = _Recent[_Similar]()
        self._stored = _Recent[Stored]()
        self._buckets = _Recent[_Bucket]()
        self._last_nanoseconds = 0

    def correlate(self, told: Told) -> Stored | None:
        """What to store of it; None when this Job has told too much."""
        about = told.about
        group = (about.namespace, about.name, about.uid, told.type, told.reason)
        is_combined = self._is_one_too_many(group, told)
        # Equal texts are equal hashes; that two texts of one Job share one is too unlikely to keep the texts.
        key = group if is_combined else (*group, hash(told.message))
        before = self._stored.get(key)
        stored = Stored(
            name=before.name if before else self._new_name(told),
            told=told,
            message=COMBINED + told.message if is_combined else told.message,
            count=before.count + 1 if before else 1,
            first=before.first if before else told.at,
            is_combined=is_combined,
        )
        self._stored.put(key, stored)
        return stored if self._has_room(group, told.at) else None

    def _is_one_too_many(self, group: tuple[str, ...], told: Told) -> bool:
        similar = self._similar.get(group)
        if similar is None or told.at - similar.at > timedelta(seconds=SIMILAR_SECONDS):
            similar = _Similar(at=told.at)
            self._similar.put(group, similar)
        similar.messages.add(hash(told.message))
        similar.at = told.at
        if len(similar.messages) < SIMILAR:
            return False
        similar.messages.pop()  # so it stays that small
        return True

    def _has_room(self, group: tuple[str, ...], now: datetime) -> bool:
        *source, reason = group
        key = tuple(source) if reason in POD_REASONS else group
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = _Bucket(counted_at=now)
            self._buckets.put(key, bucket)
        earned = max(0.0, (now - bucket.counted_at).total_seconds()) / REFILL_SECONDS
        bucket.tokens, bucket.counted_at = min(float(BURST), bucket.tokens + earned), now
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True

    def _new_name(self, told: Told) -> str:
        """``JOB.`` and the time in hexadecimal nanoseconds, as client-go names events; never the same twice."""
        nanoseconds = (told.at - _EPOCH) // timedelta(microseconds=1) * 1000
        self._last_nanoseconds = max(nanoseconds, self._last_nanoseconds + 1)
        name = f"{told.about.name}.{self._last_nanoseconds:x}"
        return name if _NAME.fullmatch(name) else str(uuid.uuid4())


class _Similar(msgspec.Struct):
    """Events of one Job, type and reason; texts as hashes."""

    at: datetime
    messages: set[int] = msgspec.field(default_factory=set)


class _Bucket(msgspec.Struct):
    counted_at: datetime
    tokens: float = float(BURST)


class _Recent(Generic[V]):
    """A bounded memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], V] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> V | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: tuple[object, ...], value: V) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_REMEMBERED:
            self._kept.popitem(last=False)
