"""Kubernetes events that controllers tell, with client-go's correlation: repeats are counted, many alike are combined.

Told at any time; a task of its own sends them. Events are the first thing to go without when there is too much.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mirror.batch import times
from mirror.embedded.controllers.client import Api, Json
from mirror.kube.errors import AlreadyExists, ApiError, KubeError, NotFound, ServerFailure, TooManyRequests
from mirror.kube.requests import Rank
from mirror.kube.resources import EVENTS, Resource
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.runtime.correlation import COMBINED, Correlation, Recent

NORMAL = "Normal"
WARNING = "Warning"

_MOST_WAITING = 2000
_MOST_TRIES = 6
_LONGEST_MESSAGE = 1024
_RETRY = Backoff(first=0.2, most=10.0)


@dataclass(frozen=True, slots=True)
class About:
    """The object that an event is about."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    version: str = ""
    field_path: str = ""

    @classmethod
    def of(cls, resource: Resource, body: Mapping[str, Any], *, container: str = "") -> About:
        """An object; with a container, that part of a pod."""
        metadata = body["metadata"]
        return cls(
            resource.kind,
            resource.api_version,
            metadata.get("namespace", ""),
            metadata["name"],
            metadata.get("uid", ""),
            metadata.get("resourceVersion", ""),
            f"spec.{container}" if container else "",
        )


@dataclass(slots=True)
class _Event:
    """What is stored under one name; ``count`` and what follows change."""

    name: str
    about: About
    type: str
    reason: str
    message: str
    first: datetime
    is_combined: bool
    last: datetime
    count: int = 1
    is_stored: bool = False
    tries: int = 0


class Recorder:
    """Takes events and sends them.

    Invariant: the names in ``_waiting`` are those of events whose figures the server does not know yet.
    """

    def __init__(self, api: Api, component: str, *, clock: Clock, host: str = "", is_silent: bool = False) -> None:
        self._api = api
        self._component = component
        self._host = host
        self._clock = clock
        self._is_silent = is_silent
        self._events = Recent[_Event]()
        self._repeats = Correlation()
        self._waiting: OrderedDict[str, _Event] = OrderedDict()
        self._wake = asyncio.Event()

    def tell(self, about: About, type_name: str, reason: str, message: str, /) -> None:
        """Record an event; never waits, never fails."""
        now = self._clock.now()
        if self._is_silent:
            return
        if len(message) > _LONGEST_MESSAGE:
            message = message[: _LONGEST_MESSAGE - 1] + "…"
        group = (about.kind, about.namespace, about.name, about.uid, type_name, reason)
        is_combined = self._repeats.is_one_too_many(group, message, now)
        key = group if is_combined else (*group, about.field_path, message)
        event = self._events.get(key)
        text = COMBINED + message if is_combined else message
        if event is None:
            event = _Event(
                self._repeats.new_name(about.name, now), about, type_name, reason, text, now, is_combined, now
            )
            self._events.put(key, event)
        else:
            event.count += 1
            event.last, event.message = now, text
        if self._repeats.has_room(group[:4], now) and (
            event.name in self._waiting or len(self._waiting) < _MOST_WAITING
        ):
            self._waiting[event.name] = event
            self._wake.set()

    async def run(self) -> None:
        """Send what was told, until cancelled."""
        while True:
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            _, event = self._waiting.popitem(last=False)
            pause = await self._send(event)
            if pause:
                await asyncio.sleep(pause)

    async def _send(self, event: _Event) -> float:
        """Write it; the answer is how long to pause when that did not work."""
        namespace = event.about.namespace or "default"
        try:
            if event.is_stored:
                figures = {"count": event.count, "lastTimestamp": times.of(event.last), "message": event.message}
                try:
                    await self._api.merge(EVENTS, event.name, figures, namespace=namespace, rank=Rank.LAST)
                except NotFound:
                    event.is_stored = False
            if not event.is_stored:
                await self._api.create(EVENTS, self._body(event, namespace), namespace=namespace, rank=Rank.LAST)
            event.is_stored, event.tries = True, 0
        except KubeError as error:
            event.tries += 1
            if isinstance(error, AlreadyExists) and event.tries == 1:
                # Another component has told something of this object in the same nanosecond.
                event.name = self._repeats.new_name(event.about.name, event.first)
                self._waiting[event.name] = event
                self._waiting.move_to_end(event.name, last=False)
                return 0.0
            if isinstance(error, ApiError) and not isinstance(error, ServerFailure | TooManyRequests):
                event.is_stored = isinstance(error, AlreadyExists)
                return 0.0
            if event.tries < _MOST_TRIES:
                self._waiting.setdefault(event.name, event)
            return _RETRY.delay(event.tries)
        return 0.0

    def _body(self, event: _Event, namespace: str) -> Json:
        about = event.about
        involved = {
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "apiVersion": about.api_version,
            "resourceVersion": about.version,
            "fieldPath": about.field_path,
        }
        source = {"component": self._component} | ({"host": self._host} if self._host else {})
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": event.name, "namespace": namespace},
            "involvedObject": {name: value for name, value in involved.items() if value},
            "reason": event.reason,
            "message": event.message,
            "source": source,
            "firstTimestamp": times.of(event.first),
            "lastTimestamp": times.of(event.last),
            "count": event.count,
            "type": event.type,
            **({} if event.is_combined else {"reportingComponent": self._component}),
            **({"reportingInstance": self._host} if self._host and not event.is_combined else {}),
        }
