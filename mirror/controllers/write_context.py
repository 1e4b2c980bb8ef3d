"""What the writers of sources and mirrors share, as one value. Made by ``wiring``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror.controllers.state import MirroringState
from mirror.decide.snapshot import Snapshot
from mirror.kinds.base import Kind
from mirror.kube.client import Client
from mirror.kube.errors import Unreachable
from mirror.kube.objects import Object
from mirror.model.keys import MirrorKey
from mirror.runtime.environment import Environment
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.events import NORMAL, WARNING, Regarding
from mirror.workers.worker import Worker

if TYPE_CHECKING:
    from mirror.controllers.tracing import Traces  # only where traces are wanted


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Where writes go, what is known, and where it is noted what became of them."""

    state: MirroringState
    management: Client
    recorder: EventRecorder
    take_source: Callable[[Kind, Object], None]
    """Takes a source as a live read has shown it."""
    create_namespaces: bool
    traces: Traces | None

    @property
    def environment(self) -> Environment:
        return self.state.environment

    def worker(self, name: str) -> Worker:
        """A worker that a plan names.

        Raises:
            Unreachable: it is registered no more.
        """
        found = self.state.workers.get(name)
        if found is None:
            raise Unreachable(f"worker {name} is not registered")
        return found

    def judge_mirror(self, seen: Snapshot, name: str) -> None:
        """Name the object of a source's name on a worker, if that is registered; its own key decides (D1)."""
        if (worker := self.state.workers.get(name)) is not None:
            namespace = worker.namespace_of(seen.key.namespace)
            self.state.intake.add(MirrorKey(worker.name, seen.key.kind, namespace, seen.key.name))

    def record_event(self, seen: Snapshot, reason: str, message: str, *, is_warning: bool = True) -> None:
        """Record an event on a source, and note it in its history."""
        self.state.history.on_event(seen, reason, message, is_warning=is_warning)
        regarding = Regarding.of(seen.source.kind.resource, seen.source.found)
        self.recorder.event(regarding, WARNING if is_warning else NORMAL, reason, message)
