"""What the Job controller reports: events and metrics. Made by ``events`` and ``metrics``."""

from __future__ import annotations

from typing import Protocol

from mirror.runtime.events import Regarding
from mirror.runtime.loop import Observer


class Events(Protocol):
    """Events on Jobs (N3)."""

    def event(self, regarding: Regarding, type_name: str, reason: str, message: str, /) -> None:
        """Record an event about a Job; never waits, never fails."""
        ...


class Metrics(Protocol):
    """Upstream's metrics (PM1–PM4); one method per thing counted."""

    def on_synced(self, mode: str, result: str, action: str, seconds: float) -> None: ...

    def on_finished(self, mode: str, result: str, reason: str) -> None: ...

    def on_pods_finished(self, mode: str, result: str, count: int) -> None: ...

    def on_indexes_finished(self, status: str, backoff_limit: str, count: int) -> None: ...

    def on_policy_action(self, action: str, count: int) -> None: ...

    def on_tracking_finalizer(self, event: str) -> None: ...

    def on_pods_created(self, reason: str, status: str, count: int) -> None: ...

    def on_external_job(self, controller_name: str) -> None: ...

    def on_stale_skip(self, group: str, resource: str) -> None: ...

    def queue_observer(self, name: str) -> Observer:
        """What the loop of one queue reports (PM4)."""
        ...
