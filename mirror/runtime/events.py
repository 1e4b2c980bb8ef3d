"""Kubernetes events as values: what an event regards, the event itself, and how it is stored.

Made by controllers, decided on in ``runtime/correlation``, sent by ``runtime/event_recorder``. These values hold texts
and no object, so an event that waits keeps no object alive.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from mirror.batch import times
from mirror.kube.objects import Object
from mirror.kube.resources import EVENTS, Resource

NORMAL = "Normal"
WARNING = "Warning"

_DEFAULT_NAMESPACE = "default"


class Regarding(msgspec.Struct, frozen=True, gc=False):
    """The object that an event is about."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: str = ""
    field_path: str = ""
    """A part of the object, such as a container of a pod."""

    @classmethod
    def of(cls, resource: Resource, found: Object) -> Regarding:
        """An object as our caches keep it."""
        metadata = found.metadata
        return cls(resource, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event as a controller records it."""

    regarding: Regarding
    type: str
    reason: str
    message: str
    at: datetime


class EventSeries(msgspec.Struct, eq=False, gc=False):
    """All events that are stored as one object, and what is known of that object."""

    first: datetime
    count: int = 1
    name: str = ""
    """Given when it is created."""
    is_stored: bool = False
    may_exist: bool = False
    """Whether a create of it may have been carried out that got no answer."""


class StoredEvent(msgspec.Struct, eq=False, gc=False):
    """An event as it shall be stored: the newest of its series, with the figures of then."""

    series: EventSeries
    event: Event
    message: str
    count: int = 1
    is_combined: bool = False
    tries: int = 0

    @property
    def namespace(self) -> str:
        """Where the event is stored; that of an object without a namespace is stored in the default one."""
        return self.event.regarding.namespace or _DEFAULT_NAMESPACE


def body_of(stored: StoredEvent, component: str, host: str) -> dict[str, Any]:
    """The whole event in client-go's shape; a combined one names no reporting component, as client-go's."""
    event, regarding = stored.event, stored.event.regarding
    last = times.of(event.at)
    body: dict[str, Any] = {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": stored.series.name, "namespace": stored.namespace},
        "involvedObject": _reference_to(regarding),
        "reason": event.reason,
        "message": stored.message,
        "source": {"component": component, "host": host} if host else {"component": component},
        "firstTimestamp": times.of(stored.series.first) if stored.count > 1 else last,
        "lastTimestamp": last,
        "count": stored.count,
        "type": event.type,
    }
    if not stored.is_combined:
        body["reportingComponent"] = component
        if host:
            body["reportingInstance"] = host
    return body


def _reference_to(regarding: Regarding) -> dict[str, str]:
    resource = regarding.resource
    found = {"kind": resource.kind, "apiVersion": resource.api_version, "name": regarding.name, "uid": regarding.uid}
    if regarding.namespace:
        found["namespace"] = regarding.namespace
    if regarding.version:
        found["resourceVersion"] = regarding.version
    if regarding.field_path:
        found["fieldPath"] = regarding.field_path
    return found


def change_of(stored: StoredEvent) -> dict[str, Any]:
    """What a repeat changes in the event that is stored already."""
    return {"count": stored.count, "lastTimestamp": times.of(stored.event.at), "message": stored.message}
