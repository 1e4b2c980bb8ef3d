"""Gives out places: counts what each worker has, serves who waits (D21). Decisions are ``placement``'s."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from mirror.model.keys import SourceKey
from mirror.placement.candidates import Candidate, Obstacle, Wish, obstacle
from mirror.placement.least_loaded import choose
from mirror.placement.waiting import Waiter, WaitingRoom
from mirror.runtime.clock import Clock

MOST_GIVEN = 256
"""So many places are given out and not recorded yet; the rest is served as those are."""

LONGEST_WHY = 300


class Given(msgspec.Struct, frozen=True):
    """A place that was given out and is not recorded on the source yet."""

    uid: str
    worker: str


class Placing:
    """Who waits, and what was given out. ``candidates`` yields the workers with the load that is recorded."""

    def __init__(
        self, candidates: Callable[[], list[Candidate]], *, wake: Callable[[SourceKey], None], clock: Clock
    ) -> None:
        self._candidates = candidates
        self._wake = wake
        self._clock = clock
        self._room = WaitingRoom()
        # Since when those in the room have waited (monotonic), in this order; exactly they are in it.
        self._waiting_since: dict[SourceKey, float] = {}
        self._given: dict[SourceKey, Given] = {}
        self._is_serving_soon = False

    @property
    def waiting(self) -> int:
        return len(self._room)

    @property
    def longest_wait_seconds(self) -> float:
        """Of all who wait, as far as this process has seen it; 0 if nobody does."""
        first = next(iter(self._waiting_since.values()), None)
        return self._clock.monotonic() - first if first is not None else 0.0

    def given_to(self, key: SourceKey, uid: str) -> str | None:
        """The worker that was given to this source, as long as nothing speaks against it but what was given."""
        given = self._given.get(key)
        if given is None or given.uid != uid:
            return None
        now = next((candidate for candidate in self._candidates() if candidate.name == given.worker), None)
        if now is None or not now.reachable or now.cordoned or now.misconfigured:
            self.settle(key)
            return None
        return given.worker

    def ask(self, waiter: Waiter) -> str | None:
        """Let it wait for a place; return the worker if there is one at once."""
        self._room.add(waiter)
        self._waiting_since.setdefault(waiter.key, self._clock.monotonic())
        self._serve(except_for=waiter.key)
        return self.given_to(waiter.key, waiter.uid)

    def why(self, wish: Wish, details: dict[str, str]) -> str:
        """What speaks against each worker, for people; ``details`` tells more about refusals."""
        choice = choose(wish, self._loaded())
        if choice.worker is not None:
            return ""
        parts = [
            f"{worker}: {details.get(worker, reason) if reason == 'refused' else reason}"
            for worker, reason in sorted(choice.obstacles)
        ]
        return "; ".join(parts) or "no worker is registered"

    def obstacles(self, wish: Wish, details: dict[str, str]) -> dict[str, str]:
        """What speaks against those workers that something speaks against, in the words of ``why``."""
        found = ((candidate.name, obstacle(wish, candidate)) for candidate in self._loaded())
        return {
            worker: details.get(worker, reason) if reason is Obstacle.REFUSED else str(reason)
            for worker, reason in sorted(found)
            if reason is not None
        }

    def why_there(self, wish: Wish, worker: str) -> str:
        """Why this worker and no other, for people; without numbers, so that many are told the same."""
        candidates = self._candidates()
        others = {one.name: obstacle(wish, one) for one in candidates if one.name != worker}
        fit = sorted(name for name, reason in others.items() if reason is None)
        against = [f"{name}: {reason}" for name, reason in sorted(others.items()) if reason is not None]
        best = f"least loaded, before {', '.join(fit)}" if fit else "the only one that can take it"
        return "; ".join((best, *against))[:LONGEST_WHY]

    def settle(self, key: SourceKey) -> None:
        """What was given is recorded, or not wanted any more."""
        self._room.leave(key)
        self._waiting_since.pop(key, None)
        if self._given.pop(key, None) is not None:
            self.serve_soon()

    def wake_all(self) -> None:
        """The workers have changed: everybody who waits may have another reason to."""
        self.serve_soon()
        for key in self._room.sources():
            self._wake(key)

    def serve_soon(self) -> None:
        """Room may have been made; many such moments are served together."""
        if self._is_serving_soon or not len(self._room):
            return
        self._is_serving_soon = True
        asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self, except_for: SourceKey | None = None) -> None:
        self._is_serving_soon = False
        candidates = {candidate.name: candidate for candidate in self._loaded()}

        def pick(wish: Wish) -> str | None:
            worker = choose(wish, candidates.values()).worker
            if worker is not None:
                candidates[worker] = replace(candidates[worker], load=candidates[worker].load + 1)
            return worker

        room = MOST_GIVEN - len(self._given)
        for waiter, worker in self._room.serve(pick, most=max(room, 1)):
            self._given[waiter.key] = Given(waiter.uid, worker)
            self._waiting_since.pop(waiter.key, None)
            if waiter.key != except_for:
                self._wake(waiter.key)

    def _loaded(self) -> list[Candidate]:
        extra: dict[str, int] = {}
        for given in self._given.values():
            extra[given.worker] = extra.get(given.worker, 0) + 1
        return [replace(c, load=c.load + extra.get(c.name, 0)) for c in self._candidates()]
