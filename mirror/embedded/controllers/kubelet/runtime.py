"""What runs containers: the interface that both kinds of pods share (``simulated``, ``processes``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from mirror.embedded.controllers.client import Json

KILLED = 137
"""The exit code of what a SIGKILL has ended."""
TERMINATED = 143
"""The exit code of what a SIGTERM has ended."""


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment: ``wall`` is what is written, ``steady`` (seconds) what is reckoned with, since wall clocks are set."""

    wall: datetime
    steady: float

    def steady_of(self, past: datetime) -> float:
        """When something was that is known by the wall clock alone; never later than now."""
        return self.steady - max(0.0, (self.wall - past).total_seconds())

    def wall_of(self, steady: float) -> datetime:
        """What the wall clock showed, or would have shown, at a moment not later than now."""
        return self.wall - timedelta(seconds=max(0.0, self.steady - steady))


class CannotStart(Exception):
    """A container could not be started, now or ever; the run counts as ended."""

    def __init__(self, message: str, *, exit_code: int = 128, reason: str = "StartError") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.reason = reason


class NotYet(Exception):
    """A container cannot be started now, since something is missing that it needs; to be tried again."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of a container ended."""

    exit_code: int
    finished_at: datetime
    at: float
    """The same by the steady clock, from which pauses count."""
    started_at: datetime | None = None
    container_id: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """A container to be started."""

    pod: Json
    container: Json
    restarts: int
    now: Instant
    is_init: bool = False
    is_sidecar: bool = False


class Run(Protocol):
    """One run of a container."""

    @property
    def container_id(self) -> str: ...

    @property
    def started_at(self) -> datetime: ...

    def is_ready(self, now: Instant) -> bool:
        """Whether it serves."""
        ...

    def ended(self, now: Instant) -> Ended | None:
        """How it ended; None while it runs."""
        ...

    def changes_at(self, now: Instant) -> float | None:
        """When to look at it again, by the steady clock; None: it says so itself (``on_change``), or never changes."""
        ...

    def stop(self, now: Instant, grace_seconds: float) -> None:
        """Ask it to end, and kill it after the grace; asked again, the shorter grace counts."""
        ...


class Runtime(Protocol):
    """What a kubelet runs containers with."""

    def remark(self, container: Json) -> str:
        """What people should be told of a container here; nothing if all is as usual."""
        ...

    async def start(self, order: Order, on_change: Callable[[], None]) -> Run:
        """Start a container; ``on_change`` is called when it has ended by itself.

        Raises:
            CannotStart: it never ran.
            NotYet: it cannot run now.
            KubeError: what it needs could not be read.
        """
        ...

    def adopt(self, order: Order, container_id: str, started_at: datetime) -> Run | None:
        """A container that an earlier kubelet has started; None if it is lost."""
        ...

    def forget(self, pod: Json, container_ids: list[str]) -> None:
        """The pod is gone, and so is everything that was kept of it."""
        ...

    def close(self) -> None:
        """The kubelet ends."""
        ...
