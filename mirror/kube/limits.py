"""How fast we may ask one cluster: a token bucket with a fast lane and a pause.

Each worker's ``client`` owns one ``Limiter`` (D12: a cluster that asks us to slow down slows nobody else down); all
clients of the management cluster in one process share one, which several managers divide among them (S12).
Whether a refused request is tried again is not decided here but in ``runtime/loop``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from mirror.kube.lines import Line
from mirror.kube.requests import Rank

LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class LimiterState:
    """What a limiter looks like right now; for /healthz, logs and tests."""

    qps: float
    burst: int
    tokens: float
    waiting: int
    paused_seconds: float
    """How much of a pause is left."""


class Limiter:
    """A token bucket of ``burst`` tokens, refilled with ``qps`` a second; ``qps=0`` means no limit.

    Requests wait in a ``Line``. Urgent ones (leases, probes) do not, not even during a pause: being asked to slow down
    must not cost us the leadership. They count nevertheless: others wait for the token that they took. With ``kept``
    tokens that only they may take, a full load and they together stay within the limit.
    """

    def __init__(self, qps: float, burst: int, clock: Callable[[], float], *, kept: int = 0) -> None:
        if qps < 0 or burst < 1 or not 0 <= kept < burst:
            raise ValueError("qps must not be negative, burst must be at least 1, and more than what is kept of it")
        self._whole = qps, float(burst)
        self._qps, self._burst = self._whole
        self._needed = 1.0 + kept
        """Tokens that must be there for a request that is not urgent; it takes one."""
        self._clock = clock
        self._tokens = float(burst)
        self._counted_at = clock()
        self._paused_until = self._counted_at
        # Pending futures, and those cancelled an instant ago whose task has not run yet.
        self._waiters = Line()
        # Set exactly while somebody waits.
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def is_saturated(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiters)

    def acquire_nowait(self, *, urgent: bool = False) -> bool:
        """Take a token if that needs no waiting; False, and nothing taken, if it does."""
        if urgent:
            self._refill(self._clock())
            # A limit below what leases alone need would let nobody else pass.
            self._tokens = max(-self._burst, self._tokens - min(1.0, self._qps))
            return True
        if self._waiters:
            return False
        return self._take(self._clock())

    async def acquire(self, *, urgent: bool = False, rank: Rank = Rank.FIRST, flow: str = "") -> float:
        """Wait for a token and take it.

        Returns:
            How long that took, in seconds.
        """
        if self.acquire_nowait(urgent=urgent):
            return 0.0
        began = self._clock()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.join(waiter, rank, flow, began)
        if self._alarm is None:
            self._set_alarm(began)
        try:
            await waiter
        except asyncio.CancelledError:
            self._give_up(waiter)
            raise
        return self._clock() - began

    def pause(self, seconds: float) -> None:
        """Grant nothing for so long, at most a minute: a server's wish must not freeze us for days.

        What was saved up is forfeited, so that the pause does not end in a burst.
        """
        now = self._clock()
        self._refill(now)
        self._paused_until = max(self._paused_until, now + min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS))
        self._tokens = min(self._tokens, self._needed)
        if self._alarm is not None:
            self._set_alarm(now)

    def divide(self, parts: int) -> None:
        """From now on grant one of so many equal parts of the rate and of the burst: others grant the rest.

        What has been saved up beyond that is forfeited; a burst is at least what one request needs.
        """
        now = self._clock()
        self._refill(now)
        qps, burst = self._whole
        self._qps, self._burst = qps / parts, max(self._needed, burst / parts)
        self._tokens = min(self._tokens, self._burst)
        if self._alarm is not None:
            self._set_alarm(now)

    def describe(self) -> LimiterState:
        now = self._clock()
        self._refill(now)
        pause = max(0.0, self._paused_until - now)
        return LimiterState(self._qps, int(self._burst), self._tokens, len(self._waiters), pause)

    def _take(self, now: float) -> bool:
        self._refill(now)
        if now < self._paused_until:
            return False
        if self._qps == 0:
            return True
        # The tolerance is for alarms: a sum of float steps may end a hair below what is needed.
        if self._tokens < self._needed - 1e-9:
            return False
        self._tokens -= 1.0
        return True

    def _refill(self, now: float) -> None:
        earning_since = max(self._counted_at, min(self._paused_until, now))
        self._tokens = min(self._burst, self._tokens + (now - earning_since) * self._qps)
        self._counted_at = now

    def _set_alarm(self, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._refill(now)
        missing = max(0.0, self._needed - self._tokens) / self._qps if self._qps else 0.0
        delay = max(0.0, self._paused_until - now) + missing
        self._alarm = asyncio.get_running_loop().call_later(delay, self._serve)

    def _serve(self) -> None:
        """Hand out what there is, in the line's order, and come back when the next token is due."""
        self._alarm = None
        now = self._clock()
        while self._waiters:
            waiter = self._waiters.whose_turn(now)
            if not waiter.cancelled():
                if not self._take(now):
                    break
                waiter.set_result(None)
            self._waiters.leave(waiter)
        if self._waiters:
            self._set_alarm(now)

    def _give_up(self, waiter: asyncio.Future[None]) -> None:
        """A cancelled waiter leaves the queue, or hands its token back if it was served in the same moment."""
        self._waiters.leave(waiter)
        if not waiter.cancelled() and self._qps:
            self._tokens = min(self._burst, self._tokens + 1.0)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._waiters:
            self._set_alarm(self._clock())
