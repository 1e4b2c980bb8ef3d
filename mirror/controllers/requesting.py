"""Sources and workers as ``placement`` sees them: requests, candidates, and those who wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from mirror.batch import times
from mirror.controllers.assigning import Assigner
from mirror.controllers.priority_classes import Priorities
from mirror.controllers.sources import Sources
from mirror.decide.snapshot import Memory, Snapshot
from mirror.kinds.base import BadAnnotation, Kind
from mirror.kinds.dependencies import BadCarry, requested_kinds
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.retries import AVOIDED_SECONDS
from mirror.placement.candidates import Candidate, NamespaceRules, PlacementRequest, reserved_namespaces
from mirror.placement.move_order import Mover
from mirror.placement.policy import DEFAULT, Filter, PlacementPolicy
from mirror.placement.preferences import BadPreference, order_of, priority_of, spread_of
from mirror.placement.selector import EVERY, BadSelector, parse_selector
from mirror.placement.waiting import Waiter
from mirror.workers.connection import State
from mirror.workers.inventory import DECLARED_WRONG
from mirror.workers.worker import Worker

T = TypeVar("T")
TRIED_TEXT = "no pod of it became ready there"


def placement_request_of(kind: Kind, found: Object, memory: Memory) -> PlacementRequest:
    """What a source requires of its worker.

    Raises:
        BadAnnotation: what it says cannot be understood.
    """
    text = found.annotations.get(names.WORKER_SELECTOR)
    try:
        selector = parse_selector(text) if text else EVERY
    except BadSelector as error:
        raise BadAnnotation(f"annotation {names.WORKER_SELECTOR}: {error}") from error
    order, spread_by = _preference(names.WORKER_ORDER, order_of, found), _preference(names.SPREAD_BY, spread_of, found)
    _preference(names.PRIORITY, priority_of, found)
    try:
        requested_kinds(found.annotations)
    except BadCarry as error:
        raise BadAnnotation(f"annotation {names.CARRY}: {error}") from error
    kind.check(found)
    refused = frozenset(worker for worker, refusal in memory.refusals if not refusal.is_over)
    if left_behind := kind.summary(found).left_behind:
        # What is left there cannot be told from a new mirror: its uid was never known.
        refused |= {left.worker for left in left_behind if not left.uid}
    queue = found.labels.get(names.QUEUE_NAME, "")
    return PlacementRequest(found.metadata.namespace, selector, refused, order, spread_by, queue, kind.name)


def tried_workers(kind: Kind, found: Object, now: datetime) -> frozenset[str]:
    """Where nothing of a source became ready not long ago (D31)."""
    tried = kind.retry.tried(found) if kind.retry is not None else ()
    return frozenset(one.worker for one in tried if _is_recent(one.at, now)) if tried else frozenset()


def _is_recent(at: str, now: datetime) -> bool:
    try:
        return now.timestamp() - times.seconds(at) < AVOIDED_SECONDS
    except times.BadTime:
        return False


def avoided_workers(assigner: Assigner, kind: Kind, found: Object, memory: Memory, now: datetime) -> frozenset[str]:
    """Those of them that it is not placed on, as long as others are eligible (D31).

    Raises:
        BadAnnotation: what it says cannot be understood.
    """
    tried = tried_workers(kind, found, now)
    if not tried:
        return tried
    request = without(placement_request_of(kind, found, memory), tried)
    return tried if assigner.has_candidates(request) else frozenset()


def without(request: PlacementRequest, workers: frozenset[str]) -> PlacementRequest:
    """The same request, but not on these workers."""
    return replace(request, refused_by=request.refused_by | workers) if workers else request


def refusal_texts(memory: Memory, avoided: frozenset[str]) -> dict[str, str]:
    """By worker, why it is not placed there, for people."""
    return dict.fromkeys(avoided, TRIED_TEXT) | memory.refusal_texts


def _preference(name: str, read: Callable[[Mapping[str, str]], T], found: Object) -> T:
    try:
        return read(found.annotations)
    except BadPreference as error:
        raise BadAnnotation(f"annotation {name}: {error}") from error


def waiter_of(seen: Snapshot, priorities: Priorities) -> Waiter:
    """A source as one of those that wait for a worker.

    Raises:
        BadAnnotation: what it says cannot be understood.
    """
    source = seen.source
    request = without(placement_request_of(source.kind, source.found, seen.memory), seen.avoided)
    priority = priorities.of(source.kind, source.found)
    return Waiter(source.found.metadata.creation_timestamp or "", seen.key, source.uid, request, priority)


def mover_of(seen: Snapshot, priorities: Priorities) -> Mover:
    """A source as one of those that wait to be moved."""
    source = seen.source
    try:
        priority = priorities.of(source.kind, source.found)
    except BadPreference:  # it was none when its worker was assigned
        priority = 0
    return Mover(source.found.metadata.creation_timestamp or "", seen.key, source.uid, priority)


def why_there(assigner: Assigner, seen: Snapshot, worker: str) -> str:
    """Why a source is recorded on this worker, for people."""
    if seen.assignment.found_on == worker:
        return "its mirror was found there"
    try:
        request = without(placement_request_of(seen.source.kind, seen.source.found, seen.memory), seen.avoided)
    except BadAnnotation:  # it was none when the worker was assigned
        return ""
    return assigner.why_there(request, worker)


def trouble_of(worker: Worker) -> str:
    """What is wrong with a worker, in one line; empty while it is connected and nothing is."""
    lost = worker.connection.because if worker.connection.state is State.LOST else ""
    return "; ".join((*filter(None, (lost,)), *map(str, worker.problems)))


@dataclass(frozen=True, slots=True)
class Candidates:
    """All registered workers with the load that is recorded on sources."""

    sources: Sources
    workers: Mapping[str, Worker]
    closed_namespaces: tuple[str, ...]
    policy: PlacementPolicy = DEFAULT

    def of(self, name: str) -> Candidate | None:
        """One of them; None if no Secret registers it, or it is no worker at all."""
        worker = self.workers.get(name)
        spec = worker.spec if worker is not None else None
        if worker is None or spec is None:
            return None
        return Candidate(
            name=worker.name,
            labels=dict(spec.labels),
            reachable=worker.is_reachable,
            cordoned=spec.cordoned or spec.draining or worker.is_gone,
            misconfigured=bool(worker.problems) or worker.refusal in DECLARED_WRONG,
            trouble=trouble_of(worker),
            capacity=spec.capacity if Filter.CAPACITY in self.policy.filters else None,
            weight=spec.weight,
            load=self.sources.taken_on(worker.name),
            stalled=self.sources.stalled_of(worker.name),
            namespace_rules=NamespaceRules(
                globs=spec.namespaces,
                closed=self.closed_namespaces,
                prefix=worker.namespace_of(""),
                reserved=reserved_namespaces(self.closed_namespaces, worker.token.namespace),
            ),
            unserved=worker.unserved_kinds,
            incomplete=worker.incomplete_kinds,
        )
