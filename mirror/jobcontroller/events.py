"""Events on Jobs, as kube-controller-manager's: sent behind everything that is urgent, by ``runtime/event_recorder``.

While the client's rate limit is used up events wait, and what waits about one event is merged into one write. One thing
is different on purpose: upstream has a single bucket per Job, so that the pods of a large Job use up what its end
needed (no Completed event). Here only events about pods share that bucket; the Job's other events have one per reason.
"""

from __future__ import annotations

from collections.abc import Hashable

from mirror.runtime.clock import Clock
from mirror.runtime.correlation import EventCorrelator
from mirror.runtime.event_recorder import EventRecorder, RecorderOptions, Sender
from mirror.runtime.events import Event
from mirror.telemetry.logs import Log

POD_REASONS = frozenset(("SuccessfulCreate", "FailedCreate", "SuccessfulDelete", "FailedDelete"))

OPTIONS = RecorderOptions(component="job-controller", longest_message=4096, most_waiting=10_000)


def bucket_of(event: Event) -> Hashable:
    """Which events on Jobs share a bucket."""
    job = event.regarding
    reason = "" if event.reason in POD_REASONS else event.reason
    return job.namespace, job.name, job.uid, event.type, reason


def job_event_recorder(sender: Sender, *, clock: Clock, log: Log) -> EventRecorder:
    """The Job controller's recorder."""
    return EventRecorder(sender, OPTIONS, EventCorrelator(bucket_of), clock=clock, log=log)
