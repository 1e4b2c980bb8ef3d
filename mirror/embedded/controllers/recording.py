"""Events of the embedded controllers, with client-go's correlation. How they are sent is ``runtime/event_recorder``.

They are the first thing to go without when there is too much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.embedded.controllers.client import Api
from mirror.kube.resources import Resource
from mirror.runtime.clock import Clock
from mirror.runtime.correlation import EventCorrelator
from mirror.runtime.event_recorder import EventRecorder, RecorderOptions
from mirror.runtime.events import Regarding
from mirror.telemetry.logs import get_log

MOST_WAITING = 2000
LONGEST_MESSAGE = 1024


def event_recorder(api: Api, component: str, *, clock: Clock, host: str = "", is_silent: bool = False) -> EventRecorder:
    """The recorder of one component. It has one sender, as client-go's, so its events are stored in their order."""
    options = RecorderOptions(
        component=component,
        host=host,
        longest_message=LONGEST_MESSAGE,
        most_waiting=MOST_WAITING,
        senders=1,
        is_silent=is_silent,
    )
    log = get_log(f"controllers.events.{component}", cluster=api.client.name)
    return EventRecorder(api, options, EventCorrelator(), clock=clock, log=log)


def regarding(resource: Resource, body: Mapping[str, Any], *, container: str = "") -> Regarding:
    """An object that an event is about; with a container, that part of a pod."""
    metadata = body["metadata"]
    return Regarding(
        resource,
        metadata.get("namespace", ""),
        metadata["name"],
        metadata.get("uid", ""),
        metadata.get("resourceVersion", ""),
        f"spec.{container}" if container else "",
    )
