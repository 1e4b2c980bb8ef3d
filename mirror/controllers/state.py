"""What all parts of mirroring share, as one value. Made by ``wiring``; who may change what is said by each part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from mirror.controllers.assigning import Assigner
from mirror.controllers.comparing import Comparison
from mirror.controllers.history import History
from mirror.controllers.memory import Memories
from mirror.controllers.pending import PendingChanges
from mirror.controllers.priority_classes import Priorities
from mirror.controllers.reading_workloads import WorkloadReasons
from mirror.controllers.refusals import Refusals
from mirror.controllers.requesting import Candidates
from mirror.controllers.sources import Sources
from mirror.controllers.stopped_kinds import StoppedKinds
from mirror.kinds.base import MirrorTransform
from mirror.model.keys import Key
from mirror.model.terms import Terms
from mirror.runtime.environment import Environment
from mirror.runtime.queue import WorkQueue
from mirror.runtime.slices import Passes
from mirror.sharding.share import Share
from mirror.workers.known_workers import Workers

T = TypeVar("T")


class Intake:
    """Where keys are named. A standby names none: nobody would take them."""

    def __init__(self, queue: WorkQueue[Key], passes: Passes) -> None:
        """``passes``: run while we lead."""
        self.is_leading = False
        self.passes = passes
        self._queue = queue

    def end_leading(self) -> None:
        """Nobody takes what is named from now on."""
        self.is_leading = False
        self.passes.clear()

    def add(self, key: Key) -> None:
        """Have it worked on, now: something has changed."""
        if self.is_leading:
            self._queue.add(key)

    def look(self, key: Key) -> None:
        """Have it looked at because of a list, a start, a round or a reconnect: what has changed goes first."""
        if self.is_leading:
            self._queue.look(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Have it worked on after so long, unless something changes before."""
        if self.is_leading:
            self._queue.add_after(key, seconds)

    def go_over(self, name: str, items: Callable[[], Iterable[T]], do: Callable[[T], None]) -> None:
        """Have something done for very many objects, a slice of them at a time (``Passes.request``)."""
        if self.is_leading:
            self.passes.request(name, items, do)

    def add_when_quiet(self, key: Key) -> None:
        """Have it looked at once little else is to be done."""
        if self.is_leading:
            self._queue.add_when_quiet(key)


@dataclass(frozen=True, slots=True)
class MirroringState:
    """What one process knows of sources, mirrors and workers, and where it names keys."""

    environment: Environment
    share: Share
    """What of all there is, is this process's part."""
    terms: Terms
    managed_by: str
    """What makes a source ours, unless its kind has another value."""
    manager: str
    """The namespace of this manager, by which others of the same cluster know its Jobs (D2)."""
    transform: MirrorTransform
    """How sources are changed on their way."""
    sources: Sources
    workers: Workers
    """``workers.registry`` adds and removes them."""
    candidates: Candidates
    memories: Memories
    refusals: Refusals
    comparison: Comparison
    pending: PendingChanges
    assigner: Assigner
    priorities: Priorities
    history: History
    workload_reasons: WorkloadReasons | None
    """Why workers' queues hold mirrors, where that is read."""
    queue: WorkQueue[Key]
    intake: Intake
    stopped: StoppedKinds

    def look_at_waiting(self) -> None:
        """Look at all sources that wait: in whatever order they do, it may be another one now."""
        self.intake.go_over("sources that wait", self.assigner.sources_waiting, self.intake.look)
