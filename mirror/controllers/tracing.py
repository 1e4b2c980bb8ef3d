"""When the trace of a Job is sent: once its final status is stored. Exists only where the settings want traces.

``applying`` reports each final status that it has stored; ``mirroring`` each look at a source that is over, for
those whose write nobody knows to have gone well: its answer was lost, or the process before us ended before it sent
their trace. What a trace holds, its kind says; where it goes, in ``telemetry/otlp``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mirror.decide.snapshot import Source
from mirror.runtime.clock import Clock
from mirror.telemetry.spans import Span

RECENT_SECONDS = 120.0
"""Longer than another manager needs to take over, and than the spans of the one before waited to be sent."""
MOST_REMEMBERED = 20_000

Send = Callable[[tuple[Span, ...]], None]
"""Must neither wait nor raise."""


class Traces:
    """One trace per source. Sent again after a restart it has the same ids, so that it is the same trace."""

    def __init__(self, send: Send, clock: Clock) -> None:
        self._send = send
        self._clock = clock
        # The newest sources whose trace was sent, by uid, in that order.
        self._sent: dict[str, None] = {}

    def on_stored(self, source: Source, status: Mapping[str, Any]) -> None:
        """A final status of a source was stored just now."""
        self._send_trace(source, status, self._now())

    def on_finished(self, source: Source) -> None:
        """A source that is over was looked at."""
        if source.uid in self._sent:
            return
        ended = source.kind.ended_at(source.stored.status)
        if ended is not None and abs(self._now() - ended) <= RECENT_SECONDS * 1e9:
            self._send_trace(source, source.stored.status, None)

    def _send_trace(self, source: Source, status: Mapping[str, Any], stored_at: int | None) -> None:
        self._sent[source.uid] = None
        if len(self._sent) > MOST_REMEMBERED:
            del self._sent[next(iter(self._sent))]
        if spans := source.kind.spans(source.found, status, stored_at=stored_at):
            self._send(spans)

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * 1e9)
