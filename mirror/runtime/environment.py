"""What every part of a process is given: the clock, the log and the metrics."""

from __future__ import annotations

from dataclasses import dataclass

from mirror.runtime.clock import Clock
from mirror.telemetry.logs import Log
from mirror.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Environment:
    """One process's."""

    clock: Clock
    log: Log
    metrics: Metrics
