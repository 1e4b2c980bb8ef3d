"""Assigns workers to sources: counts what each worker has, serves those who wait (D21). The policy is ``placement``'s.

Nothing is done from time to time: a change of a worker, of its load or of a source's request is reported here and costs
by what it changes. What takes long is done in turns, so that others get the loop between them.

A question (``assigned_to``, ``available_for``) changes nothing. What a plan has decided is done by ``assign``, for a
worker that is available at once, or by ``request``, after which the key is named again once there is one.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping

import msgspec

from mirror.model.keys import SourceKey
from mirror.model.reasons import Obstruction
from mirror.placement import reasons
from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.explaining import Choice, explain
from mirror.placement.facts import Subject
from mirror.placement.index import WorkerIndex
from mirror.placement.policy import DEFAULT, PlacementPolicy, Score
from mirror.placement.waiting import Waiter, WaitingSources
from mirror.runtime.clock import Clock

MOST_UNRECORDED = 256
"""So many sources are assigned and not recorded yet; the rest is served as those are."""
SERVED_A_TURN = 16
"""For each, all workers are compared where more counts than their load."""
CHECKS_A_TURN = 500
WAKES_A_TURN = 128
WAKE_PAUSE_SECONDS = 0.05
"""Whoever waits is woken for another text only, so that a Job that has just come must not stand behind all of them."""


class Assignment(msgspec.Struct, frozen=True):
    """A worker for a source that does not record it yet."""

    uid: str
    worker: str
    spread_by: str = ""
    is_stuck: bool = False
    """Its record met an error and is tried again: it keeps nobody else from being assigned."""


class Assigner:
    """Who waits, and which assignments are not recorded yet.

    Invariants: a key is in ``_waiting``, in ``_assigned``, or in neither; ``_assigned_to`` counts ``_assigned`` by
    worker, as the index has it, and ``_stuck`` those of them that are stuck.
    """

    def __init__(self, *, wake: Callable[[SourceKey], None], clock: Clock, policy: PlacementPolicy = DEFAULT) -> None:
        self._wake = wake
        self._clock = clock
        self._index = WorkerIndex(policy)
        self._compares_queues = policy.uses(Score.CLUSTER_QUEUE)
        self._waiting = WaitingSources(self._index)
        # Since when those in ``_waiting`` have waited (monotonic), in this order; exactly they are in it.
        self._waiting_since: dict[SourceKey, float] = {}
        self._assigned: dict[SourceKey, Assignment] = {}
        self._assigned_to: Counter[str] = Counter()
        self._stuck = 0
        # What was reported to those who wait to speak against workers, as a hash; absent where nothing was reported.
        self._reported: dict[SourceKey, int] = {}
        self._to_check: deque[SourceKey] = deque()
        self._changed_workers: set[str] = set()
        self._checked_workers: frozenset[str] = frozenset()
        self._is_checking = False
        self._is_held = False
        self._is_serving_soon = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def longest_wait_seconds(self) -> float:
        """Of all who wait, as far as this process has seen it; 0 if nobody does."""
        first = next(iter(self._waiting_since.values()), None)
        return self._clock.monotonic() - first if first is not None else 0.0

    # -- workers --------------------------------------------------------------------------------------------------

    @property
    def workers(self) -> tuple[str, ...]:
        """Those that are known here, by name."""
        return self._index.names()

    def update(self, candidate: Candidate) -> None:
        """A worker is there, or changed."""
        is_news = self._index.put(candidate)
        self._index.set_assigned(candidate.name, self._assigned_to[candidate.name])
        if is_news:
            self.wake_for(candidate.name)
        self.serve_soon()

    def remove(self, worker: str) -> None:
        """A worker is registered no more."""
        if self._index.remove(worker):
            self.wake_for(worker)

    def set_load(self, worker: str, taken: int) -> None:
        """So many places of a worker are taken (``Sources.taken_on``)."""
        self._index.set_load(worker, taken)
        self.serve_soon()

    def set_stalled(self, worker: str, stalled: int) -> None:
        """So many of those wait for their pods: it changes who is chosen, and lets nobody in."""
        self._index.set_stalled(worker, stalled)

    def set_shares(self, score: Score, worker: str, shares: Mapping[Subject, float]) -> None:
        """So much is free there for the Jobs of a namespace or queue; a worker that is registered no more has none."""
        if self._index.bit(worker) or not shares:
            self._index.facts.put(score, worker, shares)

    def set_allocatable(self, worker: str, share: float | None) -> None:
        """So much of its nodes is free, as far as that is known."""
        self._index.set_allocatable(worker, share)

    def set_spread(self, worker: str, namespace: str, label: str, count: int) -> None:
        """So many of them are of this namespace and are to be spread by this label."""
        self._index.spread.set_recorded((namespace, label), worker, count)

    def hold(self) -> None:
        """Assign nobody from now on: who else waits is being found out, and whoever comes first must not be first."""
        self._is_held = True

    def release(self) -> None:
        """Serve who waits by now, in their order (D21)."""
        self._is_held = False
        self.serve_soon()

    def sources_waiting(self) -> list[SourceKey]:
        """All who wait for a worker."""
        return self._waiting.sources()

    def wake_for(self, worker: str) -> None:
        """A worker changed: wake whoever waits and has another reason to by that."""
        if not len(self._waiting):
            return
        self._changed_workers.add(worker)
        if not self._is_checking:
            self._is_checking = True
            asyncio.get_running_loop().call_soon(self._check_some)

    # -- sources: what is ---------------------------------------------------------------------------------------------

    def assigned_to(self, key: SourceKey, uid: str) -> str | None:
        """The worker that this source is assigned to, as long as nothing speaks against it but what was assigned."""
        assignment = self._assigned.get(key)
        if assignment is None or assignment.uid != uid or not self._index.is_usable(assignment.worker):
            return None
        return assignment.worker

    def available_for(self, request: PlacementRequest, *, comes_first: bool = False) -> str | None:
        """The worker that a source with this request gets if it is assigned now; None if others are served first.

        ``comes_first``: nobody is: a worker was kept for it before.
        """
        if not self._index.open or not (comes_first or (self._most and not self._waiting.may_serve)):
            return None
        return self._index.best(self._index.fitting(request), request)

    def may_have(self, request: PlacementRequest, worker: str) -> bool:
        """Whether a worker suits a source with this request, whatever else is on it."""
        return bool(self._index.fitting(request) & self._index.bit(worker))

    def has_candidates(self, request: PlacementRequest) -> bool:
        """Whether any worker takes a source with this request, now or once it has room."""
        return any(self._index.is_usable(name) for name, _ in self._index.named(self._index.fitting(request)))

    # -- sources: what changes -----------------------------------------------------------------------------------------

    def release_unusable(self, key: SourceKey, uid: str) -> None:
        """Give up an assignment that is a namesake's, or whose worker takes no Jobs any more."""
        assignment = self._assigned.get(key)
        if assignment is not None and (assignment.uid != uid or not self._index.is_usable(assignment.worker)):
            self.finish(key)

    def assign(self, key: SourceKey, uid: str, worker: str, *, spread_by: str = "") -> None:
        """Assign a source to the worker that is available for it, until that is recorded."""
        if key in self._assigned:
            self.finish(key)
        self._assign(key, Assignment(uid, worker, spread_by))
        self._waiting.note_served(key.namespace)

    def request(self, waiter: Waiter, *, is_reason_reported: bool = False) -> None:
        """Let a source wait for a worker; its key is named once it is assigned to one.

        ``is_reason_reported``: what speaks against each worker is written on it, so that it is woken only if that
        changes.
        """
        if waiter.key in self._assigned:
            self.finish(waiter.key)
        if waiter.request.queue and not self._compares_queues:
            # Those who ask for the same wait together, whichever queue each is in.
            waiter = msgspec.structs.replace(waiter, request=msgspec.structs.replace(waiter.request, queue=""))
        self._waiting.add(waiter)
        self._waiting_since.setdefault(waiter.key, self._clock.monotonic())
        if is_reason_reported:
            self._reported[waiter.key] = self._index.signature(waiter.request)
        else:
            self._reported.pop(waiter.key, None)
        self.serve_soon()

    def finish(self, key: SourceKey) -> None:
        """The assignment is recorded, or a worker is not wanted any more."""
        self._leave(key)
        assignment = self._assigned.pop(key, None)
        if assignment is not None:
            self._count_assigned(key, assignment, -1)
            self._stuck -= assignment.is_stuck
            self.serve_soon()

    def note_record_failed(self, key: SourceKey) -> None:
        """The record of the assignment met an error; others need not wait for it."""
        assignment = self._assigned.get(key)
        if assignment is not None and not assignment.is_stuck:
            self._assigned[key] = msgspec.structs.replace(assignment, is_stuck=True)
            self._stuck += 1
            self.serve_soon()

    def serve_soon(self) -> None:
        """A worker may have become available; many such moments are served together."""
        if self._is_serving_soon or not self._waiting.may_serve or not self._most:
            return
        self._is_serving_soon = True
        asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._is_serving_soon = False
        for waiter, worker in self._waiting.serve(most=min(self._most, SERVED_A_TURN)):
            self._assign(waiter.key, Assignment(waiter.uid, worker, waiter.request.spread_by))
            self._wake(waiter.key)
        self.serve_soon()

    def _assign(self, key: SourceKey, assignment: Assignment) -> None:
        self._leave(key)
        self._assigned[key] = assignment
        self._count_assigned(key, assignment, 1)

    @property
    def _most(self) -> int:
        """So many sources may be assigned now."""
        if self._is_held:
            return 0
        return max(0, MOST_UNRECORDED - (len(self._assigned) - self._stuck))

    def _leave(self, key: SourceKey) -> None:
        if self._waiting_since.pop(key, None) is not None:
            self._waiting.leave(key)
            self._reported.pop(key, None)

    def _count_assigned(self, key: SourceKey, assignment: Assignment, more: int) -> None:
        worker = assignment.worker
        if assignment.spread_by:
            self._index.spread.add_assigned((key.namespace, assignment.spread_by), worker, more)
        self._assigned_to[worker] += more
        self._index.set_assigned(worker, self._assigned_to[worker])
        if not self._assigned_to[worker]:
            del self._assigned_to[worker]

    def _check_some(self) -> None:
        """Wake some of those whose reason to wait has changed, and go on later."""
        if not self._to_check:
            self._checked_workers, self._changed_workers = frozenset(self._changed_workers), set()
            self._to_check.extend(self._waiting.sources())
        checks, wakes = CHECKS_A_TURN, WAKES_A_TURN
        while self._to_check and checks and wakes:
            checks -= 1
            waiter = self._waiting.get(self._to_check.popleft())
            if waiter is not None and self._has_another_reason(waiter):
                wakes -= 1
                self._wake(waiter.key)
        self._is_checking = bool(self._to_check or self._changed_workers)
        if self._is_checking:
            asyncio.get_running_loop().call_later(0.0 if wakes else WAKE_PAUSE_SECONDS, self._check_some)

    def _has_another_reason(self, waiter: Waiter) -> bool:
        if not self._checked_workers.isdisjoint(waiter.request.refused_by):
            return True  # what it refused it may accept now
        return self._reported.get(waiter.key) != self._index.signature(waiter.request)

    # -- for people -----------------------------------------------------------------------------------------------

    def why(self, request: PlacementRequest, details: Mapping[str, str]) -> Obstruction | None:
        """What speaks against the workers if none is eligible; ``details`` says more about refusals."""
        obstacles = self._index.obstacles(request)
        return None if obstacles.eligible else reasons.why_none(obstacles, self._index, request, details)

    def obstacles(self, request: PlacementRequest, details: Mapping[str, str]) -> dict[str, str]:
        """What speaks against those workers that something speaks against, in the words of ``why``."""
        return reasons.of_each(self._index.obstacles(request), self._index, request, details)

    def explain(self, request: PlacementRequest, details: Mapping[str, str]) -> Choice:
        """Each filter and each score of each worker, and where a source would be placed."""
        choice, why = explain(self._index, request, details), self.why(request, details)
        return choice if why is None else msgspec.structs.replace(choice, reason=why.reason, because=why.message)

    def why_there(self, request: PlacementRequest, worker: str) -> str:
        """Why this worker and no other, for people; without loads, so that many share one text."""
        return reasons.why_there(self._index.obstacles(request), self._index, request, worker)
