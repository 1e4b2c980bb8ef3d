"""What the writers of sources and mirrors share, as one value. Made by ``mirroring``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror.controllers.assigning import Assigner
from mirror.controllers.history import History
from mirror.controllers.memory import Memories
from mirror.controllers.sources import Sources
from mirror.decide.snapshot import Snapshot
from mirror.kinds.base import Kind, MirrorTransform
from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.model.keys import Key
from mirror.placement.waiting import Waiter
from mirror.runtime.clock import Clock
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.events import NORMAL, WARNING, Regarding
from mirror.telemetry.logs import Log
from mirror.telemetry.metrics import Metrics
from mirror.workers.registry import Registry

if TYPE_CHECKING:
    from mirror.controllers.tracing import Traces  # only where traces are wanted


@dataclass(frozen=True, slots=True)
class Tools:
    """Everybody whom a write concerns, and what is the same for all writes."""

    management: Client
    sources: Sources
    registry: Registry
    assigner: Assigner
    memories: Memories
    recorder: EventRecorder
    history: History
    clock: Clock
    log: Log
    metrics: Metrics
    transform: MirrorTransform
    create_namespaces: bool
    add: Callable[[Key], None]
    add_when_quiet: Callable[[Key], None]
    take_source: Callable[[Kind, Object], None]
    """Takes a source as a live read has shown it."""
    waiter_of: Callable[[Kind, Object], Waiter | None]
    agree: Callable[[Object, Object], None]
    """Told of a source and the mirror that was just made of it."""
    traces: Traces | None

    def tell(self, seen: Snapshot, reason: str, message: str, *, is_warning: bool = True) -> None:
        """Write an event on a source, and remember it for its timeline."""
        self.history.on_told(seen, reason, message, is_warning=is_warning)
        regarding = Regarding.of(seen.source.kind.resource, seen.source.found)
        self.recorder.event(regarding, WARNING if is_warning else NORMAL, reason, message)
