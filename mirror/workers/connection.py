"""The states of a connection to a worker: a pure state machine (D13)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

PROBE_SECONDS = 0.9
PROBE_OFTEN_FOR_SECONDS = 300.0
PROBE_MOST_SECONDS = 15.0


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

    def lost(self, now: datetime, because: str) -> Connection:
        """The network, TLS, our rights, the kubeconfig, the Secret: all the same (D13)."""
        if self.state is State.LOST:
            return replace(self, because=because, attempts=self.attempts + 1)
        return Connection(State.LOST, since=now, because=because, lost_since=self.lost_since or now, attempts=1)

    def lost_for_seconds(self, now: datetime) -> float:
        return (now - self.lost_since).total_seconds() if self.lost_since else 0.0

    def probe_delay_seconds(self, now: datetime) -> float:
        """About once a second for five minutes, then growing to 15 s."""
        over = self.lost_for_seconds(now) - PROBE_OFTEN_FOR_SECONDS
        if over <= 0:
            return PROBE_SECONDS
        return min(PROBE_MOST_SECONDS, PROBE_SECONDS + over / 20)
