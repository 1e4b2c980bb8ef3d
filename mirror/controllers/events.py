"""The mirror's own events on sources and Secrets: best effort, bounded, never in the way of a status.

They are sent when the queue is nearly empty, and repeats within ten minutes are left out. One that is not sent at once
is given up: while the API server is away, what is said of a source is in its status. How they are sent is
``runtime/event_recorder``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mirror.kinds.base import Kind
from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.kube.requests import Rank
from mirror.kube.resources import SECRETS
from mirror.runtime.clock import Clock
from mirror.runtime.correlation import RepeatFilter
from mirror.runtime.event_recorder import EventRecorder, RecorderOptions
from mirror.runtime.events import WARNING, Regarding
from mirror.telemetry.logs import Log
from mirror.workers.declarations import Origin

COMPONENT = "jobmirror"
REPEAT_AFTER_SECONDS = 600.0
LONGEST_MESSAGE = 1000
MOST_WAITING = 20_000


def event_recorder(
    management: Client, *, clock: Clock, log: Log, turn: Callable[[], Awaitable[None]] | None = None
) -> EventRecorder:
    """The mirror's recorder; ``turn`` waits until nothing more urgent is to be sent."""
    options = RecorderOptions(
        component=COMPONENT,
        longest_message=LONGEST_MESSAGE,
        is_one_line=True,
        most_waiting=MOST_WAITING,
        most_tries=1,
        rank=Rank.FIRST,
        turn=turn,
    )
    return EventRecorder(management, options, RepeatFilter(clock, REPEAT_AFTER_SECONDS), clock=clock, log=log)


def warn_about_secret(recorder: EventRecorder, secret: Object, reason: str, message: str) -> None:
    """Record a warning about a worker on the Secret that registers it."""
    recorder.event(Regarding.of(SECRETS, secret), WARNING, reason, message)


def warn_about_worker(recorder: EventRecorder, origin: Origin, reason: str, message: str) -> None:
    """Record a warning about a worker on what declares it."""
    recorder.event(Regarding.of(origin.resource, origin.found), WARNING, reason, message)


def warn_about_source(recorder: EventRecorder, kind: Kind, source: Object, reason: str, message: str) -> None:
    """Record a warning about an object of a kind that is mirrored."""
    recorder.event(Regarding.of(kind.resource, source), WARNING, reason, message)
