"""What a worker's probes and watches say of it: one state, logged and reported as it changes (D13).

The states are ``connection``'s, which is pure; ``worker`` makes the probes, and its watches bring rejections here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from mirror.kube.errors import KubeError, describe
from mirror.kube.kubeconfig import KubeconfigRefused
from mirror.model.text import clean
from mirror.runtime.clock import Clock
from mirror.telemetry.logs import Log
from mirror.workers.connection import Connection, State
from mirror.workers.inventory import IdentityRejected
from mirror.workers.probes import Unsupported
from mirror.workers.spec import WorkerSpec

REJECTIONS = (Unsupported, KubeconfigRefused, IdentityRejected)
"""What declares the worker is at fault, and trying again does not help until it changes."""


class Verdicts:
    """The state of one worker's connection."""

    def __init__(self, connection: Connection, *, clock: Clock, log: Log, on_change: Callable[[], None]) -> None:
        self.connection = connection
        self.refusal = ""
        """Why what declares it is at fault, as an event's reason; empty when it is not."""
        self.watch_rejected: KubeError | None = None
        """The answer to a watch that is not allowed: a loss, although probes go well."""
        self._clock = clock
        self._log = log
        self._on_change = on_change
        self._logged: State | None = None
        self._lost_with: tuple[str, WorkerSpec | str] | None = None

    def begin_anew(self, lost_since: datetime | None) -> None:
        """Forget what is known but since when it is lost, if it is."""
        self.connection = Connection(lost_since=lost_since)
        self.watch_rejected = None

    async def look(self, check: Callable[[], Awaitable[None]], *, given: WorkerSpec | str) -> None:
        """Judge by one probe; its verdict is the connection's new state.

        Args:
            check: the probe.
            given: what declares the worker, or why nothing does; a loss is news when this has changed.
        """
        try:
            await check()
        except REJECTIONS as error:
            self.refusal = type(error).__name__
            text = f"{'kubeconfig refused: ' if isinstance(error, KubeconfigRefused) else ''}{error}"
            self._lose(clean(text), given)
        except KubeError as error:
            self.refusal = ""
            self._lose(summary_of(error), given)
        else:
            self.refusal = ""
            if self.watch_rejected is not None:
                self._lose(f"watch rejected: {summary_of(self.watch_rejected)}", given)
            else:
                self._move(self.connection.connected(self._clock.now()))

    def _lose(self, because: str, given: WorkerSpec | str) -> None:
        is_news, self._lost_with = (self.refusal, given) != self._lost_with, (self.refusal, given)
        self._move(self.connection.lost(self._clock.now(), because, is_news=is_news))

    def _move(self, connection: Connection) -> None:
        before, self.connection = self.connection, connection
        if (before.state, before.because) == (connection.state, connection.because):
            return
        if self._logged != connection.state:
            self._logged = connection.state
            level = self._log.info if connection.is_connected else self._log.warning
            level("worker connection", state=connection.state.value, because=connection.because)
        self._on_change()


def summary_of(error: KubeError) -> str:
    """A text without numbers that vary, so that a repeated loss is not news."""
    return clean(" ".join(describe(error).split()), longest=200)
