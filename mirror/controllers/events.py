"""Kubernetes events on sources and Secrets: best effort, bounded, never in the way of a status."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object
from mirror.kube.resources import EVENTS, SECRETS, Resource
from mirror.model.text import clean
from mirror.runtime.clock import Clock
from mirror.telemetry.logs import Log

COMPONENT = "jobmirror"
REPEAT_AFTER_SECONDS = 600.0
MOST_WAITING = 20_000
MOST_REMEMBERED = 10_000
SENDERS = 4


@lru_cache(maxsize=1024)
def _clean(message: str) -> str:
    """Thousands of events may wait that say the same."""
    return clean(message, longest=1000)


@dataclass(frozen=True, slots=True)
class Regarding:
    """What an event is about."""

    resource: Resource
    found: Object = field(repr=False)


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    """An event that is not sent yet. Thousands may wait: it keeps no object alive."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: str
    reason: str
    message: str
    is_warning: bool
    at: datetime

    def body(self) -> dict[str, Any]:
        at = self.at.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{self.name[:200]}.{secrets.token_hex(8)}", "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": self.resource.api_version,
                "kind": self.resource.kind,
                "namespace": self.namespace,
                "name": self.name,
                "uid": self.uid,
                "resourceVersion": self.version,
            },
            "type": "Warning" if self.is_warning else "Normal",
            "reason": self.reason,
            "message": self.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }


class EventRecorder:
    """Takes events at any time and sends them from tasks of its own; repeats within ten minutes are left out."""

    def __init__(
        self, management: Client, *, clock: Clock, log: Log, turn: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._management = management
        self._clock = clock
        self._log = log
        # Waits until nothing more urgent is to be sent.
        self._turn = turn
        self._is_flushing = False
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue(MOST_WAITING)
        self._recorded: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def record(self, regarding: Regarding, reason: str, message: str, *, is_warning: bool) -> None:
        """Record an event; dropped, with a log line, when too many are waiting."""
        message = _clean(message)
        event = (regarding.found.metadata.uid, reason, message)
        now = self._clock.monotonic()
        if now - self._recorded.get(event, float("-inf")) < REPEAT_AFTER_SECONDS:
            return
        self._recorded[event] = now
        self._recorded.move_to_end(event)
        if len(self._recorded) > MOST_REMEMBERED:
            self._recorded.popitem(last=False)
        try:
            self._waiting.put_nowait(self._note(regarding, reason, message, is_warning))
        except asyncio.QueueFull:
            self._log.warning("event dropped", reason=reason)

    def warn_about_secret(self, secret: Object, reason: str, message: str) -> None:
        """Record a warning about a worker on the Secret that registers it."""
        self.record(Regarding(SECRETS, secret), reason, message, is_warning=True)

    async def run(self) -> None:
        """Send events, until cancelled."""
        async with asyncio.TaskGroup() as scope:
            for number in range(SENDERS):
                scope.create_task(self._send(), name=f"send events {number}")

    async def flush(self, seconds: float) -> None:
        """Give what is waiting a little time on the way out."""
        self._is_flushing = True
        try:
            async with asyncio.timeout(seconds):
                await self._waiting.join()
        except TimeoutError:
            self._log.warning("events not sent", count=self._waiting.qsize())

    async def _send(self) -> None:
        while True:
            event = await self._waiting.get()
            try:
                if self._turn is not None and not self._is_flushing:
                    await self._turn()
                await self._management.send(requests.create(EVENTS, event.body(), namespace=event.namespace))
            except KubeError as error:
                self._log.debug("event not sent", reason=event.reason, error=error)
            finally:
                self._waiting.task_done()

    def _note(self, regarding: Regarding, reason: str, message: str, is_warning: bool) -> _Waiting:
        about = regarding.found.metadata
        version, at = about.resource_version, self._clock.now()
        whom = (regarding.resource, about.namespace, about.name, about.uid, version)
        return _Waiting(*whom, reason, message, is_warning, at)
