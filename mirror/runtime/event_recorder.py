"""Kubernetes events on their way to the server: recorded at any time, sent from tasks of their own, best effort.

Each component has one: it records, and whoever runs the component keeps ``run`` going and flushes on the way out. What
waits about one event is merged into one write. Not here: what is stored of what was recorded (``runtime/correlation``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from mirror.kube import requests
from mirror.kube.errors import (
    AlreadyExists,
    ApiError,
    BadAnswer,
    Forbidden,
    KubeError,
    NotFound,
    OutcomeUnknown,
    ServerFailure,
    TooManyRequests,
)
from mirror.kube.requests import Rank, Request
from mirror.kube.resources import EVENTS
from mirror.model.text import clean
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.runtime.correlation import EventPolicy
from mirror.runtime.events import Event, EventSeries, Regarding, StoredEvent, body_of, change_of
from mirror.telemetry.logs import Log

RETRY = Backoff(first=0.2, most=10.0)
WARN_AGAIN_SECONDS = 60.0


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: Request, /) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """What differs between components."""

    component: str
    host: str = ""
    longest_message: int
    is_one_line: bool = False
    """Whether messages are escaped (D18); otherwise they are cut only, as client-go's."""
    most_waiting: int
    most_tries: int = 12
    """As client-go."""
    senders: int = 4
    rank: Rank = Rank.LAST
    is_silent: bool = False
    """Whether nothing is recorded at all."""
    turn: Callable[[], Awaitable[None]] | None = None
    """Waits until nothing more urgent is to be sent."""


class EventRecorder:
    """Records events and sends them.

    Invariant: a series is in ``_ready`` once if it is in ``_waiting`` and not in ``_in_flight``, where it is while a
    request about it is under way. What is recorded meanwhile waits, so the figures of one event never overtake each
    other.
    """

    def __init__(
        self, sender: Sender, options: RecorderOptions, policy: EventPolicy, *, clock: Clock, log: Log
    ) -> None:
        self._sender = sender
        self._options = options
        self._policy = policy
        self._clock = clock
        self._log = log
        self._waiting: dict[EventSeries, StoredEvent] = {}
        self._in_flight: set[EventSeries] = set()
        self._ready: asyncio.Queue[EventSeries] = asyncio.Queue()
        self._is_flushing = False
        self._dropped = 0
        self._warned_at = float("-inf")
        self._refusal_warned_at = float("-inf")

    def event(self, regarding: Regarding, type_name: str, reason: str, message: str, /) -> None:
        """Record an event; never waits, never fails. It is dropped when too many wait."""
        options = self._options
        if options.is_silent:
            return
        if options.is_one_line:
            message = _clean(message, options.longest_message)
        elif len(message) > options.longest_message:
            message = message[: options.longest_message - 1] + "…"
        stored = self._policy.correlate(Event(regarding, type_name, reason, message, self._clock.now()))
        if stored is not None:
            self._put(stored)

    async def run(self) -> None:
        """Send what is recorded, until cancelled."""
        async with asyncio.TaskGroup() as scope:
            for number in range(self._options.senders):
                scope.create_task(self._send_forever(), name=f"send events {number}")

    async def flush(self, seconds: float) -> None:
        """Give what waits a little time on the way out; ``run`` must still be running."""
        self._is_flushing = True
        try:
            async with asyncio.timeout(seconds):
                await self._ready.join()
        except TimeoutError:
            self._log.warning("events not sent", count=len(self._waiting) + len(self._in_flight))

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    def _put(self, stored: StoredEvent) -> None:
        series = stored.series
        earlier = self._waiting.get(series)
        if earlier is not None:
            if stored.count > earlier.count:
                self._waiting[series] = stored
        elif len(self._waiting) >= self._options.most_waiting:
            self._drop()
        else:
            self._waiting[series] = stored
            if series not in self._in_flight:
                self._ready.put_nowait(series)

    def _drop(self) -> None:
        self._dropped += 1
        now = self._clock.monotonic()
        if now - self._warned_at >= WARN_AGAIN_SECONDS:
            self._log.warning("events dropped: too many wait", count=self._dropped)
            self._warned_at, self._dropped = now, 0

    async def _send_forever(self) -> None:
        while True:
            series = await self._ready.get()
            self._in_flight.add(series)
            try:
                pause_seconds = await self._send(self._waiting.pop(series))
            finally:
                self._in_flight.discard(series)
                if series in self._waiting:
                    self._ready.put_nowait(series)
                self._ready.task_done()
            if pause_seconds and not self._is_flushing:
                await asyncio.sleep(pause_seconds)

    async def _send(self, stored: StoredEvent) -> float:
        """Write it; the answer is how long to pause when that did not work."""
        try:
            if self._options.turn is not None and not self._is_flushing:
                await self._options.turn()
            await self._write(stored)
        except KubeError as error:
            stored.tries += 1
            is_refused = isinstance(error, ApiError) and not isinstance(error, ServerFailure | TooManyRequests)
            if is_refused or self._is_flushing or stored.tries >= self._options.most_tries:
                self._report_not_sent(stored, error)
                return 0.0
            self._put(stored)
            return RETRY.delay(stored.tries)
        return 0.0

    def _report_not_sent(self, stored: StoredEvent, error: KubeError) -> None:
        """A missing permission is a warning, once in a while; all else goes by itself."""
        report, now = self._log.debug, self._clock.monotonic()
        is_forbidden = isinstance(error, Forbidden) and not error.is_of_terminating_namespace
        if is_forbidden and now - self._refusal_warned_at >= WARN_AGAIN_SECONDS:
            report, self._refusal_warned_at = self._log.warning, now
        report("event not sent", reason=stored.event.reason, error=error)

    async def _write(self, stored: StoredEvent) -> None:
        series = stored.series
        if series.is_stored:
            try:
                await self._change(stored)
            except NotFound:  # it has expired on the server
                series.is_stored = series.may_exist = False
            else:
                return
        try:
            await self._create(stored)
        except AlreadyExists:
            if series.may_exist:
                series.is_stored = True
                if stored.count > 1:
                    await self._change(stored)
            else:
                # Another component has recorded something about this object in the same nanosecond.
                series.name = ""
                await self._create(stored)

    async def _create(self, stored: StoredEvent) -> None:
        series, options = stored.series, self._options
        if not series.name:
            series.name = self._policy.new_name(stored.event.regarding.name, series.first)
        body = body_of(stored, options.component, options.host)
        try:
            await self._sender.send(requests.create(EVENTS, body, namespace=stored.namespace, rank=options.rank))
        except (OutcomeUnknown, BadAnswer, ServerFailure):
            series.may_exist = True
            raise
        series.is_stored = True

    async def _change(self, stored: StoredEvent) -> None:
        name, rank = stored.series.name, self._options.rank
        request = requests.merge_patch(EVENTS, name, change_of(stored), namespace=stored.namespace, rank=rank)
        await self._sender.send(request)


@lru_cache(maxsize=1024)
def _clean(message: str, longest: int) -> str:
    """Thousands of events may wait that say the same, as one text."""
    return clean(message, longest=longest)
