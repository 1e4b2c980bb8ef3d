"""Sources that workers have refused: when each is tried there again, however many they are (D5, D21).

Those of one namespace that one worker refused for one reason are a *group*, of which one is tried at a time: after five
seconds, in the end each minute. One that is taken has two others tried, each of which does so again: the whole group
goes within seconds once its cause is gone, and where there is room for one only, two are refused. Written by
``writing_mirrors``; what a refusal says to people is ``refusing``'s and ``placement.reasons``'.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from mirror.controllers.memory import Memories
from mirror.controllers.refusing import is_same_text, without_numbers
from mirror.decide.snapshot import Refusal
from mirror.model.keys import SourceKey
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock

AGAIN = Backoff(first=5.0, most=60.0, jitter=0.2)
WOKEN_BY_ONE = 2
LOOK_SECONDS = 1.0
_SOONEST_SECONDS = 3.0
"""No group is tried sooner than this after its last attempt, whatever else is taken there."""

GROUPS_A_SECOND = 20
"""Of one worker, once it is back."""

MOST_GROUPS = 16
"""Of one place; what is refused for still other reasons is one group."""

_Place = tuple[str, str]
"""A worker, and a namespace of sources."""


@dataclass(slots=True)
class _Group:
    """Those who wait, in order; who is being tried is none of them until it is refused again."""

    waiting: dict[str, SourceKey] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    times: int = 0
    """How often in a row one that was tried was refused."""
    tried_at: float = -math.inf
    due_at: float = math.inf


class Refusals:
    """All groups. Invariant: ``_texts`` says of each uid, by place, of which group it is, waiting or tried."""

    def __init__(
        self, memories: Memories, clock: Clock, wake: Callable[[SourceKey], None], chance: random.Random | None = None
    ) -> None:
        self._memories = memories
        self._clock = clock
        self._wake = wake
        self._chance = chance or random.Random()
        self._groups: defaultdict[_Place, dict[str, _Group]] = defaultdict(dict)
        self._texts: dict[str, dict[_Place, str]] = {}

    def __len__(self) -> int:
        return len(self._texts)

    async def run(self) -> None:
        """Have those tried again whose turn it is, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._clock.monotonic()
            for place in list(self._groups):
                for text, group in list(self._groups[place].items()):
                    if group.due_at <= now:
                        self._try(place, text, 1)

    def note_refused(self, key: SourceKey, uid: str, worker: str, because: str) -> None:
        """A worker has refused the first create of a source: it is not tried there before its turn."""
        if self._memories.is_gone(uid):
            return
        place, now = (worker, key.namespace), self._clock.monotonic()
        groups, texts = self._groups[place], self._texts.setdefault(uid, {})
        text = without_numbers(because)
        if text not in groups and len(groups) >= MOST_GROUPS:
            text = ""
        group, before = groups.setdefault(text, _Group()), groups.get(texts.get(place, text))
        was_tried = before is not None and uid in before.tried
        if was_tried and before is not None:
            group.times = max(group.times, before.times)  # other words are no reason to hurry
        if texts.get(place, text) != text:
            self._leave(uid, place)
        group.tried.discard(uid)
        group.waiting[uid] = key
        self._texts.setdefault(uid, {})[place] = text
        if was_tried or group.due_at == math.inf:
            group.times, group.tried_at = group.times + 1, now
            group.due_at = now + AGAIN.delay(group.times, self._chance)
        self._set(uid, worker, because, is_over=False)

    def note_taken(self, key: SourceKey, uid: str, worker: str) -> None:
        """A worker has a mirror of this source: those that it refused in that namespace may be next."""
        place = (worker, key.namespace)
        text = self._texts.get(uid, {}).get(place)
        self.forget(uid)
        self._memories.set(uid, refusals=())
        now = self._clock.monotonic()
        for other, group in list(self._groups.get(place, {}).items()):
            group.times = 0
            group.due_at = min(group.due_at, max(now, group.tried_at + _SOONEST_SECONDS))
            if other == text:
                self._try(place, other, WOKEN_BY_ONE)

    def try_now(self, uid: str) -> None:
        """A source is another one than was refused: its worker may take it."""
        for place in list(self._texts.get(uid, ())):
            self._leave(uid, place)
            self._set(uid, place[0], None, is_over=True)

    def forget(self, uid: str) -> None:
        """A source is gone, or has a mirror."""
        for place in list(self._texts.get(uid, ())):
            self._leave(uid, place)

    def try_soon(self, worker: str) -> None:
        """A worker is another one, or back: one of each group is tried soon, and what it takes has others tried.

        Few groups at a time: a worker that comes back has enough to do, and one that comes and goes refuses the same.
        """
        now, count = self._clock.monotonic(), 0
        for place in [one for one in self._groups if one[0] == worker]:
            for group in self._groups[place].values():
                if group.waiting:
                    group.times = 0
                    at = max(now, group.tried_at + _SOONEST_SECONDS) + count // GROUPS_A_SECOND
                    group.due_at = min(group.due_at, at)
                    count += 1

    def forget_worker(self, worker: str) -> None:
        """It is no worker any more, or was none: what it refused it may accept when it is one again."""
        for place in [one for one in self._groups if one[0] == worker]:
            for group in list(self._groups[place].values()):
                for uid in [*group.waiting, *group.tried]:
                    self._leave(uid, place)
        self._memories.clear_refusals(worker)

    def _try(self, place: _Place, text: str, count: int) -> None:
        """Let the first of a group be assigned to its worker again."""
        group, now = self._groups[place][text], self._clock.monotonic()
        group.tried_at = now
        for uid, key in list(group.waiting.items())[:count]:
            del group.waiting[uid]
            group.tried.add(uid)
            self._set(uid, place[0], None, is_over=True)
            self._wake(key)
        # Of those who are tried, each is taken, or refused again, or its worker has no room for it yet.
        group.due_at = now + AGAIN.delay(max(1, group.times), self._chance) if group.waiting else math.inf

    def _leave(self, uid: str, place: _Place) -> None:
        """Take a source out of its group at a place; a group of nobody goes."""
        texts = self._texts.get(uid, {})
        if (text := texts.pop(place, None)) is None:
            return
        if not texts:
            del self._texts[uid]
        group = self._groups[place][text]
        group.tried.discard(uid)
        group.waiting.pop(uid, None)
        if not group.tried and not group.waiting:
            del self._groups[place][text]
            if not self._groups[place]:
                del self._groups[place]

    def _set(self, uid: str, worker: str, because: str | None, *, is_over: bool) -> None:
        """Note in the memory of a source whether it may be tried there; without a text, if it was refused there."""
        refusals = dict(self._memories.of(uid).refusals)
        before = refusals.get(worker)
        if because is None:
            if before is None:
                return
            because = before.because
        elif before is not None and is_same_text(before.because, because):
            because = before.because  # a count in it is no news (D21)
        refusals[worker] = Refusal(because, is_over)
        self._memories.set(uid, refusals=tuple(refusals.items()))
