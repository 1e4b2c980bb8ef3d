"""Kubernetes events on Jobs, as kube-controller-manager's: told at any time, sent behind everything that is urgent.

The controller tells; ``process`` keeps ``run`` going and flushes on the way out. While the client's rate limit is used
up events wait, and what waits about one event is merged into one write. Not here: what is stored of what was told
(``correlation``).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import datetime
from typing import Any, Protocol

import msgspec

from mirror.jobcontroller.correlation import About, Correlation, Stored, Told
from mirror.kube import requests
from mirror.kube.errors import ApiError, KubeError, NotFound, ServerFailure, TooManyRequests
from mirror.kube.objects import Object
from mirror.kube.requests import Rank
from mirror.kube.resources import EVENTS, JOBS
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.telemetry.logs import Log

COMPONENT = "job-controller"
SENDERS = 4
MOST_WAITING = 10_000
LONGEST_MESSAGE = 4096
MOST_TRIES = 12
RETRY = Backoff(first=0.2, most=10.0, jitter=0.2)
COMPLAIN_APART_SECONDS = 60.0


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: requests.Request) -> bytes: ...


class _Waiting(msgspec.Struct):
    """What is to be written under one event's name."""

    stored: Stored
    is_new: bool
    tries: int = 0


class JobEvents:
    """Takes events and sends them from tasks of its own.

    Invariant: a name is in ``_in_flight`` while a request about it is under way; what is told meanwhile waits in
    ``_waiting``, so that the figures of one event never overtake each other.
    """

    def __init__(self, sender: Sender, *, clock: Clock, log: Log) -> None:
        self._sender = sender
        self._clock = clock
        self._log = log
        self._correlation = Correlation()
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._in_flight: set[str] = set()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_flushing = False
        self._dropped = 0
        self._complained_at = float("-inf")

    def tell(self, regarding: Object, type_name: str, reason: str, message: str, /) -> None:
        """Record an event on a Job; never waits, never fails."""
        metadata = regarding.metadata
        about = About(metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)
        if len(message) > LONGEST_MESSAGE:
            message = message[: LONGEST_MESSAGE - 1] + "…"
        stored = self._correlation.correlate(Told(about, type_name, reason, message, self._clock.now()))
        if stored is not None:
            self._put(stored, is_new=stored.count == 1)

    async def run(self) -> None:
        """Send what was told, until cancelled."""
        async with asyncio.TaskGroup() as scope:
            for number in range(SENDERS):
                scope.create_task(self._send_for_ever(), name=f"send job events {number}")

    async def flush(self, seconds: float) -> None:
        """Give what waits a little time on the way out; ``run`` must still be running."""
        self._is_flushing = True
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._log.warning("events not sent", count=len(self._waiting) + len(self._in_flight))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _put(self, stored: Stored, *, is_new: bool, tries: int = 0) -> None:
        earlier = self._waiting.get(stored.name)
        if earlier is not None:
            if stored.count > earlier.stored.count:
                earlier.stored = stored
            earlier.is_new |= is_new
        elif len(self._waiting) >= MOST_WAITING:
            self._drop()
        else:
            self._waiting[stored.name] = _Waiting(stored, is_new, tries)
            self._idle.clear()
            self._wake.set()

    def _drop(self) -> None:
        self._dropped += 1
        now = self._clock.monotonic()
        if now - self._complained_at >= COMPLAIN_APART_SECONDS:
            self._log.warning("events dropped: too many wait", count=self._dropped)
            self._complained_at, self._dropped = now, 0

    async def _send_for_ever(self) -> None:
        while True:
            taken = self._take()
            if taken is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            try:
                pause_seconds = await self._send(taken)
            finally:
                self._in_flight.discard(taken.stored.name)
                self._wake.set()
                if not self._waiting and not self._in_flight:
                    self._idle.set()
            if pause_seconds and not self._is_flushing:
                await asyncio.sleep(pause_seconds)

    def _take(self) -> _Waiting | None:
        """The oldest that waits and has no request under way."""
        name = next((name for name in self._waiting if name not in self._in_flight), None)
        if name is None:
            return None
        self._in_flight.add(name)
        return self._waiting.pop(name)

    async def _send(self, taken: _Waiting) -> float:
        """Write it; the answer is how long to pause when that did not work."""
        stored = taken.stored
        try:
            if not taken.is_new:
                try:
                    await self._sender.send(_change(stored))
                except NotFound:
                    taken.is_new = True  # it has expired on the server
            if taken.is_new:
                await self._sender.send(_create(stored))
        except KubeError as error:
            is_refused = isinstance(error, ApiError) and not isinstance(error, ServerFailure | TooManyRequests)
            if is_refused or self._is_flushing or taken.tries + 1 >= MOST_TRIES:
                self._log.debug("event not sent", reason=stored.told.reason, error=error)
                return 0.0
            # A create whose answer was lost may be repeated: that it is there already is a refusal like any other.
            self._put(stored, is_new=taken.is_new, tries=taken.tries + 1)
            return RETRY.delay(taken.tries + 1)
        return 0.0


def _create(stored: Stored) -> requests.Request:
    return requests.create(EVENTS, body_of(stored), namespace=stored.told.about.namespace).in_line(Rank.LAST)


def _change(stored: Stored) -> requests.Request:
    figures = {"count": stored.count, "lastTimestamp": _time(stored.told.at), "message": stored.message}
    namespace = stored.told.about.namespace
    return requests.merge_patch(EVENTS, stored.name, figures, namespace=namespace).in_line(Rank.LAST)


def body_of(stored: Stored) -> dict[str, Any]:
    """The whole event in client-go's shape; a combined one names no reporting component, as client-go's."""
    told, about = stored.told, stored.told.about
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": stored.name, "namespace": about.namespace},
        "involvedObject": {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.version,
        },
        "type": told.type,
        "reason": told.reason,
        "message": stored.message,
        "source": {"component": COMPONENT},
        **({} if stored.is_combined else {"reportingComponent": COMPONENT}),
        "firstTimestamp": _time(stored.first),
        "lastTimestamp": _time(told.at),
        "count": stored.count,
    }


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
