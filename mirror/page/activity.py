"""How many Jobs there were in the last hours, by state: counted while somebody looks, else told by the Jobs' own times.

A bar is of all Jobs that were there at some time of its five minutes, each by its state at their end; those that ended
count in the bar in which they did. Pure; ``board`` keeps one, ``chart`` draws it. What it holds is bounded: two numbers
of a few states for each of ``BARS``. Jobs that were deleted while nobody looked are not in it: nothing tells of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from mirror.model.views import JobView

BAR_SECONDS = 300
BARS = 72
"""Six hours."""
GROUPS = ("Waiting", "Running", "Unknown", "Failed", "Complete")
"""In the order in which they are told; the chart stacks them from the last."""
_GROUP_OF = {"Suspended": "Waiting", "Placed": "Waiting", "Deleting": "Running"}

Counts = tuple[int, ...]
"""By ``GROUPS``."""


class Bar(msgspec.Struct, frozen=True):
    """Some minutes."""

    at: datetime
    """When they began."""
    counts: Counts


class Activity:
    """Bars of the past. Invariant: ``_done`` has only bars that were followed from begin to end."""

    def __init__(self) -> None:
        self._done: dict[int, Counts] = {}
        self._rebuilt: dict[int, Counts] = {}
        self._ended: Counter[str] = Counter()
        """Ends in the bar that is not over."""
        self._current = -1
        self._is_whole = False
        """The current bar has been followed from its begin."""
        self._live: Counts = (0,) * len(GROUPS)

    def begin(self, jobs: Iterable[JobView], now: datetime) -> None:
        """Somebody begins to look: what was not followed is told by the Jobs."""
        self._rebuilt = rebuilt(jobs, now)
        self._current, self._is_whole = _number(now), False
        self._ended = Counter(dict(zip(GROUPS, self._rebuilt.get(self._current, self._live), strict=True)))
        for group in ("Waiting", "Running", "Unknown"):
            del self._ended[group]

    def note(self, before: JobView | None, job: JobView | None) -> None:
        """A Job has changed."""
        if job is not None and job.is_finished and before is not None and not before.is_finished:
            self._ended[_group(job.state)] += 1

    def count(self, states: Mapping[str, int], now: datetime) -> None:
        """How many there are now; call it every few seconds while following."""
        number = _number(now)
        if number != self._current:
            if self._is_whole and number == self._current + 1:
                self._done[self._current] = self._live
            elif self._current >= 0:
                self._rebuilt[self._current] = self._live
            self._current, self._is_whole, self._ended = number, True, Counter()
            self._done = {bar: counts for bar, counts in self._done.items() if bar > number - BARS}
            self._rebuilt = {bar: counts for bar, counts in self._rebuilt.items() if bar > number - BARS}
        live: Counter[str] = Counter()
        for state, many in states.items():
            if _group(state) not in ("Complete", "Failed"):
                live[_group(state)] += many
        self._live = tuple((live + self._ended)[group] for group in GROUPS)

    def bars(self, now: datetime) -> tuple[Bar, ...]:
        """Oldest first; always ``BARS``."""
        last, found = _number(now), []
        for number in range(last - BARS + 1, last + 1):
            counts = self._done.get(number) or self._rebuilt.get(number) or (0,) * len(GROUPS)
            found.append(Bar(_at(number), self._live if number == self._current else counts))
        return tuple(found)


def bars_of(jobs: Iterable[JobView], now: datetime) -> tuple[Bar, ...]:
    """As these Jobs alone tell."""
    counts, last = rebuilt(jobs, now), _number(now)
    return tuple(Bar(_at(number), counts[number]) for number in range(last - BARS + 1, last + 1))


def rebuilt(jobs: Iterable[JobView], now: datetime) -> dict[int, Counts]:
    """All bars, by the times that Jobs bear. Times of RFC 3339 in UTC are compared as texts."""
    last = _number(now)
    first = last - BARS + 1
    begins = [_at(number).strftime("%Y-%m-%dT%H:%M:%SZ") for number in range(first, last + 1)]
    steps = {group: [0] * (BARS + 1) for group in GROUPS}
    for job in jobs:
        created = max(0, bisect_right(begins, job.created) - 1)
        started = max(0, bisect_right(begins, job.started) - 1) if job.started else BARS
        if job.is_finished:
            ended = bisect_right(begins, job.finished) - 1
            if ended < 0:
                continue
            group = _group(job.state)
            steps[group][ended] += 1
            steps[group][ended + 1] -= 1
        else:
            ended = BARS
        began = min(max(started, created), ended)
        steps["Waiting"][created] += 1
        steps["Waiting"][max(began, created)] -= 1
        if began < ended:
            steps["Running"][began] += 1
            steps["Running"][ended] -= 1
    found: dict[int, Counts] = {}
    running = [0] * len(GROUPS)
    for index in range(BARS):
        running = [so_far + steps[group][index] for so_far, group in zip(running, GROUPS, strict=True)]
        found[first + index] = tuple(running)
    return found


def _group(state: str) -> str:
    """Kinds' own final conditions count as ends that went well."""
    found = _GROUP_OF.get(state, state)
    return found if found in GROUPS else "Complete"


def _number(at: datetime) -> int:
    return int(at.timestamp() // BAR_SECONDS)


def _at(number: int) -> datetime:
    return datetime.fromtimestamp(number * BAR_SECONDS, UTC)
