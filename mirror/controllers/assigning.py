"""Gives out places: counts what each worker has, serves who waits (D21). Decisions are ``placement``'s.

Nothing is done from time to time: a change of a worker, of its load or of a source's request is reported here and costs
by what it changes. What takes long is done in turns, so that others get the loop between them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from mirror.model.keys import SourceKey
from mirror.placement import reasons
from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.waiting import Waiter, WaitingRoom
from mirror.runtime.clock import Clock

MOST_GIVEN = 256
"""So many places are given out and not recorded yet; the rest is served as those are."""
CHECKS_A_TURN = 500
WAKES_A_TURN = 128
WAKE_PAUSE_SECONDS = 0.05
"""Whoever waits is woken for another text only, so that a Job that has just come must not stand behind all of them."""


class Given(msgspec.Struct, frozen=True):
    """A place that was given out and is not recorded on the source yet."""

    uid: str
    worker: str
    is_stuck: bool = False
    """Its record met an error and is tried again: it keeps nobody else from getting a place."""


class Assigner:
    """Who waits, and what was given out.

    Invariants: a key is in the room, in ``_given``, or in neither; ``_given_to`` counts ``_given`` by worker, as the
    index has it, and ``_stuck`` those of them that are stuck.
    """

    def __init__(
        self, candidates: Callable[[], Iterable[Candidate]], *, wake: Callable[[SourceKey], None], clock: Clock
    ) -> None:
        """``candidates`` yields all workers with the load that is recorded; it is read only by ``read_anew``."""
        self._candidates = candidates
        self._wake = wake
        self._clock = clock
        self._index = WorkerIndex()
        self._room = WaitingRoom(self._index)
        # Since when those in the room have waited (monotonic), in this order; exactly they are in it.
        self._waiting_since: dict[SourceKey, float] = {}
        self._given: dict[SourceKey, Given] = {}
        self._given_to: Counter[str] = Counter()
        self._stuck = 0
        # What those in the room have been told speaks against workers, as a hash; absent where they were told nothing.
        self._told: dict[SourceKey, int] = {}
        self._to_check: deque[SourceKey] = deque()
        self._changed_workers: set[str] = set()
        self._checked_workers: frozenset[str] = frozenset()
        self._is_checking = False
        self._is_serving_soon = False
        self.read_anew()

    @property
    def waiting(self) -> int:
        return len(self._room)

    @property
    def longest_wait_seconds(self) -> float:
        """Of all who wait, as far as this process has seen it; 0 if nobody does."""
        first = next(iter(self._waiting_since.values()), None)
        return self._clock.monotonic() - first if first is not None else 0.0

    # -- workers --------------------------------------------------------------------------------------------------

    def read_anew(self) -> None:
        """Compare with all workers as they are; what was missed is put right."""
        found = {candidate.name: candidate for candidate in self._candidates()}
        for name in self._index.names():
            if name not in found:
                self.remove(name)
        for candidate in found.values():
            self.update(candidate)

    def update(self, candidate: Candidate) -> None:
        """A worker is there, or changed."""
        is_news = self._index.put(candidate)
        self._index.set_given(candidate.name, self._given_to[candidate.name])
        if is_news:
            self.wake_for(candidate.name)
        self.serve_soon()

    def remove(self, worker: str) -> None:
        """A worker is registered no more."""
        if self._index.remove(worker):
            self.wake_for(worker)

    def set_load(self, worker: str, recorded: int) -> None:
        """So many sources are recorded on a worker."""
        self._index.set_load(worker, recorded)
        self.serve_soon()

    def wake_for(self, worker: str) -> None:
        """A worker changed: wake whoever waits and has another reason to by that."""
        if not len(self._room):
            return
        self._changed_workers.add(worker)
        if not self._is_checking:
            self._is_checking = True
            asyncio.get_running_loop().call_soon(self._check_some)

    # -- sources --------------------------------------------------------------------------------------------------

    def given_to(self, key: SourceKey, uid: str) -> str | None:
        """The worker that was given to this source, as long as nothing speaks against it but what was given."""
        given = self._given.get(key)
        if given is None or given.uid != uid:
            return None
        if not self._index.is_usable(given.worker):
            self.settle(key)
            return None
        return given.worker

    def ask(self, waiter: Waiter, *, was_told: bool = False) -> str | None:
        """Let it wait for a place; return the worker if there is one at once.

        ``was_told``: what speaks against each worker is written on it, so that it is woken only if that changes.
        """
        if waiter.key in self._given:
            if (worker := self.given_to(waiter.key, waiter.uid)) is not None:
                return worker
            self.settle(waiter.key)  # it was a namesake's, or is of no use any more
        self._room.add(waiter)
        self._waiting_since.setdefault(waiter.key, self._clock.monotonic())
        if was_told:
            self._told[waiter.key] = self._index.signature(waiter.request)
        else:
            self._told.pop(waiter.key, None)
        self._serve(except_for=waiter.key)
        return self.given_to(waiter.key, waiter.uid)

    def settle(self, key: SourceKey) -> None:
        """What was given is recorded, or not wanted any more."""
        self._leave(key)
        given = self._given.pop(key, None)
        if given is not None:
            self._count_given(given.worker, -1)
            self._stuck -= given.is_stuck
            self.serve_soon()

    def keep_trying(self, key: SourceKey) -> None:
        """The record of what was given met an error; others need not wait for it."""
        given = self._given.get(key)
        if given is not None and not given.is_stuck:
            self._given[key] = msgspec.structs.replace(given, is_stuck=True)
            self._stuck += 1
            self.serve_soon()

    def serve_soon(self) -> None:
        """Room may have been made; many such moments are served together."""
        if self._is_serving_soon or not self._room.may_serve or not self._most:
            return
        self._is_serving_soon = True
        asyncio.get_running_loop().call_soon(self._serve_in_turn)

    def _serve_in_turn(self) -> None:
        self._is_serving_soon = False
        self._serve()

    def _serve(self, except_for: SourceKey | None = None) -> None:
        for waiter, worker in self._room.serve(most=self._most):
            self._leave(waiter.key)
            self._given[waiter.key] = Given(waiter.uid, worker)
            self._count_given(worker, 1)
            if waiter.key != except_for:
                self._wake(waiter.key)
        self.serve_soon()

    @property
    def _most(self) -> int:
        """So many places may be given out now."""
        return max(0, MOST_GIVEN - (len(self._given) - self._stuck))

    def _leave(self, key: SourceKey) -> None:
        self._room.leave(key)
        self._waiting_since.pop(key, None)
        self._told.pop(key, None)

    def _count_given(self, worker: str, more: int) -> None:
        self._given_to[worker] += more
        self._index.set_given(worker, self._given_to[worker])
        if not self._given_to[worker]:
            del self._given_to[worker]

    def _check_some(self) -> None:
        """Wake some of those whose reason to wait has changed, and go on later."""
        if not self._to_check:
            self._checked_workers, self._changed_workers = frozenset(self._changed_workers), set()
            self._to_check.extend(self._room.sources())
        checks, wakes = CHECKS_A_TURN, WAKES_A_TURN
        while self._to_check and checks and wakes:
            checks -= 1
            waiter = self._room.get(self._to_check.popleft())
            if waiter is not None and self._has_another_reason(waiter):
                wakes -= 1
                self._wake(waiter.key)
        self._is_checking = bool(self._to_check or self._changed_workers)
        if self._is_checking:
            asyncio.get_running_loop().call_later(0.0 if wakes else WAKE_PAUSE_SECONDS, self._check_some)

    def _has_another_reason(self, waiter: Waiter) -> bool:
        if not self._checked_workers.isdisjoint(waiter.request.refused_by):
            return True  # what it refused it may accept now
        return self._told.get(waiter.key) != self._index.signature(waiter.request)

    # -- what people are told -------------------------------------------------------------------------------------

    def why(self, request: PlacementRequest, details: Mapping[str, str]) -> str:
        """What speaks against the workers, for people, if no worker is free; ``details`` tells more about refusals."""
        obstacles = self._index.obstacles(request)
        return "" if obstacles.eligible else reasons.why_none(obstacles, self._index, details)

    def obstacles(self, request: PlacementRequest, details: Mapping[str, str]) -> dict[str, str]:
        """What speaks against those workers that something speaks against, in the words of ``why``."""
        return reasons.of_each(self._index.obstacles(request), self._index, details)

    def why_there(self, request: PlacementRequest, worker: str) -> str:
        """Why this worker and no other, for people; without loads, so that many are told the same."""
        return reasons.why_there(self._index.obstacles(request), self._index, worker)
