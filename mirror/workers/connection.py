"""The states of a connection to a worker: a pure state machine (D13)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

PROBE_SECONDS = 0.9
PROBE_OFTEN_FOR_SECONDS = 300.0
PROBE_MOST_SECONDS = 15.0
STEADY_TIMES = 5
"""So often in a row a lost worker has to fail in another way before that is what is told of it."""


class State(StrEnum):
    """Where a connection is."""

    CONNECTING = "Connecting"
    CONNECTED = "Connected"
    LOST = "Lost"


@dataclass(frozen=True, slots=True)
class Connection:
    """One worker's connection. ``lost_since`` is kept until it is connected again."""

    state: State = State.CONNECTING
    since: datetime | None = None
    because: str = ""
    # Counted from the *first* loss: a failed reconnect, a restart or another cause must not prolong the grace.
    lost_since: datetime | None = None
    attempts: int = 0
    heard: str = ""
    """What the last attempts failed with, if it is not ``because``."""
    heard_times: int = 0

    @property
    def is_connected(self) -> bool:
        return self.state is State.CONNECTED

    @property
    def has_verdict(self) -> bool:
        """Whether at least one attempt has ended, well or not."""
        return self.state is not State.CONNECTING

    def connected(self, now: datetime) -> Connection:
        if self.is_connected:
            return self
        return Connection(State.CONNECTED, since=now)

    def lost(self, now: datetime, because: str, *, is_news: bool = True) -> Connection:
        """The network, TLS, our rights, the kubeconfig, the Secret: all the same (D13).

        Args:
            now: the end of the attempt.
            because: what it failed with.
            is_news: whether what it depends on has changed. Else the same loss in other words is none (D21), until
                it has come ``STEADY_TIMES`` in a row: a server that comes back with another trouble has that.
        """
        if self.state is not State.LOST:
            return Connection(State.LOST, since=now, because=because, lost_since=self.lost_since or now, attempts=1)
        times = self.heard_times + 1 if because == self.heard else 1
        if is_news or because == self.because or times >= STEADY_TIMES:
            return replace(self, because=because, attempts=self.attempts + 1, heard="", heard_times=0)
        return replace(self, attempts=self.attempts + 1, heard=because, heard_times=times)

    def lost_for_seconds(self, now: datetime) -> float:
        return (now - self.lost_since).total_seconds() if self.lost_since else 0.0

    def probe_delay_seconds(self, now: datetime) -> float:
        """About once a second for five minutes, then growing to 15 s."""
        over = self.lost_for_seconds(now) - PROBE_OFTEN_FOR_SECONDS
        if over <= 0:
            return PROBE_SECONDS
        return min(PROBE_MOST_SECONDS, PROBE_SECONDS + over / 20)
