"""The states of a connection to a worker, and how long it may say nothing: pure state machines (D13)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

PROBE_SECONDS = 0.9
PROBE_OFTEN_FOR_SECONDS = 300.0
PROBE_MOST_SECONDS = 15.0
STEADY_TIMES = 5
"""So often in a row a lost worker has to fail in another way before that is what is told of it."""
SILENT_SECONDS = 210.0
"""So long a worker may answer probes and say nothing of its mirrors: more than a watch takes to find out that it is
silent (``runtime.informer``), and to ask again twice."""


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


class Silence:
    """Whether a worker that answers probes keeps silent about its mirrors; asked at each probe that went well."""

    def __init__(self) -> None:
        self._is_lost_for_it = False
        self._could_tell_since = 0.0

    def is_too_long(self, silent_seconds: float, now: float, *, was_connected: bool) -> bool:
        """Whether it counts as lost.

        Args:
            silent_seconds: since it has last told anything of some of its mirrors, although it was asked to.
            now: by a clock that only goes forward.
            was_connected: what the probe before said; one that was away could tell nothing.
        """
        if not was_connected and not self._is_lost_for_it:
            self._could_tell_since = now
        if silent_seconds < SILENT_SECONDS:
            self._is_lost_for_it = False
        elif now - self._could_tell_since >= SILENT_SECONDS:
            self._is_lost_for_it = True
        return self._is_lost_for_it
