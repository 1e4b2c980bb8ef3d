"""When sources may be moved from lost workers: what holds all of them, and how many go at once (D14).

Each manager begins anew: a turn is only a moment, and who has just taken over waits anyway. Of several active managers,
who assigns looks at how many workers are lost, and gives turns; who holds a slot waits for its first minute (S8).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from mirror.controllers.management_absence import ManagementAbsence
from mirror.model.terms import CARRIED_OUT_SECONDS, NO_TERMS, Terms
from mirror.placement.move_order import MoveOrder, Mover
from mirror.runtime.environment import Environment
from mirror.sharding.share import EVERYTHING, Share
from mirror.workers.known_workers import Workers

AFTER_TAKING_OVER_SECONDS = CARRIED_OUT_SECONDS
"""A minute is what D14 wants as well."""
TIMER_SECONDS = 0.002
"""A timer may come so much before its time."""
FEWEST_LOST = 2
JUST_TOOK_OVER = "nothing is moved in the first minute of a new leader"
WAS_AWAY = "nothing is moved in the first minute after the management cluster was unreachable"
MOST_ARE_LOST = "nothing is moved while most workers are unreachable"
MOST_OF_HOLDER_ARE_LOST = "nothing is moved while most workers of the manager that it is followed by are unreachable"
_UNTIL_FEWER = "until fewer are"
_UNTIL = {MOST_ARE_LOST: _UNTIL_FEWER, MOST_OF_HOLDER_ARE_LOST: _UNTIL_FEWER, WAS_AWAY: "until that is over"}


@dataclass(frozen=True, slots=True)
class MoveScope:
    """Which part in moves one of several active managers has."""

    share: Share = EVERYTHING
    terms: Terms = NO_TERMS


EVERYWHERE = MoveScope()


class MoveTurns:
    """``observing`` asks what holds moves, ``mirroring`` has it reported, ``applying`` gives turns."""

    def __init__(
        self,
        workers: Workers,
        *,
        rate: float,
        environment: Environment,
        absence: ManagementAbsence | None = None,
        warn: Callable[[str, str, str], None] = lambda worker, reason, text: None,
        scope: MoveScope = EVERYWHERE,
    ) -> None:
        """``rate``: moves a second, 0 for no limit; ``warn``: about a worker, with a reason and a text."""
        self._workers = workers
        self._share = scope.share
        self._terms = scope.terms
        self._rate = rate
        self._environment = environment
        self._absence = absence
        self._warn = warn
        self.on_turn: Callable[[Mover, float], None] = lambda mover, at: None
        """Told whose turn it is, and since when (monotonic); ``applying`` sets it."""
        self._waiting = MoveOrder()
        self._led_since: float | None = None
        self._next_at = float("-inf")
        # For the next turn, while somebody waits for it.
        self._timer: asyncio.TimerHandle | None = None
        self._is_reported = False
        """Whether it was reported that moves are held."""

    def begin_leading(self) -> None:
        """From now on this process may move."""
        self._led_since = self._environment.clock.monotonic()

    def end_leading(self) -> None:
        """Somebody else may move from now on: what was reported is theirs to find out, and who waits, too."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_reported:
            self._is_reported = False
            self._environment.metrics.moves_held.set(0)

    def held(self, worker: str, kind: str) -> str:
        """Why nothing of a kind is moved from a worker now: it may be us who are cut off. Empty: nothing holds it."""
        if self._share.assigns:
            lost = self._workers.lost
            if _are_most(lost, self._workers.living):
                return MOST_ARE_LOST
            # Of several managers it may be the one that has lost them.
            if len(lost) >= FEWEST_LOST and self._most_of(self._terms.holder(worker)):
                return MOST_OF_HOLDER_ARE_LOST
        if self._share.follows and self.settles_in_seconds > 0:
            return JUST_TOOK_OVER
        return WAS_AWAY if self._absence is not None and self._absence.was_just_now(kind) else ""

    @property
    def settles_in_seconds(self) -> float:
        """Until who has taken over may move anything, and what the one before has sent has been carried out (S8)."""
        if self._led_since is None:
            return AFTER_TAKING_OVER_SECONDS
        return max(0.0, self._led_since + AFTER_TAKING_OVER_SECONDS - self._environment.clock.monotonic())

    def _most_of(self, holder: str) -> list[str]:
        """Those of the lost workers whose slots one manager holds, where they are most that it has; else none."""
        workers, holder_of = self._workers, self._terms.holder
        theirs = sorted(name for name in workers.lost if holder_of(name) == holder) if holder else []
        if len(theirs) < FEWEST_LOST:
            return []
        living = (name for name in workers if name in workers.lost or name not in workers.unreachable)
        return theirs if _are_most(theirs, sum(holder_of(name) == holder for name in living)) else []

    def _held_for_long(self) -> dict[str, str]:
        """Lost workers from which nothing is moved, as far as that is ours to judge, and why.

        Not that we have just begun, or that the management cluster was away for a moment, which ends by itself.
        """
        if not self._share.assigns:
            return {}
        lost = sorted(self._workers.lost)
        if _are_most(lost, self._workers.living):
            return dict.fromkeys(lost, MOST_ARE_LOST)
        if self._absence is not None and self._absence.is_long:
            return dict.fromkeys(lost, WAS_AWAY)
        holders = dict.fromkeys(map(self._terms.holder, lost)) if len(lost) >= FEWEST_LOST else {}
        return {name: MOST_OF_HOLDER_ARE_LOST for holder in holders for name in self._most_of(holder)}

    def report(self) -> None:
        """A move is held: where that may last, it is reported once, until it is over."""
        held = self._held_for_long()
        if bool(held) == self._is_reported:
            return
        self._is_reported = bool(held)
        self._environment.metrics.moves_held.set(self._is_reported)
        if held:
            self._environment.log.warning("moves held", unreachable=len(held), workers=self._workers.living)
            for name, why in held.items():
                self._warn(name, "MovesHeld", f"{why}; its Jobs stay with it {_UNTIL[why]}")

    def report_end(self) -> None:
        """Nobody may want to move any more: what was reported ends when it is over."""
        if self._is_reported:
            self.report()

    def request(self, mover: Mover) -> None:
        """Have it moved when it is its turn; one that waits for that already goes on waiting."""
        self.report_end()
        if not len(self._waiting):
            self._next_at = max(self._next_at, self._environment.clock.monotonic())
        self._waiting.add(mover)
        if self._timer is None:
            self._serve()

    def _serve(self) -> None:
        """Give all turns that are due, and set the timer for the next one."""
        self._timer, now = None, self._environment.clock.monotonic()
        while len(self._waiting) and self._next_at <= now + TIMER_SECONDS:
            self._next_at += 1.0 / self._rate if self._rate else 0.0
            self.on_turn(self._waiting.take(), now)
        if len(self._waiting):
            self._timer = asyncio.get_running_loop().call_later(self._next_at - now, self._serve)


def _are_most(lost: Collection[str], of: int) -> bool:
    return len(lost) >= FEWEST_LOST and 2 * len(lost) > of
